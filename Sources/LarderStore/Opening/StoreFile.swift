internal import LarderSQLite

/// The opening of a store in a file.
///
/// The lock file is held from before the file is looked for until its first read is done, so that two processes never set
/// up, repair or replace one store at the same time. A store that is only read takes the lock if the file is there.
struct StoreFile: Sendable {
    let path: String
    let options: Store.Options

    /// - Parameter path: The path of the file. Symbolic links in its folder are resolved now, so that two spellings of one
    ///   folder are one store. The file itself may not be a link.
    init(named path: String, _ options: Store.Options) throws(StoreError) {
        self.options = options
        self.path = try StoreError.translating {
            let folder = FileSystem.folder(of: path)
            if !options.isReadOnly { try FileSystem.makeFolders(folder) }
            guard let folder = try FileSystem.resolved(folder) else { return path }
            return (folder == "/" ? "" : folder) + "/" + FileSystem.name(of: path)
        }
    }

    var lockFile: LockFile { LockFile(path: path + ".lock") }

    /// Opens the file, and creates it and its folder if they are missing.
    ///
    /// - Parameters:
    ///   - old: The file that was open, if the path is opened again.
    ///   - isDamaged: A Boolean value that indicates whether that file is salvaged if it is still at the path.
    func open(after old: OpenedFile? = nil, isDamaged: Bool = false) throws(StoreError) -> sending Opening {
        let deadline = Deadline(in: options.busyTimeout)
        let opening = try StoreError.translating { () throws -> Opening? in
            if options.isReadOnly {
                return try lockFile.withLock(until: deadline, creates: false) { try openReadOnly(after: old) }
            }
            if options.needsPresentStore { try requirePresence() }
            try FileSystem.makeFolders(FileSystem.folder(of: path))
            try requireLocalDisk()
            try refuseBeforeLocking()
            // Another process may have created the folder a moment ago.
            if options.durability == .powerLoss {
                try FileSystem.sync(FileSystem.folder(of: FileSystem.folder(of: path)))
            }
            return try lockFile.withLock(until: deadline) { try openLocked(after: old, isDamaged, deadline) }
        }
        guard let opening else { throw StoreError(.busy, "Another process is setting up \"\(path)\". Try again.") }
        return opening
    }

    private func requirePresence() throws {
        let isThere = try ["", ".salvaged"].contains { try FileSystem.status(path + $0) != nil }
        if !isThere { throw refusal("does not exist.") }
    }

    /// Throws if what is at the path cannot be a database.
    func requireFile(_ status: FileSystem.Status) throws {
        if status.isFile { return }
        if status.isFolder { throw refusal("is a folder. Name a file.") }
        guard let target = try FileSystem.target(path) else { throw refusal("is a device or a pipe. Name a file.") }
        throw refusal("is a symbolic link to \"\(target)\". Name the file itself.")
    }

    /// Throws before any file is created if the path cannot be that of a store.
    func refuseBeforeLocking() throws {
        guard try FileSystem.status(lockFile.path) == nil, let status = try FileSystem.status(path) else { return }
        try requireFile(status)
        do { try requireOwnership() } catch let error as SQLiteError where error.isCorruption {}
    }

    /// Throws on a disk whose machines share no memory.
    private func requireLocalDisk() throws(StoreError) {
        if options.isNetworkDisk(FileSystem.folder(of: path)) { throw refusal("is on a network. Use a local disk.") }
    }

    private func openLocked(after old: OpenedFile?, _ isDamaged: Bool, _ deadline: Deadline) throws -> Opening {
        let salvage = Salvage(file: self, deadline: deadline)
        try salvage.finish()
        // What a running program had written is gone, and what it goes on with is not to be older.
        let event = old == nil ? try prime() : nil
        var opening = try openOrReplace(after: old, isDamaged, salvage, deadline)
        if let event { opening.events.append(event) }
        return opening
    }

