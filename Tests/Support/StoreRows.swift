package import Foundation
package import Larder
package import LarderSQLite

/// Rows that tests of the store write and count below the public face.
extension Store {
    /// Runs `body` in a transaction, wherever that is.
    package func write<R: Sendable>(
        _ body: @escaping @Sendable (inout Connection) throws(SQLiteError) -> R
    ) throws(CacheError) -> R {
        try write { (connection, _) throws(SQLiteError) in try body(&connection) }
    }

    /// Runs `body` on a reader, wherever that is.
    package func read<R: Sendable>(
        _ body: @escaping @Sendable (inout Connection) throws(SQLiteError) -> R
    ) throws(CacheError) -> R {
        try read { (connection, _) throws(SQLiteError) in try body(&connection) }
    }

    /// Adds a row to the table of sub-caches.
    package func insertRow(named name: String) throws(CacheError) {
        try write { (connection) throws(SQLiteError) in try connection.insertRow(named: name) }
    }

    /// How many rows the table of sub-caches has.
    package func rowCount() throws(CacheError) -> Int {
        try read { (connection) throws(SQLiteError) in try connection.rowCount() }
    }

    /// How many rows the table of entries has, of whatever generation.
    package func entryCount() throws(CacheError) -> Int {
        try read { (connection) throws(SQLiteError) in try connection.countRows() }
    }
}

extension CacheManager {
    /// Makes a store with `rows` rows at `url`, and closes it.
    package static func makeStore(at url: URL, rows: Int) throws {
        let manager = try CacheManager(url: url, configuration: .patient)
        for row in 0..<rows { try manager.writableStore().insertRow(named: "\(row)") }
        try manager.close()
    }

    /// How many rows the store at `url` has, opened for that alone.
    package static func rowCount(at url: URL) throws -> Int {
        let manager = try CacheManager(url: url, configuration: .patient)
        defer { withExtendedLifetime(manager) {} }
        return try manager.store().rowCount()
    }
}

extension Connection {
    /// Adds a row to the table of sub-caches.
    package mutating func insertRow(named name: String) throws(SQLiteError) {
        _ = try insert(
            Generation(name: name, version: "", codec: "", age: StoredAge(kind: 0, milliseconds: 0), openedAt: 0))
    }

    /// How many rows the table of sub-caches has.
    package mutating func rowCount() throws(SQLiteError) -> Int {
        Int(try number(.countRows))
    }

    /// The one number that a query gives.
    package mutating func number(_ sql: SQL) throws(SQLiteError) -> Int64 {
        try with(sql) { (statement) throws(SQLiteError) in
            _ = try statement.step()
            return statement.int64(0)
        }
    }
}

extension SQL {
    fileprivate static let countRows = SQL("SELECT count(*) FROM cache")
}
