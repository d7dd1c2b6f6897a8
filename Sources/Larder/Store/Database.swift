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
    struct Writer: ~Copyable {
        var connection: Connection
        var guardian: Connection?
        /// Set while a transaction is open between two calls.
        ///
        /// It is taken, never set to nil: Swift 6.3 leaks what an assignment through `writer!` replaces.
        var exclusive: WriteContext?

        mutating func checkpoint(
            _ open: ReaderPool.Opener, completed: (inout Connection) -> Void
        ) throws(SQLiteError) -> CheckpointResult? {
            if guardian == nil { guardian = try open() }
            return try connection.checkpoint(guardedBy: &guardian!, completed: completed)
        }
    }

    enum Readers: Sendable {
        case pool(ReaderPool)
        /// In memory one connection does both.
        case writer
    }

    let writer: Mutex<Writer?>
    let readers: Readers
    let openGuardian: ReaderPool.Opener
    private let isUnmoved: @Sendable () -> Bool

    /// Whether what was read counts only if the file is still in place afterwards: there are no locks to rely on, or no counter
    /// that tells of another file.
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
    let logPages = Atomic(0)

    /// The length of the log at which the next checkpoint pays.
    let checkpointAt = Atomic(checkpointPages)

    /// What it keeps of its volume; under the writer's lock.
    let room = DatabaseRoom()

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

    /// Runs `body` in one transaction on the writing side; again, if it found no room and some could be made.
    ///
    /// - Parameter pages: How many pages it adds at most: 0 for what adds nothing and may use what is kept for removals.
    package func write<R: Sendable>(
        adding pages: Int = .max, _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        do throws(SQLiteError) {
            return try writeOnce(pages, body)
        } catch {
            guard error.isAboutRoom, regainRoom() else { throw error }
        }
        do throws(SQLiteError) {
            return try writeOnce(pages, body)
        } catch {
            // The log took what was left, and then it was not enough.
            if error.isAboutRoom { regainRoom() }
            throw error
        }
    }

    private func writeOnce<R: Sendable>(
        _ pages: Int, _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try withWriter { (connection) throws(SQLiteError) in
            var isCommitted = false
            defer { watch.endCommit(isCommitted: isCommitted) }
            let result = try connection.transaction { (connection) throws(SQLiteError) in
                let context = WriteContext(present: present, round: watch.beginCommit())
                return try committing(&connection, pages) { (c) throws(SQLiteError) in try body(&c, context) }
            }
            isCommitted = true
            noteCommit(&connection)
            return result
        }
    }

    /// Runs `body` in the transaction of a commit that is under way, and tells the watch if there will be none: the lock
    /// is free before the end of the commit is noted, and what others commit in between must not pass for ours.
    private func committing<R>(
        _ connection: inout Connection, _ pages: Int, _ body: (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        let before = connection.totalChanges
        do throws(SQLiteError) {
            let result = try body(&connection)
            if connection.totalChanges == before { watch.abandonCommit() }
            try giveRoom(&connection, adding: pages)
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
    ///
    /// Without room it is lost, since others may write before another one begins; but that one finds what can be made.
    package func finishExclusive<R: Sendable>(
        adding pages: Int = .max, _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        do throws(SQLiteError) {
            return try finishExclusiveOnce(pages, body)
        } catch {
            if error.isAboutRoom { regainRoom() }
            throw error
        }
    }

    private func finishExclusiveOnce<R: Sendable>(
        _ pages: Int, _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try writer.withLock { writer throws(SQLiteError) in
            guard writer != nil, let context = writer!.exclusive.take() else { throw .closed }
            var isCommitted = false
            defer { watch.endCommit(isCommitted: isCommitted) }
            let result = try writer!.connection.finishWriting { (connection) throws(SQLiteError) in
                try committing(&connection, pages) { (c) throws(SQLiteError) in try body(&c, context) }
            }
            isCommitted = true
            noteCommit(&writer!.connection)
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