    private func openOrReplace(
        after old: OpenedFile?, _ isDamaged: Bool, _ salvage: Salvage, _ deadline: Deadline
    ) throws -> Opening {
        if isDamaged, let old, try FileSystem.status(path)?.identity == old.identity {
            try requireKnownSchema(deadline)
            return try openReplaced(salvage.run(), deadline)
        }
        do {
            if let old { try setLogsAside(of: old) }
            return try openPrepared(deadline)
        } catch let error as SQLiteError where error.isAboutRoom {
            // The log's index may be missing.
            Ballast(path: path + ".ballast").release()
            return try openPrepared(deadline)
        } catch let error as SQLiteError where error.isCorruption && options.recovery == .salvage {
            try requireKnownSchema(deadline)
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

    /// Sets the log of a file aside that was open if another file was put in its place without a log of its own.
    ///
    /// SQLite would read the log as that of the new file.
    private func setLogsAside(of old: OpenedFile) throws(FileError) {
        guard let identity = try FileSystem.status(path)?.identity, identity != old.identity else { return }
        for log in try logs() where old.logs.contains(log.identity) {
            _ = try FileSystem.rename(log.path, to: path + ".replaced" + log.path.dropFirst(path.count))
        }
    }

    /// Returns the parts of the log that are there.
    private func logs() throws(FileError) -> [(path: String, identity: FileIdentity)] {
        var logs: [(path: String, identity: FileIdentity)] = []
        for part in ["-wal", "-shm"] {
            if let status = try FileSystem.status(path + part) { logs.append((path + part, status.identity)) }
        }
        return logs
    }

    private func openPrepared(_ deadline: Deadline) throws -> Opening {
        let status = try FileSystem.status(path)
        if let status { try requireFile(status) }
        if status == nil {
            // They belong to a file that was deleted.
            for log in ["-wal", "-shm"] { try FileSystem.delete(path + log) }
            try FileSystem.makeFile(path)
        }
        let isNew = try requireOwnership()
        // A loss of power can leave a first page by half, so the mark is on the disk before that page is written.
        do { try lockFile.mark(syncs: isNew) } catch { if isNew { throw error } }
        try protectFiles()
        var connection = try connect(.writer, deadline)
        if connection.isReadOnly() {
            throw refusal("may not be written. Change its permissions, or open it read-only.")
        }
        try prepare(&connection)
        guard let identity = try FileSystem.status(path)?.identity else { throw SQLiteError.moved }
        // The first read opens the log.
        _ = try connection.liveIncarnations()
        let opened = OpenedFile(file: self, identity: identity, logs: try logs().map(\.identity))
        var guardian = try connect(.guardian, deadline)
        _ = try guardian.userVersion()
        // SQLite locks no byte of the log, which it may have made anew.
        try options.protect?([path + "-wal"])
        return Opening(
            connection: connection, guardian: guardian, database: Database(connection, opened))
    }

    /// Protects the files before SQLite opens them: to protect one, the system opens and closes it, which would end SQLite's locks.
    private func protectFiles() throws {
        guard let protect = options.protect else { return }
        // New value files get the protection of their folder.
        let files = ValueFiles.folder(of: path)
        try FileSystem.makeFolders(files)
        try FileSystem.makeFile(path + "-shm")
        try protect(["", "-shm", ".lock"].map { path + $0 } + [files])
    }

    /// Gives the file what it lacks.
    private func prepare(_ connection: inout Connection) throws {
        if try connection.applicationID() != Schema.applicationID {
            guard try connection.claimEmptyDatabase(applicationID: Schema.applicationID) else { throw foreign }
        }
        let version = try connection.userVersion()
        try requireKnown(version)
        if options.needsPresentStore && version < Schema.current {
            throw refusal("\(StoreError.earlierRelease). Open it once with the program.")
        }
        if version < 0 { throw SQLiteError(code: .corrupt, message: "the schema has a negative number") }
        if version == 0 {
            if try connection.hasTables() { throw SQLiteError(code: .corrupt, message: "the schema has no version") }
            try connection.giveForm()
        }
        guard try connection.enableLog() else { throw refusal("is on a disk without shared memory. Use a local disk.") }
        guard version < Schema.current else { return }
        let moved = try version == 1 ? linkFilesOfFirstStep(&connection) : []
        try Schema.migrate(&connection)
        for file in moved { try FileSystem.delete(file) }
        if !moved.isEmpty { FileSystem.deleteEmptyFolder(FileSystem.folder(of: moved[0])) }
    }

    /// Gives the value files a second name in the present folder, if step 1 had them in another one, and returns the first ones.
    ///
    /// A name without the ending ".sqlite" shared a folder with that with it.
    private func linkFilesOfFirstStep(_ connection: inout Connection) throws -> [String] {
        let (old, new) = (path + ".files", ValueFiles.folder(of: path))
        guard old != new, !path.hasSuffix(".sqlite"), try FileSystem.status(old)?.isFolder == true else { return [] }
        let names = try connection.list(.valueFiles) { $0.text(0) }.filter(FileName.isValid)
        if !names.isEmpty { try FileSystem.makeFolders(new) }
        for name in names { try FileSystem.link(old + "/" + name, to: new + "/" + name) }
        return names.map { old + "/" + $0 }
    }

    /// Throws if a file that seems to be damaged is of a later release, as far as its schema can be read.
    private func requireKnownSchema(_ deadline: Deadline) throws {
        do {
            var connection = try connect(.reader, deadline)
            try requireKnown(connection.userVersion())
        } catch let error as SQLiteError where error.isCorruption {}
    }

    /// Throws if the file is of a later release.
    private func requireKnown(_ version: Int32) throws(StoreError) {
        guard version > Schema.current else { return }
        throw StoreError(.newerSchema, "\"\(path)\" was written by a later release. Update the program.")
    }

    /// Throws if the file is another program's.
    ///
    /// A store whose first page is damaged is known by the mark of its lock file.
    ///
    /// - Returns: A Boolean value that indicates whether it has no pages yet.
    @discardableResult
    func requireOwnership() throws -> Bool {
        let head = try FileHead(path: path)
        // SQLite calls a file of one byte empty, which may be another program's, or a lock file of this one.
        if try head.size == 0 && FileSystem.status(path)?.size != 0 && !lockFile.isMarked { throw foreign }
        if head.hasSQLiteHeader && head.applicationID == Schema.applicationID && !head.hasKnownJournal {
            throw SQLiteError(code: .corrupt, message: "the header declares an unknown journal")
        }
        if head.size == 0 || head.applicationID == Schema.applicationID { return head.size == 0 }
        if !head.hasSQLiteHeader && lockFile.isMarked { throw SQLiteError(code: .notADatabase, message: "no database") }
        if !head.hasSQLiteHeader || head.isInLogMode || !head.hasNoTables || head.applicationID != 0 { throw foreign }
        return false
    }

    /// Opens a connection that reads the same file as the writer.
    ///
    /// - Parameter asNewest: A Boolean value that indicates whether older tables are shown as those of the newest step.
    func openReader(of opened: OpenedFile, asNewest: Bool = true) throws -> Connection {
        var connection = try connectReader(isAlone: opened.state != nil)
        // The first read opens the log.
        let version = try connection.userVersion()
        guard try opened.isInPlace() else { throw SQLiteError.moved }
        if options.isReadOnly && asNewest { try Schema.show(version, to: &connection) }
        return connection
    }

    private func connectReader(isAlone: Bool) throws(SQLiteError) -> Connection {
        guard options.isReadOnly else { return try connect(.reader, Deadline(in: options.busyTimeout)) }
        return try Connection.open(
            isAlone ? .immutableFile(path) : .readOnlyFile(path),
            .init(role: .reader, busyMilliseconds: Int32(clamping: options.busyTimeout)))
    }

    func connect(
        _ role: Connection.Role, _ deadline: Deadline, readsCutFiles: Bool = false
    ) throws(SQLiteError) -> Connection {
        try Connection.open(
            .file(path),
            .init(
                role: role, synchronous: options.durability == .powerLoss ? .full : .normal,
                busyMilliseconds: role == .guardian ? 0 : Int32(clamping: deadline.remaining),
                readsCutFiles: readsCutFiles))
    }

    /// Opens a file of which nothing on the disk changes, the log's index included.
    ///
    /// With a log it is read as other processes read it. Without one it is read without locks, until it changes.
    private func openReadOnly(after old: OpenedFile?) throws -> Opening {
        guard let status = try FileSystem.status(path), status.isFile else {
            throw refusal("is no file. A store that is opened read-only has to exist.")
        }
        try requireOwnership()
        let isAlone = try !hasLog()
        if !isAlone { try requireLocalDisk() }
        let logs = try logs().map(\.identity)
        if let old, old.identity != status.identity, !isAlone, logs.contains(where: old.logs.contains) {
            throw refusal("was replaced, and has the log of the old file. Open it once for writing.")
        }
        if try !isAlone && FileSystem.status(path + "-shm") == nil {
            throw refusal("\(StoreError.missingIndex). Open it once for writing.")
        }
        let opened = OpenedFile(
            file: self, identity: status.identity, logs: logs, state: isAlone ? status : nil)
        var connection = try openReader(of: opened)
        guard try connection.applicationID() == Schema.applicationID else { throw foreign }
        try requireKnown(connection.userVersion())
        _ = try connection.liveIncarnations()
        return Opening(connection: connection, guardian: nil, database: Database(connection, opened))
    }

    /// Returns whether there is a log that has more than its header of 32 bytes.
    ///
    /// A process that is killed before its first commit leaves the header, which SQLite cannot read without a writer.
    func hasLog() throws(FileError) -> Bool { try FileSystem.status(path + "-wal")?.size ?? 0 > 32 }

    var foreign: StoreError {
        StoreError(.foreignFile, "\"\(path)\" is a file of another program. Name another path.")
    }

    private func refusal(_ reason: String) -> StoreError { StoreError(.storageUnavailable, "\"\(path)\" \(reason)") }
}

/// The deletion of a store that no process has open.
extension StoreFile {
    /// Deletes the file and all that belongs to it.
    ///
    /// Throws `.busy` if a connection of any process has it open, and `.foreignFile` if it is no store.
    func delete() throws(StoreError) {
        let deadline = Deadline(in: options.busyTimeout)
        let isDeleted = try StoreError.translating { () throws -> Bool? in
            guard try FileSystem.resolved(FileSystem.folder(of: path)) != nil else { return true }
            let hasLock = try FileSystem.status(lockFile.path) != nil
            if try !hasLock && FileSystem.status(path) == nil { return true }
            try refuseBeforeLocking()
            if !hasLock { try requireMark() }
            return try lockFile.withLock(until: deadline) {
                if let status = try FileSystem.status(path) {
                    try deleteAlone(status)
                } else if try lockFile.isMarked || FileSystem.status(path + ".salvaged") != nil {
                    try deleteParts()
                }
                return true
            }
        }
        if isDeleted == nil { throw .busy }
    }

    /// Deletes all files while a connection keeps every other one out.
    private func deleteAlone(_ status: FileSystem.Status) throws {
        try requireFile(status)
        try requireMark()
        var connection = try Connection.open(.file(path))
        if try !connection.lockAlone() {
            throw StoreError(.busy, "\"\(path)\" is open in a program. Close it there first.")
        }
        try deleteParts()
    }

    /// Throws unless the file is marked as a store, itself or by its lock file: an empty one may be another program's.
    private func requireMark() throws {
        if try !lockFile.isMarked && FileHead(path: path).applicationID != Schema.applicationID { throw foreign }
    }

    private func deleteParts() throws {
        // The main file goes first: what is left without it is nothing to a store.
        for part in ["", ".salvaged", ".damaged", ".replaced", StoreCopy.suffix] {
            for log in ["", "-wal", "-shm", "-journal"] { try FileSystem.delete(path + part + log) }
        }
        let files = ValueFiles.folder(of: path)
        if try FileSystem.status(files)?.isFolder == true {
            // The folder may be one of another program, with files of its own.
            for name in try FileSystem.names(in: files)
            where try FileName.isOwn(name) && FileSystem.status(files + "/" + name)?.isFile == true {
                try FileSystem.delete(files + "/" + name)
            }
            FileSystem.deleteEmptyFolder(files)
        }
        for part in [".ballast", LockFile.migrationSuffix, LockFile.sharingSuffix, ".lock"] {
            try FileSystem.delete(path + part)
        }
        try FileSystem.sync(FileSystem.folder(of: path))
    }
}
