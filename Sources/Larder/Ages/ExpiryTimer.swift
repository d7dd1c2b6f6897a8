internal import LarderLocks

/// Wakes its owner when the earliest of the reported entries may have expired.
///
/// There is no timer while nothing can expire. It costs a write one comparison: a later write expires later, as a rule.
@usableFromInline
package final class ExpiryTimer: Sendable {
    /// The shortest and the longest pause between two sweeps, in milliseconds, and the share of an age that it may
    /// take.
    private static let pauses: ClosedRange<Int64> = 1000...60_000
    private static let shareOfAge: Int64 = 16

    /// No timer waits longer than 30 days at a time.
    private static let longestWait: Int64 = 30 * 86_400_000

    private struct State: Sendable {
        /// The time at which it is due, on the scale of the uptime.
        var due = Int64.max
        var wakeup: Wakeup?
        var lastSweep: Int64
    }

    private let timekeeper: Timekeeper

    /// Guards the timer that waits; only the lock of the system's timers is taken under it.
    private let state: Mutex<State>

    /// The clock's moment for which the timer waits: entries that expire later need no report.
    private let quietUntil = Atomic<Int64>(.max)

    package init(_ timekeeper: Timekeeper) {
        self.timekeeper = timekeeper
        state = Mutex(State(lastSweep: timekeeper.uptime()))
    }

    /// A Boolean value that indicates whether a timer waits.
    package var isArmed: Bool { state.withLock { $0.wakeup != nil } }

    /// Returns whether the timer needs a report of an entry that expires after `end`.
    package func isNews(_ end: Int64) -> Bool { end < quietUntil.load(ordering: .relaxed) }

    /// Schedules a call of `sweep` after the moment `end` of the clock.
    ///
    /// - Parameters:
    ///   - end: The last moment at which an entry is served; nil if there is none.
    ///   - age: The age that leads to it, in milliseconds, of which the pause between two sweeps is a share.
    package func note(end: Int64?, age: Int64, sweep: @escaping @Sendable () -> Void) {
        guard let end, end < .max, isNews(end) else { return }
        note(remaining: end.subtractingSaturated(timekeeper.now()), age: age, sweep: sweep)
    }

    /// Schedules a call of `sweep` when more than so many milliseconds have passed.
    package func note(remaining: Int64, age: Int64, sweep: @escaping @Sendable () -> Void) {
        let uptime = timekeeper.uptime()
        let pause = min(max(age / Self.shareOfAge, Self.pauses.lowerBound), Self.pauses.upperBound)
        let displaced = state.withLock { state -> Wakeup? in
            let soonest = max(
                max(0, remaining).addingSaturated(1),
                state.lastSweep.addingSaturated(pause).subtractingSaturated(uptime))
            let wait = min(soonest, Self.longestWait)
            let due = uptime.addingSaturated(wait)
            guard due < state.due else { return nil }
            defer {
                state.wakeup = timekeeper.wake(.milliseconds(wait)) { [weak self] in
                    guard let self, beginSweep() else { return }
                    sweep()
                }
            }
            state.due = due
            quietUntil.store(timekeeper.now().addingSaturated(wait), ordering: .relaxed)
            return state.wakeup
        }
        displaced?.cancel()
    }

    /// Ends the wait, until an entry is reported again.
    package func cancel() {
        let displaced = state.withLock { state in
            reset(&state)
            return state.wakeup.take()
        }
        displaced?.cancel()
    }

    private func beginSweep() -> Bool {
        state.withLock { state in
            // A timer that was replaced while it fired.
            guard state.wakeup != nil else { return false }
            reset(&state)
            state.wakeup = nil
            state.lastSweep = timekeeper.uptime()
            return true
        }
    }

    private func reset(_ state: inout State) {
        state.due = .max
        quietUntil.store(.max, ordering: .relaxed)
    }
}
