package import LarderSQLite

/// The writer's connection, and what it knows of the database.
///
/// It is used under the writer's lock alone.
package final class WriterState {
    package var connection: Connection
    /// Holds the write lock while the log is copied.
    var guardian: Connection?
    var database: Database
    var watch: CommitWatch { database.watch }
    var files: ValueFiles? { database.files }
    /// The reason to open the file again before any other work.
    var loss: Loss?
    var events: [StoreEvent] {
        get { aftermath.events }
        set { aftermath.events = newValue }
    }
    func noteReplacedFile(_ events: [StoreEvent]) {
        aftermath.isReplaced = true
        aftermath.events += events
    }
    var openedNames: Set<ExactName> = []
    /// The declarations of a file that was moved, until they are declared again.
    var undeclared: (caches: [Generation], limits: StoreLimits)?
    /// The files that the open transaction displaces, and those that its body wrote.
    var (displacedFiles, writtenFiles) = ([String](), [String]())
    /// What is reported once the open transaction is committed.
    var pendingEvents: [StoreEvent] = []
    /// What is to be done outside the lock.
    private var aftermath = Aftermath()

    var generations: [ExactName: Generation] = [:]
    /// What is known of generations that were counted, by id.
    var counts: [Int64: RowCount] = [:]

    private(set) var epoch: UInt32 = 0

    // MARK: Upkeep

    let busyTimeout: Int64
    let uses = Uses()
    let memories = Memories()
    var upkeep: Upkeep?
    var upkeepInterval: Int64?
    /// The latest moment that a write or upkeep has named, in place of a look at the clock under the lock.
    var now = Int64.min
    var storeLimits = StoreLimits()
    private(set) var hasLimits = false
    /// The totals that limits could not reduce for pinned rows, by the ids of generations; 0 for those of the store.
    var unheld: [Int64: Totals] = [:]
    var (nextRecount, nextSweep, nextSpaceCheck) = (Int64.min, Int64.min, Int64.min)
    /// The row that was written last, which no limit removes.
    var lastWrittenID: Int64?
    /// The rows that the open transaction removes by age, limit or tag, by the names of their caches.
    var removedRows: [CacheIdentity: [RemovedRow]] = [:]
    /// What the body of the open transaction has done, and what memory learns of it after the commit.
    private var applies: [(apply: CacheRows.Apply, outcome: Outcome)] = []
    var evictedCount = 0
    /// The uses that the writes of the open transaction are, and the revisions that it changes without a use.
    var writtenUses: [Access] = []
    var movedUses: [(id: Int64, old: Int64, new: Int64)] = []

    /// A Boolean value that indicates whether the open transaction adds, retires or changes a generation.
    var switchesGeneration = false

    /// A Boolean value that indicates whether a full disk keeps the main file from growing.
    var isCapped = false
    var isShortOfRoom = false

    /// The number of pages of the log that are not in the main file yet, in whatever process they were written.
    var uncopiedPages: Int { database.counter?.uncopiedFrames ?? connection.logPages }
    /// The number of them at which the log is copied next.
    private var copyPages = WriterState.checkpointPages
    private var isCopyScheduled = false
    static let checkpointPages = Ballast.pages
    private var copyInterval: Int { isShortOfRoom ? Self.checkpointPages / 5 : Self.checkpointPages }
    /// The retired generation whose rows are being deleted, and the id from which some may be left.
    var reclaimCursor = (generation: Int64(0), id: Int64(0))
    private(set) var isWriting = false
    /// A failure inside a request that a body caught: half of the request may be done, so nothing is committed.
    private var failure: (any Error)?
    /// A failure of a read inside the body, which may throw another error.
    var readFailure: (any Error)?
    private var changesAtBegin = 0
    private(set) var pagesAtBegin = 0
    private var random = UInt64.random(in: 0 ... .max)

    init(_ opening: consuming Opening, busyTimeout: Int64) {
        self.busyTimeout = busyTimeout
        database = opening.database
        connection = opening.connection
        guardian = opening.guardian
        lookAtRoom()
        resetLog()
    }

    // MARK: Transactions

    /// Begins a transaction that writes.
    ///
    /// BEGIN is tried at least once, whatever the deadline.
    func begin(until deadline: Deadline) throws(SQLiteError) {
        connection.setBusyTimeout(Int32(clamping: deadline.remaining))
        do {
            try connection.beginWriting()
            isWriting = true
            (failure, readFailure) = (nil, nil)
            changesAtBegin = connection.totalChanges
            pagesAtBegin = isShortOfRoom ? try connection.pageCount() : 0
            switchesGeneration = false
            (displacedFiles, writtenFiles, removedRows, applies, pendingEvents) = ([], [], [:], [], [])
            (writtenUses, movedUses) = ([], [])
            try lookUpGenerations()
        } catch {
            _ = fail(error)
            throw error
        }
    }

    /// Commits.
    ///
    /// A transaction that has changed nothing is rolled back: an empty COMMIT is not counted in the log's index, so the
    /// next commit of another process would pass for ours.
    ///
    /// - Returns: The epoch in which the written rows are valid.
    @discardableResult
    func commit() throws -> UInt32 {
        // Throws if SQLite has rolled the transaction back.
        try connection.requireTransaction()
        isWriting = false
        guard connection.totalChanges != changesAtBegin else {
            connection.abandonWriting()
            aftermath.files += displacedFiles
            return epoch
        }
        let epoch = watch.beginCommit()
        do {
            try connection.finishWriting { _ in }
        } catch {
            _ = watch.endCommit(isCommitted: false, switchesGeneration: false)
            throw error
        }
        // After a move the files may be those of another database.
        do { try database.requirePlace() } catch {
            _ = watch.endCommit(isCommitted: true, switchesGeneration: true)
            throw error
        }
        aftermath.files += displacedFiles
        // Nothing is known if another store has committed since.
        self.epoch = watch.endCommit(isCommitted: true, switchesGeneration: switchesGeneration) ?? 0
        for (cache, rows) in removedRows {
            overtakeLoads(of: rows.filter { $0.cause == .removed }.map(\.key), in: cache)
        }
        aftermath.removedRows.merge(removedRows, uniquingKeysWith: +)
        noteUses()
        events += pendingEvents
        return epoch
    }

    /// Runs `body` in a transaction, and commits it unless it throws.
    func transaction<R>(until deadline: Deadline, _ body: (WriterState) throws -> R) throws -> R {
        try StoreError.translating { try begin(until: deadline) }
        var isCommitting = false
        do {
            let result = try body(self)
            if let failure { throw failure }
            try requireRoom()
            isCommitting = true
            let epoch = try commit()
            for (apply, outcome) in applies { apply(outcome.in(epoch)) }
            endBody()
            return result
        } catch {
            endBody()
            let failure = fail(self.failure ?? readFailure ?? error)
            // After a COMMIT that failed a row may name them.
            if !isCommitting { aftermath.files += writtenFiles }
            // The body is not run again, but the next removal finds room.
            if failure.isFullDisk { do { try releaseBallast() } catch {} }
            if failure.code == .storageFull { copyLog() }
            throw error is SQLiteError ? failure : error
        }
    }

    /// What the body displaced is released outside the lock.
    private func endBody() {
        if applies.isEmpty { return }
        aftermath.released += applies.map(\.apply)
        applies = []
        askForUpkeep()
    }

    /// Asks for upkeep some time after a write.
    func askForUpkeep() {
        if let upkeepInterval, now != .min { upkeep?.ask(at: now.addingSaturated(upkeepInterval), from: now) }
    }

    /// Returns the files that no row names any more, for the caller to discard outside the lock.
    func takeDiscardedFiles() -> [String] {
        defer { aftermath.files = [] }
        return aftermath.files
    }

    /// Keeps an object until the lock is released, because its end runs code of the program.
    func releaseLater(_ objects: [any Sendable]) { aftermath.released += objects }

    func takeAftermath() -> Aftermath {
        defer { aftermath = Aftermath() }
        return aftermath
    }

    /// Notes what the body of the open transaction has done to rows of a cache.
    func note(_ outcome: Outcome, _ apply: CacheRows.Apply?) { if let apply { applies.append((apply, outcome)) } }

    /// Calls `body` under the writer's lock after the open transaction is committed.
    package func afterCommit(_ body: @escaping @Sendable () -> Void) { note(Outcome()) { _ in body() } }

    /// Does a part of the open transaction, which is not committed if the part fails.
    func request<R>(_ body: () throws -> R) throws(StoreError) -> R {
        do {
            return try body()
        } catch {
            let error = StoreError(any: error)
            // What is refused has changed nothing.
            if !error.isRefusal { failure = error }
            throw error
        }
    }

    /// Undoes the transaction.
    ///
    /// The next transaction looks the generations up again.
    func rollBack() {
        if isWriting { connection.abandonWriting() }
        isWriting = false
        (epoch, reclaimCursor, nextRecount) = (0, (0, 0), .min)
    }

    // MARK: The log

    /// Forgets what was known of the log of another file.
    func resetLog() { (copyPages, isCopyScheduled) = (copyInterval, false) }

    /// Returns whether the log is long and the caller is to have it copied; true once until it is copied.
    func schedulesCopy() -> Bool {
        guard uncopiedPages >= copyPages, !isCopyScheduled else { return false }
        isCopyScheduled = true
        copyPages = uncopiedPages + copyInterval
        return true
    }

    /// A Boolean value that indicates whether the log has grown as long again since the copy was scheduled.
    var isCopyOverdue: Bool { isCopyScheduled && uncopiedPages >= copyPages }

    func copyOverdueLog() { if isCopyOverdue { copyLog() } }

    /// Copies the log into the main file.
    ///
    /// If that fails or another process reads from the log, it is tried again 100 pages later.
    func copyLog() {
        isCopyScheduled = false
        copyPages = uncopiedPages + 100
        database.readers?.release()
        do {
            if try guardian?.guardCheckpoint(of: &connection) == true { copyPages = copyInterval }
        } catch {}
        lookAtRoom()
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

    /// Stamps the accesses, writes the activity, and leaves no frame in the log if no other connection has the file open.
    func close(at now: Int64) {
        do {
            try transaction(until: Deadline(in: 0)) { state in
                try state.stampAccesses(isExact: false)
                try state.addActivity(state.takeActivity(), day: now / 86_400_000)
            }
        } catch {}
        database.end()
        if guardian == nil { return }
        copyLog()
        guardian = nil
        do { _ = try connection.emptyLog(keeping: isShortOfRoom ? Int(Ballast.size) : 0) } catch {}
    }

    // MARK: Reading

    /// Runs `body` with the live generation of a cache, or returns false if the cache is superseded.
    ///
    /// Returns nil if a rollback that failed has left a transaction open.
    func read(
        _ cache: CacheDeclaration, _ body: (inout Connection, Generation) throws(SQLiteError) -> Void
    ) throws(SQLiteError) -> Bool? {
        guard connection.isInAutocommit, !isLost else { return nil }
        try lookUpGenerations()
        guard let generation = generation(of: cache) else { return false }
        try body(&connection, generation)
        return true
    }

    /// Looks up the generations and limits, and forgets what was counted, if another store has committed.
    func lookUpGenerations() throws(SQLiteError) {
        let now = watch.epoch()
        guard now != epoch || now == CommitWatch.noEpoch else { return }
        try database.requirePlace()
        counts = [:]
        generations = try connection.liveGenerations()
        let (limits, lastPlace, isCapped) = try connection.storeLimits()
        storeLimits = limits
        try noteCap(isCapped)
        noteLimits()
        // A damaged place leaves room for later ones.
        uses.raise(to: min(max(lastPlace, (try connection.number(.highestID) ?? 0) << Uses.placeBits), .max / 2))
        epoch = now
    }

    func noteLimits() {
        hasLimits = storeLimits != StoreLimits() || generations.values.contains { $0.limits != Limits() }
    }

    // MARK: Numbers

    func newRevision() -> Int64 {
        random &+= 0x9E37_79B9_7F4A_7C15
        var bits = (random ^ random >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return Int64(bitPattern: bits ^ bits >> 31)
    }
}
