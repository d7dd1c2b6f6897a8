import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Whose commit it was.
struct CommitWatchTests {
    private let folder: TemporaryFolder
    private let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = folder("store.sqlite")
        try CacheManager.makeStore(at: url, rows: 1)
    }

    private func connection() throws -> Connection {
        var connection = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
        _ = try connection.rowCount()
        return connection
    }

    private struct NoCounter: Error {}

    private func watch(of connection: borrowing Connection) throws -> CommitWatch {
        guard let counter = CommitCounter(of: connection) else { throw NoCounter() }
        return CommitWatch(counter)
    }

    @Test func `a commit of our own begins no round, one of somebody else's does`() throws {
        var ours = try connection()
        var other = try connection()
        let watch = try watch(of: ours)
        let first = watch.round()
        try ours.transaction { (connection) throws(SQLiteError) in
            #expect(watch.beginCommit() == first)
            try connection.insertRow(named: "ours")
        }
        // Seen before its end is noted, by a reader on another thread.
        #expect(watch.round() == first)
        watch.endCommit(isCommitted: true)
        #expect(watch.round() == first && watch.isQuiet)
        try other.insertRow(named: "other")
        #expect(!watch.isQuiet)
        let second = watch.round()
        #expect(second != first)
        #expect(watch.round() == second)
    }

    @Test func `what another commits after we have changed nothing is not taken for ours`() throws {
        var ours = try connection()
        var other = try connection()
        let watch = try watch(of: ours)
        let first = watch.round()
        try ours.transaction { (_) throws(SQLiteError) in
            _ = watch.beginCommit()
            watch.abandonCommit()
        }
        try other.insertRow(named: "other")
        let second = watch.round()
        #expect(second != first)
        watch.endCommit(isCommitted: true)
        #expect(watch.round() == second)
    }

    @Test func `what another commits after ours has failed is not taken for ours`() throws {
        var ours = try connection()
        var other = try connection()
        let watch = try watch(of: ours)
        let first = watch.round()
        try ours.transaction { (_) throws(SQLiteError) in
            _ = watch.beginCommit()
            watch.abandonCommit()
        }
        try other.insertRow(named: "other")
        watch.endCommit(isCommitted: false)
        #expect(watch.round() != first)
    }

    @Test func `writes that change nothing hide nobody else's`() throws {
        var configuration = ManualTime().configuration
        configuration.busyTimeout = .seconds(120)
        let manager = try CacheManager(url: url, configuration: configuration)
        let cache: Cache<Int, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(clearsOnMemoryPressure: false))
        cache[1] = Data([0])
        let (isDone, ended) = (Counter(), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            do {
                while isDone.value == 0 { try cache.remove(99) }
            } catch {
                Issue.record(error)
            }
            ended.signal()
        }
        var shell = try Intruder(url)
        var stale = 0
        for number in 1...3000 {
            let byte = UInt8(number & 255)
            try shell.change("UPDATE entry SET payload = x'\(String(format: "%02X", byte))' WHERE key = 1")
            if try cache.value(forKey: 1) != Data([byte]) { stale += 1 }
        }
        isDone.increment()
        ended.wait()
        #expect(stale == 0)
    }
}
