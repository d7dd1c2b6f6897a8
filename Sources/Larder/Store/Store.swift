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
    let listeners: Mutex<(next: Int, handlers: [Int: @Sendable (StoreNotice) -> Void])>

    /// Whether any manager is left that may change anything.
    let isWritable = Atomic(true)

    /// What happened while nobody could be told yet: at the opening, under the locks of those who open.
    let untold: Mutex<(notices: [StoreNotice], discards: Discards)>
    let hasUntold: Atomic<Bool>

    /// Whether there was a folder of files, when somebody last looked.
    let filesSeen = Mutex<(database: Int, round: UInt32, exist: Bool)>((0, 0, false))

    /// Notes that there is one now.
    func noteFiles() { filesSeen.withLock { $0.exist = true } }

    /// Whether a checkpoint is waiting to run or running in the background.
    let isCheckpointing = Atomic(false)

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
