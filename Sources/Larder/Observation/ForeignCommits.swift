internal import LarderLocks
internal import LarderSQLite
internal import LarderStore

/// Looks at intervals whether another store has committed, while there are streams of any cache of a manager.
///
/// What a commit of another store changed is not known here: each stream compares the rows of its cache. All caches have one
/// timer, because a commit of another store begins an epoch for all of them.
final class ForeignCommits: Sendable {
    private struct Reader {
        var interval: Duration
        /// The last foreign epoch of which the reader knows.
        var seen: UInt32
        let report: @Sendable () -> Void
    }

    private struct State {
        var watch: CommitWatch
        /// The foreign epoch of the last look.
        var seen = CommitWatch.noEpoch
        var readers: [ObjectIdentifier: Reader] = [:]
        /// The timer of the next look, and the interval for which it waits.
        var wakeup: Wakeup?
        var interval = Duration.zero
    }

    private let state: Mutex<State>
    private let timekeeper: Timekeeper

    init(_ watch: CommitWatch, _ timekeeper: Timekeeper) {
        state = Mutex(State(watch: watch))
        self.timekeeper = timekeeper
    }

    /// Looks from now on for a reader, or more often than before, and calls `report` after a look that has found something.
    ///
    /// No look is sooner than 100 ms after another one.
    func look(every interval: Duration, for reader: ObjectIdentifier, _ report: @escaping @Sendable () -> Void) {
        let old = state.withLock { state -> Wakeup? in
            let wanted = max(interval, .milliseconds(100))
            if let known = state.readers[reader]?.interval {
                state.readers[reader]?.interval = min(wanted, known)
            } else {
                state.readers[reader] = Reader(interval: wanted, seen: state.watch.foreignEpoch(), report: report)
            }
            return state.wakeup == nil || wanted < state.interval ? schedule(&state) : nil
        }
        old?.cancel()
    }

    deinit { state.withLock { $0.wakeup }?.cancel() }

    /// Ends the looks for a reader until its next call of ``look(every:for:_:)``.
    ///
    /// - Parameter isWanted: Returns whether the reader has a stream after all.
    func stop(_ reader: ObjectIdentifier, unless isWanted: () -> Bool = { false }) {
        let (dropped, old) = state.withLock { state -> (Reader?, Wakeup?) in
            if isWanted() { return (nil, nil) }
            let dropped = state.readers.removeValue(forKey: reader)
            return (dropped, state.readers.isEmpty ? state.wakeup.take() : nil)
        }
        old?.cancel()
        withExtendedLifetime(dropped) {}
    }

    /// Looks at the file that the store has opened again, whose readers are told by others that it was.
    func follow(_ watch: CommitWatch) {
        // One that comes late may be of a file that is closed by now.
        if watch.isUnsure { return }
        let old = state.withLock { state -> (CommitWatch, Wakeup?)? in
            if state.watch === watch { return nil }
            let old = state.watch
            (state.watch, state.seen) = (watch, watch.firstEpoch)
            for reader in state.readers.keys { state.readers[reader]?.seen = watch.firstEpoch }
            return (old, schedule(&state))
        }
        old?.1?.cancel()
    }

    /// Cancels the timer if there is nothing to look at, because the store is suspended.
    func pause() {
        let old = state.withLock { $0.watch.tellsStores ? nil : $0.wakeup.take() }
        old?.cancel()
    }

    /// Sets the timer, and returns the one that it replaces, to be cancelled outside the lock.
    ///
    /// Without a log that all stores share, and while the store is suspended, there is nothing to look at and no timer.
    private func schedule(_ state: inout State) -> Wakeup? {
        let old = state.wakeup.take()
        guard state.watch.tellsStores, let interval = state.readers.values.lazy.map(\.interval).min() else {
            return old
        }
        state.interval = interval
        state.wakeup = timekeeper.wakeBriefly(interval) { [weak self] in self?.lookNow() }
        return old
    }

    /// Returns the reports of a look that has found something: a key's `hash` and `==` may run in them.
    private func lookNow() -> (@Sendable () -> Void)? {
        let (reports, old) = state.withLock { state -> ([@Sendable () -> Void], Wakeup?) in
            let epoch = state.watch.foreignEpoch()
            var reports: [@Sendable () -> Void] = []
            if epoch != CommitWatch.noEpoch && epoch != state.seen {
                state.seen = epoch
                for (id, reader) in state.readers where reader.seen != epoch {
                    state.readers[id]?.seen = epoch
                    reports.append(reader.report)
                }
            }
            return (reports, schedule(&state))
        }
        old?.cancel()
        if reports.isEmpty { return nil }
        return { for report in reports { report() } }
    }
}
