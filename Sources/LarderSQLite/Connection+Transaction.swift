internal import LarderCSQLite

extension Connection {
    /// Runs `body` in a transaction with the write lock: committed when it returns, rolled back when it throws.
    ///
    /// After some failures (a full disk, OR ROLLBACK) SQLite has rolled the transaction back. Then every call on the
    /// connection throws that failure until the transaction ends, and so does its end, even if the failure was caught.
    package mutating func transaction<R>(
        _ body: (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try beginWriting()
        do {
            let result = try body(&self)
            try finishWriting()
            return result
        } catch {
            abandonWriting()
            throw error
        }
    }

    /// Commits what changes no row, so that `watch` knows the commit as the own store's; undoes it if `body` returns false.
    ///
    /// `body` must return false if it has changed nothing: an empty COMMIT is not counted.
    package mutating func commitOwn(
        _ watch: CommitWatch, _ body: (inout Connection) throws(SQLiteError) -> Bool
    ) throws(SQLiteError) -> Bool {
        try beginWriting()
        let isChanged: Bool
        do {
            isChanged = try body(&self)
        } catch {
            abandonWriting()
            throw error
        }
        if !isChanged {
            abandonWriting()
            return false
        }
        try watch.ownCommit { () throws(SQLiteError) in try finishWriting() }
        return true
    }

    /// Begins a transaction with the write lock; ``finishWriting()`` or ``abandonWriting()`` ends it.
    package mutating func beginWriting() throws(SQLiteError) {
        try run(.beginImmediate)
        isInTransaction = true
    }

    /// Begins a transaction that reads; ``abandonWriting()`` ends it.
    package mutating func beginReading() throws(SQLiteError) {
        try run(.begin)
        isInTransaction = true
    }

    /// Commits the transaction, or undoes it if that fails.
    package mutating func finishWriting() throws(SQLiteError) {
        do {
            try requireTransaction()
            try run(.commit)
            isInTransaction = false
            if syncsCommits { try syncLog() }
        } catch {
            abandonWriting()
            throw error
        }
    }

    /// Waits until the commit is past the cache of the drive, where COMMIT does not do that.
    private func syncLog() throws(SQLiteError) {
        let number = larder_sync_log(handle)
        if number == 0 { return }
        throw SQLiteError(code: .inputOutput, message: "the log could not be synced", systemCode: number)
    }

    /// Undoes the transaction, if one is open.
    ///
    /// If that fails, the transaction stays open. `deinit` ends it, and the next BEGIN on this connection reports it.
    package mutating func abandonWriting() {
        (isInTransaction, lostTransaction) = (false, nil)
        if isInAutocommit { return }
        do { try run(.rollback) } catch {}
    }

    /// Throws if the caller's transaction has been rolled back: statements would commit one by one.
    package func requireTransaction() throws(SQLiteError) {
        guard isInTransaction else { return }
        if let lostTransaction { throw lostTransaction }
        guard isInAutocommit else { return }
        // The failure itself was seen only inside the loan of a statement.
        throw SQLiteError(code: .error, message: "the transaction was rolled back by a failure inside it")
    }

    /// Keeps `error` if it rolled back the open transaction.
    @usableFromInline
    mutating func noteFailure(_ error: SQLiteError) {
        if isInTransaction && lostTransaction == nil && isInAutocommit { lostTransaction = error }
    }
}

extension SQL {
    fileprivate static let begin = SQL("BEGIN")
    fileprivate static let beginImmediate = SQL("BEGIN IMMEDIATE")
    fileprivate static let commit = SQL("COMMIT")
    fileprivate static let rollback = SQL("ROLLBACK")
}
