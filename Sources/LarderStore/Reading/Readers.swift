internal import Foundation
internal import LarderLocks
internal import LarderSQLite

/// The connections that read, each with a read transaction that stays open between reads.
///
/// A read in a transaction of its own costs a fifth to three fifths more. The transaction is renewed after every commit of any store. It
/// pins the log, so it is released around checkpoints, after 100 ms, and if the log is long. Lock order: the writer,
/// then a slot. Under a slot the writer is only tried.
final class Readers: Sendable {
    private let options: Store.Options
    private let slots = (0..<4).map { _ in Slot() }
    private let isReleaseScheduled = Atomic(false)
    private let releaseTimer = Mutex(ReleaseTimer())
    private let writer = Mutex(WeakWriter())
    /// The moment at which the path was last compared with the open file, by the store's clock.
    private let lastComparison = Atomic(Int64.min)
    /// The number of times that the file was opened.
    private let openings = Atomic(0)

    /// The reads after a commit that go over the writer's connection, whose pages are in memory.
    private static let lentReads = 8
    /// The milliseconds for which a transaction stays open between reads.
    private static let holdingTime: Int64 = 100

    init(_ options: Store.Options) { self.options = options }

    var openingCount: Int { openings.load(ordering: .acquiring) }

    /// Lets reads use a file; nil ends them until the next one is opened.
    func open(_ database: Database?) {
        if database != nil { releaseTimer.withLock { $0.isOpen = true } }
        for slot in slots {
            slot.lock.wait { $0 = Reader(database) }
        }
        if database != nil { openings.add(1, ordering: .releasing) } else { cancelRelease() }
    }

    /// Cancels the release: reads that held a transaction have ended.
    private func cancelRelease() {
        let cancel = releaseTimer.withLock { timer in
            defer { timer = ReleaseTimer() }
            return timer.cancel
        }
        cancel?()
        isReleaseScheduled.store(false, ordering: .releasing)
    }

    /// Returns what `body` reads with a connection and the live incarnation of a cache; nil if the cache is superseded.
    ///
    /// - Parameter size: The number of rows; statements that read more than one see one moment.
    func read<R>(
        _ cache: CacheDeclaration, over writer: Writer, _ size: ReadSize, at moment: Int64?,
        _ body: (inout Connection, Incarnation) throws(SQLiteError) -> R
    ) throws(StoreError) -> R? {
        // The clock may be the program's, which takes locks of its own.
        let now = moment ?? options.time.now()
        let own = Int((UInt64(CurrentThread.identity) &* 0x9E37_79B9_7F4A_7C15) >> 62)
        for offset in 0..<slots.count {
            let slot = slots[(own + offset) % slots.count]
            let result = try slot.lock.tryLock { reader throws(StoreError) in
                slot.isLong.store(size == .many, ordering: .relaxed)
                return try read(&reader, cache, writer, now, size, body)
            }
            if let result { return result }
        }
        return try slots[own].lock.withLock { reader throws(StoreError) in
            slots[own].isLong.store(size == .many, ordering: .relaxed)
            return try read(&reader, cache, writer, now, size, body)
        }
    }

    private func read<R>(
        _ reader: inout Reader, _ cache: CacheDeclaration, _ writer: Writer, _ now: Int64, _ size: ReadSize,
        _ body: (inout Connection, Incarnation) throws(SQLiteError) -> R
    ) throws(StoreError) -> R? {
        guard let database = reader.database, database.file != nil else { throw StoreError(SQLiteError.moved) }
        let (watch, counter) = (database.watch, database.counter)
        try compare(database, at: now)
        // All are taken before the snapshot, so it is at least as new.
        let (epoch, mark, isCopied) = (watch.epoch(), counter?.mark(), counter?.uncopiedFrames == 0)
        // A transaction from before the log was copied keeps it from beginning again.
        if reader.mark != mark || reader.isCopied != isCopied {
            reader.release()
            (reader.mark, reader.isCopied, reader.reads) = (mark, isCopied, 0)
        }
        do {
            if reader.reads < Self.lentReads && size == .row {
                reader.reads += 1
                if let result = try writer.tryRead({ try $0.read(cache, body) }) { return result }
            }
            if reader.epoch != epoch { try database.requirePlace() }
            if reader.connection == nil, let file = database.file {
                reader.connection = try file.file.openReader(of: file)
            }
            // A long log has to be copied by some process, and its readers must not pin it.
            let isLogShort = counter.map { $0.frames < Ballast.pages } ?? false
            let isUseful = reader.reads >= Self.lentReads && (isCopied || isLogShort)
            if !reader.isHolding && (isUseful || size != .row) {
                try reader.connection?.holdSnapshot()
                reader.isHolding = true
            }
            defer { if reader.isHolding && !isUseful { reader.release() } }
            if isUseful { scheduleRelease() }
            // If another store has committed since, its incarnations are those of the snapshot, and none are kept.
            let known = watch.epoch() == epoch ? epoch : CommitWatch.noEpoch
            guard let incarnation = try reader.incarnation(of: cache, in: known) else { return nil }
            return try body(&reader.connection!, incarnation)
        } catch {
            // SQLite may have ended the transaction.
            reader.release()
            throw StoreError(any: error)
        }
    }

