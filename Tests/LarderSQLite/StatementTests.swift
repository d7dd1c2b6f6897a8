import Foundation
import LarderSQLite
import Testing

struct StatementTests {
    private func open() throws -> Connection {
        try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
    }

    private func failure(of sql: SQL, on connection: inout Connection) -> SQLiteError? {
        do {
            try connection.run(sql)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a failure is not taken for the system's that came before it`() throws {
        // In a file: what one in memory attaches is in memory too.
        let file = try DatabaseFile()
        var connection = try file.open(.writer)
        let outOfReach = failure(of: SQL("ATTACH '/no such folder/a' AS other"), on: &connection)
        #expect(outOfReach?.systemCode == ENOENT)
        try connection.run(SQL("CREATE TABLE one (id INTEGER PRIMARY KEY)"))
        try connection.run(SQL("INSERT INTO one VALUES (1)"))
        let doubled = failure(of: SQL("INSERT INTO one VALUES (1)"), on: &connection)
        #expect(doubled?.systemCode == 0)
    }

    @Test(arguments: ["", "a", "a\0b", "\0", "ä€😀", String(repeating: "x", count: 1_000_000)])
    func `text comes back whole`(text: String) throws {
        var connection = try open()
        let copied = try connection.with(.echo) { (statement) throws(SQLiteError) in
            try statement.bind(text, at: 1)
            _ = try statement.step()
            return (statement.type(of: 0), statement.text(0))
        }
        #expect(copied == (.text, text))
    }

    @Test(arguments: [[], [0], [1, 0, 2], Array(repeating: 7, count: 1_000_000)] as [[UInt8]])
    func `an empty blob is not NULL, and every blob comes back whole`(bytes: [UInt8]) throws {
        var connection = try open()
        let inPlace = try bytes.withUnsafeBytes { bytes in
            try connection.with(.echo) { (statement) throws(SQLiteError) in
                try statement.binding(blob: bytes, at: 1) { (statement) throws(SQLiteError) in
                    _ = try statement.step()
                    return (statement.type(of: 0), statement.bytes(0))
                }
            }
        }
        #expect(inPlace == (.blob, bytes))
        let copied = try connection.with(.echo) { (statement) throws(SQLiteError) in
            try statement.bind(bytes, at: 1)
            _ = try statement.step()
            return (statement.type(of: 0), statement.bytes(0))
        }
        #expect(copied == (.blob, bytes))
    }

    @Test func `numbers keep their limits, and NULL is NULL`() throws {
        var connection = try open()
        for number in [Int64.min, -1, 0, 1, .max] {
            let back = try connection.with(.echo) { (statement) throws(SQLiteError) in
                try statement.bind(number, at: 1)
                _ = try statement.step()
                return statement.int64(0)
            }
            #expect(back == number)
        }
        let null = try connection.with(.echo) { (statement) throws(SQLiteError) in
            try statement.bindNull(at: 1)
            _ = try statement.step()
            return statement.type(of: 0)
        }
        #expect(null == .null)
    }

    @Test func `a lent statement leaves neither a row nor a binding behind`() throws {
        var connection = try open()
        try connection.with(.echo) { (statement) throws(SQLiteError) in
            try statement.bind("left over", at: 1)
            #expect(try statement.step())
        }
        #expect(connection.isIdle == true)
        let type = try connection.with(.echo) { (statement) throws(SQLiteError) in
            _ = try statement.step()
            return statement.type(of: 0)
        }
        #expect(type == .null)
    }

    @Test func `a parameter bound in place is let go of when its memory may go`() throws {
        var connection = try open()
        let type = try connection.with(.echo) { (statement) throws(SQLiteError) in
            let bytes = [UInt8](repeating: 1, count: 100)
            let isFound = bytes.withUnsafeBytes { bytes in
                Result { () throws(SQLiteError) in
                    try statement.binding(blob: bytes, at: 1) { (statement) throws(SQLiteError) in try statement.step()
                    }
                }
            }
            #expect(try isFound.get())
            _ = try statement.step()
            return statement.type(of: 0)
        }
        #expect(type == .null)
    }

    @Test func `a failure says the extended code, SQLite's words and the statement`() throws {
        var connection = try open()
        try connection.execute("CREATE TABLE t (x INTEGER UNIQUE)")
        try connection.run(.insertOne)
        let error = failure(of: .insertOne, on: &connection)
        #expect(error?.code.rawValue == 2067)  // SQLITE_CONSTRAINT_UNIQUE
        #expect(error?.message == "UNIQUE constraint failed: t.x")
        #expect(error?.sql == "INSERT INTO t VALUES (1)")
        #expect(error.map { .constraint ~= $0.code } == true)
        #expect(connection.isIdle == true)
        let unprepared = failure(of: SQL("SELECT * FROM nowhere"), on: &connection)
        #expect(unprepared?.message == "no such table: nowhere")
        #expect(unprepared?.sql == "SELECT * FROM nowhere")
    }
}

extension SQL {
    fileprivate static let echo = SQL("SELECT ?1")
    fileprivate static let insertOne = SQL("INSERT INTO t VALUES (1)")
}
