internal import LarderCSQLite

extension Connection {
    /// Sets how long a statement waits for a lock of another connection.
    package func setBusyTimeout(_ milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    /// Begins a transaction that reads; ``abandonWriting()`` ends it.
    package mutating func beginReading() throws(SQLiteError) {
        try run(.beginDeferred)
        depth += 1
    }

    /// Copies the log of another connection, while this one holds the write lock.
    ///
    /// - Returns: A Boolean value that indicates whether all of it was copied.
    package mutating func guardCheckpoint(of other: inout Connection) throws(SQLiteError) -> Bool {
        try other.checkpoint(guardedBy: &self)?.isComplete ?? false
    }
}

extension SQL {
    fileprivate static let beginDeferred = SQL("BEGIN")
}
