internal import LarderLocks
internal import LarderStore

/// The pending changes of one reader, and the time at which they are due.
///
/// The first change makes a batch due: the net changes until the reader takes it. Then an interval begins, and what changes
/// in it is due at its end. No writer waits for a reader, and only keys are kept for it. While nothing changes there is no
/// timer.
package final class ChangeStream<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// Returns the values of those keys that have one, or nil if they cannot be read any more.
    package typealias Read = @Sendable ([Key]) async -> [Key: Value]?
    /// Returns the keys that other processes have changed; nil if that cannot be told.
    package typealias Foreign = @Sendable () async -> Set<Key>?

    private struct State {
        var pending = PendingChanges<Key>()
        var phase = ChangePhase.quiet
        /// The readers that wait for a batch to be due.
        var readers: [CheckedContinuation<Void, Never>] = []
        /// A Boolean value that indicates whether no more changes come; pending ones may still be taken.
        var isFinished = false
        var isCancelled = false

        var isOver: Bool { isFinished || isCancelled }
    }

    /// Held during a key's own `==` and `hash`, and no other user code.
    private let state = Mutex(State())
    private let timekeeper: Timekeeper
    let interval: Duration
    /// A Boolean value that indicates whether the first change waits for an interval too.
    private let delaysFirst: Bool
    private let foreign: Foreign
    private let read: Read

    init(
        every interval: Duration, delaysFirst: Bool = false, timekeeper: Timekeeper,
        foreign: @escaping Foreign = { nil }, read: @escaping Read
    ) {
        (self.delaysFirst, self.foreign) = (delaysFirst, foreign)
        // Longer than any program runs, and short enough for every timer's arithmetic.
        self.interval = min(interval, .seconds(100 * 366 * 86_400))
        self.timekeeper = timekeeper
        self.read = read
    }

    // MARK: - Writers

    /// Notes a change after all earlier ones; returns what is to be released while no lock is held.
    func note(_ key: Key, _ change: KeyChange) -> Noted? {
        note { $0.note(key, change) }
    }

    /// Notes that all of `keys` changed, as one step.
    func note(_ keys: some Collection<Key>, _ change: KeyChange) -> Noted? {
        // Keys are dropped at most once, because after that none is pending.
        note { pending in keys.reduce(nil) { pending.note($1, change) ?? $0 } }
    }

    /// Notes that everything may have changed.
    func noteReset() -> Noted? {
        note { $0.reset() }
    }

    /// Notes that other processes may have changed anything.
    func noteForeign() -> Noted? {
        note { pending in
            pending.noteForeign()
            return nil
        }
    }

    /// What a noted change leaves: its release makes the batch due, once a transaction has noted all of its changes.
    final class Noted: Sendable {
        private let stream: ChangeStream?
        private let dropped: PendingChanges<Key>.Dropped?

        fileprivate init(_ stream: ChangeStream?, _ dropped: PendingChanges<Key>.Dropped?) {
            (self.stream, self.dropped) = (stream, dropped)
        }

        deinit { stream?.endInterval() }
    }

    private func note(_ change: (inout PendingChanges<Key>) -> PendingChanges<Key>.Dropped?) -> Noted? {
        var (dropped, old): (PendingChanges<Key>.Dropped?, Wakeup?)
        let (isDue, isResting) = state.withLock { state -> (Bool, Bool) in
            if state.isOver { return (false, false) }
            dropped = change(&state.pending)
            if state.pending.isEmpty { return (false, false) }
            switch state.phase {
            case .resting, .due: return (false, false)
            case .failed(let wakeup): old = wakeup
            case .quiet: break
            }
            state.phase = .resting(nil)
            return (!delaysFirst, delaysFirst)
        }
        old?.cancel()
        if isResting { startInterval(interval) }
        return isDue || dropped != nil ? Noted(isDue ? self : nil, dropped) : nil
    }

    /// Notes that everything may have changed, which is due after an interval or with the next change: a read that fails is not
    /// repeated at once.
    func noteResetLater() {
        let dropped = state.withLock { state -> PendingChanges<Key>.Dropped? in
            if state.isOver { return nil }
            let dropped = state.pending.reset()
            switch state.phase {
            case .quiet: state.phase = .failed(nil)
            // The batch that was read was taken a moment ago.
            case .resting(let wakeup): state.phase = .failed(wakeup)
            case .failed, .due: return dropped
            }
            return dropped
        }
        _ = consume dropped
        startInterval(max(interval, .milliseconds(1)))
    }

    private func startInterval(_ interval: Duration) {
        let wakeup = timekeeper.wake(interval) { [weak self] in self?.endInterval() }
        let old = state.withLock { state -> Wakeup? in
            switch state.phase {
            case .resting(let old):
                state.phase = .resting(wakeup)
                return old
            case .failed(let old):
                state.phase = .failed(wakeup)
                return old
            case .quiet, .due: return wakeup
            }
        }
        old?.cancel()
    }

    private func endInterval() {
        let ready = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            switch state.phase {
            case .resting, .failed: break
            case .quiet, .due: return []
            }
            if !state.pending.isEmpty { return Self.makeDue(&state) }
            state.phase = .quiet
            return []
        }
        for reader in ready { reader.resume() }
    }

    private static func makeDue(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
        state.phase = .due
        defer { state.readers = [] }
        return state.readers
    }

    /// Ends the stream once the pending changes were taken, which may be possible at once.
    package func finish() {
        stop { state in
            state.isFinished = true
            return Self.makeDue(&state)
        }
    }

    /// Ends the stream now.
    func cancel() {
        stop { state in
            state.isCancelled = true
            return Self.makeDue(&state)
        }
    }

    private func stop(_ change: (inout State) -> [CheckedContinuation<Void, Never>]) {
        let (wakeup, ready) = state.withLock { state -> (Wakeup?, [CheckedContinuation<Void, Never>]) in
            var wakeup: Wakeup?
            switch state.phase {
            case .resting(let running), .failed(let running): wakeup = running
            case .quiet, .due: break
            }
            return (wakeup, change(&state))
        }
        wakeup?.cancel()
        for reader in ready { reader.resume() }
    }

    // MARK: - The reader

    /// Waits for a batch to be due and returns it; nil at the end of the stream.
    func next() async -> CacheChanges<Key, Value>? {
        while true {
            await dueBatch()
            var (pending, isOver, isResting) = state.withLock { state in
                var isResting = false
                if !state.isOver, case .due = state.phase {
                    isResting = interval > .zero && !delaysFirst && !state.pending.isEmpty
                    state.phase = isResting ? .resting(nil) : .quiet
                }
                defer { state.pending = PendingChanges() }
                return (state.isCancelled ? PendingChanges() : state.pending, state.isOver, isResting)
            }
            if isResting { startInterval(interval) }
            // Sorted here, outside the lock: sorting takes a moment, and writers need the lock.
            if let batch = pending.take() {
                let changes = await changes(of: batch)
                // Other processes may have changed nothing of the cache.
                if changes.isReset || !changes.updated.isEmpty || !changes.removed.isEmpty { return changes }
            }
            // Else another reader was faster.
            if isOver { return nil }
        }
    }

    /// The number of readers that wait for a batch.
    package var waitingCount: Int { state.withLock { $0.readers.count } }

    private func dueBatch() async {
        await withCheckedContinuation { reader in
            let isDue = state.withLock { state in
                if case .due = state.phase { return true }
                state.readers.append(reader)
                return false
            }
            if isDue { reader.resume() }
        }
    }

    private func changes(of batch: PendingChanges<Key>.Batch) async -> CacheChanges<Key, Value> {
        if batch.isReset { return .reset }
        var (updated, removed) = (batch.updated, batch.removed)
        if batch.isForeign {
            guard let keys = await foreign() else { return .reset }
            // What is removed here may be there again.
            (updated, removed) = (updated.union(removed).union(keys), [])
        }
        if updated.isEmpty { return CacheChanges(updated: [:], removed: removed, isReset: false) }
        guard let values = await read(Array(updated)) else { return .reset }
        let found = values.filter { updated.contains($0.key) }
        let gone = updated.filter { found[$0] == nil }
        return CacheChanges(updated: found, removed: removed.union(gone), isReset: false)
    }
}

