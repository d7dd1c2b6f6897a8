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

    /// The live generations by name.
    var generations: [String: Generation] = [:]
    /// The totals of generations that were counted, by id.
    var totals: [Int64: Totals] = [:]

    /// The epoch in which the generations were looked up; 0 if they have to be looked up again.
    private var epoch: UInt32 = 0
    /// A Boolean value that indicates whether the open transaction adds, retires or changes a generation.
    var switchesGeneration = false

    /// The length of the log at which it is copied next, and after the last commit.
    private var (copyPages, logPages) = (WriterState.checkpointPages, 0)
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
        _ connection: consuming Connection, guardian: consuming Connection?, _ file: (StoreFile, FileIdentity)?
    ) throws(SQLiteError) {
        var connection = connection
        // The counter needs the log's index, which a first read opens.
        _ = try connection.userVersion()
        let counter = CommitCounter(of: connection)
        watch = CommitWatch(counter, isBlind: counter == nil && file != nil)
        readers = file.map { [watch] in Readers($0, $1, watch, counter) }
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
        if let failure { throw failure }
        // Throws if SQLite has rolled the transaction back.
        try connection.requireTransaction()
        isWriting = false
        guard connection.totalChanges != changesAtBegin else {
            connection.abandonWriting()
            return epoch
        }
        let epoch = watch.beginCommit()
        do {
            try connection.finishWriting { _ in }
        } catch {
            _ = watch.endCommit(isCommitted: false, switchesGeneration: false)
            throw error
        }
        // Nothing is known if another store has committed since.
        self.epoch = watch.endCommit(isCommitted: true, switchesGeneration: switchesGeneration) ?? 0
        // The log has begun again.
        if connection.logPages < logPages { copyPages = Self.checkpointPages }
        logPages = connection.logPages
        return epoch
    }

    /// Runs `body` in a transaction, and commits it unless it throws.
    func transaction<R>(until deadline: Deadline, _ body: (WriterState) throws -> R) throws -> R {
        try StoreError.translating { try begin(until: deadline) }
        do {
            let result = try body(self)
            _ = try StoreError.translating { try commit() }
            return result
        } catch {
            rollBack()
            throw error is SQLiteError ? StoreError(any: error) : error
        }
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
        epoch = 0
        reclaimCursor = (0, 0)
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
        _ cache: CacheDeclaration, _ body: (inout Connection, Int64) throws(SQLiteError) -> Void
    ) throws(SQLiteError) -> Bool? {
        guard connection.isInAutocommit else { return nil }
        try lookUpGenerations()
        guard let generation = generation(of: cache) else { return false }
        try body(&connection, generation.id)
        return true
    }

    /// Looks up the generations and forgets the totals if another store has committed.
    private func lookUpGenerations() throws(SQLiteError) {
        let now = watch.epoch()
        guard now != epoch || now == CommitWatch.noEpoch else { return }
        totals = [:]
        generations = try connection.liveGenerations()
        epoch = now
    }

    // MARK: Totals

    /// Returns the totals of a cache outside a transaction; nil if a rollback that failed has left one open.
    func totals(of cache: CacheDeclaration) throws(SQLiteError) -> Totals? {
        guard connection.isInAutocommit else { return nil }
        try connection.beginReading()
        defer { connection.abandonWriting() }
        try lookUpGenerations()
        return try generation(of: cache).map { generation throws(SQLiteError) in try totals(of: generation.id) }
            ?? Totals()
    }

    /// Returns the totals of a generation, and counts them if they are not known.
    func totals(of generation: Int64) throws(SQLiteError) -> Totals {
        if let known = totals[generation] { return known }
        let counted = try connection.totals(of: generation)
        totals[generation] = counted
        return counted
    }

    /// Adds what the open transaction has changed.
    ///
    /// A rollback forgets all totals.
    func add(_ difference: Totals, to generation: Int64) { totals[generation]? += difference }

    // MARK: Numbers

    /// Returns 64 random bits.
    func newRevision() -> Int64 {
        random &+= 0x9E37_79B9_7F4A_7C15
        var bits = (random ^ random >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return Int64(bitPattern: bits ^ bits >> 31)
    }
}
