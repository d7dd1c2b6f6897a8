internal import LarderCSQLite

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
