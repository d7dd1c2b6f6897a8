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

    package init(
        now: @escaping @Sendable () -> Int64,
        wake: @escaping @Sendable (Duration, @escaping @Sendable () -> Void) -> Wakeup
    ) {
        (self.now, self.wake) = (now, wake)
    }

    /// Creates the timekeeper of an injected clock, or the system's if there is none.
    package init(
        clock: (@Sendable () -> Date)?,
        wake: @escaping @Sendable (Duration, @escaping @Sendable () -> Void) -> Wakeup = Timekeeper.system.wake
    ) {
        guard let clock else {
            self.init(now: Self.system.now, wake: wake)
            return
        }
        self.init(now: { SystemClock.milliseconds(of: clock()) }, wake: wake)
    }

    /// The system's time.
    package static let system = Timekeeper(
        now: { SystemClock.now() },
        wake: { delay, action in
            let wakeup = Wakeup(action)
            TimerThread.shared.fire(wakeup, after: delay)
            return wakeup
        })
}

/// An action that waits for its time.
package final class Wakeup: Sendable {
    private let action: @Sendable () -> Void
    /// True once the action ran or was cancelled.
    private let isDone = Atomic(false)

    package init(_ action: @escaping @Sendable () -> Void) { self.action = action }

    package var isOver: Bool { isDone.load(ordering: .relaxed) }

    /// Runs the action, once.
    package func fire() { if !isDone.exchange(true, ordering: .acquiringAndReleasing) { action() } }

    /// Prevents the action from beginning.
    package func cancel() {
        if !isDone.exchange(true, ordering: .acquiringAndReleasing) { TimerThread.shared.remove(self) }
    }
}
