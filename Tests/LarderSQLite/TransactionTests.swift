import LarderSQLite
import LarderTestSupport
import Testing

struct TransactionTests {
    private struct Stop: Error {}

    private func open() throws -> Connection {
        var connection = try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
        try connection.execute("CREATE TABLE t (x INTEGER UNIQUE)")
        return connection
    }

    @Test func `a transaction that returns is committed`() throws {
        var connection = try open()
        let result = try connection.transaction { (connection) throws(SQLiteError) in
            try connection.insert(1)
            try connection.insert(2)
            return "done"
        }
        #expect(result == "done")
        #expect(connection.isInAutocommit == true)
        #expect(try connection.sum() == 3)
    }

    @Test func `a transaction that throws leaves nothing`() throws {
        var connection = try open()
        #expect(throws: SQLiteError.self) {
            try connection.transaction { (connection) throws(SQLiteError) in
                try connection.insert(1)
                try connection.insert(1)
            }
        }
        #expect(connection.isInAutocommit == true)
        #expect(try connection.sum() == 0)
        try connection.insert(5)
        #expect(try connection.sum() == 5)
    }

    @Test func `an error that rolls back by itself does not hide behind the rollback`() throws {
        var connection = try open()
        try connection.execute("CREATE TABLE u (x UNIQUE ON CONFLICT ROLLBACK)")
        let error = #expect(throws: SQLiteError.self) {
            try connection.transaction { (connection) throws(SQLiteError) in
                try connection.insert(1)
                try connection.execute("INSERT INTO u VALUES (1); INSERT INTO u VALUES (1)")
            }
        }
        #expect(error?.message == "UNIQUE constraint failed: u.x")
        #expect(connection.isInAutocommit == true)
        #expect(try connection.sum() == 0)
    }

    /// Ways to use a connection inside a transaction.
    private enum Use: CaseIterable {
        case statement, text, nothing

        func apply(to connection: inout Connection) throws(SQLiteError) {
            switch self {
            case .statement: try connection.insert(100)
            case .text: try connection.execute("INSERT INTO t VALUES (100)")
            case .nothing: break
            }
        }
    }

    @Test(arguments: Use.allCases)
    private func `after a rollback of SQLite's own nothing more is stored, whoever caught the failure`(
        use: Use
    ) throws {
        var connection = try open()
        try connection.execute("CREATE TABLE u (x UNIQUE ON CONFLICT ROLLBACK)")
        let failing = "INSERT INTO u VALUES (1); INSERT INTO u VALUES (1)"
        let error = #expect(throws: SQLiteError.self) {
            try connection.transaction { (connection) throws(SQLiteError) in
                try connection.insert(1)
                do throws(SQLiteError) {
                    try connection.execute(failing)
                } catch {
                    #expect(.constraint ~= error.code)
                }
                // Caught as well, so that the end has to speak for itself.
                var wasRefused = false
                do throws(SQLiteError) { try use.apply(to: &connection) } catch { wasRefused = true }
                #expect(wasRefused == (use != .nothing))
            }
        }
        #expect(error?.message == "UNIQUE constraint failed: u.x")
        #expect(try connection.sum() == 0)
        // The next transaction is a new one.
        try connection.transaction { (connection) throws(SQLiteError) in try connection.insert(7) }
        #expect(try connection.sum() == 7)
    }
}

extension Connection {
    fileprivate mutating func insert(_ number: Int64) throws(SQLiteError) {
        try run(.insert) { (statement) throws(SQLiteError) in try statement.bind(number, at: 1) }
    }

    fileprivate mutating func sum() throws(SQLiteError) -> Int64 {
        try number(.sum)
    }
}

extension SQL {
    fileprivate static let insert = SQL("INSERT INTO t VALUES (?1)")
    fileprivate static let sum = SQL("SELECT coalesce(sum(x), 0) FROM t")
}
