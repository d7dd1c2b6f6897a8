import Foundation
import LarderSQLite
import LarderTestSupport
import Testing

struct CheckpointTests {
    @Test func `no commit and no closing copies the log by itself`() throws {
        let file = try DatabaseFile()
        let before = try file.url.fileSize()
        do {
            var writer = try file.open(.writer)
            for _ in 0..<3000 { try writer.insert(bytes: 3000) }
        }
        #expect(try file.url.fileSize() == before)
        #expect(try file.logURL.fileSize() > 3000 * 4096)
        var reopened = try file.open(.writer)
        #expect(try reopened.count() == 3000)
    }

    @Test func `a checkpoint moves every page, and the next commit starts the log anew and cuts it`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        var guardian = try file.open(.guardian)
        for _ in 0..<3000 { try writer.insert(bytes: 3000) }
        #expect(try writer.checkpoint(guardedBy: &guardian))
        #expect(writer.logPages > 3000)
        try writer.insert()
        #expect(writer.logPages < 10)
        #expect(try file.logURL.fileSize() <= Connection.logSizeLimit)
    }

    @Test func `while somebody writes there is no checkpoint, and while one runs nobody writes`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        var guardian = try file.open(.guardian)
        var other = try file.open(.writer)
        try writer.insert()
        try other.execute("BEGIN IMMEDIATE")
        #expect(try !writer.checkpoint(guardedBy: &guardian))
        try other.execute("COMMIT")
        #expect(try writer.checkpoint(guardedBy: &guardian))
        // The lock was let go of.
        try other.insert()
    }

    @Test func `the log is started anew under the write lock from its first look on`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        var other = try file.open(.writer)
        try other.execute("BEGIN IMMEDIATE; PRAGMA user_version = 7")
        let error = #expect(throws: SQLiteError.self) { try writer.shrinkLog(to: 0, CommitWatch(nil, isBlind: false)) }
        // Where the number was read before the lock was taken, the migration under way would be undone.
        #expect(error?.sql == "BEGIN IMMEDIATE")
        // What failed leaves no other setting behind.
        #expect(try writer.text("PRAGMA journal_size_limit") == "\(Connection.logSizeLimit)")
        try other.execute("COMMIT")
        try writer.shrinkLog(to: 0, CommitWatch(nil, isBlind: false))
        #expect(try writer.userVersion() == 7)
    }

    @Test func `closing the last connection leaves a log of zeros, and another one needs it`() throws {
        let file = try DatabaseFile()
        do {
            var writer = try file.open(.writer)
            for _ in 0..<20 { try writer.insert(bytes: 3000) }
        }
        let log = try Data(contentsOf: file.logURL)
        var last = try file.open(.writer)
        var other = try file.open(.reader)
        _ = try (last.userVersion(), other.userVersion())
        let isEmptiedEarly = try last.emptyLog(keeping: 8192)
        #expect(!isEmptiedEarly)
        #expect(try Data(contentsOf: file.logURL) == log)
        // A connection that builds the index does not know what was copied.
        var guardian = try file.open(.guardian)
        _ = try last.checkpoint(guardedBy: &guardian)
        _ = consume guardian
        _ = consume other
        let isEmptied = try last.emptyLog(keeping: 8192)
        #expect(isEmptied)
        _ = consume last
        #expect(try Data(contentsOf: file.logURL) == Data(count: 8192))
        var reopened = try file.open(.writer)
        #expect(try reopened.count() == 20)
    }
}
