import LarderSQLite
import LarderTestSupport
import Testing

struct CommitCounterTests {
    @Test func `a commit of any connection moves it by one, and nothing else does`() throws {
        let file = try DatabaseFile()
        var ours = try file.open(.writer)
        var other = try file.open(.writer)
        var guardian = try file.open(.guardian)
        let counter = try CommitCounter.required(of: ours)
        let start = counter.mark()
        #expect(counter.mark() == start)

        try ours.insert()
        #expect(counter.mark() != start)
        #expect(counter.mark().changes == start.changes + 1)

        try other.insert(bytes: 100_000)
        #expect(counter.mark().changes == start.changes + 2)

        let before = counter.mark()
        try other.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (3); ROLLBACK")
        _ = try ours.count()
        #expect(try ours.checkpoint(guardedBy: &guardian))
        #expect(counter.mark() == before)
    }

    @Test func `it may be asked after its connection was closed`() throws {
        let file = try DatabaseFile()
        let counter = try {
            let connection = try file.open(.writer)
            return try CommitCounter.required(of: connection)
        }()
        let stamp = counter.mark()
        #expect(counter.mark() == stamp)
    }

    @Test func `in memory there is none`() throws {
        let memory = try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
        let none = CommitCounter(of: memory)
        #expect(none == nil)
    }

    @Test func `two stamps around our commit tell whether anybody else committed`() throws {
        let file = try DatabaseFile()
        var ours = try file.open(.writer)
        var other = try file.open(.writer)
        let counter = try CommitCounter.required(of: ours)
        let before = counter.mark()
        try ours.insert()
        #expect(counter.mark().changes == before.changes &+ 1)
        try other.insert()
        try ours.insert()
        #expect(counter.mark().changes == before.changes &+ 3)
    }
}
