internal import LarderSQLite

/// The opening of a store in a file.
///
/// The lock file is held from before the file is looked for until its first read is done, so that two processes never set
/// up one store at the same time.
struct StoreFile {
    let path: String
    let options: Store.Options

    func open() throws(StoreError) -> sending WriterState {
        let deadline = Deadline(in: options.busyTimeout)
        let state = try StoreError.translating {
            try FileSystem.makeFolders(FileSystem.folder(of: path))
            return try LockFile(path: path + ".lock").withLock(until: deadline) { try openLocked(deadline) }
        }
        guard let state else {
            throw StoreError(.busy, "Another process is setting up \"\(path)\". Try again.")
        }
        return state
    }

    private func openLocked(_ deadline: Deadline) throws -> WriterState {
        let status = try FileSystem.status(path)
        guard status?.isFile != false else { throw refusal("is a folder, a symbolic link or a device. Name a file.") }
        if status == nil { try FileSystem.makeFile(path) }
        var connection = try connect(.writer, deadline)
        if try connection.applicationID() != Schema.applicationID {
            guard try connection.claimEmptyDatabase(applicationID: Schema.applicationID) else {
                throw StoreError(.foreignFile, "\"\(path)\" is a database of another program. Name another path.")
            }
        }
        try connection.giveForm()
        guard try connection.enableLog() else { throw refusal("is on a disk without shared memory. Use a local disk.") }
        let version = try connection.userVersion()
        guard version <= Schema.current else {
            throw StoreError(.newerSchema, "\"\(path)\" was written by a later release. Update the program.")
        }
        if version == 0 { try Schema.create(&connection) }
        guard let identity = try FileSystem.status(path)?.identity else { throw refusal("was moved. Try again.") }
        return try WriterState(
            connection, guardian: try connect(.guardian, deadline), (self, identity), busyTimeout: options.busyTimeout)
    }

    /// Opens a connection that reads the same file as the writer.
    func openReader(_ identity: FileIdentity) throws -> Connection {
        var connection = try connect(.reader, Deadline(in: options.busyTimeout))
        // The first read opens the log.
        _ = try connection.userVersion()
        guard try FileSystem.status(path)?.identity == identity else {
            throw refusal("was moved or deleted. Open the store again.")
        }
        return connection
    }

    private func connect(_ role: Connection.Role, _ deadline: Deadline) throws(SQLiteError) -> Connection {
        try Connection.open(
            .file(path),
            .init(
                role: role, synchronous: options.durability == .powerLoss ? .full : .normal,
                busyMilliseconds: role == .guardian ? 0 : Int32(clamping: deadline.remaining)))
    }

    private func refusal(_ reason: String) -> StoreError { StoreError(.storageUnavailable, "\"\(path)\" \(reason)") }
}
