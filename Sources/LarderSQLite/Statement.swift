internal import LarderCSQLite

/// A prepared statement, lent to a closure.
///
/// It can be neither copied nor kept. It and its bindings are reset when the closure ends: it never stays on a row, and
/// no blob stays bound. Parameters count from 1 and columns from 0, as in SQLite.
@usableFromInline
package struct Statement: ~Copyable {
    let handle: OpaquePointer
    let database: OpaquePointer

    @usableFromInline
    init(handle: OpaquePointer, database: OpaquePointer) {
        self.handle = handle
        self.database = database
    }

    /// Moves to the next row; false at the end.
    package func step() throws(SQLiteError) -> Bool {
        switch Self.step(handle) {
        case SQLITE_ROW: true
        case SQLITE_DONE: false
        case let code: throw stepFailure(code)
        }
    }

    /// Does a step, and does it again if a writer has made the index of the log look torn.
    ///
    /// A connection that may not write there sees a change of the index as damage if the change ends between two looks.
    static func step(_ handle: OpaquePointer?) -> Int32 {
        var code = sqlite3_step(handle)
        var attempts = 0
        while code == tornIndex && attempts < 100 {
            sqlite3_reset(handle)
            code = sqlite3_step(handle)
            attempts += 1
        }
        return code
    }

    /// SQLITE_READONLY_RECOVERY.
    private static let tornIndex = SQLITE_READONLY | (1 << 8)

    /// Runs to the end, for statements whose rows are not needed.
    package func run() throws(SQLiteError) {
        while try step() {}
    }

    /// Ends a loan.
    @usableFromInline
    func takeBack() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    func failure(_ code: Int32) -> SQLiteError {
        SQLiteError(of: database, code, sql: sqlite3_sql(handle).map { String(cString: $0) })
    }

    /// The failure of a step.
    ///
    /// No row that was written is larger than SQLite allows, so one that is read or deleted is damaged.
    private func stepFailure(_ code: Int32) -> SQLiteError {
        let error = failure(code)
        let writes = sqlite3_stmt_readonly(handle) == 0 && error.sql?.hasPrefix("DELETE") != true
        guard .tooBig ~= error.code, !writes else { return error }
        return SQLiteError(code: .corrupt, message: "a row is larger than SQLite allows", sql: error.sql)
    }

    func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw failure(code) }
    }
}

/// Generic methods are compiled where they are called, so that they are specialised there.
extension Connection {
    /// Lends the prepared form of `sql` to `body`, and resets it afterwards.
    @inlinable
    package mutating func with<R>(
        _ sql: SQL, _ body: (borrowing Statement) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        let statement = try lent(sql)
        defer { statement.takeBack() }
        do {
            return try body(statement)
        } catch {
            noteFailure(error)
            throw error
        }
    }

    @usableFromInline
    mutating func lent(_ sql: SQL) throws(SQLiteError) -> Statement {
        try requireTransaction()
        return Statement(handle: try prepared(sql), database: handle)
    }

    /// Runs `sql` once, with the parameters that `bind` sets.
    package mutating func run(
        _ sql: SQL, _ bind: (borrowing Statement) throws(SQLiteError) -> Void = { _ in }
    ) throws(SQLiteError) {
        try with(sql) { statement throws(SQLiteError) in
            try bind(statement)
            try statement.run()
        }
    }
}
