import Foundation
import Larder
import LarderTestSupport
import Testing

/// Migrations of values that are killed, or end on a full disk.
struct KilledMigrationTests {
    private static let kills = LongTests.areEnabled ? 220 : 40

    @Test func `whatever moment a migration is killed at, the cache is whole under the old version or under the new`()
        throws
    {
        var random = Seeded()
        print("killed migrations: SEED=\(random.seed)")
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        let first = try CacheManager(url: url, configuration: .later)
        try MigrationSample.fill(first, 1)
        try first.close()
        var version = 1
        for round in 0..<Self.kills {
            let place = "seed \(random.seed), round \(round)"
            // It has taken in a part of the rows, or is killed by the clock.
            let isHalf = round % 2 == 0
            let end = isHalf ? Int.random(in: 257..<MigrationSample.count, using: &random) : 0
            let child = try ChildProcess("larder-test-cache", ["migrate", url.path, "\(version)", "\(end)"])
            let lines = try isHalf ? child.finish().lines : child.lines(killedAfter: 1, within: 50_000, &random)
            let acknowledged = lines.last.flatMap { Int($0) } ?? version
            let manager = try CacheManager(url: url, configuration: .later)
            let rows = try StoreProbe(manager).entryCount()
            #expect(!isHalf || rows > MigrationSample.count, "\(place)")
            let found = try MigrationSample.check(manager)
            // The version after the last acknowledged one may be reached too.
            #expect((acknowledged...acknowledged + 1).contains(found.version) && found.problems == [], "\(place)")
            version = found.version
            if round % 4 == 3 {
                #expect(
                    try manager.verify().problems == [] && StoreProbe(manager).fileProblems(isSwept: true) == [],
                    "\(place)")
                #expect(try StoreProbe(manager).entryCount() == MigrationSample.count, "\(place)")
            }
            try manager.close()
        }
        #expect(try folder.salvagedNames == [], "seed \(random.seed)")
    }

    @Test(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
    func `a full disk ends a migration, and the old version is whole`() throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["migrate-full", folder.url.path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 12 << 10, ballast: 0))
        let lines = try withExtendedLifetime(folder) { try child.finish().lines }
        #expect(
            lines == [
                "migrate storageFull", "version 1 problems 0", "version 2 problems 0", "rows true []",
            ])
    }
}
