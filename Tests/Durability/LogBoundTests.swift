import Foundation
import Larder
import LarderTestSupport
import Testing

/// A store and the length of its log after everything at once.
struct LogBoundTests {
    private static let rounds = 12

    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: [false, true])
    func `two processes that write and clear from many threads leave a sound store`(reads: Bool) throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        let mixture = try Mixture(url, rounds: Self.rounds, reads: reads)
        let child = try ChildProcess("larder-test-cache", ["mix", url.path, "\(Self.rounds)", "\(reads)"])
        #expect(child.line() == "mixing")
        mixture.start()
        #expect(try child.finish().lines == ["mixed"])
        try mixture.finish()
        // From here on nothing runs in the background that could read while the log is to start anew.
        let manager = try CacheManager(url: url, configuration: ManualTime(Date()).configuration)
        #expect(try manager.verify().problems == [])
        try manager.maintain()
        let cache: Cache<Int, Int> = try manager.cache(named: "after", version: "1", maxAge: .unlimited)
        cache[1] = 1
        #expect(try logLength(url) <= 4 << 20)
        #expect(try manager.fileProblems(isSwept: true) == [])
        try manager.close()
    }

    private func logLength(_ url: URL) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: url.path + "-wal")[.size] as? Int ?? 0
    }
}