/// The state of a stream's next batch.
private enum ChangePhase {
    /// Nothing changed, and no interval runs.
    case quiet
    /// An interval runs, in which changes gather.
    case resting(Wakeup?)
    /// A read has failed, and is repeated after an interval or with the next change.
    case failed(Wakeup?)
    /// A batch may be taken.
    case due
}

extension CacheChanges {
    fileprivate static var reset: CacheChanges { CacheChanges(updated: [:], removed: [], isReset: true) }
}

/// The change of a key.
///
/// It is outside of `PendingChanges`, because a type inside a generic one is generic too, which makes a write slower.
package enum KeyChange: Sendable {
    case updated, removed
}

/// The net changes of an interval: keys only, and a bounded number of them.
package struct PendingChanges<Key: Hashable & Sendable>: Sendable {
    /// The keys that a reset has dropped, for the caller to release while no lock is held.
    package typealias Dropped = [Key: KeyChange]

    /// The maximum number of keys: beyond it, reading everything again costs no more than a list.
    package static var capacity: Int { 10_000 }

    /// The net changes of an interval.
    package typealias Batch = (updated: Set<Key>, removed: Set<Key>, isReset: Bool, isForeign: Bool)

    private var pending: [Key: KeyChange] = [:]
    private var isReset = false
    private var isForeign = false

    package init() {}

    /// A Boolean value that indicates whether nothing changed since the last batch was taken.
    package var isEmpty: Bool { pending.isEmpty && !isReset && !isForeign }

    /// The number of keys that are held.
    package var count: Int { pending.count }

    /// Notes that the key has a new or another value, or that its entry was removed.
    ///
    /// The last change of a key counts: the reader of the batch sees the state after it, and no intermediate one.
    package mutating func note(_ key: Key, _ change: KeyChange) -> Dropped? {
        if isReset { return nil }
        pending.updateValue(change, forKey: key)
        return pending.count > Self.capacity ? reset() : nil
    }

    /// Notes that everything may have changed.
    package mutating func reset() -> Dropped {
        isReset = true
        defer { pending = [:] }
        return pending
    }

    /// Notes that other processes may have changed anything.
    package mutating func noteForeign() { isForeign = true }

    /// Returns the net changes since the last batch, or nil if there were none.
    package mutating func take() -> Batch? {
        if isEmpty { return nil }
        defer { (pending, isReset, isForeign) = ([:], false, false) }
        var batch = Batch(updated: [], removed: [], isReset: isReset, isForeign: isForeign)
        for (key, change) in pending {
            if change == .updated { batch.updated.insert(key) } else { batch.removed.insert(key) }
        }
        return batch
    }
}
