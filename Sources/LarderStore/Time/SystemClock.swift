public import Foundation

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// The clock of everything that programs see: ages, events, times in listings.
///
/// It is the only place that reads the time of day. A ``Deadline`` and a link to a server have clocks that are never set.
///
/// Moments are milliseconds since 1970, rounded to the nearest once, here; all other code compares integers.
@usableFromInline
package enum SystemClock {
    /// The maximum number of milliseconds by which the coarse clock lags behind the exact one.
    ///
    /// The kernel updates it once a tick, 10 ms at its slowest (100 Hz); the rest is margin.
    @inlinable package static var coarseLag: Int64 { 20 }

    /// Returns the current time, to the nearest millisecond.
    @usableFromInline
    package static func now() -> Int64 {
        read(CLOCK_REALTIME)
    }

    /// Returns the current time, or up to ``coarseLag`` milliseconds earlier, never later, at an eighth of the cost of
    /// ``now()``.
    ///
    /// Only Linux has such a clock for the time of day; on other systems it is the exact one.
    @usableFromInline
    package static func coarseNow() -> Int64 {
        #if os(Linux)
        read(CLOCK_REALTIME_COARSE)
        #else
        read(CLOCK_REALTIME)
        #endif
    }

    /// Returns the seconds since 1970, rounded down, which costs less than ``coarseNow()``.
    ///
    /// It may lag as that one does.
    @usableFromInline
    package static func second() -> Int64 { Int64(time(nil)) }

    /// Returns the current time, in the form of a caller's clock.
    @Sendable package static func date() -> Date { Date() }

    /// Returns a moment of a caller's clock, to the nearest millisecond, clamped to the range of `Int64`.
    @usableFromInline
    package static func milliseconds(of date: Date) -> Int64 {
        saturated((date.timeIntervalSince1970 * 1000).rounded())
    }

    /// Returns the moment as a date.
    package static func date(of milliseconds: Int64) -> Date {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000)
    }

    /// Returns the nearest `Int64`; 0 for not-a-number, so that a caller's broken clock cannot trap.
    package static func saturated(_ milliseconds: Double) -> Int64 {
        if milliseconds.isNaN { return 0 }
        if milliseconds >= 0x1p63 { return .max }
        if milliseconds < -0x1p63 { return .min }
        return Int64(milliseconds)
    }

    /// Nanoseconds of a clock that is never set, for how long something takes.
    package static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Nanoseconds of the clock of a test, which counts milliseconds, or of one that is never set.
    static func nanoseconds(of manual: (@Sendable () -> Int64)?) -> Int64 {
        if let manual { manual().multipliedReportingOverflow(by: 1_000_000).partialValue } else { nanoseconds() }
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1000 + (Int64(time.tv_nsec) + 500_000) / 1_000_000
    }
}
