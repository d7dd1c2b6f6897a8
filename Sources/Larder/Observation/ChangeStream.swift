internal import LarderLocks

/// The pending changes of one reader, and the time at which they are due.
///
/// The first change makes a batch due: the net changes until the reader takes it. Then an interval begins, and what changes
/// in it is due at its end. No writer waits for a reader, and only keys are kept for it. While nothing changes there is no
/// timer.
package final class ChangeStream<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// Returns the values of those keys that have one, or nil if they cannot be read any more.
    package typealias Read = @Sendable ([Key]) async -> [Key: Value]?

    private struct State {
        var log = ChangeLog<Key>()
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
    private let read: Read

    init(every interval: Duration, delaysFirst: Bool = false, timekeeper: Timekeeper, read: @escaping Read) {
        self.delaysFirst = delaysFirst
        // Longer than any program runs, and short enough for every timer's arithmetic.
        self.interval = min(interval, .seconds(100 * 366 * 86_400))
        self.timekeeper = timekeeper
        self.read = read
    }

    // MARK: - Writers

    /// Notes a change after all earlier ones; returns the objects to release while no lock is held.
    func note(_ key: Key, _ change: KeyChange) -> ChangeLog<Key>.Dropped? {
        note { $0.note(key, change) }
    }

    /// Notes that all of `keys` changed, as one step.
    func note(_ keys: some Collection<Key>, _ change: KeyChange) -> ChangeLog<Key>.Dropped? {
        // Keys are dropped at most once, because after that the log is empty.
        note { log in keys.reduce(nil) { log.note($1, change) ?? $0 } }
    }

    /// Notes that everything may have changed.
    func noteReset() -> ChangeLog<Key>.Dropped? {
        note { $0.reset() }
    }

    private func note(_ change: (inout ChangeLog<Key>) -> ChangeLog<Key>.Dropped?) -> ChangeLog<Key>.Dropped? {
        var dropped: ChangeLog<Key>.Dropped?
        let (ready, isResting) = state.withLock { state -> ([CheckedContinuation<Void, Never>], Bool) in
            if state.isOver { return ([], false) }
            dropped = change(&state.log)
            guard case .quiet = state.phase, !state.log.isEmpty else { return ([], false) }
            if !delaysFirst { return (Self.makeDue(&state), false) }
            state.phase = .resting(nil)
            return ([], true)
        }
        if isResting { startInterval(interval) }
        for reader in ready { reader.resume() }
        return dropped
    }

    /// Notes that everything may have changed, which is due after an interval: a read that fails is not repeated at once.
    func noteResetLater() -> ChangeLog<Key>.Dropped? {
        let (dropped, isResting) = state.withLock { state -> (ChangeLog<Key>.Dropped?, Bool) in
            if state.isOver { return (nil, false) }
            let dropped = state.log.reset()
            guard case .quiet = state.phase else { return (dropped, false) }
            state.phase = .resting(nil)
            return (dropped, true)
        }
        if isResting { startInterval(max(interval, .milliseconds(1))) }
        return dropped
    }

    private func startInterval(_ interval: Duration) {
        let wakeup = timekeeper.wake(interval) { [weak self] in self?.endInterval() }
        let isKept = state.withLock { state in
            guard case .resting = state.phase else { return false }
            state.phase = .resting(wakeup)
            return true
        }
        if !isKept { wakeup.cancel() }
    }

    private func endInterval() {
        let ready = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            guard case .resting = state.phase else { return [] }
            if !state.log.isEmpty { return Self.makeDue(&state) }
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
            if case .resting(let running) = state.phase { wakeup = running }
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
            var (log, isOver, isResting) = state.withLock { state in
                var isResting = false
                if !state.isOver, case .due = state.phase {
                    isResting = interval > .zero && !delaysFirst && !state.log.isEmpty
                    state.phase = isResting ? .resting(nil) : .quiet
                }
                defer { state.log = ChangeLog() }
                return (state.isCancelled ? ChangeLog() : state.log, state.isOver, isResting)
            }
            if isResting { startInterval(interval) }
            // Sorted here, outside the lock: sorting takes a moment, and writers need the lock.
            if let batch = log.take() { return await changes(of: batch) }
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

    private func changes(
        of batch: (updated: Set<Key>, removed: Set<Key>, isReset: Bool)
    ) async -> CacheChanges<Key, Value> {
        if batch.isReset { return .reset }
        if batch.updated.isEmpty { return CacheChanges(updated: [:], removed: batch.removed, isReset: false) }
        guard let values = await read(Array(batch.updated)) else { return .reset }
        let updated = values.filter { batch.updated.contains($0.key) }
        let gone = batch.updated.filter { updated[$0] == nil }
        return CacheChanges(updated: updated, removed: batch.removed.union(gone), isReset: false)
    }
}

/// The state of a stream's next batch.
private enum ChangePhase {
    /// Nothing changed, and no interval runs.
    case quiet
    /// An interval runs, in which changes gather.
    case resting(Wakeup?)
    /// A batch may be taken.
    case due
}

extension CacheChanges {
    fileprivate static var reset: CacheChanges { CacheChanges(updated: [:], removed: [], isReset: true) }
}
