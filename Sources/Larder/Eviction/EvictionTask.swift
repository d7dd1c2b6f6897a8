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
    private let isCancelled = Atomic(false)
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

    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    private func schedule() { _ = timekeeper.wake(interval) { [weak self] in self?.run() } }

    /// Runs on a thread that the timekeeper provides for as long as needed.
    private func run() {
        if isCancelled.load(ordering: .relaxed) { return }
        if pass({ !self.isCancelled.load(ordering: .relaxed) }) { schedule() } else { cancel() }
    }
}
