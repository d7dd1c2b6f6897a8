internal import LarderCSQLite

extension Connection {
    /// Keeps one read transaction open over the following reads, so that they need no locks; a second call renews it.
    ///
    /// A statement that stays on its row holds the transaction; it is the only one that may.
    package mutating func holdSnapshot() throws(SQLiteError) {
        let keeper = try prepared(.keeper)
        sqlite3_reset(keeper)
        let code = sqlite3_step(keeper)
        guard code == SQLITE_ROW || code == SQLITE_DONE else { throw lastError(code, sql: SQL.keeper.text) }
    }

    /// Releases the transaction that `holdSnapshot` holds.
    package mutating func releaseSnapshot() throws(SQLiteError) {
        sqlite3_reset(try prepared(.keeper))
    }
}

extension SQL {
    fileprivate static let keeper = SQL("SELECT 1 FROM sqlite_schema LIMIT 1")
}
