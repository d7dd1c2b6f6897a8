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
        do throws(SQLiteError) { try run(.beginImmediate) } catch {
            // Inside a read transaction SQLite waits for no lock, and writes to the newest state alone.
            guard keepsReading, .busy ~= error.code else { throw error }
            stopReading()
            try run(.beginImmediate)
        }
        isInTransaction = true
    }

    /// Keeps a read transaction open over the commit that comes next, until ``stopReading()``.
    ///
    /// The next transaction then takes and releases one lock instead of three. Between the two, reads of this connection see the state
    /// after the commit, and no later one. SQLite can start the log again only while no connection reads.
    ///
    /// A statement that stays on its row holds it; it is the only one that may.
    package mutating func keepReading() throws(SQLiteError) {
        if keepsReading { return }
        let keeper = try prepared(.keeper)
        let code = sqlite3_step(keeper)
        guard code == SQLITE_ROW else {
            sqlite3_reset(keeper)
            throw lastError(code, sql: SQL.keeper.text)
        }
        keepsReading = true
    }

    /// Ends the read transaction that ``keepReading()`` has kept.
    package mutating func stopReading() {
        guard keepsReading else { return }
        keepsReading = false
        do { sqlite3_reset(try prepared(.keeper)) } catch {}
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
        stopReading()
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
    static let begin = SQL("BEGIN")
    fileprivate static let beginImmediate = SQL("BEGIN IMMEDIATE")
    fileprivate static let keeper = SQL("SELECT 1 FROM sqlite_schema LIMIT 1")
    static let commit = SQL("COMMIT")
    fileprivate static let rollback = SQL("ROLLBACK")
}

/// The lock of a writer on a file that may no longer be a database.
///
/// No statement runs on its connection, so no byte of the file is interpreted.
package struct WritingLock: ~Copyable {
    private let connection: Connection
    private var isLocked = false

    /// Opens the file of a database that is to be locked.
    package init(path: String) throws(SQLiteError) {
        let opened = try Connection.open(.file(path))
        // If SQLite may not write the file, it opens it for reading.
        if opened.isReadOnly() {
            throw SQLiteError(code: .readOnly, message: "the file could be opened only for reading")
        }
        connection = opened
    }

    /// Keeps every other connection from writing to a database in log mode, until this value is released.
    ///
    /// - Returns: False if another connection is writing.
    package mutating func lock() throws(SQLiteError) -> Bool {
        let code = larder_lock_writing(connection.handle)
        if code & 0xff == SQLITE_BUSY { return false }
        guard code == SQLITE_OK else {
            let number = larder_take_main_errno(connection.handle)
            throw SQLiteError(code: .init(rawValue: code), message: "its log cannot be locked", systemCode: number)
        }
        isLocked = true
        return true
    }

    deinit {
        if isLocked { larder_unlock_writing(connection.handle) }
    }
}

