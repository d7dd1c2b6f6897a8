package import Foundation
internal import LarderLocks

/// The library's only source of time: the current time, and the passing of time.
///
/// Tests use a timekeeper of their own and advance time manually.
package struct Timekeeper: Sendable {
    /// Milliseconds since 1970, rounded to the nearest.
    package let now: @Sendable () -> Int64

    /// Calls back once, on a thread of its own choice, when the duration has passed, unless the result was cancelled.
    package let wake: @Sendable (Duration, @escaping @Sendable () -> Void) -> Wakeup

    /// Milliseconds that have passed, sleep of the machine included, since some moment; nothing can set it.
    package let uptime: @Sendable () -> Int64

    /// Creates a timekeeper.
    ///
    /// - Parameter uptime: The uptime; nil for one that never contradicts the clock.
    package init(
        now: @escaping @Sendable () -> Int64, uptime: (@Sendable () -> Int64)? = nil,
        wake: @escaping @Sendable (Duration, @escaping @Sendable () -> Void) -> Wakeup
    ) {
        self.now = now
        self.uptime = uptime ?? now
        self.wake = wake
    }

    /// Creates the timekeeper of an injected clock, or the system's if there is none.
    package init(
        clock: (@Sendable () -> Date)?, uptime: (@Sendable () -> Int64)? = nil,
        wake: @escaping @Sendable (Duration, @escaping @Sendable () -> Void) -> Wakeup = Timekeeper.system.wake
    ) {
        guard let clock else {
            self.init(now: Self.system.now, uptime: uptime ?? Self.system.uptime, wake: wake)
            return
        }
        self.init(now: { SystemClock.milliseconds(of: clock()) }, uptime: uptime, wake: wake)
    }

    /// The system's time.
    package static let system = Timekeeper(
        now: { SystemClock.now() },
        uptime: { SystemClock.uptime() },
        wake: { delay, action in
            let wakeup = Wakeup(action)
            // It is held until then, but a cancelled one holds nothing.
            TimerThread.shared.fire(wakeup, after: delay)
            return wakeup
        })
}

/// An action that waits for its time.
package final class Wakeup: Sendable {
    private let action: Mutex<(@Sendable () -> Void)?>

    package init(_ action: @escaping @Sendable () -> Void) {
        self.action = Mutex(action)
    }

    /// Runs the action, once.
    package func fire() {
        let action = action.withLock { $0.take() }
        action?()
    }

    /// A Boolean value that indicates whether the action ran or was cancelled.
    package var isOver: Bool { action.withLock { $0 == nil } }

    /// Prevents the action from beginning, and releases it.
    package func cancel() {
        _ = action.withLock { $0.take() }
    }
}
