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

    private let isManual: Bool

    package init(now: @escaping @Sendable () -> Int64, isManual: Bool = false, wake: @escaping Wake) {
        (self.now, self.isManual, self.wake) = (now, isManual, wake)
    }

    /// Creates the time of a store from that of its manager.
    ///
    /// - Parameter now: The clock, if it is another one.
    package init(_ timekeeper: Timekeeper, now: (@Sendable () -> Int64)? = nil) {
        self.init(now: now ?? timekeeper.now, isManual: timekeeper.isManual) { delay, action in
            let wakeup = timekeeper.wake(.milliseconds(delay), action)
            return { wakeup.cancel() }
        }
    }

    /// A moment, to measure how long something takes.
    package func nanoseconds() -> Int64 { SystemClock.nanoseconds(of: isManual ? now : nil) }

    /// The time of the system.
    ///
    /// Its clock can lag by up to 10 ms on Linux, and is cheap to read.
    package static let system = StoreTime(.system, now: { SystemClock.coarseNow() })
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
