internal import LarderSQLite

/// How a damaged store is replaced by what can be read of it.
///
/// The new file is written under a name of its own, and gets another one when it is whole and on the disk. Then the damaged
/// database moves away, then its log, and then the new file takes the place. A process that is killed before the database has
/// moved leaves the old store, with a file that the next opening deletes; one that is killed later leaves the new store, which
/// the next opening puts into its place.
extension StoreOpener {
    /// Whether a salvage was interrupted.
    func hasSalvage() throws(SystemError) -> Bool {
        if try FileSystem.status(location.salvage) != nil { return true }
        return try FileSystem.status(location.salvaged) != nil
    }

    /// Puts a file that was salvaged into the place of the store that has moved away; false if there is none.
    func finishSalvage() throws(SystemError) -> Bool {
        guard try FileSystem.status(location.salvaged) != nil else { return false }
        try setAside.moveLog()
        try FileSystem.move(location.salvaged, to: name)
        try FileSystem.sync(location.folder)
        return true
    }

    /// Deletes what an interrupted salvage has left beside a store that is still in its place.
    func deleteSalvage() throws(SystemError) {
        for path in [location.salvage, location.salvaged] { try FileSystem.remove(path) }
    }

    /// Salvages the store at our path, and sets the original aside.
    ///
    /// - Parameter contents: The pages that its log has; nil to look for them.
    /// - Returns: Where the original is, what was salvaged, if anything was, and why an older one could not be deleted.
    func salvage(
        _ contents: LogContents?
    ) throws -> (path: String, report: SalvageReport?, leftOver: CacheError?) {
        try deleteSalvage()
        var salvage = StoreSalvage(
            try reader(contents), blobs: BlobFolder(path: location.files, syncs: false), settings: settings)
        let report: SalvageReport?
        do {
            _ = try FileSystem.makeFile(location.salvage)
            report = try salvage.write(to: location.salvage)
            if report != nil {
                try FileSystem.move(location.salvage, to: location.salvaged)
                try FileSystem.sync(location.folder)
            }
        } catch {
            // The original stays as it is, and the next attempt begins again.
            try deleteSalvage()
            throw error
        }
        if report == nil { try deleteSalvage() }
        // A file that never was ours is never deleted: the mark at its place tells, or what was in it.
        let isOurs = try report != nil || head().applicationID == Schema.applicationID
        let path = try setAside.move(isOurs: isOurs, keepsFiles: report != nil)
        // Until now no process could write to it.
        _ = consume salvage
        return (path, report, setAside.finish(path, isOurs: isOurs))
    }

    /// The pages of the store, which no process writes to from now on.
    private func reader(_ contents: LogContents?) throws -> RecordReader {
        guard var main = try RawFile(path: name, vfs: settings.vfs, isWritable: true) else { throw SQLiteError.moved }
        var waited: Int32 = 0
        while try !main.lockAlone() && !main.lockWriting() {
            guard waited < settings.busyMilliseconds else {
                throw refusal(.busy, "it is damaged, and another process writes to it; try again")
            }
            CurrentThread.pause(milliseconds: Self.pause)
            waited += Self.pause
        }
        var contents = contents
        if contents == nil, let log = try LogFile(path: location.logs[0], vfs: settings.vfs) {
            var scan = LogScan(log)
            contents = try scan.look(main: main).contents
        }
        let log = try LogFile(path: location.logs[0], vfs: settings.vfs)
        return try RecordReader(DatabasePages(main: main, log: log, contents: contents ?? LogContents()))
    }

    /// How long a writer is waited for between two looks, in milliseconds.
    private static let pause: Int32 = 8
}