extension Connection {
    /// Copies the log into the main file while `guardian` holds the write lock, and returns whether all of it was copied.
    ///
    /// If another connection has that lock, nothing is copied.
    ///
    /// SQLite before 3.51.3 can lose pages when one connection starts the log again while another checkpoints with an
    /// older view of it. Only a writer starts the log again, so under the write lock that cannot happen, in whatever
    /// process. The mode is always PASSIVE: FULL and TRUNCATE take the write lock themselves, and fall back to
    /// PASSIVE without it when it is busy. The log's file is cut by `journal_size_limit` when the next commit starts
    /// it again.
    package mutating func checkpoint(guardedBy guardian: inout Connection) throws(SQLiteError) -> Bool {
        do {
            try guardian.run(.guardBegin)
        } catch  where .busy ~= error.code {
            return false
        }
        // SQLite copies nothing for a connection that reads.
        stopReading()
        var (log, moved): (Int32, Int32) = (0, 0)
        let code = sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, &log, &moved)
        let failure = code == SQLITE_OK ? nil : lastError(code, sql: "PRAGMA wal_checkpoint(PASSIVE)")
        try guardian.run(.guardEnd)
        // Busy: another program of the machine is checkpointing.
        if let failure { if .busy ~= failure.code { return false } else { throw failure } }
        return log == moved
    }

    /// Starts the log again with a small commit after a complete checkpoint, and cuts its file to that.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes that the file keeps.
    ///   - watch: The watch of the file, which knows the commit as the own store's.
    package mutating func shrinkLog(to bytes: Int, _ watch: CommitWatch) throws(SQLiteError) {
        stopReading()
        try execute("PRAGMA journal_size_limit = \(bytes)")
        let failure: SQLiteError?
        do throws(SQLiteError) {
            // In one transaction: a newer release may be migrating.
            _ = try commitOwn(watch) { (connection) throws(SQLiteError) in
                try connection.setUserVersion(try connection.userVersion())
                return true
            }
            failure = nil
        } catch {
            failure = error
        }
        try execute("PRAGMA journal_size_limit = \(Self.logSizeLimit)")
        if let failure { throw failure }
    }
}

extension Connection {
    /// Overwrites a log with zeros if all of it is in the main file and no other connection has the database open.
    ///
    /// This is the last call on a connection, before it is closed: it holds the lock that keeps every other
    /// connection out until then. Closing ends the mapping of the log's index before that lock, so the next
    /// connection of any process builds the index again, from a log without frames.
    ///
    /// The file keeps its blocks, in which the next process can write a removal if the disk is full.
    ///
    /// - Parameter bytes: The length that the log's file keeps.
    /// - Returns: False if frames are left in the log.
    package mutating func emptyLog(keeping bytes: Int) throws(SQLiteError) -> Bool {
        guard let index = larder_wal_index(handle), let log = larder_log_file(handle) else { return true }
        guard larder_wal_frames(index) > 0 else { return true }
        stopReading()
        let code = larder_lock_alone(handle)
        if code & 0xff == SQLITE_BUSY { return false }
        try checkFile(code)
        // No other connection can change either number now.
        guard larder_wal_moved(index) == larder_wal_frames(index) else {
            larder_unlock_alone(handle)
            return false
        }
        let zeros = [UInt8](repeating: 0, count: 1 << 16)
        func write(_ count: Int, at offset: Int64) throws(SQLiteError) {
            try checkFile(zeros.withUnsafeBytes { larder_write_at(log, $0.baseAddress, Int32(count), offset) })
        }
        // The header first: frames without it are never read, frames with a hole in them might be.
        try write(32, at: 0)
        try checkFile(larder_sync(log))
        var rest = larder_file_size(log)
        if rest > Int64(bytes) {
            try checkFile(larder_truncate(log, Int64(bytes)))
            rest = Int64(bytes)
        }
        var offset: Int64 = 0
        while offset < rest {
            let count = min(zeros.count, Int(rest - offset))
            try write(count, at: offset)
            offset += Int64(count)
        }
        return true
    }

    /// Keeps every other connection of every process from the database until this one is closed.
    ///
    /// It reads no page, so the file may be damaged.
    ///
    /// - Returns: False if another connection has used the database and is open.
    package mutating func lockAlone() throws(SQLiteError) -> Bool {
        stopReading()
        let code = larder_lock_alone(handle)
        if code & 0xff == SQLITE_BUSY { return false }
        try checkFile(code)
        return true
    }

    private func checkFile(_ code: Int32) throws(SQLiteError) {
        guard code != SQLITE_OK else { return }
        let number = larder_take_log_errno(handle)
        throw SQLiteError(
            code: .init(rawValue: code), message: "the file cannot be locked, or the log emptied", systemCode: number)
    }
}

extension SQL {
    fileprivate static let guardBegin = SQL("BEGIN IMMEDIATE")
    fileprivate static let guardEnd = SQL("ROLLBACK")
}
