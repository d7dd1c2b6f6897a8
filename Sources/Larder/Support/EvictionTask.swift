internal import Synchronization

/// Eviction by a closure of the program's own, until it is cancelled or released.
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
