import Foundation
import Larder
import LarderTestSupport
import Testing

struct LogBoundTests {
    private static let rounds = 12

    /// The work is single writes, large transactions, large values, updates and clears, on many threads at once.
    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: [false, true])
    func `two processes that write and clear on many threads leave a sound store and a short log`(
        reads: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        let mixture = try Mixture(url, rounds: Self.rounds, reads: reads)
        let child = try ChildProcess("larder-test-cache", ["mix", url.path, "\(Self.rounds)", "\(reads)"])
        #expect(child.line() == "mixing")
        mixture.start()
        #expect(try child.finish().lines == ["mixed"])
        try mixture.finish()
        let manager = try CacheManager(url: url, configuration: .later)
        #expect(try manager.verify().problems == [])
        #expect(try StoreProbe(manager).fileProblems(isSwept: true) == [])
        let cache: Cache<Int, Int> = try manager.cache(named: "after", version: "1", maxAge: .unlimited)
        try cache.setValue(1, forKey: 1)
        #expect(try logSize(folder) <= 4 << 20)
        try manager.close()
        #expect(try logSize(folder) == 0)
    }

    private func logSize(_ folder: TemporaryFolder) throws -> Int {
        let log = folder("store.sqlite-wal")
        return FileManager.default.fileExists(atPath: log.path) ? try log.fileSize() : 0
    }
}
