internal import LarderCSQLite

/// A prepared statement, lent to a closure.
///
/// It can be neither copied nor kept, and is reset, its bindings with it, when the closure ends: it never stays on a
/// row, and no blob stays bound. Parameters and columns count from 1 and from 0, as SQLite counts them.
package struct Statement: ~Copyable {
    let handle: OpaquePointer
    let database: OpaquePointer

    /// Moves to the next row; false at the end.
    package func step() throws(SQLiteError) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: true
        case SQLITE_DONE: false
        case let code: throw failure(code)
        }
    }

    /// Runs to the end, for statements without rows that anyone wants.
    package func run() throws(SQLiteError) {
        while try step() {}
    }

    /// Goes back to the start, so that the statement can be run with other parameters.
    package func reset() {
        sqlite3_reset(handle)
    }

    func failure(_ code: Int32) -> SQLiteError {
        SQLiteError(of: database, code, sql: sqlite3_sql(handle).map { String(cString: $0) })
    }

    func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw failure(code) }
    }
}

extension Connection {
    /// Lends the prepared form of `sql` to `body`, and resets it afterwards.
    package mutating func with<R>(
        _ sql: SQL, _ body: (borrowing Statement) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try requireTransaction()
        let handle = try prepared(sql)
        defer {
            sqlite3_reset(handle)
            sqlite3_clear_bindings(handle)
        }
        do {
            return try body(Statement(handle: handle, database: self.handle))
        } catch {
            noteFailure(error)
            throw error
        }
    }

    /// Runs `sql` once, with whatever `bind` gives it.
    package mutating func run(
        _ sql: SQL, _ bind: (borrowing Statement) throws(SQLiteError) -> Void = { _ in }
    ) throws(SQLiteError) {
        try with(sql) { statement throws(SQLiteError) in
            try bind(statement)
            try statement.run()
        }
    }
}
