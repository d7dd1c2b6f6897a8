import Foundation
import LarderSQLite
import LarderTestSupport
import Testing

/// A database in a file, in the form that the store gives it, with one table `t (x)`.
struct DatabaseFile {
    let folder: TemporaryFolder
    let path: String

    init() throws {
        folder = try TemporaryFolder()
        let url = folder.real("test.sqlite")
        path = url.path
        try Data().write(to: url)
        var connection = try open(.writer)
        _ = try connection.claimEmptyDatabase(applicationID: 42)
        guard try connection.enableLog() else { throw SQLiteError(code: .error, message: "no log") }
        try connection.execute("CREATE TABLE t (x)")
    }

    var url: URL { folder.real("test.sqlite") }
    var logURL: URL { folder.real("test.sqlite-wal") }

    func open(_ role: Connection.Role, busyMilliseconds: Int32 = 0) throws(SQLiteError) -> Connection {
        try Connection.open(.file(path), .init(role: role, busyMilliseconds: busyMilliseconds))
    }
}

extension CommitCounter {
    /// The counter of a database that must have one.
    static func required(of connection: borrowing Connection) throws -> CommitCounter {
        let counter = CommitCounter(of: connection)
        return try #require(counter)
    }
}

extension Connection {
    mutating func insert(bytes: Int = 1) throws(SQLiteError) {
        try execute("INSERT INTO t VALUES (zeroblob(\(bytes)))")
    }

    mutating func count() throws(SQLiteError) -> Int64 {
        try number(.count)
    }
}

extension Connection {
    /// Returns the one number that a query gives.
    mutating func number(_ sql: SQL) throws(SQLiteError) -> Int64 {
        try with(sql) { (statement) throws(SQLiteError) in
            _ = try statement.step()
            return statement.int64(0)
        }
    }
}

extension SQL {
    fileprivate static let count = SQL("SELECT count(*) FROM t")
}
