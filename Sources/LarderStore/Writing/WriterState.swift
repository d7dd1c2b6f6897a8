package import LarderSQLite

/// The writer's connection, and what it knows of the database.
///
/// It is used under the writer's lock alone.
package final class WriterState {
    package var connection: Connection
    var logKeeper = LogKeeper()
    var database: Database
    /// The connections that read; nil in memory.
    let readers: Readers?
    var watch: CommitWatch { database.watch }
    var files: ValueFiles? { database.files }
    /// The reason to open the file again before any other work.
    var loss: Loss?
    /// A Boolean value that indicates whether all pages were read because a disk was said to be full.
    var isChecked = false
    /// The declarations of a file that was moved, until they are declared again.
    var undeclared: (caches: [Incarnation], limits: StoreLimits)?
    /// What the open transaction, or the last one, has noted.
    var open = Transaction()
    /// What is to be done outside the lock.
    var outbox = Outbox()

    var incarnations = LiveIncarnations()
    /// The openings that are written with the next commit.
    var unwrittenOpenings: [CacheIdentity: (cache: CacheDeclaration, moment: Int64)] = [:]
    /// The number of caches that were opened or removed, which tells the order of their commits.
    var openingCount = 0
    var counts = RowCounts()
    /// The last commit of another store that is known, as an epoch of the watch.
    private(set) var foreignEpoch = CommitWatch.noEpoch

    var epoch: UInt32 = 0

    /// The number of commits since a read transaction was kept last.
    var commitCount = 0

    // MARK: Upkeep

    let busyTimeout: Int64
    let accesses = AccessBook()
    let tiers = AttachedTiers()
    var upkeep: Upkeep?
    var upkeepInterval: Int64?
    /// The day on which old counters were deleted last.
    var activityDay = Int64.min
    /// The latest moment that a write or upkeep has named, in place of a look at the clock under the lock.
    var now = Int64.min
    var limiter = Limiter()
    /// The number of accesses that were stored.
    var stampCount = 0
    /// The highest id that was seen in the file or given to a row: none is given twice while the store is open.
    var lastID: Int64 = 0
    /// The retired incarnation whose rows are being deleted, and the id from which some may be left.
    var reclaimCursor = (incarnation: Int64(0), id: Int64?.some(.min))
    /// The first tag that may belong to the retired incarnation; nil for the first of all.
    var tagCursor: (tag: String, cache: Int64, entry: Int64)?
    /// The revisions that changes of attributes have replaced while removals of many rows run, by the older one.
    var replacedRevisions: [Int64: Int64] = [:]
    /// The number of those removals.
    var longRemovals = 0
    var isWriting = false
    /// The number of rows that the open transaction has changed.
    var changeCount: Int { Int(clamping: connection.totalChanges &- open.changesBefore) }
    /// The state of the numbers that are drawn.
    package var seed = UInt64.random(in: 0 ... .max)

    init(_ opening: consuming Opening, _ readers: Readers?, busyTimeout: Int64) {
        (self.busyTimeout, self.readers) = (busyTimeout, readers)
        database = opening.database
        connection = opening.connection
        logKeeper.begin(opening.guardian, connection, database)
    }

    /// A Boolean value that indicates whether the read transaction is kept over a commit: others follow, and the log is short.
    ///
    /// It pins the log as a reader does.
    var expectsCommits: Bool {
        commitCount >= Self.fewCommits && database.counter.map { $0.frames < Ballast.pages } ?? false
    }

    /// The number of commits after which more are expected.
    private static let fewCommits = 4

    /// Ends the read transaction that is kept, and keeps none before some more commits.
    func stopReading() {
        connection.stopReading()
        commitCount = 0
    }

    /// A Boolean value that indicates whether no transaction copies the log, begins it again, evicts, or has to make room.
    ///
    /// The first transaction of a log that begins again waits until the disk has its head.
    var isQuick: Bool {
        (uncopiedPages > 0 || !logKeeper.hasGuardian) && !isCopyOverdue && !limiter.hasLimits && !logKeeper.isShort
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
            open = Transaction(
                changesBefore: connection.totalChanges,
                pagesBefore: logKeeper.isShort ? try connection.pageCount() : 0)
            try lookUpLimits()
        } catch {
            _ = fail(error)
            throw error
        }
    }

    /// Runs `body` in a transaction, and commits it unless it throws.
    func transaction<R>(until deadline: Deadline, _ body: (WriterState) throws -> R) throws -> R {
        try StoreError.translating { try begin(until: deadline) }
        var isCommitting = false
        do {
            let result = try body(self)
            if let failure = open.failure { throw failure }
            try removeForAdditions()
            try requireRoom()
            isCommitting = true
            try commit(open.made, keepsReading: false)
            endBody()
            copyLongLog()
            return result
        } catch {
            endBody()
            let failure = fail(open.failure ?? open.readFailure ?? error)
            // After a COMMIT that failed a row may name them.
            if !isCommitting { outbox.files += open.writtenFiles }
            // The body is not run again, but the next removal finds room.
            if failure.isFullDisk {
                do { try releaseBallast() } catch {}
            } else if failure.code == .storageFull {
                copyLog()
            }
            throw error is SQLiteError || (error as? StoreError)?.isFullDisk == true ? failure : error
        }
    }

    /// What the body has captured is released outside the lock.
    private func endBody() {
        if open.made.isEmpty { return }
        outbox.released.append(open.made)
        open.made = []
        askForUpkeep()
    }

    /// Asks for upkeep some time after a write.
    func askForUpkeep() {
        if let upkeepInterval, now != .min { upkeep?.ask(at: now.addingSaturated(upkeepInterval), from: now) }
    }

    func takeOutbox() -> Outbox {
        outbox.folder = files
        defer { outbox = Outbox() }
        return outbox
    }

    /// Does a part of the open transaction, which is not committed if the part fails.
    func request<R>(_ body: () throws -> R) throws(StoreError) -> R {
        do {
            return try body()
        } catch {
            let error = StoreError(any: error)
            // What is refused has changed nothing.
            if !error.isRefusal { open.failure = error }
            throw error
        }
    }

    /// Undoes the transaction.
    ///
    /// The next transaction looks the incarnations up again.
    func rollBack() {
        if isWriting {
            connection.abandonWriting()
            // The rows that they have let go are there again.
            for saved in open.evictionsBefore.reversed() { limiter.restore(saved) }
            open.evictionsBefore = []
        }
        isWriting = false
        counts.rollBack()
        (epoch, reclaimCursor, tagCursor) = (0, (0, .min), nil)
    }

    // MARK: Reading

    /// Returns what `body` reads in the live incarnation of a cache; nil if the cache is superseded.
    func read<R>(
        _ cache: CacheDeclaration, _ body: (inout Connection, Incarnation) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R? {
        try lookUpIncarnations()
        guard let incarnation = incarnation(of: cache) else { return nil }
        return try body(&connection, incarnation)
    }

    /// Looks up the incarnations, and forgets what was counted, if another store has committed.
    func lookUpIncarnations() throws(SQLiteError) {
        let now = watch.epoch()
        guard now != epoch || now == CommitWatch.noEpoch else { return }
        if !isWriting { connection.stopReading() }
        try database.requirePlace()
        let before = incarnations
        incarnations = try connection.liveIncarnations()
        epoch = now
        limiter.noteNewEpoch()
        noteForeignCommits(before)
        limiter.noteLimits(of: incarnations)
    }

    /// Makes counts estimates if another store has committed; in memory there is none.
    private func noteForeignCommits(_ before: LiveIncarnations) {
        let foreign = watch.foreignEpoch()
        guard database.file != nil, foreign != foreignEpoch || foreign == CommitWatch.noEpoch else { return }
        foreignEpoch = foreign
        counts.becomeEstimates()
        for old in before.values where incarnations.incarnation(withID: old.id) == nil { counts.retire(old.id) }
    }

    /// Looks up what only a writer has to know.
    func lookUpLimits() throws(SQLiteError) {
        try lookUpIncarnations()
        if limiter.isCurrent { return }
        let limits = try connection.storeLimits()
        // A damaged id leaves room for later ones.
        lastID = max(lastID, min(try connection.number(.highestID) ?? 0, 1 << 38))
        limiter.set(limits, incarnations)
    }

    // MARK: Numbers

    func newRevision() -> Int64 {
        seed &+= 0x9E37_79B9_7F4A_7C15
        var bits = (seed ^ seed >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return Int64(bitPattern: bits ^ bits >> 31)
    }
}

/// What the writer notes of one transaction: made at its beginning, and read at its end.
struct Transaction {
    /// The number of rows that the connection had changed before.
    var changesBefore = 0
    /// The pages that the database had before; 0 unless the disk is short of room.
    var pagesBefore = 0
    /// Whether it adds, retires or changes an incarnation.
    var switchesIncarnation = false
    /// The files that it displaces, and those that its body wrote.
    var displacedFiles: [String] = []
    var writtenFiles: [String] = []
    /// What is told once it is committed.
    var notices: [Notice] = []
    /// The rows that it removes by age, limit or tag.
    var removedRows: [CacheIdentity: [RemovedRow]] = [:]
    /// The loads that it overtakes once it is committed, beyond those of its keys.
    var overtaken: [(loads: Overtaken, caches: [CacheIdentity])] = []
    /// A Boolean value that indicates whether a pinned row was unpinned, replaced or removed.
    var hasUnpinned = false
    /// The evictions that it has changed, with their spare victims, as they were before.
    var evictionsBefore: [SavedEviction] = []
    /// The rows and bytes that it has added and not removed for limits, by the keys of evictions; nil if it has begun one.
    var owed: [Int64: Totals?] = [:]
    /// What its body has done.
    var made: [BodyChange] = []
    /// A failure inside a request that the body caught: half of the request may be done, so nothing is committed.
    var failure: (any Error)?
    /// A failure of a read inside the body, which may throw another error.
    var readFailure: (any Error)?
}
