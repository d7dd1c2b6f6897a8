internal import LarderCSQLite

extension Connection {
    /// Sets how long a statement waits for a lock of another connection.
    package func setBusyTimeout(_ milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    /// Begins a transaction that reads; ``abandonWriting()`` ends it.
    package mutating func beginReading() throws(SQLiteError) {
        try run(.beginDeferred)
        depth += 1
    }

    /// The row id of the last row that was inserted.
    package var lastInsertedID: Int64 { sqlite3_last_insert_rowid(handle) }
}

extension SQL {
    fileprivate static let beginDeferred = SQL("BEGIN")
}
