package import LarderSQLite
internal import Synchronization

/// The log, and when it is copied.
extension Database {
    /// The log is copied into the main file when it has grown to this many pages: 4 MB.
    package static let checkpointPages = 1000

    /// Whether the log has grown so far that a checkpoint pays.
    package var wantsCheckpoint: Bool {
        logPages.load(ordering: .relaxed) >= checkpointAt.load(ordering: .relaxed)
    }

    /// A log of this many pages, 16 MB, is not written on before somebody has tried to copy it: the background was outrun.
    package static let longestLog = 4 * checkpointPages

    /// Whether whoever writes is to copy the log first; earlier where there is little room.
    package var isLogTooLong: Bool {
        let longest = room.payingLength * (Self.longestLog / Self.checkpointPages)
        return wantsCheckpoint && logPages.load(ordering: .relaxed) >= longest
    }

    /// Copies the log into the main file; nil if another process holds the write lock, or there is no log.
    package func checkpoint() throws(SQLiteError) -> CheckpointResult? {
        guard case .pool(let pool) = readers else { return nil }
        // Most of the files, while others may write; the rest below.
        try blobs?.syncForCheckpoint()
        // A reader that stands in the log keeps what comes after its moment from being copied, …
        pool.letGo()
        let result = try writer.withLock { writer throws(SQLiteError) -> CheckpointResult? in
            guard writer != nil else { throw .closed }
            // The write lock is ours, and not to be had for the checkpoint.
            guard writer!.exclusive == nil else { return nil }
            // A row must not be safer than the file that it names.
            try blobs?.syncForCheckpoint()
            return try writer!.checkpoint(openGuardian) { connection in
                // Before anybody writes again, whose pages would be forgotten.
                logPages.store(0, ordering: .relaxed)
                keepRoom(&connection)
            }
        }
        // … and one that still does keeps the log from being started anew.
        pool.letGo()
        if result?.isComplete == true {
            checkpointAt.store(room.payingLength, ordering: .relaxed)
        } else {
            // Somebody stands in the log, or writes: trying again at once would achieve as little again.
            let pause = result == nil ? room.payingLength / 4 : room.payingLength
            checkpointAt.store(logPages.load(ordering: .relaxed) + pause, ordering: .relaxed)
        }
        return result
    }

    /// A log of this many pages costs the next opening more to read than it costs us to start it anew.
    private static let longLog = 64

    /// Copies what was written here into the main file, and leaves a short log.
    package func tidyLog() throws(SQLiteError) {
        guard logPages.load(ordering: .relaxed) > 0 || writtenPages > 0, isInPlace else { return }
        guard let result = try checkpoint(), result.isComplete else { return }
        // What is in it costs the next opening time, and its file room on the disk.
        guard result.logPages > Self.longLog || logFileSize > longestKeptLog else { return }
        do throws(SQLiteError) {
            try startLogAnew()
        } catch {
            // Somebody stands in the log, and behind it there is no room: it stays as long as it is.
            if !error.isAboutRoom { throw error }
        }
    }

    /// Copies what is in the log into the main file, leaves a log without frames, and closes every connection.
    ///
    /// If another connection has the database open, of this process or of another, it needs the log: then it is left short.
    package func closeTidily() throws(SQLiteError) {
        defer { close() }
        guard case .pool(let pool) = readers, isInPlace, writer.withLock({ $0 != nil }) else { return }
        if counter.map({ $0.uncopiedFrames > 0 }) ?? (logPages.load(ordering: .relaxed) > 0) { _ = try checkpoint() }
        pool.close()
        let isEmpty = try writer.withLock { writer throws(SQLiteError) -> Bool in
            guard writer != nil, writer!.exclusive == nil else { return false }
            _ = writer!.guardian.take()
            return try writer!.connection.emptyLog(keeping: room.logBytes)
        }
        if !isEmpty { try tidyLog() }
    }

    /// The bytes of a log's file that is not worth a commit to cut it.
    var longestKeptLog: Int { room.logBytes + Self.longLog / 4 * Connection.pageSize }

    /// Copies the log, and cuts its file to nothing, so that no old frame is left in it.
    func eraseLog() throws(SQLiteError) {
        guard isInPlace, try checkpoint()?.isComplete == true else { return }
        try startLogAnew(keeping: 0)
        // What is kept of the disk for removals: zeros.
        _ = try checkpoint()
    }

    /// Makes a commit that changes nothing, which starts the log anew after a complete checkpoint, and cuts its file.
    ///
    /// - Parameter bytes: The length that the file keeps; nil for what is kept of the disk for removals.
    func startLogAnew(keeping bytes: Int? = nil) throws(SQLiteError) {
        try writer.withLock { writer throws(SQLiteError) in
            // Nobody's transaction is to be committed with this.
            guard writer != nil, writer!.exclusive == nil else { return }
            var isCommitted = false
            defer { watch.endCommit(isCommitted: isCommitted) }
            try writer!.connection.shrinkLog(to: bytes ?? room.logBytes) { _ = watch.beginCommit() }
            isCommitted = true
        }
    }

    /// How many pages our last commit left in the log, which is as long as before when all of them have been copied.
    var writtenPages: Int { writer.withLock { $0 == nil ? 0 : $0!.connection.logPages } }
}

extension BlobFolder {
    /// Puts what was written on the disk before the log that names it is copied.
    fileprivate func syncForCheckpoint() throws(SQLiteError) {
        do throws(SystemError) {
            try sync()
        } catch {
            throw SQLiteError(code: .inputOutput, message: "files could not be synced", systemCode: error.number)
        }
    }
}
