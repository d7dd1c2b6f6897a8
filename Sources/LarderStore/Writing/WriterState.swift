internal import LarderSQLite

/// The writer's connection, and what it knows of the database.
///
/// It is used under the writer's lock alone.
package final class WriterState {
    var connection: Connection
    /// Holds the write lock while the log is copied.
    private var guardian: Connection
    private let counter: CommitCounter?
    /// Without a counter, in memory there is no other connection, and a file has to be looked at in each transaction.
    private let isInMemory: Bool

    /// The live generations by name.
    private(set) var generations: [String: Generation] = [:]
    /// The totals of generations that were counted, by id.
    private var totals: [Int64: Totals] = [:]

    /// The number of commits in the log's index as of our last look; nil if the generations have to be looked up again.
    private var knownCommits: UInt32?
    /// A Boolean value that indicates whether the log had ``checkpointPages`` pages after the last commit.
    private(set) var isLogLong = false
    private static let checkpointPages = 1000
    /// The retired generation whose rows are being deleted, and the id from which some may be left.
    private var reclaimCursor = (generation: Int64(0), id: Int64(0))
    private var isWriting = false
    /// A failure inside a request that a body caught: half of the request may be done, so nothing is committed.
    private var failure: (any Error)?
    private var changesAtBegin = 0
    private var random = UInt64.random(in: 0 ... .max)

    init(_ connection: consuming Connection, guardian: consuming Connection, isInMemory: Bool) throws(SQLiteError) {
        var connection = connection
        // The counter needs the log's index, which a first read opens.
        _ = try connection.userVersion()
        counter = CommitCounter(of: connection)
        self.connection = connection
        self.guardian = guardian
        self.isInMemory = isInMemory
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
    func commit() throws {
        if let failure { throw failure }
        isWriting = false
        // A transaction that SQLite has rolled back throws here.
        guard connection.totalChanges != changesAtBegin || connection.isInAutocommit else {
            return connection.abandonWriting()
        }
        try connection.finishWriting { _ in }
        if counter != nil { knownCommits = knownCommits.map { $0 &+ 1 } }
        isLogLong = connection.logPages >= Self.checkpointPages
    }

    /// Runs `body` in a transaction, and commits it unless it throws.
    func transaction<R>(until deadline: Deadline, _ body: (WriterState) throws -> R) throws -> R {
        try StoreError.translating { try begin(until: deadline) }
        do {
            let result = try body(self)
            try StoreError.translating { try commit() }
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
        knownCommits = nil
        reclaimCursor = (0, 0)
    }

    /// Copies the log into the main file if it was long after the last commit.
    ///
    /// A failure is tried again after the next one.
    func copyLogIfLong() {
        guard isLogLong else { return }
        isLogLong = false
        do { _ = try connection.checkpoint(guardedBy: &guardian) } catch {}
    }

    /// Runs `body` over one snapshot.
    func read<R>(_ body: (WriterState) throws -> R) throws -> R {
        try connection.beginReading()
        defer { connection.abandonWriting() }
        try lookUpGenerations()
        return try body(self)
    }

    /// Looks up the generations and forgets the totals if another connection has committed.
    ///
    /// Called in a transaction.
    private func lookUpGenerations() throws(SQLiteError) {
        let commits = counter?.stamp().changes ?? 0
        guard commits != knownCommits || (counter == nil && !isInMemory) else { return }
        totals = [:]
        generations = try connection.with(.liveGenerations) { row throws(SQLiteError) in
            var found: [String: Generation] = [:]
            while try row.step() {
                let generation = Generation(
                    id: row.int64(0), name: row.text(1), version: row.text(2), codec: row.text(3),
                    ageRule: AgeRule(kind: row.int64(4), milliseconds: row.int64(5)))
                found[generation.name] = generation
            }
            return found
        }
        knownCommits = commits
    }

    // MARK: Generations

    /// Returns the live generation of a declaration; nil if the handle is superseded.
    func generation(of declaration: CacheDeclaration) -> Generation? {
        guard let generation = generations[declaration.name], declaration.fits(generation) else { return nil }
        return generation
    }

    /// Opens a cache: under another version or codec its rows are retired.
    package func open(_ declaration: CacheDeclaration, at now: Int64) throws {
        let rule = declaration.ageRule.stored
        if var generation = generation(of: declaration) {
            try connection.run(.updateGeneration) { statement throws(SQLiteError) in
                try statement.bind(generation.id, at: 1)
                try statement.bind(rule.kind, at: 2)
                try statement.bind(rule.milliseconds, at: 3)
                try statement.bind(now, at: 4)
            }
            generation.ageRule = declaration.ageRule
            generations[generation.name] = generation
            return
        }
        if let old = generations[declaration.name] { try retire(old) }
        let generation = Generation(
            id: newID(), name: declaration.name, version: declaration.version, codec: declaration.codec,
            ageRule: declaration.ageRule)
        try connection.run(.insertGeneration) { statement throws(SQLiteError) in
            try statement.bind(generation.id, at: 1)
            try statement.bind(generation.name, at: 2)
            try statement.bind(generation.version, at: 3)
            try statement.bind(generation.codec, at: 4)
            try statement.bind(rule.kind, at: 5)
            try statement.bind(rule.milliseconds, at: 6)
            try statement.bind(now, at: 7)
        }
        generations[generation.name] = generation
        totals[generation.id] = Totals()
    }

    /// Switches to another generation under the same version.
    func clear(_ generation: Generation) throws(SQLiteError) -> Generation {
        let next = Generation(
            id: newID(), name: generation.name, version: generation.version, codec: generation.codec,
            ageRule: generation.ageRule)
        try retire(generation)
        try connection.run(.copyGeneration) { statement throws(SQLiteError) in
            try statement.bind(generation.id, at: 1)
            try statement.bind(next.id, at: 2)
        }
        generations[next.name] = next
        totals[next.id] = Totals()
        return next
    }

    private func retire(_ generation: Generation) throws(SQLiteError) {
        try connection.run(.retireGeneration) { statement throws(SQLiteError) in
            try statement.bind(generation.id, at: 1)
        }
        generations[generation.name] = nil
        totals[generation.id] = nil
    }

    /// Deletes rows of retired generations, and the generations that have none left.
    ///
    /// It goes through the table in the order of ids, 10,000 at a time: neighbours are on one page.
    ///
    /// - Returns: The number of deleted rows, at most `limit`, and whether no retired generation is left.
    package func reclaim(atMost limit: Int) throws -> (deleted: Int, isDone: Bool) {
        let retired = try number(.retiredGeneration)
        guard let retired else { return (0, true) }
        if reclaimCursor.generation != retired { reclaimCursor = (retired, .min) }
        var deleted = 0
        for _ in 0..<10 where deleted < limit {
            // Ids without a row are skipped, however many.
            guard let first = try number(.nextID, reclaimCursor.id) else {
                try connection.run(.deleteGeneration) { statement throws(SQLiteError) in
                    try statement.bind(retired, at: 1)
                }
                break
            }
            let (sum, isPastEnd) = first.addingReportingOverflow(9_999)
            let last = isPastEnd ? .max : sum
            for sql in [SQL.deleteRetiredUses, .deleteRetiredRows] {
                try connection.run(sql) { statement throws(SQLiteError) in
                    try statement.bind(retired, at: 1)
                    try statement.bind(first, at: 2)
                    try statement.bind(last, at: 3)
                    try statement.bind(Int64(limit - deleted), at: 4)
                }
            }
            deleted += connection.changes
            reclaimCursor.id = deleted < limit ? last &+ 1 : first
            if isPastEnd && deleted < limit { break }
        }
        return (deleted, false)
    }

    /// Returns the first number of a statement with at most one parameter; nil for no row or NULL.
    private func number(_ sql: SQL, _ parameter: Int64? = nil) throws(SQLiteError) -> Int64? {
        try connection.with(sql) { row throws(SQLiteError) in
            if let parameter { try row.bind(parameter, at: 1) }
            guard try row.step(), row.type(of: 0) == .integer else { return nil }
            return row.int64(0)
        }
    }

    // MARK: Totals

    /// Returns the totals of a generation, and counts them if they are not known.
    func totals(of generation: Int64) throws(SQLiteError) -> Totals {
        if let known = totals[generation] { return known }
        var counted = try connection.with(.countRows) { row throws(SQLiteError) in
            try row.bind(generation, at: 1)
            return try row.step() ? Totals(count: row.int64(0), size: row.int64(1)) : Totals()
        }
        counted.size += try connection.with(.listMeta) { row throws(SQLiteError) in
            try row.bind(generation, at: 1)
            var size: Int64 = 0
            while try row.step() { size += Int64(RowMeta(packed: row.data(0))?.extendedData?.count ?? 0) }
            return size
        }
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

    /// Returns a random id above 0, of four bytes: it is in every row and in its index.
    private func newID() -> Int64 { max(1, newRevision() & 0x7FFF_FFFF) }
}
