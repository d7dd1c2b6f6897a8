internal import LarderLocks
internal import LarderStore

/// Wakes a memory cache when the first of its entries may have expired.
///
/// There is no timer while nothing can expire. It costs a write one comparison: a later write expires later, as a rule.
@usableFromInline
final class SweepTimer: Sendable {
    private struct State {
        var wakeup: Wakeup?
        /// The moment after the pause that follows a sweep.
        var earliest = Int64.min
    }

    /// No timer waits longer than 30 days at a time.
    private static let longestWait: Int64 = 30 * 86_400_000

    private let timekeeper: Timekeeper
    /// The pause after a sweep, in milliseconds: a share of the age.
    private let pause: Int64
    private let state = Mutex(State())
    /// The moment for which the timer waits; `.max` if it does not.
    private let due = Atomic<Int64>(.max)

    init(_ timekeeper: Timekeeper, age: Int64) {
        (self.timekeeper, pause) = (timekeeper, min(max(age / 16, 1000), 60_000))
    }

    /// A Boolean value that indicates whether the timer waits.
    var isArmed: Bool { due.load(ordering: .relaxed) < .max }

    /// Calls `sweep` soon after the moment `end`, unless the timer waits for an earlier one.
    func note(end: Int64, _ sweep: @escaping @Sendable () -> Void) {
        if end >= due.load(ordering: .relaxed) { return }
        let now = timekeeper.now()
        let displaced = state.withLock { state -> Wakeup? in
            let moment = min(max(end.addingSaturated(1), state.earliest, now), now.addingSaturated(Self.longestWait))
            guard moment < due.load(ordering: .relaxed) else { return nil }
            due.store(moment, ordering: .relaxed)
            defer {
                state.wakeup = timekeeper.wake(.milliseconds(moment.subtractingSaturated(now))) { [weak self] in
                    if self?.begin() == true { sweep() }
                }
            }
            return state.wakeup
        }
        displaced?.cancel()
    }

    private func begin() -> Bool {
        let now = timekeeper.now()
        return state.withLock { state in
            // A timer that was replaced while it fired.
            guard state.wakeup != nil else { return false }
            (state.wakeup, state.earliest) = (nil, now.addingSaturated(pause))
            due.store(.max, ordering: .relaxed)
            return true
        }
    }

    /// Ends the wait, until an entry is noted again.
    func cancel() {
        let displaced = state.withLock { state in
            due.store(.max, ordering: .relaxed)
            return state.wakeup.take()
        }
        displaced?.cancel()
    }
}
