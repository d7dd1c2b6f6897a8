internal import LarderLocks
internal import LarderSQLite

/// Looks at intervals whether another store has committed, while there are streams.
///
/// What a commit of another store changed is not known, so it is reported as a change of everything.
final class ForeignCommits: Sendable {
    private struct State {
        /// Nil while there are no streams.
        var interval: Duration?
        var watch: CommitWatch
        /// The last foreign epoch that was seen.
        var seen: UInt32
        var wakeup: Wakeup?
        var report: @Sendable () -> Void = {}
    }

    private let state: Mutex<State>
    private let timekeeper: Timekeeper

    init(_ watch: CommitWatch, _ timekeeper: Timekeeper) {
        state = Mutex(State(watch: watch, seen: CommitWatch.noEpoch))
        self.timekeeper = timekeeper
    }

    /// Looks from now on, or more often than before, and calls `report` after a look that has found something.
    ///
    /// No look is sooner than 100 ms after another one.
    func look(every interval: Duration, _ report: @escaping @Sendable () -> Void) {
        let isSooner = state.withLock { state in
            if state.interval == nil { (state.seen, state.report) = (state.watch.foreignEpoch(), report) }
            let wanted = max(interval, .milliseconds(100))
            if let interval = state.interval, interval <= wanted { return false }
            state.interval = wanted
            return true
        }
        if isSooner { schedule() }
    }

    deinit { state.withLock { $0.wakeup }?.cancel() }

    /// Ends the looks until the next call of ``look(every:_:)``.
    ///
    /// - Parameter isWanted: Returns whether there is a stream after all.
    func stop(unless isWanted: () -> Bool = { false }) {
        let old = state.withLock { state -> State? in
            if isWanted() { return nil }
            defer { (state.interval, state.wakeup, state.report) = (nil, nil, {}) }
            return state
        }
        old?.wakeup?.cancel()
    }

    /// Looks at the file that the store has opened again, whose readers are told by others that it was.
    func follow(_ watch: CommitWatch) {
        // One that comes late may be of a file that is closed by now.
        if watch.isUnsure { return }
        let old = state.withLock { state in
            defer { (state.watch, state.seen) = (watch, state.watch === watch ? state.seen : watch.firstEpoch) }
            return state.watch
        }
        if old !== watch { schedule() }
    }

    /// Without a log that all stores share, and while the store is suspended, there is nothing to look at and no timer.
    private func schedule() {
        let interval = state.withLock { $0.watch.tellsStores ? $0.interval : nil }
        guard let interval else { return }
        let wakeup = timekeeper.wake(interval) { [weak self] in self?.lookNow() }
        // If two are scheduled at once, the first one is cancelled. A timer that has fired has scheduled the next one.
        let old = state.withLock { state -> Wakeup? in
            if state.interval == nil || wakeup.isOver { return wakeup }
            defer { state.wakeup = wakeup }
            return state.wakeup
        }
        old?.cancel()
    }

    private func lookNow() {
        let report = state.withLock { state -> (@Sendable () -> Void)? in
            let epoch = state.watch.foreignEpoch()
            defer { if epoch != CommitWatch.noEpoch { state.seen = epoch } }
            return epoch == CommitWatch.noEpoch || epoch == state.seen ? nil : state.report
        }
        report?()
        schedule()
    }
}
