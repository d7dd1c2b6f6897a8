internal import Dispatch
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// The time of a store: the clock, and a wake-up call.
///
/// Tests move both by hand.
package struct StoreTime: Sendable {
    /// Returns the milliseconds since 1970.
    package let now: @Sendable () -> Int64

    /// Calls the closure once, on a thread of its own, after a number of milliseconds, unless the result is cancelled.
    package let wake: @Sendable (Int64, @escaping @Sendable () -> Void) -> WakeUp

    package init(
        now: @escaping @Sendable () -> Int64,
        wake: @escaping @Sendable (Int64, @escaping @Sendable () -> Void) -> WakeUp
    ) {
        self.now = now
        self.wake = wake
    }

    /// The time of the system.
    ///
    /// Its clock can lag by up to 10 ms on Linux, and is cheap to read.
    package static let system = StoreTime(now: { systemNow() }, wake: { WakeUp.system(after: $0, $1) })

    private static func systemNow() -> Int64 {
        var time = timespec()
        #if os(Linux)
        clock_gettime(CLOCK_REALTIME_COARSE, &time)
        #else
        clock_gettime(CLOCK_REALTIME, &time)
        #endif
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// A wake-up call that can be cancelled.
package final class WakeUp: Sendable {
    private let cancellation = DispatchSemaphore(value: 0)

    package init() {}

    /// Ends the wait.
    ///
    /// A closure that already runs goes on.
    package func cancel() { cancellation.signal() }

    /// A thread that waits.
    ///
    /// Timers of Dispatch need file descriptors, and end the process if there are none.
    fileprivate static func system(after milliseconds: Int64, _ action: @escaping @Sendable () -> Void) -> WakeUp {
        let wakeUp = WakeUp()
        let cancellation = wakeUp.cancellation
        Thread.detachNewThread {
            let end = DispatchTime.now() + .milliseconds(Int(clamping: max(0, milliseconds)))
            if cancellation.wait(timeout: end) == .timedOut { action() }
        }
        return wakeUp
    }
}

/// A moment after which a call gives up, by a clock that is never set.
package struct Deadline: Sendable, Comparable {
    private let nanoseconds: UInt64

    /// The moment in a number of milliseconds from now.
    package init(in milliseconds: Int64) {
        // Longer than any caller waits, and no overflow.
        let wait = UInt64(min(max(0, milliseconds), 1 << 40)) * 1_000_000
        nanoseconds = DispatchTime.now().uptimeNanoseconds + wait
    }

    /// The milliseconds until then; 0 if it has passed.
    package var remaining: Int64 {
        let now = DispatchTime.now().uptimeNanoseconds
        return now >= nanoseconds ? 0 : Int64(clamping: (nanoseconds - now + 999_999) / 1_000_000)
    }

    package static func < (a: Deadline, b: Deadline) -> Bool { a.nanoseconds < b.nanoseconds }
}
