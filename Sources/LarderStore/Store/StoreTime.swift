internal import Dispatch
internal import Foundation

/// The time of a store: the clock, and a wake-up call.
///
/// Tests move both by hand.
package struct StoreTime: Sendable {
    package let now: @Sendable () -> Int64

    /// Calls a closure after a number of milliseconds, and returns a closure that cancels the call.
    package typealias Wake = @Sendable (Int64, @escaping @Sendable () -> Void) -> @Sendable () -> Void

    /// Calls the closure once, on a thread of its own.
    package let wake: Wake

    package init(now: @escaping @Sendable () -> Int64, wake: @escaping Wake) { (self.now, self.wake) = (now, wake) }

    /// The time of the system.
    ///
    /// Its clock can lag by up to 10 ms on Linux, and is cheap to read.
    package static let system = StoreTime(now: { systemNow() }, wake: { wakeUp(after: $0, $1) })

    /// Timers of Dispatch need file descriptors, and end the process if there are none.
    private static func wakeUp(
        after milliseconds: Int64, _ action: @escaping @Sendable () -> Void
    ) -> @Sendable () -> Void {
        let cancelled = DispatchSemaphore(value: 0)
        let end = DispatchTime.now() + .milliseconds(Int(clamping: max(0, milliseconds)))
        Thread.detachNewThread { if cancelled.wait(timeout: end) == .timedOut { action() } }
        return { cancelled.signal() }
    }

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

/// A moment after which a call fails, by a clock that is never set.
package struct Deadline: Sendable, Comparable {
    private let nanoseconds: UInt64

    /// The moment in a number of milliseconds from now.
    package init(in milliseconds: Int64) {
        // Longer than any caller waits, and no overflow.
        let wait = UInt64(min(max(0, milliseconds), 1 << 40)) * 1_000_000
        nanoseconds = DispatchTime.now().uptimeNanoseconds + wait
    }

    /// The end of a pause that begins now and is ten times as long as what has begun at a moment.
    static func afterPause(since start: Deadline) -> Deadline {
        let now = Deadline(in: 0)
        return Deadline(nanoseconds: now.nanoseconds &+ 10 &* (now.nanoseconds &- start.nanoseconds))
    }

    private init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    var isOver: Bool { DispatchTime.now().uptimeNanoseconds >= nanoseconds }

    /// The milliseconds until then; 0 if it has passed.
    package var remaining: Int64 {
        let now = DispatchTime.now().uptimeNanoseconds
        return now >= nanoseconds ? 0 : Int64(clamping: (nanoseconds - now + 999_999) / 1_000_000)
    }

    /// Blocks the thread for 8 ms, or throws `.busy` if it is past the moment.
    func pause() throws(StoreError) {
        if remaining == 0 { throw .busy }
        poll(nil, 0, 8)
    }

    /// Lets other threads run while a condition holds, for so long at the most.
    static func giveWay(microseconds: UInt64, while isWaiting: () -> Bool) {
        let end = DispatchTime.now().uptimeNanoseconds + microseconds * 1000
        while isWaiting(), DispatchTime.now().uptimeNanoseconds < end { sched_yield() }
    }

    package static func < (a: Deadline, b: Deadline) -> Bool { a.nanoseconds < b.nanoseconds }
}

extension Int64 {
    /// Returns the sum, or the largest or smallest number if that is out of range.
    @usableFromInline
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, isOut) = addingReportingOverflow(other)
        return isOut ? (other < 0 ? .min : .max) : sum
    }

    /// Returns the difference, or the largest or smallest number if that is out of range.
    @usableFromInline
    package func subtractingSaturated(_ other: Int64) -> Int64 {
        let (difference, isOut) = subtractingReportingOverflow(other)
        return isOut ? (other < 0 ? .max : .min) : difference
    }
}
