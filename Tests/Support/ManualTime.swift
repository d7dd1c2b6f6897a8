package import Foundation
package import Larder
import Synchronization

/// Time that passes when a test says so.
package final class ManualTime: Sendable {
    private struct State {
        var now: Date
        var pending: [(due: Date, wakeup: Wakeup)] = []
    }

    private let state: Mutex<State>

    package init(_ start: Date = Date(timeIntervalSince1970: 1_700_000_000)) {
        state = Mutex(State(now: start))
    }

    package var now: Date { state.withLock { $0.now } }

    /// Sets the clock, without anything coming due: what a user who changes the system's time does.
    package func set(_ date: Date) { state.withLock { $0.now = date } }

    /// Lets time pass, and runs what comes due, in order, on this thread.
    package func advance(by duration: Duration) {
        let seconds = duration / .seconds(1)
        let due = state.withLock { state -> [Wakeup] in
            state.now += seconds
            let now = state.now
            let due = state.pending.filter { $0.due <= now }.sorted { $0.due < $1.due }
            state.pending.removeAll { $0.due <= now }
            return due.map(\.wakeup)
        }
        for wakeup in due { wakeup.fire() }
    }

    /// How many wake-ups wait.
    package var pendingCount: Int { state.withLock { $0.pending.count } }

    package func wake(after duration: Duration, _ action: @escaping @Sendable () -> Void) -> Wakeup {
        let wakeup = Wakeup(action)
        state.withLock { $0.pending.append(($0.now + duration / .seconds(1), wakeup)) }
        return wakeup
    }

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
        Timekeeper(now: { SystemClock.milliseconds(of: self.now) }, wake: { self.wake(after: $0, $1) })
    }
}
