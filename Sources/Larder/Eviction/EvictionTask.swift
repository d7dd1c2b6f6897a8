internal import LarderLocks

/// A task that calls an eviction closure at an interval, until it is cancelled or released.
public final class EvictionTask: Sendable {
    private let work: EvictionWork

    init(every interval: Duration, _ timekeeper: Timekeeper, _ pass: @escaping @Sendable (() -> Bool) -> Bool) {
        work = EvictionWork(every: interval, timekeeper, pass)
    }

    deinit {
        work.cancel()
    }

    /// Cancels the task: the closure is not called again.
    ///
    /// A call that is running finishes.
    public func cancel() { work.cancel() }
}

/// The runs of an eviction closure.
///
/// A running one keeps this object alive, but not the task. Releasing the task ends the runs.
private final class EvictionWork: Sendable {
    private struct State {
        var wakeup: Wakeup?
        var isCancelled = false
    }

    private let state = Mutex(State())
    private let timekeeper: Timekeeper
    private let interval: Duration
    /// Evaluates every entry once, while the given closure returns true; returns false if no further run is needed.
    private let pass: @Sendable (() -> Bool) -> Bool

    init(every interval: Duration, _ timekeeper: Timekeeper, _ pass: @escaping @Sendable (() -> Bool) -> Bool) {
        // Longer than any program runs, short enough for timer arithmetic, and no busy loop.
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

    /// Runs on a thread that the timekeeper provides for as long as needed.
    private func run() {
        if isCancelled { return }
        if pass({ !self.isCancelled }) { schedule() } else { cancel() }
    }
}
