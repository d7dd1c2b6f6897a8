internal import LarderSQLite

/// Opens the database of a store in a file: looks whose it is, makes it, brings it up to date, or replaces it.
///
/// The usual case needs no lock. Whoever has to change something takes the lock file and looks again.
struct StoreOpener: StoreOpening {
    let location: StoreLocation
    let settings: OpeningSettings
    let timekeeper: Timekeeper

    var name: String { location.path }
    var isReadOnly: Bool { settings.access == .readOnly }
    var replacesDamaged: Bool { settings.recovery == .recreate && settings.access == .readWrite }

    func open(after loss: StoreLoss?) throws(CacheError) -> Opened {
        try CacheError.translating("cannot open \(name)") {
            try Self.checkLibrary(settings.libraryVersion)
            if settings.access == .readWrite { try FileSystem.makeFolders(location.folder) }
            try refuseImpossiblePlaces()
            if settings.access == .readOnly { return Opened(database: try openSteadilyReadOnly()) }
            if loss == nil, try isLogEmpty() && !hasSalvage(), let database = try openIfReady() {
                return Opened(database: database)
            }
            let result = try FileSystem.withLock(location.lock, waiting: settings.busyMilliseconds) {
                Result { try openLocked(loss) }
            }
            guard let result else { throw refusal(.busy, "another process is setting it up; try again") }
            return try result.get()
        }
    }

    static func checkLibrary(_ version: Int32) throws(CacheError) {
        guard version < SQLiteLibrary.oldest else { return }
        throw CacheError(
            .storageUnavailable, "this system's SQLite is too old (\(version)); 3.37 or later is needed")
    }

    /// Refuses paths that no database can stand at, whoever tries.
    private func refuseImpossiblePlaces() throws {
        switch try FileSystem.status(name)?.kind {
        case nil, .file: break
        case .folder: throw refusal(.storageUnavailable, "it is a folder; name a file in it")
        case .link: throw refusal(.storageUnavailable, "it is a symbolic link, and links are not followed")
        case .other: throw refusal(.storageUnavailable, "it is not a regular file")
        }
        if try FileSystem.isOnNetwork(location.folder) { throw noSharedMemory }
    }

    /// Opens a store that needs nothing done to it; nil if it does, or seems damaged.
    private func openIfReady() throws -> Database? {
        do {
            guard let status = try FileSystem.status(name), status.size > 0 else { return nil }
            let head = try head()
            // Without a mark it may be a store that another process makes at this moment.
            if head.applicationID != 0 { try refuseForeign(head) }
            guard head.applicationID == Schema.applicationID else { return nil }
            var writer = try connect(.writer, to: status.identity)
            guard try writer.isLogging(), try writer.userVersion() == Schema.current else { return nil }
            try Schema.check(&writer)
            return try database(writer, status.identity)
        } catch let error as SQLiteError where error.isCorruption || error.code == SQLiteError.moved.code {
            // Whether it is damaged is decided under the lock; so is what replaced it while we looked.
            return nil
        }
    }

    /// The first bytes of the file; `.moved` if another process took it away while we looked.
    func head() throws -> FileHead {
        do {
            return try FileHead(path: name, vfs: settings.vfs)
        } catch  where SQLiteError.Code.cannotOpen ~= error.code {
            guard try FileSystem.status(name) != nil else { throw SQLiteError.moved }
            throw error
        }
    }

    /// Refuses a valid database that is not ours, before anything touches it.
    func refuseForeign(_ head: FileHead) throws {
        guard head.hasSQLiteHeader, head.applicationID != Schema.applicationID else { return }
        // Without a mark and without tables it is a database that nobody uses yet, unless its log says otherwise.
        if head.applicationID == 0, head.hasNoTables, try !hasLog() { return }
        throw foreign
    }

    var foreign: CacheError {
        refusal(.foreignFile, "it is another program's database, and was left alone; choose another path")
    }

    /// Whether a log with something in it stands beside the database.
    func hasLog() throws(SystemError) -> Bool {
        try FileSystem.status(location.logs[0]).map { $0.size > 0 } ?? false
    }

    func refusal(_ code: CacheError.Code, _ reason: String) -> CacheError {
        CacheError(code, "cannot open \(name): \(reason)")
    }

    var noSharedMemory: CacheError {
        refusal(
            .storageUnavailable,
            "its volume cannot share memory between processes, as network volumes cannot; choose a local one")
    }
}
