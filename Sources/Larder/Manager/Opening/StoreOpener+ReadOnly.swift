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
    /// without locks, and a read counts only if the file is afterwards what it was before and has no log.
    private func openReadOnly() throws -> Database {
        guard let status = try FileSystem.status(name) else {
            throw refusal(.storageUnavailable, "there is no such file, and it is to be read only")
        }
        let head = try head()
        try refuseForeign(head)
        guard head.size > 0 else { throw unfinished }
        let hasLog = try hasLog()
        if try hasLog && FileSystem.status(location.logs[1]) == nil {
            throw refusal(.storageUnavailable, "its log has no index beside it; open it for writing once")
        }
        if hasLog { try refuseDamagedLog() }
        // Without a log but not in the log's mode either, the locks are those of SQLite's other mode.
        let isAlone = !hasLog && head.isInLogMode
        let source = isAlone ? Connection.Location.immutableFile : Connection.Location.readOnlyFile
        let options = settings.options(.reader)
        let (path, vfs) = (name, settings.vfs)
        let place = place(of: status.identity)
        let isUnmoved = { @Sendable in isAlone ? isUntouched(status) : place.isUnmoved() }
        let open: ReaderPool.Opener = { () throws(SQLiteError) in
            let connection = try Connection.open(source(path, vfs), options)
            guard isUnmoved() else { throw .moved }
            return connection
        }
        var first = try open()
        try check(&first)
        // No counter: the index is only there while somebody who writes keeps it, so each read is a transaction of its own.
        return Database(
            identity: status.identity, logIdentity: nil, writer: nil,
            readers: readers(nil, status.identity, open: open), counter: nil,
            blobs: BlobFolder(path: location.files, syncs: false),
            verifiesReads: true,
            openGuardian: { () throws(SQLiteError) in throw .closed }, isUnmoved: isUnmoved)
    }

    /// Throws unless it is a store of exactly our schema.
    private func check(_ connection: inout Connection) throws {
        let version = try connection.userVersion()
        guard try connection.applicationID() == Schema.applicationID, version > 0 else { throw unfinished }
        if version > Schema.current {
            throw refusal(
                .newerSchema, "a newer release of the library wrote it (schema \(version)); update the library")
        }
        if version < Schema.current {
            throw refusal(.readOnly, "an older release wrote it (schema \(version)); open it for writing once")
        }
        try Schema.check(&connection)
    }

    /// Whether the file is what it was, to the last change, and has no log.
    private func isUntouched(_ before: FileStatus) -> Bool {
        do {
            guard let now = try FileSystem.status(name) else { return false }
            return try now.identity == before.identity && now.size == before.size && now.changedAt == before.changedAt
                && !hasLog()
        } catch {
            return false
        }
    }

    private var unfinished: CacheError {
        refusal(.storageUnavailable, "it is not set up yet; open it for writing once")
    }
}
