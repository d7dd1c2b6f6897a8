internal import LarderCSQLite

extension Connection {
    /// Returns whether a transaction takes the write lock at its start.
    @usableFromInline
    package enum TransactionKind: Sendable {
        case reading, writing
    }

    /// Runs `body` in a transaction, or in a savepoint when one is open: committed when it returns, rolled back when
    /// it throws.
    ///
    /// After some failures (a full disk, OR ROLLBACK) SQLite has rolled back all levels. Then every call on the
    /// connection throws that failure until the outer level ends, and so does the outer level, even if the failure
    /// was caught.
    @inlinable
    package mutating func transaction<R>(
        _ kind: TransactionKind = .writing, _ body: (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        let isOuter = try beginLevel(kind)
        do {
            let result = try body(&self)
            try endLevel(outer: isOuter)
            return result
        } catch {
            undoLevel(outer: isOuter, error)
            throw error
        }
    }

    /// Begins a transaction, or a savepoint in one; true if it is a transaction.
    @usableFromInline
    mutating func beginLevel(_ kind: TransactionKind) throws(SQLiteError) -> Bool {
        let isOuter = depth == 0
        try run(isOuter ? (kind == .writing ? .beginImmediate : .begin) : .savepoint)
        depth += 1
        return isOuter
    }

    @usableFromInline
    mutating func endLevel(outer isOuter: Bool) throws(SQLiteError) {
        try requireTransaction()
        try run(isOuter ? .commit : .release)
        depth -= 1
    }

    @usableFromInline
    mutating func undoLevel(outer isOuter: Bool, _ error: SQLiteError) {
        depth -= 1
        if isOuter { lostTransaction = nil } else { noteFailure(error) }
        rollBack(outer: isOuter)
    }

    /// Begins a transaction that outlives this call, with the write lock; ``finishWriting(_:)`` or ``abandonWriting()``
    /// ends it.
    package mutating func beginWriting() throws(SQLiteError) {
        try run(.beginImmediate)
        depth += 1
    }

    /// Runs `body` in the transaction that ``beginWriting()`` began, and commits it.
    package mutating func finishWriting<R>(
        _ body: (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        do {
            let result = try body(&self)
            try requireTransaction()
            try run(.commit)
            depth -= 1
            return result
        } catch {
            abandonWriting()
            throw error
        }
    }

    /// Undoes the transaction that ``beginWriting()`` began.
    package mutating func abandonWriting() {
        depth -= 1
        lostTransaction = nil
        rollBack(outer: true)
    }

    /// Throws if the caller's transaction has been rolled back: statements would commit one by one.
    package func requireTransaction() throws(SQLiteError) {
        guard depth > 0 else { return }
        if let lostTransaction { throw lostTransaction }
        guard isInAutocommit else { return }
        // The failure itself was seen only inside the loan of a statement.
        throw SQLiteError(code: .error, message: "the transaction was rolled back by a failure inside it")
    }

    /// Keeps `error` if it rolled back the open transaction.
    @usableFromInline
    mutating func noteFailure(_ error: SQLiteError) {
        guard depth > 0, lostTransaction == nil, isInAutocommit else { return }
        lostTransaction = error
    }

    /// Undoes the changes of the failed level.
    ///
    /// SQLite has rolled back automatically after some errors. Then a failure here has nothing left to undo, and the
    /// error that led here is the one to report.
    private mutating func rollBack(outer: Bool) {
        guard !isInAutocommit else { return }
        do {
            if outer {
                try run(.rollback)
            } else {
                try run(.rollbackToSavepoint)
                try run(.release)
            }
        } catch {
            // The transaction stays open; `deinit` ends it, and the next BEGIN on this connection reports it.
        }
    }
}

extension SQL {
    fileprivate static let begin = SQL("BEGIN")
    fileprivate static let beginImmediate = SQL("BEGIN IMMEDIATE")
    fileprivate static let commit = SQL("COMMIT")
    fileprivate static let rollback = SQL("ROLLBACK")
    fileprivate static let savepoint = SQL("SAVEPOINT level")
    fileprivate static let release = SQL("RELEASE level")
    fileprivate static let rollbackToSavepoint = SQL("ROLLBACK TO level")
}
