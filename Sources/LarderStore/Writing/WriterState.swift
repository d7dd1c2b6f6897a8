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
    let knownTotals = KnownTotals()

    /// The live generations by name.
    var generations: [String: Generation] = [:]
    /// The totals of generations that were counted, by id.
    var totals: [Int64: Totals] = [:]

    /// The epoch in which the generations were looked up; 0 if they have to be looked up again.
    private var epoch: UInt32 = 0
    /// The names of the caches whose totals the open transaction has changed.
    private var counted: Set<String> = []
    /// A Boolean value that indicates whether the open transaction adds, retires or changes a generation.
    var switchesGeneration = false

    /// The length of the log at which it is copied next, and after the last commit.
    private var (copyPages, logPages) = (WriterState.checkpointPages, 0)
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
        (switchesGeneration, counted) = (false, [])
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
    /// - Returns: The epoch in which is true what was committed.
    @discardableResult
    func commit() throws -> UInt32 {
        if let failure { throw failure }
        isWriting = false
        // Throws if SQLite has rolled the transaction back.
        try connection.requireTransaction()
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
        if switchesGeneration { counted = Set(generations.keys) }
        publishTotals(self.epoch)
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
            throw error
        }
    }

    /// Runs one request of the open transaction.
    ///
    /// If it fails, the transaction is not committed.
    func request<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch {
            failure = error
            throw error
        }
    }

    /// Undoes the transaction.
    ///
    /// What it did to the list of generations is looked up again.
    func rollBack() {
        if isWriting { connection.abandonWriting() }
        isWriting = false
        epoch = 0
        counted = []
        reclaimCursor = (0, 0)
    }

    // MARK: The log

    /// A Boolean value that indicates whether the log is to be copied into the main file.
    var isCopyDue: Bool { logPages >= copyPages }
    /// A Boolean value that indicates whether the log is so long that a write has to copy it first.
    var isCopyOverdue: Bool { logPages >= copyPages + Self.checkpointPages }
    /// A Boolean value that indicates whether the serial queue was asked to copy the log.
    var isCopyScheduled = false

    /// Copies the log into the main file.
    ///
    /// If that fails or another process reads from the log, it is tried again when the log has grown as much.
    func copyLog() {
        copyPages = logPages + Self.checkpointPages
        readers?.release()
        do { _ = try guardian?.guardCheckpoint(of: &connection) } catch {}
        // A read transaction that began in the meantime keeps the log from beginning again.
        readers?.release()
    }

    /// Copies the log if no write has done so since the serial queue was asked.
    func copyLogIfDue() {
        isCopyScheduled = false
        if isCopyDue { copyLog() }
    }

    /// Closes the connections that read, and leaves no frame in the log if no other connection has the file open.
    func close() {
        readers?.close()
        copyLog()
        guardian = nil
        do { _ = try connection.emptyLog(keeping: 0) } catch {}
    }

    // MARK: Reading

    /// Runs `body` with the live generation of a cache, or returns nil if the cache is superseded.
    func read<R>(
        _ cache: CacheDeclaration, _ body: @Sendable (inout Connection, Generation) throws(SQLiteError) -> R?
    ) throws(SQLiteError) -> R? {
        try lookUpGenerations()
        guard let generation = generation(of: cache) else { return nil }
        return try body(&connection, generation)
    }

    /// Looks up the generations and forgets the totals if another store has committed.
    private func lookUpGenerations() throws(SQLiteError) {
        let now = watch.epoch()
        guard now != epoch else { return }
        totals = [:]
        generations = try connection.liveGenerations()
        epoch = now
    }

    // MARK: Totals

    /// Returns the totals of a generation, and counts them if they are not known.
    func totals(of generation: Int64) throws(SQLiteError) -> Totals {
        if let known = totals[generation] { return known }
        let counted = try connection.totals(of: generation)
        totals[generation] = counted
        return counted
    }

    /// Adds what the open transaction has changed.
    ///
    /// A rollback forgets all totals. Those that are not known are published too, because readers may know them.
    func add(_ difference: Totals, to generation: Generation) {
        guard difference != Totals() else { return }
        totals[generation.id]? += difference
        counted.insert(generation.name)
    }

    /// Counts the rows of a cache if its totals are not known, and publishes them.
    func publishTotals(of cache: CacheDeclaration) throws(SQLiteError) -> Totals? {
        // In one transaction, because it takes two statements.
        try connection.beginReading()
        defer { connection.abandonWriting() }
        try lookUpGenerations()
        guard let generation = generation(of: cache) else { return nil }
        let totals = try totals(of: generation.id)
        counted.insert(generation.name)
        publishTotals(epoch)
        return totals
    }

    private func publishTotals(_ epoch: UInt32) {
        for name in counted {
            guard let generation = generations[name] else { continue }
            knownTotals.set(totals[generation.id], of: generation, epoch)
        }
        counted = []
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
