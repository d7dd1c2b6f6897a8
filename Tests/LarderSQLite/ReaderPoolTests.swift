import LarderSQLite
import LarderTestSupport
import Testing

struct ReaderPoolTests {
    private final class Counts: Sendable {
        let opened = Counter()
        let scheduled = Counter()
        let renewed = Counter()
    }

    private func pool(
        _ file: DatabaseFile, _ counter: CommitCounter?, _ counts: Counts, size: Int = 2
    ) -> ReaderPool {
        ReaderPool(
            count: size, counter: counter,
            open: { () throws(SQLiteError) in
                counts.opened.increment()
                return try file.open(.reader)
            },
            willRenew: { counts.renewed.increment() },
            scheduleLettingGo: { _ in counts.scheduled.increment() })
    }

    private func count(_ pool: ReaderPool) throws -> Int64 {
        try pool.read { (connection) throws(SQLiteError) in try connection.count() }
    }

    @Test func `a read sees every commit before it, and renews only after one`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        let counts = Counts()
        let pool = pool(file, try CommitCounter.required(of: writer), counts)
        defer { pool.close() }
        for expected in 1...10 {
            try writer.insert()
            for _ in 0..<5 { #expect(try count(pool) == Int64(expected)) }
        }
        #expect(counts.opened.value == 1)
        // One that is not kept, since somebody commits between any two reads for all we know, and one that is.
        #expect(counts.renewed.value == 20)
        #expect(counts.scheduled.value == 1)
    }

    @Test func `a transaction is kept from the second read between two commits on`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        let counts = Counts()
        let pool = pool(file, try CommitCounter.required(of: writer), counts)
        defer { pool.close() }
        for _ in 0..<3 {
            try writer.insert()
            _ = try count(pool)
            #expect(pool.isIdle)
        }
        #expect(counts.scheduled.value == 0)
        _ = try count(pool)
        #expect(!pool.isIdle)
        #expect(counts.scheduled.value == 1)
    }

    @Test func `a transaction under which the log was copied is not kept, or the log could not start anew`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        let pool = pool(file, try CommitCounter.required(of: writer), Counts())
        defer { pool.close() }
        try writer.insert()
        _ = try count(pool)
        try pool.read { (connection) throws(SQLiteError) in
            _ = try connection.count()
            var copying = try file.open(.writer)
            var guardian = try file.open(.guardian)
            #expect(try copying.checkpoint(guardedBy: &guardian)?.isComplete == true)
        }
        #expect(pool.isIdle)
        try writer.insert()
        #expect(writer.logPages < 3)
    }

    @Test func `a reader that is busy while all are let go of keeps nothing afterwards`() throws {
        let file = try DatabaseFile()
        let writer = try file.open(.writer)
        let counts = Counts()
        let pool = pool(file, try CommitCounter.required(of: writer), counts)
        defer { pool.close() }
        for _ in 0..<2 { _ = try count(pool) }
        #expect(!pool.isIdle)
        #expect(counts.scheduled.value == 1)
        let seen = try pool.read { (connection) throws(SQLiteError) in
            pool.letGo()
            return try connection.count()
        }
        #expect(seen == 0)
        #expect(pool.isIdle)
        // Somebody comes back for the one that was skipped.
        #expect(counts.scheduled.value == 2)
    }

    @Test func `a snapshot from before a checkpoint of others is renewed, and one from after it does not hold the log`()
        throws
    {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        var guardian = try file.open(.guardian)
        let counts = Counts()
        let pool = pool(file, try CommitCounter.required(of: writer), counts)
        defer { pool.close() }
        for _ in 0..<10 { try writer.insert() }
        for _ in 0..<2 { _ = try count(pool) }
        #expect(try writer.checkpoint(guardedBy: &guardian)?.isComplete == true)
        let renewed = counts.renewed.value
        for _ in 0..<5 { _ = try count(pool) }
        #expect(counts.renewed.value == renewed + 1)
        #expect(!pool.isIdle)
        let before = writer.logPages
        try writer.insert()
        #expect(writer.logPages < before)
    }

    @Test func `a long log that is not copied is not held`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        let counts = Counts()
        let pool = pool(file, try CommitCounter.required(of: writer), counts)
        defer { pool.close() }
        for _ in 0..<600 { try writer.insert(bytes: 8000) }
        for _ in 0..<3 { _ = try count(pool) }
        #expect(pool.isIdle)
    }

    @Test(arguments: [1, 2, 3, 50])
    func `a pool that reads beside a writer it does not know leaves the log bounded`(readsPerCommit: Int) throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        var guardian = try file.open(.guardian)
        let pool = pool(file, try CommitCounter.required(of: writer), Counts())
        defer { pool.close() }
        var longest = 0
        for commit in 0..<4000 {
            try writer.insert(bytes: 3000)
            longest = max(longest, writer.logPages)
            if writer.logPages >= 1000, commit % 100 == 0 { _ = try writer.checkpoint(guardedBy: &guardian) }
            for _ in 0..<readsPerCommit { _ = try pool.read { (connection) throws(SQLiteError) in connection.changes } }
        }
        // Twice the length at which it is to be copied, and what is written until somebody tries.
        #expect(longest < 2400)
    }

    @Test func `readers that were let go of stand on no row, and hold the log no longer`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        var guardian = try file.open(.guardian)
        let counts = Counts()
        let pool = pool(file, try CommitCounter.required(of: writer), counts)
        defer { pool.close() }
        try writer.insert()
        for _ in 0..<2 { _ = try count(pool) }
        #expect(!pool.isIdle)
        // It stands in the log: what comes after it is not copied.
        try writer.insert()
        #expect(try writer.checkpoint(guardedBy: &guardian)?.isComplete == false)
        pool.letGo()
        #expect(pool.isIdle)
        #expect(try writer.checkpoint(guardedBy: &guardian)?.isComplete == true)
        for _ in 0..<2 { #expect(try count(pool) == 2) }
        #expect(counts.scheduled.value == 2)
    }

    @Test func `without a counter each read is a transaction of its own`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        let counts = Counts()
        let pool = pool(file, nil, counts)
        defer { pool.close() }
        #expect(try count(pool) == 0)
        #expect(pool.isIdle)
        try writer.insert()
        #expect(try count(pool) == 1)
        #expect(counts.renewed.value == 0)
    }

    @Test func `a read inside a read takes another connection`() throws {
        let file = try DatabaseFile()
        let counts = Counts()
        let pool = pool(file, nil, counts)
        defer { pool.close() }
        let inner = try pool.read { (connection) throws(SQLiteError) in
            try pool.read { (connection) throws(SQLiteError) in try connection.count() }
        }
        #expect(inner == 0)
        #expect(counts.opened.value == 2)
    }

    @Test func `a closed pool says so, a suspended one opens again`() throws {
        let file = try DatabaseFile()
        let counts = Counts()
        let pool = pool(file, nil, counts)
        defer { pool.close() }
        _ = try count(pool)
        pool.suspended {
            #expect(counts.opened.value == 1)
        }
        _ = try count(pool)
        #expect(counts.opened.value == 2)
        pool.close()
        let error = #expect(throws: SQLiteError.self) { try count(pool) }
        #expect(error?.code == SQLiteError.closed.code)
    }
}