    /// Throws if another file, or none, is at the path: a look four times a second.
    func compare(_ database: Database, at now: Int64) throws(StoreError) {
        let last = lastComparison.load(ordering: .relaxed)
        guard now >= last.addingSaturated(250) || now < last else { return }
        lastComparison.store(now, ordering: .relaxed)
        do { try database.requirePlace() } catch { throw StoreError(error) }
    }

    /// Releases the transactions of all connections but those of long reads, and returns whether these were all.
    ///
    /// - Parameter waits: A Boolean value that indicates whether long reads are waited for.
    @discardableResult
    func release(waits: Bool = false) -> Bool {
        var isWhole = true
        for slot in slots where !slot.release() {
            if waits { slot.lock.wait { $0.release() } } else { isWhole = false }
        }
        return isWhole
    }

    /// Releases the writer's transaction with those of readers.
    func follow(_ writer: Writer) { self.writer.withLock { $0.writer = writer } }

    /// Releases the transactions 100 ms after the first of them began.
    func scheduleRelease() {
        guard !isReleaseScheduled.load(ordering: .relaxed),
            !isReleaseScheduled.exchange(true, ordering: .acquiringAndReleasing)
        else { return }
        let cancel = options.time.wake(Self.holdingTime) { [weak self] in
            self?.isReleaseScheduled.store(false, ordering: .releasing)
            guard let self else { return }
            let (isReleased, isWriterReleased) = (release(), writer.withLock { $0.writer }?.stopReading() ?? true)
            if !isReleased || !isWriterReleased { scheduleRelease() }
        }
        let isKept = releaseTimer.withLock { timer in
            if timer.isOpen { timer.cancel = cancel }
            return timer.isOpen
        }
        if isKept { return }
        cancel()
        isReleaseScheduled.store(false, ordering: .releasing)
    }
}

/// The writer, which has the readers.
private struct WeakWriter: Sendable { weak var writer: Writer? }

/// The timer of the release of transactions.
private struct ReleaseTimer: Sendable {
    /// A Boolean value that indicates whether a file is open: only then is there a timer.
    var isOpen = false
    /// Cancels the timer that was set last.
    var cancel: (@Sendable () -> Void)?
}

/// The number of rows that a read asks for.
package enum ReadSize: Sendable {
    case row
    /// A page, or as few.
    case page
    /// Any number: no writer waits for the read.
    case many
}

/// The place of one connection.
private final class Slot: Sendable {
    let lock = OwnedLock(Reader(nil))
    /// A Boolean value that indicates whether the read that has the lock, or had it last, reads many rows.
    let isLong = Atomic(false)

    /// Releases the transaction, and returns false if a long read uses it.
    func release() -> Bool {
        // Another read ends before a thread could be woken.
        for _ in 0..<100_000 {
            do { if try lock.tryLock({ $0.release() }) != nil { return true } } catch { return false }
            if isLong.load(ordering: .relaxed) { return false }
            sched_yield()
        }
        return false
    }
}

/// One connection that reads, and what it knows.
private struct Reader: ~Copyable {
    /// The open file; nil while there is none.
    let database: Database?
    var connection: Connection?
    var isHolding = false
    /// The state of the log at the last read, and the number of reads since it has changed.
    var mark: CommitMark?
    var isCopied = false
    var reads = 0
    /// The live incarnations, and the epoch in which they were looked up.
    private var incarnations = LiveIncarnations()
    private(set) var epoch: UInt32 = 0

    init(_ database: Database?) { self.database = database }

    /// Returns the live incarnation of a cache; nil if the cache is superseded.
    ///
    /// The incarnations are looked up again in each epoch.
    mutating func incarnation(of cache: CacheDeclaration, in epoch: UInt32) throws(SQLiteError) -> Incarnation? {
        if self.epoch != epoch || epoch == CommitWatch.noEpoch {
            incarnations = try connection!.liveIncarnations()
            self.epoch = epoch
        }
        return incarnations.incarnation(of: cache)
    }

    mutating func release() {
        guard isHolding else { return }
        isHolding = false
        do { try connection?.releaseSnapshot() } catch { connection = nil }
    }
}
