internal import LarderSQLite

/// The log: when it is copied into the main file, and what is left of it at the end.
extension WriterState {
    /// Forgets what was known of the log of another file.
    func resetLog() { (copyPages, isCopyScheduled) = (copyInterval, false) }

    /// Returns whether the log is long and the caller is to have it copied; true once until it is copied.
    func schedulesCopy() -> Bool {
        guard !isCopyScheduled else { return false }
        guard uncopiedPages >= copyPages || database.counter?.pages ?? 0 > roomPages else { return false }
        isCopyScheduled = true
        // After a copy in vain the next one is not put off as long.
        copyPages = uncopiedPages + (uncopiedPages < 2 * copyInterval ? copyInterval : 100)
        return true
    }

    /// A Boolean value that indicates whether the log has grown as long again since the copy was scheduled.
    var isCopyOverdue: Bool { isCopyScheduled && uncopiedPages >= copyPages }

    func copyOverdueLog() { if isCopyOverdue { copyLog() } }

    /// Copies the log into the main file.
    ///
    /// If that fails or a long read holds the log up, in this process or another one, it is tried again 100 pages later.
    func copyLog() {
        isCopyScheduled = false
        copyPages = uncopiedPages + 100
        // A log that may not grow, or has grown without bound, is worth the wait for long reads.
        let isUrgent = isShortOfRoom || connection.logPages > 16 * Self.checkpointPages
        database.readers?.release(waits: isUrgent)
        do {
            if try guardian?.guardCheckpoint(of: &connection) == true {
                copyPages = copyInterval
                if isCopyFailing { events.append(.logCopied) }
                isCopyFailing = false
            }
        } catch {
            if !isCopyFailing { events.append(.logNotCopied(StoreError(error))) }
            isCopyFailing = true
        }
        lookAtRoom()
        // It is tried again because of the pages of the log alone.
        if uncopiedPages > 0 { roomPages = .max }
        // A read transaction that began in the meantime keeps the log from beginning again.
        database.readers?.release()
    }

    /// Copies the log and begins it again, and returns false if another process keeps frames in it.
    ///
    /// - Parameter bytes: The bytes that the file of the log keeps.
    func emptyLog(keeping bytes: Int = 0) throws(SQLiteError) -> Bool {
        guard guardian != nil else { return true }
        copyLog()
        do { try connection.shrinkLog(to: bytes) } catch { if error.code != .busy { throw error } }
        copyPages = copyInterval
        return connection.logPages < 10
    }

    /// Stores the accesses, writes the activity, and leaves no frame in the log if no other connection has the file open.
    func close(at now: Int64) {
        flush(at: now)
        database.end()
        closeLog()
    }

    /// Writes the accesses and the activity, if no other store writes.
    func flush(at now: Int64) {
        do {
            try transaction(until: Deadline(in: 0)) { state in
                try state.storeAccesses()
                try state.addActivity(state.takeActivity(), at: now)
            }
        } catch {}
    }

    /// Copies the log, and leaves no frame in it if no other connection has the file open; the connection is closed next.
    func closeLog() {
        if guardian == nil { return }
        copyLog()
        guardian = nil
        do { _ = try connection.emptyLog(keeping: isShortOfRoom ? Int(Ballast.maxSize) : 0) } catch {}
    }
}
