import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

struct KilledFilesTests {
    /// The number of times that each value repeats that of the model.
    private static let times = 10

    /// The changes are a function of the seed, so the parent knows which ones were acknowledged before the kill.
    ///
    /// The program does its upkeep in between, with a clock by which each file is an hour old.
    @Test func `a process that is killed at any moment leaves each entry with its whole file`() throws {
        let (place, rounds) = (try StorePlace(), LongTests.areEnabled ? 200 : 20)
        var random = Seeded()
        var (done, model, named, orphans) = (0, RowsModel(seed: random.seed), Set<String>(), 0)
        for round in 0..<rounds {
            let child = try ChildProcess(
                "larder-test-rows", ["files", "\(random.seed)", "\(done)", place.path, "\(Self.times)"])
            let acknowledged = try child.kill(after: .random(in: 1...40, using: &random))
            model.advance(to: acknowledged)
            let store = try place.open()
            let rows = try store.open(.rows)
            // The change after the last acknowledged one may be there too.
            if try !areEqual(rows, model) { model.advance(to: acknowledged + 1) }
            let isEqual = try areEqual(rows, model)
            #expect(isEqual, "round \(round), seed \(random.seed)")
            done = model.count
            #expect(try rows.totals().count == model.entries.count)
            try store.close()
            // Rows of retired incarnations have their files too.
            let (current, files) = (try place.namedFiles(), try place.fileNames())
            #expect(current.isSubset(of: files), "round \(round), seed \(random.seed)")
            named.formUnion(current)
            orphans += files.count - current.count
        }
        #expect(done > 20 && named.count > 20 && orphans > 0)
        try expectMaintenance(of: place, toKeep: model)
    }

    /// Expects that maintenance deletes all files without rows, those of killed programs included, and no others.
    private func expectMaintenance(of place: StorePlace, toKeep model: RowsModel) throws {
        let clock = StoreClock()
        clock.moveAnHourAhead()
        let store = try place.open(clock)
        let orphans = try place.fileNames().subtracting(place.namedFiles())
        #expect(try store.maintain().orphans == orphans.count)
        #expect(try place.fileNames() == place.namedFiles())
        let isEqual = try areEqual(store.open(.rows), model)
        #expect(isEqual)
        try store.close()
        #expect(try place.fileNames() == place.namedFiles())
    }

    private func areEqual(_ rows: CacheRows, _ model: RowsModel) throws -> Bool {
        try (0..<RowsModel.keys).allSatisfy { key in
            try rows.text(key) == model.entries[key].map { String(repeating: $0, count: Self.times) }
        }
    }
}

/// Returns a text that is a file.
func big(_ text: String) -> String { String(repeating: text, count: 200) }

extension StorePlace {
    /// A value file.
    func file(_ name: String) -> URL { folder("store.files").appendingPathComponent(name) }

    /// The names in the folder of the value files.
    func fileNames() throws -> Set<String> {
        let path = folder("store.files").path
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        return Set(try FileManager.default.contentsOfDirectory(atPath: path))
    }

    /// The files that rows name, those of retired incarnations included.
    func namedFiles() throws -> Set<String> {
        var other = try otherConnection()
        return Set(try other.texts("SELECT file FROM entry WHERE file IS NOT NULL"))
    }
}

extension CacheRows {
    /// Returns the name of an entry's value file.
    func file(_ key: Int64) throws -> String { try #require(try header(.integer(key))?.file) }
}

extension StoreClock {
    /// Moves the time so far that each file that was written until now is an hour old.
    func moveAnHourAhead() { advance(Int64(Date().timeIntervalSince1970 * 1000) + 3_700_000 - now) }
}
