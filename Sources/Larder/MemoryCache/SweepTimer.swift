internal import LarderLocks
internal import LarderStore

/// Wakes a memory cache when the first of its entries may have expired.
///
/// There is no timer while nothing can expire. It costs a write one comparison: a later write expires later, as a rule.
@usableFromInline
final class SweepTimer: Sendable {
    /// No timer waits longer than 30 days at a time.
    private static let longestWait: Int64 = 30 * 86_400_000

    private let timekeeper: Timekeeper
    /// The pause after a sweep, in milliseconds: a share of the age.
    private let pause: Int64
    private let wakeup = Mutex<Wakeup?>(nil)
    /// The moment for which the timer waits; `.max` if it does not.
    private let due = Atomic<Int64>(.max)
    /// The moment after the pause that follows a sweep.
    private let earliest = Atomic<Int64>(.min)

    init(_ timekeeper: Timekeeper, age: Int64) {
        (self.timekeeper, pause) = (timekeeper, min(max(age / 16, 1000), 60_000))
    }

    /// A Boolean value that indicates whether the timer waits.
    var isArmed: Bool { due.load(ordering: .relaxed) < .max }

    /// Returns whether the timer has to wait for a moment before the one for which it waits.
    func isNews(_ end: Int64) -> Bool {
        max(end.addingSaturated(1), earliest.load(ordering: .relaxed)) < due.load(ordering: .relaxed)
    }

    /// Calls `sweep` soon after the moment `end`, unless the timer waits for an earlier one.
    func note(end: Int64, _ sweep: @escaping @Sendable () -> Void) {
        let now = timekeeper.now()
        let displaced = wakeup.withLock { wakeup -> Wakeup? in
            let wanted = max(end.addingSaturated(1), earliest.load(ordering: .relaxed), now)
            let moment = min(wanted, now.addingSaturated(Self.longestWait))
            guard moment < due.load(ordering: .relaxed) else { return nil }
            due.store(moment, ordering: .relaxed)
            defer {
                wakeup = timekeeper.wake(.milliseconds(moment.subtractingSaturated(now))) { [weak self] in
                    if self?.begin() == true { sweep() }
                }
            }
            return wakeup
        }
        displaced?.cancel()
    }

    private func begin() -> Bool {
        let now = timekeeper.now()
        return wakeup.withLock { wakeup in
            // A timer that was replaced while it fired.
            guard wakeup != nil else { return false }
            wakeup = nil
            earliest.store(now.addingSaturated(pause), ordering: .relaxed)
            due.store(.max, ordering: .relaxed)
            return true
        }
    }

    /// Ends the wait, until an entry is noted again.
    func cancel() {
        let displaced = wakeup.withLock { wakeup in
            due.store(.max, ordering: .relaxed)
            return wakeup.take()
        }
        displaced?.cancel()
    }
}
