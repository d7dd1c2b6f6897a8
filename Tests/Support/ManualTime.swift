package import Foundation
package import Larder
import LarderLocks

/// Time that passes when a test says so.
package final class ManualTime: Sendable {
    private struct State {
        var now: Date
        /// What has passed, in microseconds.
        var elapsed: Int64 = 0
        var pending: [(due: Int64, wakeup: Wakeup)] = []
    }

    private let state: Mutex<State>

    package init(_ start: Date = Date(timeIntervalSince1970: 1_700_000_000)) {
        state = Mutex(State(now: start))
    }

    package var now: Date { state.withLock { $0.now } }

    /// Sets the clock, without anything coming due; a later moment counts as time that has passed.
    package func set(_ date: Date) {
        state.withLock { state in
            state.elapsed += max(0, Self.microseconds(date.timeIntervalSince(state.now)))
            state.now = date
        }
    }

    /// Sets the clock while no time passes: what a user who changes the system's time does.
    package func mislead(by duration: Duration) { state.withLock { $0.now += duration / .seconds(1) } }

    /// Lets time pass, and runs what comes due, in order, on this thread.
    package func advance(by duration: Duration) {
        let seconds = duration / .seconds(1)
        let due = state.withLock { state -> [Wakeup] in
            state.now += seconds
            state.elapsed += Self.microseconds(seconds)
            let elapsed = state.elapsed
            let due = state.pending.filter { $0.due <= elapsed }.sorted { $0.due < $1.due }
            state.pending.removeAll { $0.due <= elapsed }
            return due.map(\.wakeup)
        }
        for wakeup in due { wakeup.fire() }
    }

    /// How many wake-ups wait that nobody has cancelled.
    package var pendingCount: Int {
        state.withLock { state in
            state.pending.removeAll { $0.wakeup.isOver }
            return state.pending.count
        }
    }

    package func wake(after duration: Duration, _ action: @escaping @Sendable () -> Void) -> Wakeup {
        let wakeup = Wakeup(action)
        state.withLock { $0.pending.append(($0.elapsed + Self.microseconds(duration / .seconds(1)), wakeup)) }
        return wakeup
    }

    private static func microseconds(_ seconds: Double) -> Int64 { Int64((seconds * 1e6).rounded()) }

    /// A configuration that lives in this time.
    package var configuration: CacheManager.Configuration {
        var configuration = CacheManager.Configuration()
        configuration.clock = { self.now }
        configuration.wake = { self.wake(after: $0, $1) }
        // A test that moves time for an age wants nothing swept by it.
        configuration.maintenanceInterval = nil
        return configuration
    }

    package var timekeeper: Timekeeper {
        Timekeeper(
            now: { SystemClock.milliseconds(of: self.now) },
            wake: { self.wake(after: $0, $1) })
    }
}
