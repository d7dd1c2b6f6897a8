internal import LarderSQLite

/// The opening of a store in a file.
///
/// The lock file is held from before the file is looked for until its first read is done, so that two processes never set
/// up, repair or replace one store at the same time. A store that is only read takes the lock if the file is there.
struct StoreFile: Sendable {
    let path: String
    let options: Store.Options

    private var lockFile: LockFile { LockFile(path: path + ".lock") }

    /// Opens the file, and creates it and its folder if they are missing.
    ///
    /// - Parameter damaged: The file that was found damaged, to be salvaged if it is still at the path.
    func open(salvaging damaged: FileIdentity? = nil) throws(StoreError) -> sending Opening {
        let deadline = Deadline(in: options.busyTimeout)
        let opening = try StoreError.translating { () throws -> Opening? in
            if options.isReadOnly {
                return try lockFile.withLock(until: deadline, creates: false) { try openReadOnly() }
            }
            try FileSystem.makeFolders(FileSystem.folder(of: path))
            if NetworkDisk.holds(FileSystem.folder(of: path)) { throw refusal("is on a network. Use a local disk.") }
            return try lockFile.withLock(until: deadline) { try openLocked(damaged, deadline) }
        }
        guard let opening else { throw StoreError(.busy, "Another process is setting up \"\(path)\". Try again.") }
        return opening
    }

    private func openLocked(_ damaged: FileIdentity?, _ deadline: Deadline) throws -> Opening {
        let salvage = Salvage(file: self, deadline: deadline)
        try salvage.finish()
        if let damaged, try FileSystem.status(path)?.identity == damaged {
            return try openReplaced(salvage.run(), deadline)
        }
        do {
            return try openPrepared(deadline)
        } catch let error as SQLiteError where error.isAboutRoom {
            // The log's index may be missing.
            Ballast(path: path + ".ballast").release()
            return try openPrepared(deadline)
        } catch let error as SQLiteError where error.isCorruption && options.recovery == .salvage {
            return try openReplaced(salvage.run(), deadline)
        } catch let error as StoreError where error.code == .newerSchema && options.replacesNewerSchema {
            return try openReplaced(salvage.run(isReadable: false), deadline)
        }
    }

    private func openReplaced(_ report: SalvageReport, _ deadline: Deadline) throws -> Opening {
        var opening = try openPrepared(deadline)
        opening.events.append(.replaced(report))
        return opening
    }

    private func openPrepared(_ deadline: Deadline) throws -> Opening {
        let status = try FileSystem.status(path)
        guard status?.isFile != false else { throw refusal("is a folder, a symbolic link or a device. Name a file.") }
        if status == nil {
            // They belong to a file that was deleted.
            for log in ["-wal", "-shm"] { try FileSystem.delete(path + log) }
            try FileSystem.makeFile(path)
        }
        try requireOwnership()
        var connection = try connect(.writer, deadline)
        if connection.isReadOnly() {
            throw refusal("may not be written. Change its permissions, or open it read-only.")
        }
        try prepare(&connection)
        guard let identity = try FileSystem.status(path)?.identity else { throw SQLiteError.moved }
        // The first read opens the log.
        _ = try connection.liveGenerations()
        lockFile.mark()
        var guardian = try connect(.guardian, deadline)
        _ = try guardian.userVersion()
        return Opening(
            connection: connection, guardian: guardian,
            database: Database(connection, OpenedFile(file: self, identity: identity)))
    }

    /// Gives the file what it lacks.
    private func prepare(_ connection: inout Connection) throws {
        if try connection.applicationID() != Schema.applicationID {
            guard try connection.claimEmptyDatabase(applicationID: Schema.applicationID) else { throw foreign }
        }
        let version = try connection.userVersion()
        try requireKnown(version)
        if version == 0 {
            if try connection.hasTables() { throw SQLiteError(code: .corrupt, message: "the schema has no version") }
            try connection.giveForm()
        }
        guard try connection.enableLog() else { throw refusal("is on a disk without shared memory. Use a local disk.") }
        if version == 0 { try Schema.create(&connection) }
    }

    /// Throws if the file is of a later release.
    func requireKnown(_ version: Int32) throws(StoreError) {
        guard version > Schema.current else { return }
        throw StoreError(.newerSchema, "\"\(path)\" was written by a later release. Update the program.")
    }

    /// Throws if the file is another program's.
    ///
    /// A store whose first page is damaged is known by the mark of its lock file.
    private func requireOwnership() throws {
        let head = try FileHead(path: path)
        if head.size == 0 || head.applicationID == Schema.applicationID { return }
        if !head.hasSQLiteHeader && lockFile.isMarked { throw SQLiteError(code: .notADatabase, message: "no database") }
        if !head.hasSQLiteHeader || head.isInLogMode || !head.hasNoTables || head.applicationID != 0 { throw foreign }
    }

    /// Opens a connection that reads the same file as the writer.
    func openReader(of opened: OpenedFile) throws -> Connection {
        var connection = try connectReader(isAlone: opened.state != nil)
        // The first read opens the log.
        _ = try connection.userVersion()
        guard try opened.isInPlace() else { throw SQLiteError.moved }
        return connection
    }

    private func connectReader(isAlone: Bool) throws(SQLiteError) -> Connection {
        guard options.isReadOnly else { return try connect(.reader, Deadline(in: options.busyTimeout)) }
        return try Connection.open(
            isAlone ? .immutableFile(path) : .readOnlyFile(path),
            .init(role: .reader, busyMilliseconds: Int32(clamping: options.busyTimeout)))
    }

    func connect(_ role: Connection.Role, _ deadline: Deadline) throws(SQLiteError) -> Connection {
        try Connection.open(
            .file(path),
            .init(
                role: role, synchronous: options.durability == .powerLoss ? .full : .normal,
                busyMilliseconds: role == .guardian ? 0 : Int32(clamping: deadline.remaining)))
    }

    /// Opens a file of which nothing on the disk changes, the log's index included.
    ///
    /// With a log it is read as other processes read it. Without one it is read without locks, until it changes.
    private func openReadOnly() throws -> Opening {
        guard let status = try FileSystem.status(path), status.isFile else {
            throw refusal("is no file. A store that is opened read-only has to exist.")
        }
        try requireOwnership()
        let isAlone = try !hasLog()
        if try !isAlone && FileSystem.status(path + "-shm") == nil {
            throw refusal("has a log without an index. Open it once for writing.")
        }
        let opened = OpenedFile(file: self, identity: status.identity, state: isAlone ? status : nil)
        var connection = try openReader(of: opened)
        guard try connection.applicationID() == Schema.applicationID else { throw foreign }
        try requireKnown(connection.userVersion())
        _ = try connection.liveGenerations()
        return Opening(connection: connection, guardian: nil, database: Database(connection, opened))
    }

    /// Returns whether there is a log that is not empty.
    func hasLog() throws(FileError) -> Bool { try FileSystem.status(path + "-wal")?.size ?? 0 > 0 }

    private var foreign: StoreError {
        StoreError(.foreignFile, "\"\(path)\" is a file of another program. Name another path.")
    }

    private func refusal(_ reason: String) -> StoreError { StoreError(.storageUnavailable, "\"\(path)\" \(reason)") }
}
