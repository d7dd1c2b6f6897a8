package import LarderSQLite
internal import Synchronization

/// Where a write finds itself.
package struct WriteContext: Sendable {
    package let present: StorePresent
    /// The round of its `watch` in which what is written is true.
    package let round: UInt32

    /// The database's `serial`.
    package var database: Int { present.database }
}

/// The connections to one database file, or to one database in memory, from its opening to its closing.
package final class Database: Sendable {
    /// The side that writes; the guardian is there for checkpoints only.
    private struct Writer: ~Copyable {
        var connection: Connection
        var guardian: Connection?
        /// Set while a transaction is open between two calls.
        ///
        /// It is taken, never set to nil: Swift 6.3 leaks what an assignment through `writer!` replaces.
        var exclusive: WriteContext?

        mutating func checkpoint(_ open: ReaderPool.Opener) throws(SQLiteError) -> CheckpointResult? {
            if guardian == nil { guardian = try open() }
            return try connection.checkpoint(guardedBy: &guardian!)
        }
    }

    private enum Readers: Sendable {
        case pool(ReaderPool)
        /// In memory one connection does both.
        case writer
    }

    private let writer: Mutex<Writer?>
    private let readers: Readers
    private let openGuardian: ReaderPool.Opener
    private let isUnmoved: @Sendable () -> Bool

    /// Whether what was read counts only if the file is still in place afterwards: there are no locks to rely on.
    private let verifiesReads: Bool

    /// Tells whether anybody committed; nil in memory and where the log's index cannot be read.
    package let counter: CommitCounter?

    /// Tells whose commits they were.
    package let watch: CommitWatch

    /// Whether copies in memory of what it holds can be kept true: not where others may commit unseen.
    package let allowsCopies: Bool

    /// What there is to know of it without asking it.
    package var present: StorePresent {
        StorePresent(database: serial, watch: watch, allowsCopies: allowsCopies, blobs: blobs)
    }

    /// Unlike that of any other database of this process.
    package let serial = Database.count.add(1, ordering: .relaxed).newValue
    private static let count = Atomic(0)

    /// Where large payloads are; nil in memory.
    package let blobs: BlobFolder?

    /// Which file it was when it was opened; nil in memory.
    package let identity: FileIdentity?

    /// Which file its log was then, if it had one.
    package let logIdentity: FileIdentity?

    /// How many pages stood in the log after the last commit here; 0 once all of them are in the main file.
    private let logPages = Atomic(0)

    /// The length of the log at which the next checkpoint pays.
    private let checkpointAt = Atomic(checkpointPages)

    /// A database in a file.
    ///
    /// `writer` is nil where nothing may be written; `isUnmoved` tells whether the file still stands at its path.
    package init(
        identity: FileIdentity, logIdentity: FileIdentity?, writer: consuming sending Connection?, readers: ReaderPool,
        counter: CommitCounter?, blobs: BlobFolder?,
        verifiesReads: Bool = false, openGuardian: @escaping ReaderPool.Opener,
        isUnmoved: @escaping @Sendable () -> Bool
    ) {
        self.verifiesReads = verifiesReads
        self.identity = identity
        self.logIdentity = logIdentity
        self.readers = .pool(readers)
        self.counter = counter
        self.blobs = blobs
        watch = CommitWatch(counter, isBlind: counter == nil)
        allowsCopies = counter != nil
        self.openGuardian = openGuardian
        self.isUnmoved = isUnmoved
        if let connection = writer {
            self.writer = Mutex(Writer(connection: connection))
        } else {
            self.writer = Mutex(nil)
        }
    }

    /// A database in memory.
    package init(memory connection: consuming sending Connection) {
        identity = nil
        logIdentity = nil
        readers = .writer
        counter = nil
        blobs = nil
        watch = CommitWatch(nil)
        allowsCopies = true
        verifiesReads = false
        openGuardian = { () throws(SQLiteError) in throw .closed }
        isUnmoved = { true }
        writer = Mutex(Writer(connection: connection))
    }

    deinit {
        // A timer may hold the pool.
        if case .pool(let pool) = readers { pool.close() }
    }

    /// Whether the file we have open is still the one at its path.
    package var isInPlace: Bool { isUnmoved() }

    /// Runs `body` in one transaction on the writing side.
    package func write<R: Sendable>(
        _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try withWriter { (connection) throws(SQLiteError) in
            var isCommitted = false
            defer { watch.endCommit(isCommitted: isCommitted) }
            let result = try connection.transaction { (connection) throws(SQLiteError) in
                let context = WriteContext(present: present, round: watch.beginCommit())
                return try committing(&connection) { (c) throws(SQLiteError) in try body(&c, context) }
            }
            isCommitted = true
            logPages.store(connection.logPages, ordering: .relaxed)
            return result
        }
    }

    /// Runs `body` in the transaction of a commit that is under way, and tells the watch if there will be none: the lock
    /// is free before the end of the commit is noted, and what others commit in between must not pass for ours.
    private func committing<R>(
        _ connection: inout Connection, _ body: (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        let before = connection.totalChanges
        do throws(SQLiteError) {
            let result = try body(&connection)
            if connection.totalChanges == before { watch.abandonCommit() }
            return result
        } catch {
            watch.abandonCommit()
            throw error
        }
    }

    /// Runs `body` on a reader, as of one moment.
    package func read<R: Sendable>(
        _ body: @Sendable (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        guard case .pool(let pool) = readers else { return try withWriter(body) }
        // Where nobody tells that something was committed, no transaction is kept open, and none is there.
        let result =
            counter != nil
            ? try pool.read(body)
            : try pool.read { (connection) throws(SQLiteError) in
                try connection.transaction(.reading) { (c) throws(SQLiteError) in try body(&c) }
            }
        guard !verifiesReads || isInPlace else { throw .moved }
        return result
    }

    /// Begins a transaction that stays open after the call: nobody else writes until one of the next two ends it.
    package func beginExclusive() throws(SQLiteError) {
        try writer.withLock { writer throws(SQLiteError) in
            guard writer != nil else { throw .closed }
            try writer!.connection.beginWriting()
            writer!.exclusive = WriteContext(present: present, round: watch.beginCommit())
        }
    }

    /// Runs `body` in the open transaction, and commits it.
    package func finishExclusive<R: Sendable>(
        _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try writer.withLock { writer throws(SQLiteError) in
            guard writer != nil, let context = writer!.exclusive.take() else { throw .closed }
            var isCommitted = false
            defer { watch.endCommit(isCommitted: isCommitted) }
            let result = try writer!.connection.finishWriting { (connection) throws(SQLiteError) in
                try committing(&connection) { (c) throws(SQLiteError) in try body(&c, context) }
            }
            isCommitted = true
            logPages.store(writer!.connection.logPages, ordering: .relaxed)
            return result
        }
    }

    /// Undoes the open transaction.
    package func abandonExclusive() {
        writer.withLock { writer in
            guard writer != nil, writer!.exclusive.take() != nil else { return }
            watch.abandonCommit()
            writer!.connection.abandonWriting()
            watch.endCommit(isCommitted: false)
        }
    }

    private func withWriter<R: Sendable>(
        _ body: @Sendable (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try writer.withLock { writer throws(SQLiteError) in
            guard writer != nil else { throw .closed }
            return try body(&writer!.connection)
        }
    }
}

extension Database {
    /// The log is copied into the main file when it has grown to this many pages: 4 MB.
    package static let checkpointPages = 1000

    /// Whether the log has grown so far that a checkpoint pays.
    package var wantsCheckpoint: Bool {
        logPages.load(ordering: .relaxed) >= checkpointAt.load(ordering: .relaxed)
    }

    /// A log of this many pages, 16 MB, is not written on before somebody has tried to copy it: the background was outrun.
    package static let longestLog = 4 * checkpointPages

    /// Whether whoever writes is to copy the log first.
    package var isLogTooLong: Bool { wantsCheckpoint && logPages.load(ordering: .relaxed) >= Self.longestLog }

    /// Copies the log into the main file; nil if another process holds the write lock, or there is no log.
    package func checkpoint() throws(SQLiteError) -> CheckpointResult? {
        guard case .pool(let pool) = readers else { return nil }
        // Most of the files, while others may write; the rest below.
        try blobs?.syncForCheckpoint()
        // A reader that stands in the log keeps what comes after its moment from being copied, …
        pool.letGo()
        let result = try writer.withLock { writer throws(SQLiteError) -> CheckpointResult? in
            guard writer != nil else { throw .closed }
            // The write lock is ours, and not to be had for the checkpoint.
            guard writer!.exclusive == nil else { return nil }
            // A row must not be safer than the file that it names.
            try blobs?.syncForCheckpoint()
            let result = try writer!.checkpoint(openGuardian)
            // Before anybody writes again, whose pages would be forgotten.
            if result?.isComplete == true { logPages.store(0, ordering: .relaxed) }
            return result
        }
        // … and one that still does keeps the log from being started anew.
        pool.letGo()
        if result?.isComplete == true {
            checkpointAt.store(Self.checkpointPages, ordering: .relaxed)
        } else {
            // Somebody stands in the log, or writes: trying again at once would achieve as little again.
            let pause = result == nil ? Self.checkpointPages / 4 : Self.checkpointPages
            checkpointAt.store(logPages.load(ordering: .relaxed) + pause, ordering: .relaxed)
        }
        return result
    }

    /// A log of this many pages costs the next opening more to read than it costs us to start it anew.
    private static let longLog = 64

    /// Copies what was written here into the main file, and leaves a short log.
    package func tidyLog() throws(SQLiteError) {
        guard logPages.load(ordering: .relaxed) > 0 || writtenPages > Self.longLog, isInPlace else { return }
        guard let result = try checkpoint(), result.isComplete, result.logPages > Self.longLog else { return }
        try writer.withLock { writer throws(SQLiteError) in
            // Nobody's transaction is to be committed with this.
            guard writer != nil, writer!.exclusive == nil else { return }
            var isCommitted = false
            defer { watch.endCommit(isCommitted: isCommitted) }
            try writer!.connection.shrinkLog { _ = watch.beginCommit() }
            isCommitted = true
        }
    }

    /// How many pages our last commit left in the log, which is as long as before when all of them have been copied.
    private var writtenPages: Int { writer.withLock { $0 == nil ? 0 : $0!.connection.logPages } }

    /// Lets go of the read transactions that are kept open.
    package func letGoOfReaders() {
        if case .pool(let pool) = readers { pool.letGo() }
    }

    /// Closes every connection once what runs on it is done; later calls throw `SQLiteError.closed`.
    package func close() {
        if case .pool(let pool) = readers { pool.close() }
        writer.withLock { $0 = nil }
    }

    /// Closes the readers, and keeps them from opening again while `body` runs: see `StoreRegistry`.
    package func withoutReaders(_ body: () -> Void) {
        guard case .pool(let pool) = readers else { return body() }
        pool.suspended(body)
    }

    /// Whether no statement of any connection stands on a row, once the readers have let go.
    package var isIdle: Bool {
        let isWriterIdle = writer.withLock { $0 == nil || $0!.connection.isIdle }
        return switch readers {
        case .pool(let pool): pool.isIdle && isWriterIdle
        case .writer: isWriterIdle
        }
    }
}

extension BlobFolder {
    /// Puts what was written on the disk before the log that names it is copied.
    fileprivate func syncForCheckpoint() throws(SQLiteError) {
        do throws(SystemError) {
            try sync()
        } catch {
            throw SQLiteError(code: .inputOutput, message: "files could not be synced", systemCode: error.number)
        }
    }
}
