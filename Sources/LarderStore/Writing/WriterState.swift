internal import LarderSQLite

/// The writer's connection, and what it knows of the database.
///
/// It is used under the writer's lock alone.
package final class WriterState {
    var connection: Connection
    /// Holds the write lock while the log is copied.
    private var guardian: Connection?
    let watch: CommitWatch
    /// The connections that read; nil in memory.
    let readers: Readers?
    /// The payloads that are too large for a row; nil in memory.
    let files: ValueFiles?
    /// The files that the open transaction displaces, and those that its body wrote.
    var (displacedFiles, writtenFiles) = ([String](), [String]())
    /// The files that no row names any more.
    private var discardedFiles: [String] = []

    /// The live generations by name.
    var generations: [String: Generation] = [:]
    /// What is known of generations that were counted, by id.
    var counts: [Int64: RowCount] = [:]

    /// The epoch in which the generations were looked up; 0 if they have to be looked up again.
    private(set) var epoch: UInt32 = 0

    // MARK: Upkeep

    /// The milliseconds that a call waits for other processes.
    let busyTimeout: Int64
    let uses = Uses()
    let memories = Memories()
    /// Nil until the store is open.
    var upkeep: Upkeep?
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
    var removedRows: [String: [RemovedRow]] = [:]
    /// The number of rows that limits have removed.
    var evictedCount = 0

    /// A Boolean value that indicates whether the open transaction adds, retires or changes a generation.
    var switchesGeneration = false

    /// The length of the log at which it is copied next, and after the last commit.
    private var copyPages = WriterState.checkpointPages
    private(set) var logPages = 0
    private var isCopyScheduled = false
    static let checkpointPages = 1000
    /// The retired generation whose rows are being deleted, and the id from which some may be left.
    var reclaimCursor = (generation: Int64(0), id: Int64(0))
    private var isWriting = false
    /// A failure inside a request that a body caught: half of the request may be done, so nothing is committed.
    private var failure: (any Error)?
    private var changesAtBegin = 0
    private var random = UInt64.random(in: 0 ... .max)

    /// - Parameter file: The file, and its identity; nil in memory.
    init(
        _ connection: consuming Connection, guardian: consuming Connection?, _ file: (StoreFile, FileIdentity)?,
        busyTimeout: Int64
    ) throws(SQLiteError) {
        self.busyTimeout = busyTimeout
        var connection = connection
        // The counter needs the log's index, which a first read opens.
        _ = try connection.userVersion()
        let counter = CommitCounter(of: connection)
        watch = CommitWatch(counter, isBlind: counter == nil && file != nil)
        readers = file.map { [watch] in Readers($0, $1, watch, counter) }
        files = file.map { ValueFiles(($0.path, $1), syncs: $0.options.durability == .powerLoss) }
        self.connection = connection
        self.guardian = guardian
    }

    // MARK: Transactions

    /// Begins a transaction that writes.
    ///
    /// BEGIN is tried at least once, whatever the deadline.
    func begin(until deadline: Deadline) throws(SQLiteError) {
        connection.setBusyTimeout(Int32(clamping: deadline.remaining))
        try connection.beginWriting()
        isWriting = true
        failure = nil
        changesAtBegin = connection.totalChanges
        switchesGeneration = false
        (displacedFiles, writtenFiles, removedRows) = ([], [], [:])
        do {
            try lookUpGenerations()
        } catch {
            rollBack()
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
            discardedFiles += displacedFiles
            return epoch
        }
        let epoch = watch.beginCommit()
        do {
            try connection.finishWriting { _ in }
        } catch {
            _ = watch.endCommit(isCommitted: false, switchesGeneration: false)
            throw error
        }
        discardedFiles += displacedFiles
        // Nothing is known if another store has committed since.
        self.epoch = watch.endCommit(isCommitted: true, switchesGeneration: switchesGeneration) ?? 0
        for (name, rows) in removedRows { for memory in memories[name] { memory.rowsWereRemoved(rows) } }
        // The log has begun again.
        if connection.logPages < logPages { copyPages = Self.checkpointPages }
        logPages = connection.logPages
        return epoch
    }

    /// Runs `body` in a transaction, and commits it unless it throws.
    func transaction<R>(until deadline: Deadline, _ body: (WriterState) throws -> R) throws -> R {
        try StoreError.translating { try begin(until: deadline) }
        let result: R
        do {
            result = try body(self)
            if let failure { throw failure }
        } catch {
            rollBack()
            discardedFiles += writtenFiles
            throw error is SQLiteError ? StoreError(any: error) : error
        }
        do {
            try commit()
        } catch {
            rollBack()
            throw StoreError(any: error)
        }
        return result
    }

    /// Returns the files that no row names any more, for the caller to discard outside the lock.
    func takeDiscardedFiles() -> [String] {
        defer { discardedFiles = [] }
        return discardedFiles
    }

    /// Does a part of the open transaction, which is not committed if the part fails.
    func request<R>(_ body: () throws -> R) throws(StoreError) -> R {
        do {
            return try body()
        } catch {
            failure = error
            throw StoreError(any: error)
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

    /// Returns whether the log is long and the caller is to have it copied; true once until it is copied.
    func schedulesCopy() -> Bool {
        guard logPages >= copyPages, !isCopyScheduled else { return false }
        isCopyScheduled = true
        copyPages = logPages + Self.checkpointPages
        return true
    }

    /// A Boolean value that indicates whether the log has grown as long again since the copy was scheduled.
    var isCopyOverdue: Bool { isCopyScheduled && logPages >= copyPages }

    func copyOverdueLog() { if isCopyOverdue { copyLog() } }

    /// Copies the log into the main file.
    ///
    /// If that fails or another process reads from the log, it is tried again 100 pages later.
    func copyLog() {
        isCopyScheduled = false
        copyPages = logPages + 100
        readers?.release()
        do {
            if try guardian?.guardCheckpoint(of: &connection) == true { copyPages = logPages + Self.checkpointPages }
        } catch {}
        // A read transaction that began in the meantime keeps the log from beginning again.
        readers?.release()
    }

    /// Rewrites the database without unused bytes.
    ///
    /// The watch takes the commit for one of another store.
    func vacuum() throws(SQLiteError) {
        connection.setBusyTimeout(Int32(clamping: busyTimeout))
        try connection.vacuum()
    }

    /// Copies the log and begins it again, and returns false if another process keeps frames in it.
    func emptyLog() throws(SQLiteError) -> Bool {
        guard guardian != nil else { return true }
        copyLog()
        do { try connection.shrinkLog() } catch { if error.code != .busy { throw error } }
        (logPages, copyPages) = (connection.logPages, Self.checkpointPages)
        return logPages < 10
    }

    /// Stamps the accesses and writes the activity before the store is closed.
    func flush(at now: Int64) {
        do {
            try transaction(until: Deadline(in: 0)) { state in
                try state.stampAccesses(isExact: false)
                try state.addActivity(state.takeActivity(), day: now / 86_400_000)
            }
        } catch {}
    }

    /// Closes the connections that read, and leaves no frame in the log if no other connection has the file open.
    func close() {
        readers?.close()
        copyLog()
        guardian = nil
        do { _ = try connection.emptyLog(keeping: 0) } catch {}
    }

    // MARK: Reading

    /// Runs `body` with the live generation of a cache, or returns false if the cache is superseded.
    ///
    /// Returns nil if a rollback that failed has left a transaction open.
    func read(
        _ cache: CacheDeclaration, _ body: (inout Connection, Generation) throws(SQLiteError) -> Void
    ) throws(SQLiteError) -> Bool? {
        guard connection.isInAutocommit else { return nil }
        try lookUpGenerations()
        guard let generation = generation(of: cache) else { return false }
        try body(&connection, generation)
        return true
    }

    /// Looks up the generations and limits, and forgets what was counted, if another store has committed.
    func lookUpGenerations() throws(SQLiteError) {
        let now = watch.epoch()
        guard now != epoch || now == CommitWatch.noEpoch else { return }
        counts = [:]
        generations = try connection.liveGenerations()
        let (limits, lastPlace) = try connection.storeLimits()
        storeLimits = limits
        noteLimits()
        uses.raise(to: max(lastPlace, (try connection.number(.highestID) ?? 0) << Uses.placeBits))
        epoch = now
    }

    func noteLimits() {
        hasLimits = storeLimits != StoreLimits() || generations.values.contains { $0.limits != Limits() }
    }

    // MARK: Counts

    /// Returns the count of a cache outside a transaction; nil if a rollback that failed has left one open.
    func count(of cache: CacheDeclaration) throws(SQLiteError) -> RowCount? {
        guard connection.isInAutocommit else { return nil }
        try connection.beginReading()
        defer { connection.abandonWriting() }
        try lookUpGenerations()
        return try generation(of: cache).map { cache throws(SQLiteError) in try count(of: cache) } ?? RowCount()
    }

    /// Returns what is known of a generation, and counts its rows if nothing is.
    func count(of cache: Generation) throws(SQLiteError) -> RowCount {
        if let known = counts[cache.id] { return known }
        let counted = try connection.count(of: cache, uses)
        counts[cache.id] = counted
        return counted
    }

    // MARK: Numbers

    /// Returns 64 random bits.
    func newRevision() -> Int64 {
        random &+= 0x9E37_79B9_7F4A_7C15
        var bits = (random ^ random >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return Int64(bitPattern: bits ^ bits >> 31)
    }
}
