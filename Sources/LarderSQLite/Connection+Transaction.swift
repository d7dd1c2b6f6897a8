internal import LarderCSQLite

extension Connection {
    /// Whether a transaction takes the write lock at its start.
    package enum TransactionKind: Sendable {
        case reading, writing
    }

    /// Runs `body` in a transaction, or in a savepoint when one is open: committed when it returns, rolled back when it
    /// throws.
    package mutating func transaction<R>(
        _ kind: TransactionKind = .writing, _ body: (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        let isOuter = depth == 0
        try run(isOuter ? (kind == .writing ? .beginImmediate : .begin) : .savepoint)
        depth += 1
        do {
            let result = try body(&self)
            try run(isOuter ? .commit : .release)
            depth -= 1
            return result
        } catch {
            depth -= 1
            rollBack(outer: isOuter)
            throw error
        }
    }

    /// Undoes what the failed level did.
    ///
    /// SQLite has rolled back by itself after some errors; what fails here then has nothing left to undo, and the error
    /// that led here is the one to report.
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
