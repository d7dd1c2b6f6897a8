package import Foundation
internal import LarderLocks

/// The time of a manager: the current time, and the passing of time.
///
/// Tests use a timekeeper of their own and advance time manually.
package struct Timekeeper: Sendable {
    /// Schedules a wakeup for the moment at which the duration has passed.
    package typealias Schedule = @Sendable (Wakeup, Duration) -> Void

    /// Milliseconds since 1970, rounded to the nearest.
    package let now: @Sendable () -> Int64

    package let schedule: Schedule

    /// A Boolean value that indicates whether time passes only when a test says so.
    package let isManual: Bool

    package init(now: @escaping @Sendable () -> Int64, schedule: @escaping Schedule, isManual: Bool = false) {
        (self.now, self.schedule, self.isManual) = (now, schedule, isManual)
    }

    /// Creates the timekeeper of an injected clock, or the system's if there is none.
    package init(
        clock: (@Sendable () -> Date)?, schedule: Schedule? = nil
    ) {
        let now = clock.map { clock in { @Sendable in SystemClock.milliseconds(of: clock()) } }
        self.init(
            now: now ?? Self.system.now, schedule: schedule ?? Self.system.schedule, isManual: schedule != nil)
    }

    /// The system's time.
    package static let system = Timekeeper(
        now: { SystemClock.now() },
        schedule: { TimerThread.ofProcess.fire($0, after: $1) })

    /// A moment, to measure how long something takes.
    package func nanoseconds() -> Int64 { SystemClock.nanoseconds(of: isManual ? now : nil) }

    /// Calls back once, on a thread of its own, when the duration has passed, unless the result was cancelled.
    package func wake(_ delay: Duration, _ action: @escaping @Sendable () -> Void) -> Wakeup {
        let wakeup = Wakeup(action)
        schedule(wakeup, delay)
        return wakeup
    }

    /// Calls back once, on the thread of all timers, when the duration has passed, unless the result was cancelled.
    ///
    /// - Parameter action: Runs no code of the program and waits for no other thread, because all timers wait for it. It
    ///   returns the work that does, which gets a thread of its own; nil if there is none.
    package func wakeBriefly(
        _ delay: Duration, _ action: @escaping @Sendable () -> (@Sendable () -> Void)?
    ) -> Wakeup {
        let wakeup = Wakeup(brief: action)
        schedule(wakeup, delay)
        return wakeup
    }
}

/// An action that waits for its time.
package final class Wakeup: Sendable {
    private enum Action: Sendable {
        case whole(@Sendable () -> Void)
        /// Returns the rest of the work, which is not brief.
        case brief(@Sendable () -> (@Sendable () -> Void)?)
    }

    private let action: Action
    /// True once the action ran or was cancelled.
    private let isDone = Atomic(false)
    /// The place in the heap of ``TimerThread``, whose lock guards it.
    let place = Atomic(-1)

    package init(_ action: @escaping @Sendable () -> Void) { self.action = .whole(action) }

    package init(brief action: @escaping @Sendable () -> (@Sendable () -> Void)?) { self.action = .brief(action) }

    /// Runs the action, once.
    package func fire() {
        if isDone.exchange(true, ordering: .acquiringAndReleasing) { return }
        switch action {
        case .whole(let run): run()
        case .brief(let run): run()?()
        }
    }

    /// Runs the action if it is brief, once, and returns the rest of the work.
    func begin() -> (@Sendable () -> Void)? {
        guard case .brief(let run) = action else { return { self.fire() } }
        return isDone.exchange(true, ordering: .acquiringAndReleasing) ? nil : run()
    }

    package var isOver: Bool { isDone.load(ordering: .relaxed) }

    /// Prevents the action from beginning.
    package func cancel() {
        if !isDone.exchange(true, ordering: .acquiringAndReleasing) { TimerThread.ofProcess.remove(self) }
    }
}
