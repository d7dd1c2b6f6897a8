package import LarderSQLite

/// An open store: one database with its caches.
package final class Store: Sendable {
    package struct Options: Sendable {
        package enum Durability: Sendable {
            /// A completed write survives the death of the process.
            case processCrash
            /// A completed write survives a loss of power.
            case powerLoss
        }

        /// How a damaged file is treated.
        package enum Recovery: Sendable {
            /// The rows that can be read are copied to a new file, and the damaged one is renamed.
            case salvage
            /// Nothing: reads and writes that meet the damage throw `.corrupt`.
            case fail
        }

        package var durability = Durability.processCrash
        /// The milliseconds that a call waits for other processes and for long bodies.
        package var busyTimeout: Int64 = 5000
        package var time = StoreTime.system
        /// A Boolean value that indicates whether no byte on the disk changes, and writes throw `.readOnly`.
        package var isReadOnly = false
        /// Returns whether a folder is on the disk of another machine.
        package var isNetworkDisk: @Sendable (String) -> Bool = { NetworkDisk.holds($0) }
        package var recovery = Recovery.salvage
        /// A Boolean value that indicates whether a file of a later release is set aside and replaced.
        package var replacesNewerSchema = false
        /// The store of which a missing one begins as a copy.
        package var primingPath: String?
        /// A Boolean value that indicates whether only a store of this release is opened: none is created or migrated.
        package var needsPresentStore = false
        /// A Boolean value that indicates whether upkeep runs automatically, or only in ``Store/maintain()``.
        package var runsUpkeep = true
        /// The milliseconds after a write at which upkeep runs also if nothing else is due; nil for never.
        package var upkeepInterval: Int64?
        /// Protects files of the store that are there, after each opening of the file and after each copy of another one.
        package var protect: (@Sendable (_ paths: [String]) throws(StoreError) -> Void)?
        /// The program and the release of the library that open caches.
        package var opener = (program: "", library: "")
        /// Called outside all locks of the store, but for that of a running body.
        package var report: @Sendable (StoreEvent) -> Void = { _ in }
        package var trace: StoreTrace?

        package init() {}
    }

    /// The file of the database, in a folder without symbolic links; nil in memory.
    package let path: String?
    package let time: StoreTime
    let writer: Writer
    /// The connections that read; nil in memory.
    let readers: Readers?
    /// The accesses of this process that are not stored yet.
    package let accesses: AccessBook
    let tiers: AttachedTiers
    package var loadCount: LoadCount { tiers.loadCount }
    /// The names of the caches that the process has open, sorted.
    package var openNames: [String] { tiers.names.map(\.text).sorted() }
    let upkeep: Upkeep
    package let sharing: SharingLock
    package let isReadOnly: Bool
    /// Called outside all locks, but for that of a running body.
    let report: @Sendable (StoreEvent) -> Void
    /// Told of calls that take long; nil if no program asks for it.
    package let trace: StoreTrace?

    private init(path: String?, _ opening: consuming sending Opening, _ options: Options) {
        let events = opening.events
        readers = path == nil ? nil : Readers(options)
        readers?.open(opening.database)
        let state = WriterState(opening, readers, busyTimeout: options.busyTimeout)
        (self.path, sharing) = (path, SharingLock(path))
        (time, isReadOnly, report, trace) = (options.time, options.isReadOnly, options.report, options.trace)
        (accesses, tiers) = (state.accesses, state.tiers)
        writer = Writer(state, options)
        upkeep = Upkeep(writer, time, isManual: !options.runsUpkeep)
        if isReadOnly { upkeep.stop() } else { writer.attach(upkeep, options) }
        askForUpkeep()
        for event in events { report(event) }
        // One that is only read may have no log.
        if watch.isUnsure && !isReadOnly { report(.unwatched) }
    }

    /// Opens the store at a path, and creates it and its folder if they are missing.
    package static func open(_ path: String, _ options: Options = Options()) throws(StoreError) -> Store {
        let version = SQLiteLibrary.version
        if version < SQLiteLibrary.oldest {
            throw StoreError(
                .storageUnavailable,
                "The SQLite of this system is too old (\(version)). Version 3.37 or later is needed.")
        }
        let file = try StoreFile(named: path, options)
        return Store(path: file.path, try file.open(), options)
    }

    /// Deletes the store at a path with all that belongs to it, if there is one.
    package static func delete(_ path: String, _ options: Options = Options()) throws(StoreError) {
        var options = options
        // A missing folder is not created.
        options.isReadOnly = true
        try StoreFile(named: path, options).delete()
    }

    /// Opens a store in memory, for this object alone.
    package static func inMemory(_ options: Options = Options()) throws(StoreError) -> Store {
        let opening = try StoreError.translating {
            var connection = try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
            try Schema.migrate(&connection)
            let database = Database(connection, nil)
            return Opening(connection: connection, guardian: nil, database: database)
        }
        return Store(path: nil, opening, options)
    }

    /// Notices the commits of other stores; another object once the file was moved or salvaged.
    package var watch: CommitWatch { writer.database.watch }
    var files: ValueFiles? { writer.database.files }

    deinit {
        upkeep.stop()
        writer.database.end()
        readers?.open(nil)
    }

    /// Opens a cache.
    ///
    /// If the store has it under another version or codec, its rows are retired.
    ///
    /// - Parameters:
    ///   - inlineLimit: The bytes above which a payload is a file.
    ///   - accessGrain: The milliseconds by which stored accesses may lag; a sixteenth of a sliding age at most. If nil, it is
    ///     that, or else an hour where a limit needs accesses, and a day elsewhere.
    ///   - evictsOnFullDisk: A Boolean value that indicates whether expired and least recently used entries of the cache are
    ///     evicted before a write fails for a full disk.
    ///   - limits: The limits of the cache from now on; nil leaves those that it has.
    ///   - keepsExpired: The milliseconds that expired entries stay, if no other open has asked for more.
    package func open(
        _ declaration: CacheDeclaration, inlineLimit: Int = 16_384, accessGrain: Int64? = 3_600_000,
        evictsOnFullDisk: Bool = true, limits: Limits? = nil, keepsExpired: Int64 = 0
    ) throws(StoreError) -> CacheRows {
        var opening = Opened()
        // A file that is opened again before there is a handle has the cache too.
        tiers.countHandle(of: declaration.identity, 1)
        defer { tiers.countHandle(of: declaration.identity, -1) }
        if !isReadOnly {
            let (now, block) = (time.now(), self.opening(declaration, limits, keepsExpired))
            opening = try writer.retrying { () throws(StoreError) in
                let unchanged = try writer.read {
                    try $0.openUnchanged(declaration, limits, keepsExpired: keepsExpired, at: now)
                }
                if let unchanged { return unchanged }
                return try writer.run(.chore(block)).opening
            }
        } else {
            let stored = stored(declaration)
            try stored?.requireKeys(of: declaration)
            opening.limits = stored?.limits ?? Limits()
        }
        askForUpkeep()
        let hasLimits = opening.limits != Limits() || opening.hasStoreLimits
        let grain = declaration.ageRule.slidingAge.map { $0 / 16 } ?? (hasLimits ? 3_600_000 : 86_400_000)
        return CacheRows(
            declaration, inlineLimit: inlineLimit, accessGrain: accessGrain ?? grain,
            evictsOnFullDisk: evictsOnFullDisk,
            store: self, opening: opening)
    }

    /// Returns the rows of a cache that a look has shown; nothing is written for that, and no row is retired.
    package func rows(of declaration: CacheDeclaration) -> CacheRows {
        CacheRows(
            declaration, inlineLimit: 16_384, accessGrain: 0, evictsOnFullDisk: false, store: self, opening: Opened())
    }

    /// Returns a cache of a file that is only read; nil if there is none, or it cannot be read now.
    private func stored(_ declaration: CacheDeclaration) -> Incarnation? {
        do throws(StoreError) {
            return try writer.read { state in
                var live = try state.connection.liveIncarnations()
                return live.incarnation(of: declaration)
            }
        } catch {
            return nil
        }
    }

    /// Asks for upkeep, since an opening leaves or finds something to do.
    private func askForUpkeep() {
        if isReadOnly { return }
        let now = time.now()
        upkeep.ask(at: now.addingSaturated(1000), from: now)
    }

    private func opening(
        _ declaration: CacheDeclaration, _ limits: Limits?, _ keepsExpired: Int64
    ) -> @Sendable (WriterState) throws -> Outcome {
        let now = time.now()
        return { state in
            var outcome = Outcome()
            state.now = now
            state.openingCount += 1
            outcome.opening.count = state.openingCount
            outcome.opening.isNew = state.incarnation(of: declaration) == nil
            // If the cache is open with the same rule, nothing is written.
            if state.incarnation(of: declaration)?.cache != declaration { try state.open(declaration, at: now) }
            try state.set(limits, keepsExpired, of: declaration)
            try state.noteOpening(of: declaration, at: now)
            outcome.opening.limits = state.incarnation(of: declaration)?.limits ?? Limits()
            outcome.opening.hasStoreLimits = state.limiter.storeLimits != StoreLimits()
            return outcome
        }
    }

    /// Runs `body` in one transaction, on this thread: all its changes are committed, or none if it throws.
    ///
    /// Other writers wait. From inside the body everything else that asks for the writer throws `.reentrant`.
    package func transaction<R>(_ body: (WriterState) throws -> R) throws -> R { try writer.exclusive(body) }

    /// Runs `body` in one transaction for a task.
    package func transaction<R: Sendable>(_ body: @escaping @Sendable (WriterState) throws -> R) async throws -> R {
        try await writer.exclusive(body)
    }

    /// Runs a chore of the store from a task, in a transaction that it shares with other requests.
    package func perform(_ chore: @escaping @Sendable (WriterState) throws -> Void) async throws {
        try await writer.run(
            .chore({ state in
                try chore(state)
                return Outcome()
            }))
    }

    /// The number of requests that wait for the writer.
    package var waitingCount: Int { writer.waitingCount }

    /// A Boolean value that indicates whether the store refuses new requests.
    package var isClosed: Bool { writer.isClosed }
    package var isSuspended: Bool { writer.isSuspended }

    /// Throws if the tables are of an earlier release, which a connection that only reads shows as those of this one.
    package func requireNewest() throws(StoreError) {
        if try writer.read({ $0.connection.shownStep }) == nil { return }
        throw StoreError(
            .storageUnavailable, "\"\(path ?? "")\" \(StoreError.earlierRelease). Open it once with the program.")
    }

    /// Throws if this thread runs the body of a transaction.
    package func requireNoBody() throws(StoreError) { if writer.isOwned { throw .reentrant } }

    /// Refuses new requests, ends those that run, and closes the file until ``resume()``: this process then holds no lock of it.
    ///
    /// Suspending twice is harmless.
    package func suspend() throws(StoreError) {
        if isClosed { throw .closed }
        // A body may not undo the suspension that waits for it.
        if writer.isOwned { throw .reentrant }
        upkeep.pause()
        sharing.pause()
        do throws(StoreError) { try writer.suspend(at: time.now()) } catch {
            sharing.resume()
            resume()
            throw error
        }
    }

    /// Takes requests again, and opens the file with the next one; returns whether the store was suspended.
    @discardableResult
    package func resume() -> Bool {
        guard writer.resume() else { return false }
        sharing.resume()
        if !isReadOnly { upkeep.resume() }
        return true
    }

    /// Refuses new requests, ends those that wait, and closes the file.
    ///
    /// Closing twice is harmless.
    package func close() throws(StoreError) {
        try writer.close(at: time.now())
        sharing.pause()
        upkeep.stop()
    }
}
