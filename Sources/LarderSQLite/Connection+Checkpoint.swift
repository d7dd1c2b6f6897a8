internal import LarderCSQLite

/// What a checkpoint found and did.
package struct CheckpointResult: Sendable, Equatable {
    /// The pages in the log.
    package let logPages: Int
    /// How many of them are in the main file now.
    package let movedPages: Int

    /// Whether the next commit starts the log anew, if no reader stands in it.
    package var isComplete: Bool { logPages == movedPages }
}

extension Connection {
    /// Copies the log into the main file while `guardian` holds the write lock; nil if somebody else has that lock.
    ///
    /// SQLite before 3.51.3 can lose pages when one connection starts the log anew while another checkpoints with an
    /// older view of it. Only a writer starts the log anew, so under the write lock that cannot happen, in whatever
    /// process. The mode is always PASSIVE: FULL and TRUNCATE take the write lock themselves, and fall back to PASSIVE
    /// without it when it is busy. The log's file is cut by `journal_size_limit` when the next commit starts it anew.
    ///
    /// - Parameter completed: Called behind a complete copying, while nobody else can write.
    package mutating func checkpoint(
        guardedBy guardian: inout Connection, completed: (inout Connection) -> Void = { _ in }
    ) throws(SQLiteError) -> CheckpointResult? {
        do {
            try guardian.run(.guardBegin)
        } catch  where .busy ~= error.code {
            return nil
        }
        var (log, moved): (Int32, Int32) = (0, 0)
        let code = sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, &log, &moved)
        let failure = code == SQLITE_OK ? nil : lastError(code, sql: "PRAGMA wal_checkpoint(PASSIVE)")
        let result = CheckpointResult(logPages: Int(max(log, 0)), movedPages: Int(max(moved, 0)))
        if failure == nil, result.isComplete { completed(&self) }
        try guardian.run(.guardEnd)
        // Busy: another program of the machine is checkpointing.
        if let failure { if .busy ~= failure.code { return nil } else { throw failure } }
        return result
    }

    /// After a complete checkpoint: starts the log anew with a small commit, and cuts its file to that.
    ///
    /// - Parameters:
    ///   - bytes: How much of the file is left to it nevertheless.
    ///   - begun: Called when the write lock is taken for that commit.
    package mutating func shrinkLog(to bytes: Int = 0, _ begun: () -> Void = {}) throws(SQLiteError) {
        try execute("PRAGMA journal_size_limit = \(bytes)")
        let failure: SQLiteError?
        do throws(SQLiteError) {
            // In one transaction: a newer release may be migrating.
            try transaction { (connection) throws(SQLiteError) in
                begun()
                try connection.setUserVersion(try connection.userVersion())
            }
            failure = nil
        } catch {
            failure = error
        }
        try execute("PRAGMA journal_size_limit = \(Self.logSizeLimit)")
        if let failure { throw failure }
    }
}

extension SQL {
    fileprivate static let guardBegin = SQL("BEGIN IMMEDIATE")
    fileprivate static let guardEnd = SQL("ROLLBACK")
}
