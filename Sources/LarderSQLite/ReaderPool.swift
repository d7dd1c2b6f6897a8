#if LARDER_TSAN
public import LarderTSan
internal import struct Synchronization.Atomic
#else
public import Synchronization
#endif

/// The connections that read: opened when first needed, each with its read transaction kept open between reads.
///
/// A read costs no lock calls while nobody commits. The transaction is renewed when the commit counter has moved, and
/// let go of when asked (by a checkpoint, on idleness), since it pins the log. Checkpoints of other processes cannot ask,
/// so a reader also keeps out of the way of those: it keeps its transaction open only from the second read between two
/// commits on, renews it when the log has been copied, and keeps none while a long log has not been.
@usableFromInline
package final class ReaderPool: Sendable {
    /// Opens one more reader.
    package typealias Opener = @Sendable () throws(SQLiteError) -> Connection

    @usableFromInline let slots: [Slot]
    private let counter: CommitCounter?
    private let open: Opener
    private let willRenew: @Sendable () throws(SQLiteError) -> Void
    private let scheduleLettingGo: @Sendable (Link) -> Void
    private let link = Link()

    /// Rises when every reader is to renew its transaction, whatever the counter says: a checkpoint does not move it.
    private let epoch = Atomic(0)

    /// Whether somebody was asked to call `letGo` after a while.
    private let isLetGoScheduled = Atomic(false)

    /// Whose turn it is when all slots are taken.
    private let turn = Atomic(0)

    /// Makes a pool whose connections are opened when they are needed.
    ///
    /// - Parameters:
    ///   - willRenew: Called before a transaction begins that is kept open, and may refuse it. Under a slot's lock.
    ///   - scheduleLettingGo: Called when one is kept open and nobody is going to end it yet, or could not be ended: sees
    ///     to it that `letGo` is called after a while. May be under a slot's lock.
    package init(
        count: Int, counter: CommitCounter?, open: @escaping Opener,
        willRenew: @escaping @Sendable () throws(SQLiteError) -> Void,
        scheduleLettingGo: @escaping @Sendable (Link) -> Void
    ) {
        slots = (0..<count).map { _ in Slot() }
        self.counter = counter
        self.open = open
        self.willRenew = willRenew
        self.scheduleLettingGo = scheduleLettingGo
    }

    /// Lends a free reader to `body`, or the next that becomes free.
    ///
    /// Compiled where it is called, so that it is specialised for what `body` gives.
    @inlinable
    package func read<R: Sendable>(
        _ body: @Sendable (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        for slot in slots {
            let result = try slot.state.withLockIfAvailable { state throws(SQLiteError) in try read(&state, body) }
            if let result { return result }
        }
        return try nextSlot.state.withLock { state throws(SQLiteError) in try read(&state, body) }
    }

    @inlinable
    func read<R: Sendable>(
        _ state: inout Slot.State, _ body: @Sendable (inout Connection) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try prepare(&state)
        defer { releaseUnlessUseful(&state) }
        return try body(&state.connection!)
    }

    /// Whose turn it is when all are taken.
    @usableFromInline
    var nextSlot: Slot {
        let waiting = turn.wrappingAdd(1, ordering: .relaxed).oldValue
        return slots[Int(UInt(bitPattern: waiting) % UInt(slots.count))]
    }

    /// Sees to it that there is a connection, and that its transaction is as new as the last commit.
    @usableFromInline
    func prepare(_ state: inout Slot.State) throws(SQLiteError) {
        if state.connection == nil {
            if state.isClosed { throw .closed }
            state.connection = try open()
        }
        if let counter {
            let now = epoch.load(ordering: .acquiring)
            // Taken before the snapshot: at worst one renewal too many.
            let stamp = counter.stamp()
            // A snapshot from before the copying stands in the log, one from after it does not.
            let isMoved = counter.log().isMoved
            let standing = state.held
            if standing?.epoch != now || standing?.stamp != stamp || (isMoved && standing?.isMoved == false) {
                state.held = nil
                try willRenew()
                try state.connection!.holdSnapshot()
                // Where somebody committed in between, it stands in the log behind what had been copied.
                state.held = (stamp, isMoved && counter.stamp() == stamp, now)
            }
        }
    }

    /// Decides whether the transaction that `state` holds stays open until the next read.
    @usableFromInline
    func releaseUnlessUseful(_ state: inout Slot.State) {
        guard let counter, let held = state.held else { return }
        // Where somebody else commits between any two reads, keeping it would gain nothing, and pin the log meanwhile.
        let isFirst = state.seen != held.stamp
        if isFirst { state.seen = held.stamp }
        // A long log that is not copied: some process tries to, and may have failed for our sake. One that was copied
        // while we stood in it: it cannot be started anew as long as we do.
        let log = counter.log()
        let isInTheWay = log.isMoved ? !held.isMoved : log.frames > Self.longLog
        if isFirst || isInTheWay || epoch.load(ordering: .acquiring) != held.epoch {
            state.release()
        } else if !isLetGoScheduled.load(ordering: .relaxed) {
            scheduleOnce()
        }
    }

    private func scheduleOnce() {
        guard !isLetGoScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        link.pool.withLock { $0 = self }
        scheduleLettingGo(link)
    }

    /// The frames of a log that is past the time to copy it.
    private static let longLog = UInt32(Connection.logSizeLimit / Connection.pageSize)

    /// Ends every read transaction that is kept open: of idle readers now, of busy ones at the end of their read.
    package func letGo() {
        // In this order: who asks for it from now on puts the pool there again.
        link.pool.withLock { $0 = nil }
        isLetGoScheduled.store(false, ordering: .releasing)
        epoch.add(1, ordering: .acquiringAndReleasing)
        var missedOne = false
        for slot in slots where slot.state.withLockIfAvailable({ $0.release() }) == nil { missedOne = true }
        // It may have looked at the epoch for the last time just before we raised it.
        if missedOne { scheduleOnce() }
    }

    /// Closes every reader, waiting for those at work; later reads throw `.closed`.
    package func close() {
        link.pool.withLock { $0 = nil }
        for slot in slots {
            slot.state.withLock {
                $0.close()
                $0.isClosed = true
            }
        }
    }

    /// Closes every reader, runs `body` while none can open, and lets them open again at their next read.
    package func suspended(_ body: () -> Void) {
        suspended(slots[...], body)
    }

    private func suspended(_ rest: ArraySlice<Slot>, _ body: () -> Void) {
        guard let slot = rest.first else { return body() }
        slot.state.withLock {
            $0.close()
            suspended(rest.dropFirst(), body)
        }
    }

    /// Whether no reader stands on a row, those that were let go of included.
    package var isIdle: Bool {
        slots.allSatisfy { $0.state.withLock { $0.connection?.isIdle ?? true } }
    }
}

extension ReaderPool {
    /// What a timer holds of a pool, until that has let go or was closed.
    ///
    /// Not a weak reference: an object that ever had one pays for each of its retains with a call that is ten times as slow.
    package final class Link: Sendable {
        fileprivate let pool = Mutex<ReaderPool?>(nil)

        /// Lets go, if that is wanted still.
        package func letGo() { pool.withLock { $0 }?.letGo() }
    }

    /// One reader and its lock.
    @usableFromInline
    final class Slot: Sendable {
        @usableFromInline
        struct State: ~Copyable {
            @usableFromInline var connection: Connection?
            var held: (stamp: CommitStamp, isMoved: Bool, epoch: Int)?
            /// What the counter said at the last read.
            var seen: CommitStamp?
            var isClosed = false

            mutating func close() {
                held = nil
                seen = nil
                connection = nil
            }

            mutating func release() {
                guard held != nil else { return }
                held = nil
                do {
                    try connection?.releaseSnapshot()
                } catch {
                    // The keeper is prepared, or nothing was held; a connection that cannot even reset it is of no use.
                    connection = nil
                }
            }
        }

        @usableFromInline let state = Mutex(State())
    }
}
