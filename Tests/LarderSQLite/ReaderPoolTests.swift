import LarderSQLite
import Synchronization
import Testing

struct ReaderPoolTests {
    private final class Counts: Sendable {
        let opened = Atomic(0)
        let scheduled = Atomic(0)
        let renewed = Atomic(0)
    }

    private func pool(
        _ file: DatabaseFile, _ counter: CommitCounter?, _ counts: Counts, size: Int = 2
    ) -> ReaderPool {
        ReaderPool(
            count: size, counter: counter,
            open: { () throws(SQLiteError) in
                counts.opened.add(1, ordering: .relaxed)
                return try file.open(.reader)
            },
            willRenew: { counts.renewed.add(1, ordering: .relaxed) },
            scheduleLettingGo: { _ in counts.scheduled.add(1, ordering: .relaxed) })
    }

    private func count(_ pool: ReaderPool) throws -> Int64 {
        try pool.read { (connection) throws(SQLiteError) in try connection.count() }
    }

    @Test func `a read sees every commit before it, and renews only after one`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        let counts = Counts()
        let pool = pool(file, try CommitCounter.required(of: writer), counts)
        for expected in 1...10 {
            try writer.insert()
            for _ in 0..<5 { #expect(try count(pool) == Int64(expected)) }
        }
        #expect(counts.opened.load(ordering: .relaxed) == 1)
        #expect(counts.renewed.load(ordering: .relaxed) == 10)
        #expect(counts.scheduled.load(ordering: .relaxed) == 1)
    }

    @Test func `readers that were let go of stand on no row, and hold the log no longer`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        var guardian = try file.open(.guardian)
        let counts = Counts()
        let pool = pool(file, try CommitCounter.required(of: writer), counts)
        try writer.insert()
        _ = try count(pool)
        #expect(!pool.isIdle)
        // It stands in the log: what comes after it is not copied.
        try writer.insert()
        #expect(try writer.checkpoint(guardedBy: &guardian)?.isComplete == false)
        pool.letGo()
        #expect(pool.isIdle)
        #expect(try writer.checkpoint(guardedBy: &guardian)?.isComplete == true)
        #expect(try count(pool) == 2)
        #expect(counts.scheduled.load(ordering: .relaxed) == 2)
    }

    @Test func `without a counter each read is a transaction of its own`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        let counts = Counts()
        let pool = pool(file, nil, counts)
        #expect(try count(pool) == 0)
        #expect(pool.isIdle)
        try writer.insert()
        #expect(try count(pool) == 1)
        #expect(counts.renewed.load(ordering: .relaxed) == 0)
    }

    @Test func `a read inside a read takes another connection`() throws {
        let file = try DatabaseFile()
        let counts = Counts()
        let pool = pool(file, nil, counts)
        let inner = try pool.read { (connection) throws(SQLiteError) in
            try pool.read { (connection) throws(SQLiteError) in try connection.count() }
        }
        #expect(inner == 0)
        #expect(counts.opened.load(ordering: .relaxed) == 2)
    }

    @Test func `a closed pool says so, a suspended one opens again`() throws {
        let file = try DatabaseFile()
        let counts = Counts()
        let pool = pool(file, nil, counts)
        _ = try count(pool)
        pool.suspended {
            #expect(counts.opened.load(ordering: .relaxed) == 1)
        }
        _ = try count(pool)
        #expect(counts.opened.load(ordering: .relaxed) == 2)
        pool.close()
        let error = #expect(throws: SQLiteError.self) { try count(pool) }
        #expect(error?.code == SQLiteError.closed.code)
    }
}
