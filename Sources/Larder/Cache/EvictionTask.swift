internal import LarderLocks
internal import LarderStore

/// A task that calls an eviction closure at an interval, until it is cancelled or released.
public final class EvictionTask: Sendable {
    private let work: EvictionWork

    init(every interval: Duration, _ timers: EvictionTimers, _ pass: @escaping @Sendable (() -> Bool) -> Bool) {
        work = EvictionWork(every: interval, timers, pass)
    }

    deinit {
        work.cancel()
    }

    /// Cancels the task: the closure is not called again.
    ///
    /// A call that is running finishes.
    public func cancel() { work.cancel() }
}

/// The timers of eviction closures, none of which runs while their manager is suspended.
final class EvictionTimers: Sendable {
    private struct Waiting {
        let work: EvictionWork
        /// Distinguishes this wait from an earlier one of the same work, whose timer may fire late.
        let number: Int
        /// Nil while the manager is suspended.
        var wakeup: Wakeup?
    }

    private struct State {
        var waiting: [ObjectIdentifier: Waiting] = [:]
        var lastNumber = 0
    }

    private let state = Mutex(State())
    private let timekeeper: Timekeeper
    private let isSuspended: @Sendable () -> Bool

    /// - Parameter isSuspended: Returns whether the manager is suspended; takes a leaf lock at most.
    init(_ timekeeper: Timekeeper, isSuspended: @escaping @Sendable () -> Bool = { false }) {
        (self.timekeeper, self.isSuspended) = (timekeeper, isSuspended)
    }

    /// Runs a work after its interval, or after the one that begins when the manager is resumed.
    fileprivate func wait(_ work: EvictionWork) {
        state.withLock { state in
            state.lastNumber += 1
            var waiting = Waiting(work: work, number: state.lastNumber)
            if !isSuspended() { waiting.wakeup = timer(waiting) }
            state.waiting[ObjectIdentifier(work)] = waiting
        }
    }

    /// Ends the wait of a work.
    fileprivate func end(_ work: EvictionWork) {
        let waiting = state.withLock { $0.waiting.removeValue(forKey: ObjectIdentifier(work)) }
        waiting?.wakeup?.cancel()
    }

    /// Stops or sets all timers, after the manager was suspended or resumed.
    ///
    /// It asks the manager under the lock, so the last of several calls leaves what is true then.
    func follow() {
        let stopped = state.withLock { state -> [Wakeup] in
            let isSuspended = isSuspended()
            var stopped: [Wakeup] = []
            for (id, waiting) in state.waiting {
                if isSuspended, let wakeup = waiting.wakeup {
                    stopped.append(wakeup)
                    state.waiting[id]?.wakeup = nil
                } else if !isSuspended, waiting.wakeup == nil {
                    state.lastNumber += 1
                    var waiting = Waiting(work: waiting.work, number: state.lastNumber)
                    waiting.wakeup = timer(waiting)
                    state.waiting[id] = waiting
                }
            }
            return stopped
        }
        for wakeup in stopped { wakeup.cancel() }
    }

    private func timer(_ waiting: Waiting) -> Wakeup {
        let (id, number) = (ObjectIdentifier(waiting.work), waiting.number)
        return timekeeper.wake(waiting.work.interval) { [weak self] in self?.run(id, number) }
    }

    private func run(_ id: ObjectIdentifier, _ number: Int) {
        let waiting = state.withLock { state in
            let waiting = state.waiting[id]
            // A timer that was stopped while it fired.
            guard let waiting, waiting.number == number, waiting.wakeup != nil else { return Waiting?.none }
            state.waiting[id] = nil
            return waiting
        }
        waiting?.work.run()
    }
}

/// The runs of an eviction closure.
///
/// A running or waiting one keeps this object alive, but not the task. Releasing the task ends the runs.
private final class EvictionWork: Sendable {
    private let isCancelled = Atomic(false)
    private let timers: EvictionTimers
    let interval: Duration
    /// Evaluates every entry once, while the given closure returns true; returns false if no further run is needed.
    private let pass: @Sendable (() -> Bool) -> Bool

    init(every interval: Duration, _ timers: EvictionTimers, _ pass: @escaping @Sendable (() -> Bool) -> Bool) {
        // Longer than any program runs, short enough for timer arithmetic, and no busy loop.
        self.interval = min(max(interval, .milliseconds(1)), .seconds(100 * 366 * 86_400))
        self.timers = timers
        self.pass = pass
        if interval > .zero { timers.wait(self) } else { cancel() }
    }

    func cancel() {
        isCancelled.store(true, ordering: .sequentiallyConsistent)
        timers.end(self)
    }

    /// Runs on a thread that the timekeeper provides for as long as needed.
    func run() {
        if isCancelled.load(ordering: .relaxed) { return }
        guard pass({ !self.isCancelled.load(ordering: .relaxed) }) else { return cancel() }
        timers.wait(self)
        // A call of `cancel()` that came before the wait did not end it.
        if isCancelled.load(ordering: .sequentiallyConsistent) { timers.end(self) }
    }
}
