import Foundation
import Larder
import LarderTestSupport
import Testing

/// The length of the log under everything at once.
struct LogBoundTests {
    private static let rounds = 12

    /// What pages and their heads take in the log.
    private func bytes(pages: Int) -> Int { pages * (4096 + 24) }

    @Test func `where nothing runs in the background, whoever writes copies the log at its bound`() throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        // Time stands still, and what would be done on other threads waits for it.
        let manager = try CacheManager(url: url, configuration: ManualTime().configuration)
        let store = try manager.writableStore()
        var longest = 0
        for number in 0..<3000 {
            try store.insertRow(named: "\(number) " + String(repeating: "x", count: 300))
            longest = max(longest, try logLength(url))
        }
        // The last transaction had a few pages.
        #expect((bytes(pages: Database.longestLog)...bytes(pages: Database.longestLog + 20)).contains(longest))
        try manager.close()
    }

    @Test(arguments: [false, true])
    func `two processes that write and clear from many threads keep the log within its bound`(reads: Bool) throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        let mixture = try Mixture(url, rounds: Self.rounds, reads: reads)
        let child = try ChildProcess("larder-test-cache", ["mix", url.path, "\(Self.rounds)", "\(reads)"])
        #expect(child.line() == "mixing")
        mixture.start()
        var longest = 0
        while !mixture.isFinished {
            longest = max(longest, try logLength(url))
            sched_yield()
        }
        #expect(try child.finish().lines == ["mixed"])
        try mixture.finish()
        // As long as somebody is in the middle of a read, who may wait there for the processor, the log cannot start anew.
        if !reads {
            // Two transactions of some eight hundred pages, and what the one commits while the other waits for its turn.
            #expect(longest <= bytes(pages: 2 * Database.longestLog), "\(longest >> 10) KiB")
        }
        print("longest log, reads \(reads): \(longest >> 10) KiB")
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
