public import Foundation
public import Larder
internal import LarderLocks
package import LarderStore

/// A clock that stands still until a test moves it: the ages and the intervals of the stores and caches on it.
///
/// ```swift
/// let clock = ManualClock()
/// let manager = try CacheManager.inMemory(configuration: clock.configuration)
/// clock.advance(by: .seconds(3600))
/// ```
public final class ManualClock: Sendable {
    private struct State {
        var now: Date
        /// What has passed, in microseconds.
        var elapsed: Int64 = 0
        var pending: [(due: Int64, wakeup: Wakeup)] = []
    }

    private let state: Mutex<State>

    /// Creates a clock.
    ///
    /// - Parameter start: The time at which it stands.
    public init(_ start: Date = Date(timeIntervalSince1970: 1_700_000_000)) { state = Mutex(State(now: start)) }

    /// The time at which the clock stands.
    public var now: Date { state.withLock { $0.now } }

    /// Sets the clock, without anything coming due; a later moment counts as time that has passed.
    ///
    /// - Parameter date: The time.
    public func set(_ date: Date) {
        state.withLock { state in
            state.elapsed = state.elapsed.addingSaturated(max(0, Self.microseconds(date.timeIntervalSince(state.now))))
            state.now = date
        }
    }

    /// Lets time pass, and runs on this thread what comes due, in order.
    ///
    /// What is scheduled by that runs in a later call, so an interval ends at most once in a call.
    ///
    /// - Parameter duration: The time that passes.
    public func advance(by duration: Duration) {
        let seconds = duration / .seconds(1)
        let due = state.withLock { state -> [Wakeup] in
            state.now += seconds
            state.elapsed = state.elapsed.addingSaturated(Self.microseconds(seconds))
            let elapsed = state.elapsed
            let due = state.pending.filter { $0.due <= elapsed }.sorted { $0.due < $1.due }
            state.pending.removeAll { $0.due <= elapsed }
            return due.map(\.wakeup)
        }
        for wakeup in due { wakeup.fire() }
    }

    /// A configuration of a manager on this clock, which does no upkeep alone.
    public var configuration: CacheManager.Configuration {
        var configuration = CacheManager.Configuration()
        configuration.clock = { self.now }
        configuration.schedule = { self.fire($0, after: $1) }
        // A test that moves time for an age wants nothing swept by it.
        configuration.maintenanceInterval = nil
        return configuration
    }

    /// Returns a memory cache on this clock: its ages, its autosaves and its streams.
    ///
    /// - Parameters:
    ///   - countLimit: The maximum number of entries.
    ///   - costLimit: The maximum total cost of the entries.
    ///   - maxAge: The maximum age of an entry.
    ///   - onRemoval: Called for each value that leaves.
    /// - Returns: The cache.
    public func memoryCache<Key, Value>(
        countLimit: Int = .max, costLimit: Int = .max, maxAge: MaxAge = .unlimited,
        onRemoval: (@Sendable (Key, Value, RemovalCause) -> Void)? = nil
    ) -> MemoryCache<Key, Value> {
        MemoryCache(
            countLimit: countLimit, costLimit: costLimit, maxAge: maxAge, clearsOnMemoryPressure: false,
            onRemoval: onRemoval, seed: HashSeed(), injectedClock: { self.now }, timekeeper: timekeeper)
    }

    // MARK: For the library's own tests

    /// Sets the clock while no time passes: what a user who changes the system's time does.
    package func mislead(by duration: Duration) { state.withLock { $0.now += duration / .seconds(1) } }

    /// The number of wake-ups that wait and are not cancelled.
    package var pendingCount: Int {
        state.withLock { state in
            state.pending.removeAll { $0.wakeup.isOver }
            return state.pending.count
        }
    }

    package func fire(_ wakeup: Wakeup, after duration: Duration) {
        state.withLock {
            $0.pending.append(($0.elapsed.addingSaturated(Self.microseconds(duration / .seconds(1))), wakeup))
        }
    }

    private static func microseconds(_ seconds: Double) -> Int64 { SystemClock.saturated(seconds * 1e6) }

    package var timekeeper: Timekeeper {
        Timekeeper(
            now: { SystemClock.milliseconds(of: self.now) },
            schedule: { self.fire($0, after: $1) }, isManual: true)
    }
}
