public import Foundation

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// The only place where the system's clock is read.
///
/// Moments are milliseconds since 1970, rounded to the nearest once, here; everything behind compares integers.
@usableFromInline
package enum SystemClock {
    /// How far the coarse clock may lag behind the exact one.
    ///
    /// The kernel renews it once a tick, 10 ms at its slowest (100 Hz); the rest is margin.
    @inlinable package static var coarseLag: Int64 { 20 }

    /// Now, to the nearest millisecond.
    @usableFromInline
    package static func now() -> Int64 {
        read(CLOCK_REALTIME)
    }

    /// Now, or up to ``coarseLag`` milliseconds earlier, and never later: an eighth of the price of ``now()``.
    ///
    /// Other systems than Linux have no such clock for the time of day, so it is the exact one there.
    @usableFromInline
    package static func coarseNow() -> Int64 {
        #if os(Linux)
        read(CLOCK_REALTIME_COARSE)
        #else
        read(CLOCK_REALTIME)
        #endif
    }

    /// Milliseconds since some moment, by a clock that goes on while the machine sleeps, and that nobody sets.
    package static func uptime() -> Int64 {
        #if os(Linux)
        read(CLOCK_BOOTTIME)
        #else
        read(CLOCK_MONOTONIC_RAW)
        #endif
    }

    /// Now, in the form in which a caller would give a clock.
    @Sendable package static func date() -> Date { Date() }

    /// A moment of a clock of the caller's, to the nearest millisecond; what no `Int64` holds stops at its ends.
    @usableFromInline
    package static func milliseconds(of date: Date) -> Int64 {
        saturated((date.timeIntervalSince1970 * 1000).rounded())
    }

    /// The moment as a date.
    package static func date(of milliseconds: Int64) -> Date {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000)
    }

    /// The nearest `Int64`; not-a-number is 0, so that a broken clock of the caller's cannot trap.
    package static func saturated(_ milliseconds: Double) -> Int64 {
        if milliseconds.isNaN { return 0 }
        if milliseconds >= 0x1p63 { return .max }
        if milliseconds < -0x1p63 { return .min }
        return Int64(milliseconds)
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1000 + (Int64(time.tv_nsec) + 500_000) / 1_000_000
    }
}
