internal import LarderSQLite

/// When the log is copied into the main file.
struct LogCopies {
    /// The number of pages that are not in the main file yet at which the log is copied next.
    var nextPages = Ballast.pages
    var isScheduled = false
    /// True after a copy that has failed, which is reported once.
    var isFailing = false
}

/// The log: when it is copied into the main file, and what is left of it at the end.
extension WriterState {
    /// The number of pages of the log that are not in the main file yet, in whatever process they were written.
    var uncopiedPages: Int { database.counter?.uncopiedFrames ?? connection.logPages }

    private var copyInterval: Int { room.isShort ? Ballast.pages / 5 : Ballast.pages }

    /// Copies a log that may not grow further on a disk that is short of room.
    func copyLongLog() { if room.isShort && uncopiedPages >= copyInterval { copyLog() } }

    /// Forgets what was known of the log of another file.
    func resetLog() { (log.nextPages, log.isScheduled) = (copyInterval, false) }

    /// Returns whether the log is long and the caller is to have it copied; true once until it is copied.
    func schedulesCopy() -> Bool {
        guard !log.isScheduled else { return false }
        guard uncopiedPages >= log.nextPages || database.counter?.pages ?? 0 > room.pages else { return false }
        log.isScheduled = true
        // After a copy in vain the next one is not put off as long.
        log.nextPages = uncopiedPages + (uncopiedPages < 2 * copyInterval ? copyInterval : 100)
        return true
    }

    /// A Boolean value that indicates whether the log has grown as long again since the copy was scheduled.
    var isCopyOverdue: Bool { log.isScheduled && uncopiedPages >= log.nextPages }

    func copyOverdueLog() { if isCopyOverdue { copyLog() } }

    /// Copies the log into the main file.
    ///
    /// If that fails or a long read holds the log up, in this process or another one, it is tried again 100 pages later.
    func copyLog() {
        log.isScheduled = false
        log.nextPages = uncopiedPages + 100
        // A log that may not grow, or has grown without bound, is worth the wait for long reads.
        let isUrgent = room.isShort || connection.logPages > 16 * Ballast.pages
        readers?.release(waits: isUrgent)
        do {
            if guardian != nil, try connection.checkpoint(guardedBy: &guardian!) {
                log.nextPages = copyInterval
                if log.isFailing { aftermath.events.append(.logCopied) }
                log.isFailing = false
            }
        } catch {
            if !log.isFailing { aftermath.events.append(.logNotCopied(StoreError(error))) }
            log.isFailing = true
        }
        lookAtRoom()
        // It is tried again because of the pages of the log alone.
        if uncopiedPages > 0 { room.pages = .max }
        // A read transaction that began in the meantime keeps the log from beginning again.
        readers?.release()
    }

    /// Copies the log and begins it again, and returns false if another process keeps frames in it.
    ///
    /// - Parameter bytes: The bytes that the file of the log keeps.
    func emptyLog(keeping bytes: Int = 0) throws(SQLiteError) -> Bool {
        guard guardian != nil else { return true }
        copyLog()
        do { try connection.shrinkLog(to: bytes, watch) } catch { if error.code != .busy { throw error } }
        log.nextPages = copyInterval
        return connection.logPages < 10
    }

    /// Stores the accesses, writes the activity, and leaves no frame in the log if no other connection has the file open.
    func close(at now: Int64) {
        flush(at: now)
        database.end()
        readers?.open(nil)
        closeLog()
    }

    /// Writes the accesses and the activity, if no other store writes.
    func flush(at now: Int64) {
        do {
            try transaction(until: Deadline(in: 0)) { state in
                try state.storeAccesses()
                try state.writeActivity(at: now)
            }
        } catch {}
    }

    /// Copies the log, and leaves no frame in it if no other connection has the file open; the connection is closed next.
    func closeLog() {
        if guardian == nil { return }
        copyLog()
        guardian = nil
        do { _ = try connection.emptyLog(keeping: room.isShort ? Int(Ballast.maxSize) : 0) } catch {}
    }
}
