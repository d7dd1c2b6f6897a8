internal import Synchronization

/// Eviction by a decider of the program's own, until it is cancelled or dropped; see ``Cache/evict(every:where:)``.
public final class EvictionTask: Sendable {
    private let work: EvictionWork

    init(every interval: Duration, _ timekeeper: Timekeeper, _ pass: @escaping @Sendable (() -> Bool) -> Bool) {
        work = EvictionWork(every: interval, timekeeper, pass)
    }

    deinit {
        work.cancel()
    }

    /// Ends it: no closure is called any more, but one that is running.
    public func cancel() { work.cancel() }
}

/// The passes of a decider: one that is under way keeps this, and not the task, whose end ends it.
private final class EvictionWork: Sendable {
    private struct State {
        var wakeup: Wakeup?
        var isCancelled = false
    }

    private let state = Mutex(State())
    private let timekeeper: Timekeeper
    private let interval: Duration
    /// Looks at everything once, while the closure it is given says so; false if there is no point in another time.
    private let pass: @Sendable (() -> Bool) -> Bool

    init(every interval: Duration, _ timekeeper: Timekeeper, _ pass: @escaping @Sendable (() -> Bool) -> Bool) {
        // Longer than any program runs, and short enough for every timer's arithmetic; and no busy loop.
        self.interval = min(max(interval, .milliseconds(1)), .seconds(100 * 366 * 86_400))
        self.timekeeper = timekeeper
        self.pass = pass
        if interval > .zero { schedule() } else { cancel() }
    }

    func cancel() {
        let wakeup = state.withLock { state in
            state.isCancelled = true
            return state.wakeup.take()
        }
        wakeup?.cancel()
    }

    private var isCancelled: Bool { state.withLock { $0.isCancelled } }

    private func schedule() {
        let wakeup = timekeeper.wake(interval) { [weak self] in self?.run() }
        let isKept = state.withLock { state in
            if !state.isCancelled { state.wakeup = wakeup }
            return !state.isCancelled
        }
        if !isKept { wakeup.cancel() }
    }

    /// On a thread that the timekeeper gave us for as long as it takes.
    private func run() {
        if isCancelled { return }
        if pass({ !self.isCancelled }) { schedule() } else { cancel() }
    }
}

extension Cache {
    /// Looks at every entry after each interval, and evicts those that a closure picks, unless they were replaced meanwhile.
    ///
    /// The closure is called on a thread of its own while nothing is held, and may use the cache. The first pass comes
    /// after the first interval, and each later one an interval after the last has ended; it is no use of an entry, and
    /// entries that are over are not shown. Pinned entries go as others. An interval of zero or less is refused: that is
    /// logged, and nothing is evicted. One below a millisecond is a millisecond.
    ///
    /// - Returns: What keeps it going: dropping it cancels.
    public func evict(
        every interval: Duration, where shouldEvict: @escaping @Sendable (CacheEntry<Key, Value>) -> Bool
    ) -> EvictionTask {
        evict(interval) { (cache, goesOn) throws in
            try cache.removeEntries(.decider) { entry in
                goesOn() && shouldEvict(entry)
            } while: {
                goesOn()
            }
        }
    }

    /// Looks at the key and the metadata of every entry after each interval, and evicts those that a closure picks; no value
    /// is read.
    ///
    /// It works as ``evict(every:where:)`` does.
    public func evict(
        every interval: Duration, whereMetadata shouldEvict: @escaping @Sendable (Key, EntryMetadata) -> Bool
    ) -> EvictionTask {
        evict(interval) { (cache, goesOn) throws in
            try cache.removeEntries(.decider, whereMetadata: { goesOn() && shouldEvict($0, $1) }, while: { goesOn() })
        }
    }

    private func evict(
        _ interval: Duration, _ pass: @escaping @Sendable (Cache, () -> Bool) throws -> Int
    ) -> EvictionTask {
        if interval <= .zero {
            let error = CacheError(
                .invalidConfiguration, "the interval of a decider is \(interval); give one that is longer than nothing")
            report(error, "evict entries")
        }
        return EvictionTask(every: interval, ledger.store.timekeeper) { [self] goesOn in
            do {
                try checkWritable("evict entries")
                _ = try pass(self, goesOn)
                return !ledger.isSuperseded
            } catch let error as CacheError {
                if error.code == .closed || error.code == .superseded { return false }
                report(error, "evict entries")
                return error.code != .readOnly
            } catch {
                return false
            }
        }
    }
}
