package import LarderSQLite
internal import Synchronization

/// The untyped heart: reads and writes on the database at its path, whichever that is now.
///
/// It keeps its word when the files are moved, deleted or damaged under it: it opens them again, or a new store, and
/// does the work there. See *Synchronization* for its two locks.
package final class Store: Sendable {
    let opening: any StoreOpening
    package let timekeeper: Timekeeper

    /// Where writes wait for their turn.
    package let queue = WriteQueue()

    /// Numbers the writes.
    package let revisions = RevisionSource()

    /// The threads inside a body that holds something.
    package let inside = InsideThreads()

    /// The sub-caches in use.
    package let live = LiveCaches()

    /// Deletes what was retired.
    package let reclaimer = Reclaimer()

    /// Leaves no byte of what was deleted in any file of the store.
    ///
    /// Where others pin the log, its old frames stay until it can be cut.
    package func eraseDeleted() throws(CacheError) {
        try emptyPool()
        _ = try vacuum()
        try onDatabase("cannot cut the log of") { (database) throws(SQLiteError) in try database.eraseLog() }
    }

    /// Which database is the current one, nil once the store is closed; held for a moment only.
    let state: Mutex<Database?>

    /// Held by the one who opens anew, over slow work; taken before `state`.
    let reopening = Mutex(())

    /// Who wants to know what happens to the store, by a number of its own.
    private let listeners: Mutex<(next: Int, handlers: [Int: @Sendable (StoreNotice) -> Void])>

    /// Whether any manager is left that may change anything.
    let isWritable = Atomic(true)

    /// What happened while nobody could be told yet: at the opening, under the locks of those who open.
    private let untold: Mutex<(notices: [StoreNotice], discards: Discards)>
    private let hasUntold: Atomic<Bool>

    /// Whether there was a folder of files, when somebody last looked.
    private let filesSeen = Mutex<(database: Int, round: UInt32, exist: Bool)>((0, 0, false))

    /// Notes that there is one now.
    func noteFiles() { filesSeen.withLock { $0.exist = true } }

    /// Whether a checkpoint is waiting to run or running in the background.
    private let isCheckpointing = Atomic(false)

    /// What holds for all of it.
    package let policy: StorePolicy

    /// Follows the app into the background.
    let background = Mutex<BackgroundWatcher?>(nil)

    /// The bytes written since the limit of the whole was looked after, and how many may be before it is again.
    let written = Atomic(0)
    let room = Atomic(0)

    /// The bytes written since somebody looked how much of the volume is free.
    let writtenOnVolume = Atomic(0)

    /// Whether somebody was asked to look after it later.
    let isMaintenanceScheduled = Atomic(false)

    /// Waits for the next row that expires.
    package let expiry: ExpiryTimer

    /// What sweeps hold against the clock.
    let sweepClock: SweepClock

    package init(
        opening: any StoreOpening, timekeeper: Timekeeper, policy: StorePolicy = StorePolicy()
    ) throws(CacheError) {
        self.policy = policy
        self.opening = opening
        self.timekeeper = timekeeper
        expiry = ExpiryTimer(timekeeper)
        sweepClock = SweepClock(timekeeper)
        listeners = Mutex((0, [:]))
        let opened = try opening.open(after: nil)
        state = Mutex(opened.database)
        untold = Mutex((opened.notices, Discards()))
        hasUntold = Atomic(!opened.notices.isEmpty)
    }

    /// Runs `body` in one transaction of the writing side, and acknowledges it only once it stands in the file at our
    /// path.
    ///
    /// `body` may run again, on another database.
    package func write<R: Sendable>(
        _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(CacheError) -> R {
        let result = try writeAlone(adding: .max, body)
        keepLogShort()
        return result
    }

    /// The same, and whoever calls it sees to the log, once memory knows what was written.
    private func writeAlone<R: Sendable>(
        adding pages: Int, _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(CacheError) -> R {
        try onDatabase("cannot write to") { (database) throws(SQLiteError) in
            let result = try database.write(adding: pages, body)
            guard database.isInPlace else { throw .moved }
            return result
        }
    }

    /// Whether any row may name a file, so that whoever writes over rows has to look.
    ///
    /// It is asked anew when somebody else has committed.
    func mayHaveFiles(_ context: WriteContext) -> Bool {
        guard let blobs = context.present.blobs else { return false }
        return filesSeen.withLock { seen in
            if seen.database == context.database, seen.exist || seen.round == context.round { return seen.exist }
            seen = (context.database, context.round, blobs.exists)
            return seen.exist
        }
    }

    /// Keeps other processes from writing until ``finishExclusive(_:_:)``; nil in memory, where there are none.
    ///
    /// In memory one connection reads and writes, so a transaction open between two calls would show in every read.
    package func beginExclusive() throws(CacheError) -> Database? {
        try onDatabase("cannot write to") { (database) throws(SQLiteError) -> Database? in
            guard database.identity != nil else { return nil }
            try database.beginExclusive()
            return database
        }
    }

    /// Runs `body` in the transaction that was begun on `turn`, or in one of its own, and commits it.
    ///
    /// `body` may run again, on another database; whoever calls it sees to the log, once memory knows what was written.
    ///
    /// - Parameter pages: How many pages it adds at most; 0 where nothing is added.
    package func finishExclusive(
        _ turn: Database?, adding pages: Int = .max,
        _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> Void
    ) throws(CacheError) {
        guard let turn else { return try writeAlone(adding: pages, body) }
        var isFirst = true
        try onDatabase("cannot write to") { (database) throws(SQLiteError) in
            defer { isFirst = false }
            if isFirst {
                try turn.finishExclusive(adding: pages, body)
                guard turn.isInPlace else { throw .moved }
            } else {
                try database.write(adding: pages, body)
                guard database.isInPlace else { throw .moved }
            }
        }
    }

    /// Runs `body` on a reader, with the database's `serial`.
    ///
    /// `body` may run again, on another database.
    package func read<R: Sendable>(
        _ body: @Sendable (inout Connection, Int) throws(SQLiteError) -> R
    ) throws(CacheError) -> R {
        try onDatabase("cannot read from") { (database) throws(SQLiteError) in
            let serial = database.serial
            return try database.read { (connection) throws(SQLiteError) in try body(&connection, serial) }
        }
    }

    /// Copies the log into the main file now; nil if another process is writing.
    @discardableResult
    package func checkpoint() throws(CacheError) -> CheckpointResult? {
        try onDatabase("cannot checkpoint") { (database) throws(SQLiteError) in try database.checkpoint() }
    }

    /// Copies the log into the main file, and leaves a short one.
    func tidyLog() throws(CacheError) {
        try onDatabase("cannot checkpoint") { (database) throws(SQLiteError) in try database.tidyLog() }
    }

    /// Closes the database.
    ///
    /// Work that runs is finished, later calls throw `.closed`.
    ///
    /// - Returns: What went wrong with the log, which then stays as it is, and as durable as before.
    package func close() -> StoreNotice? {
        defer {
            expiry.cancel()
            live.abandon()
        }
        let (closed, notice) = reopening.withLock { _ -> (Database?, StoreNotice?) in
            guard let database else { return (nil, nil) }
            state.withLock { $0 = nil }
            return (database, noticing { () throws(SQLiteError) in try database.closeTidily() })
        }
        if let closed, !isReadOnly {
            // Nobody touches a file after this: the caller may delete the folder.
            reclaimer.waitForOthers()
            do throws(SystemError) {
                try closed.blobs?.emptyPool()
            } catch {
                // A later sweep finds them.
            }
        }
        return notice
    }

    var database: Database? { state.withLock { $0 } }

    /// The last manager that writes has come or gone; those that only read may share the store still.
    ///
    /// - Returns: What went wrong with the log, which the last writer leaves short.
    package func setWritable(_ isWritable: Bool) -> StoreNotice? {
        self.isWritable.store(isWritable, ordering: .relaxed)
        return isWritable ? nil : database.flatMap(tidy)
    }

    private func tidy(_ database: Database) -> StoreNotice? {
        noticing { () throws(SQLiteError) in try database.tidyLog() }
    }

    private func noticing(_ work: () throws(SQLiteError) -> Void) -> StoreNotice? {
        do throws(SQLiteError) {
            try work()
            return nil
        } catch {
            return .backgroundFailure(CacheError("cannot checkpoint \(opening.name)", error))
        }
    }

    /// The commit counter of the current database, if there is one.
    package var counter: CommitCounter? {
        database?.counter
    }

    /// What is known of the current database without asking it.
    package func present() throws(CacheError) -> StorePresent {
        try current().present
    }

    /// Whether nothing may be written, now at least.
    package var isReadOnly: Bool { opening.isReadOnly || !isWritable.load(ordering: .relaxed) }

    /// Whether it was closed.
    package var isClosed: Bool { database == nil }

    /// How errors name the store.
    package var name: String { opening.name }

    /// Runs `body` while no reader of ours is open.
    package func withoutReaders(_ body: () -> Void) {
        guard let database else { return body() }
        database.withoutReaders(body)
    }

    /// Whether no statement stands on a row, for tests; lets idle readers go first.
    package var isIdle: Bool {
        guard let database else { return true }
        database.letGoOfReaders()
        return database.isIdle
    }
}

// MARK: - In the background

extension Store {
    /// Runs the body of a batch in one transaction; the leader of the queue sees to the log.
    ///
    /// - Parameter pages: How many pages it adds at most; 0 where it adds nothing, and may use what is kept for removals.
    func commit(
        adding pages: Int, _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> Void
    ) throws(CacheError) {
        try writeAlone(adding: pages, body)
    }

    /// Does something to the store that is no other operation of a request.
    ///
    /// - Parameters:
    ///   - body: May be called again, in another transaction.
    ///   - apply: Called once it is committed, before any later write is.
    @discardableResult
    func write<R: Sendable>(
        _ traits: BlockTraits, scope: WriteScope = .unheld,
        _ body: @escaping @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R,
        apply: @escaping @Sendable (R, inout Discards) -> Void = { _, _ in }
    ) throws(CacheError) -> R {
        let result = Mutex<R?>(nil)
        let request = WriteRequest(
            .storeBlock(
                { (connection, context) throws(WriteFailure) in
                    do throws(SQLiteError) {
                        let value = try body(&connection, context)
                        result.withLock { $0 = value }
                    } catch {
                        throw .database(error)
                    }
                }, traits),
            scope: scope
        ) { discards in
            if let result = result.withLock({ $0 }) { apply(result, &discards) }
        }
        try queue.run(request, self)
        guard let result = result.withLock({ $0 }) else {
            preconditionFailure("A write was acknowledged and never made.")
        }
        return result
    }

    /// On a full volume: makes what room the store can make without removing anything; whether there was any to be made.
    func regainRoom() -> Bool { database?.regainRoom() ?? false }

    /// Tells the managers what happened before any of them listened, or on a thread that others were waiting for; unless
    /// this thread still is one.
    package func tellUntold() {
        guard hasUntold.load(ordering: .relaxed), !inside.containCurrent, !live.areOpenedHere else { return }
        let (notices, discards) = untold.withLock { untold in
            defer { untold = ([], Discards()) }
            hasUntold.store(false, ordering: .relaxed)
            return untold
        }
        _ = consume discards
        for notice in notices { notify(notice) }
    }

    /// Tells now, or once this thread may run code of the user's; with what is to be released then.
    package func tell(_ notices: [StoreNotice], releasing discards: Discards = Discards()) {
        if notices.isEmpty, discards.isEmpty { return }
        untold.withLock { untold in
            untold.notices += notices
            untold.discards.add(discards)
            hasUntold.store(true, ordering: .relaxed)
        }
        if !queue.isLedHere { tellUntold() }
    }

    /// Releases what a change put out of memory, now or once this thread may run code of the user's.
    package func release(_ discards: Discards) { tell([], releasing: discards) }

    package func notify(_ notice: StoreNotice) {
        let handlers = listeners.withLock { Array($0.handlers.values) }
        for handler in handlers { handler(notice) }
    }

    /// Adds somebody to tell; the result takes them away again.
    package func listen(_ handler: @escaping @Sendable (StoreNotice) -> Void) -> @Sendable () -> Void {
        let id = listeners.withLock { listeners in
            defer { listeners.next += 1 }
            listeners.handlers[listeners.next] = handler
            return listeners.next
        }
        return { [weak self] in self?.listeners.withLock { $0.handlers[id] = nil } }
    }

    /// Sees to it that the log is copied once that pays: in the background, or here and now where writers outrun that.
    func keepLogShort() {
        guard let database, database.wantsCheckpoint else { return }
        if database.isLogTooLong { checkpointByItself() } else { scheduleCheckpoint() }
    }

    private func scheduleCheckpoint() {
        guard !isCheckpointing.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = timekeeper.wake(.zero) { [weak self] in
            guard let self else { return }
            let isDone = checkpointByItself()
            // Not before: every commit meanwhile would ask for another one, on a thread of its own.
            _ = isCheckpointing.exchange(false, ordering: .acquiringAndReleasing)
            // What was committed since asked in vain.
            if isDone { keepLogShort() }
        }
    }

    /// Copies the log, for which nobody has asked; false if that failed.
    @discardableResult
    private func checkpointByItself() -> Bool {
        do throws(CacheError) {
            try checkpoint()
            return true
        } catch  where error.code == .closed {
            // Closing checkpoints by itself.
            return false
        } catch {
            let failure = error
            // On a thread of its own: who is told may write, and this one may lead the writes.
            _ = timekeeper.wake(.zero) { [weak self] in self?.notify(.backgroundFailure(failure)) }
            return false
        }
    }
}
