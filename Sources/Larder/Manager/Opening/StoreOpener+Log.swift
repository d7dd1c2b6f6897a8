internal import LarderSQLite

/// The log that a process has left behind which was killed.
///
/// SQLite would read it up to the first frame that is damaged. If the log had been copied, the main file then has newer
/// pages than that part of the log, and the two together are no state that ever was. So the log is looked through before
/// the first connection reads it.
extension StoreOpener {
    /// Whether there is nothing in the log, so that any connection may open: it is missing, or its header is zeros.
    func isLogEmpty() throws(SystemError) -> Bool {
        guard let head = try FileSystem.contents(location.logs[0], limit: Self.logHeaderSize) else { return true }
        return head.allSatisfy { $0 == 0 }
    }

    private static let logHeaderSize = 32

    /// Looks through the log if no connection of any process has the database open, and puts right what can be.
    ///
    /// The caller holds the lock file.
    ///
    /// - Returns: The pages to salvage from, if the log and the main file do not fit together.
    func settleLog() throws -> LogContents? {
        guard try !isLogEmpty(), var files = try filesAlone() else { return nil }
        switch try files.look() {
        case .sound: return nil
        case .correctable(let corrections, _):
            try files.scan.apply(corrections)
            return nil
        case .copied:
            try files.scan.clear()
            return nil
        case .mixed(let contents): return contents
        }
    }

    /// Throws if a log that no process writes to cannot be read as it was written.
    ///
    /// SQLite tries for ten seconds to make sense of a header that is damaged, and reads less of the log than there is if a
    /// frame is.
    func refuseDamagedLog() throws {
        guard try !isLogEmpty() else { return }
        // Twice, since a process may be writing it.
        guard
            try LogFile.hasHeader(location.logs[0], vfs: settings.vfs)
                || LogFile.hasHeader(location.logs[0], vfs: settings.vfs)
        else { throw damagedLog }
        do {
            guard var files = try filesAlone() else { return }
            guard case .sound = try files.look() else { throw damagedLog }
        } catch let error as SQLiteError where [.readOnly, .cannotOpen, .permission].contains(error.code.primary) {
            // Without the right to write nobody can be kept out, and a log that is written looks damaged at times.
            return
        }
    }

    private var damagedLog: CacheError {
        refusal(.corrupt, "its log is damaged; open it for writing once")
    }

    private func filesAlone() throws(SQLiteError) -> FilesAlone? {
        try FilesAlone(main: name, log: location.logs[0], vfs: settings.vfs) { record in
            SalvagedEntry(record)?.isSound == true
        }
    }
}
