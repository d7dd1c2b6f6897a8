internal import LarderSQLite

extension StoreOpener {
    /// Opens read-only, again if the file is replaced, or its log begun, at this very moment.
    func openSteadilyReadOnly() throws -> Database {
        for _ in 0..<10 {
            do {
                return try openReadOnly()
            } catch let error as SQLiteError where error.code == SQLiteError.moved.code {
                continue
            }
        }
        throw refusal(.busy, "it is being replaced again and again; try later")
    }

    /// Opens a store of which nothing on disk may change, not even the log's index.
    ///
    /// With a log beside the file, the log is read as it is. Without one the main file is complete: then it is read
    /// without locks, and a read counts only if there is no log afterwards either, since nobody changes the main file
    /// without having written a log.
    private func openReadOnly() throws -> Database {
        guard let status = try FileSystem.status(name) else {
            throw refusal(.storageUnavailable, "there is no such file, and it is to be read only")
        }
        let head = try head()
        try refuseForeign(head)
        guard head.size > 0 else { throw unfinished }
        let hasLog = try hasLog()
        let source = hasLog ? Connection.Location.readOnlyFile : Connection.Location.immutableFile
        let options = settings.options(.reader)
        let (path, vfs) = (name, settings.vfs)
        let place = place(of: status.identity)
        let isUnmoved = { @Sendable in place.isUnmoved() && (hasLog || isLogAbsent()) }
        let open: ReaderPool.Opener = { () throws(SQLiteError) in
            let connection = try Connection.open(source(path, vfs), options)
            guard isUnmoved() else { throw .moved }
            return connection
        }
        var first = try open()
        let version = try first.userVersion()
        guard try first.applicationID() == Schema.applicationID, version > 0 else { throw unfinished }
        if version > Schema.current {
            throw refusal(
                .newerSchema, "a newer release of the library wrote it (schema \(version)); update the library")
        }
        if version < Schema.current {
            throw refusal(.readOnly, "an older release wrote it (schema \(version)); open it for writing once")
        }
        try Schema.check(&first)
        let counter = hasLog ? CommitCounter(of: first) : nil
        return Database(
            identity: status.identity, writer: nil, readers: readers(counter, status.identity, open: open),
            counter: counter, verifiesReads: !hasLog, openGuardian: { () throws(SQLiteError) in throw .closed },
            isUnmoved: isUnmoved)
    }

    private var unfinished: CacheError {
        refusal(.storageUnavailable, "it is not set up yet; open it for writing once")
    }

    private func isLogAbsent() -> Bool {
        do {
            return try !hasLog()
        } catch {
            return false
        }
    }
}
