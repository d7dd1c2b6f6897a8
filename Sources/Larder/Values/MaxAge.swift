public import Foundation
package import LarderStore

/// The maximum age of an entry, after which it has expired.
///
/// An entry exactly this old is served, an older one is not. An age is rounded to the nearest millisecond, and a
/// positive one is at least one millisecond. With zero or a negative age, every entry has expired. An infinite age is
/// ``unlimited``. Not-a-number throws where the age is used.
public struct MaxAge: Hashable, Sendable {
    /// The rule in milliseconds.
    package let rule: AgeRule

    /// A Boolean value that indicates whether the age was created from a number.
    ///
    /// If not, it throws where it is used.
    package let isNumber: Bool

    private init(rule: AgeRule, isNumber: Bool = true) {
        self.rule = rule
        self.isNumber = isNumber
    }

    private init(milliseconds: Double) {
        guard !milliseconds.isNaN else {
            self.init(rule: .unlimited, isNumber: false)
            return
        }
        let rounded = SystemClock.saturated(milliseconds.rounded())
        self.init(age: milliseconds > 0 ? max(1, rounded) : 0)
    }

    private init(age: Int64) { self.init(rule: age == .max ? .unlimited : .sinceWrite(age)) }

    /// Returns an age in milliseconds.
    ///
    /// - Parameter milliseconds: The number of milliseconds.
    /// - Returns: The age.
    public static func milliseconds(_ milliseconds: Double) -> MaxAge { MaxAge(milliseconds: milliseconds) }

    /// Returns an age in seconds.
    ///
    /// - Parameter seconds: The number of seconds.
    /// - Returns: The age.
    public static func seconds(_ seconds: Double) -> MaxAge { MaxAge(milliseconds: seconds * 1000) }

    /// Returns an age in minutes.
    ///
    /// - Parameter minutes: The number of minutes.
    /// - Returns: The age.
    public static func minutes(_ minutes: Double) -> MaxAge { MaxAge(milliseconds: minutes * 60_000) }

    /// Returns an age in hours.
    ///
    /// - Parameter hours: The number of hours.
    /// - Returns: The age.
    public static func hours(_ hours: Double) -> MaxAge { MaxAge(milliseconds: hours * 3_600_000) }

    /// Returns an age in days of 24 hours.
    ///
    /// - Parameter days: The number of days.
    /// - Returns: The age.
    public static func days(_ days: Double) -> MaxAge { MaxAge(milliseconds: days * 86_400_000) }

    /// Returns an age in weeks of 7 days.
    ///
    /// - Parameter weeks: The number of weeks.
    /// - Returns: The age.
    public static func weeks(_ weeks: Double) -> MaxAge { MaxAge(milliseconds: weeks * 604_800_000) }

    /// Returns an age of a Foundation time interval.
    ///
    /// - Parameter interval: The number of seconds.
    /// - Returns: The age.
    public static func timeInterval(_ interval: TimeInterval) -> MaxAge { .seconds(interval) }

    /// Returns an age of a duration.
    ///
    /// - Parameter duration: The duration.
    /// - Returns: The age.
    public static func duration(_ duration: Duration) -> MaxAge {
        guard duration > .zero else { return MaxAge(age: 0) }
        let (seconds, attoseconds) = duration.components
        let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: 1000)
        let part = (attoseconds + 500_000_000_000_000) / 1_000_000_000_000_000
        let (sum, isAlsoTooLong) = whole.addingReportingOverflow(part)
        return MaxAge(age: isTooLong || isAlsoTooLong ? .max : max(1, sum))
    }

    /// Returns an age that ends at a date, whenever the entry was written.
    ///
    /// The entry is served until the date. An entry that is written later has expired at once.
    ///
    /// - Parameter date: The last moment at which the entry is served.
    /// - Returns: The age.
    public static func until(_ date: Date) -> MaxAge {
        guard !date.timeIntervalSince1970.isNaN else { return MaxAge(rule: .unlimited, isNumber: false) }
        let end = SystemClock.milliseconds(of: date)
        return MaxAge(rule: end == .max ? .unlimited : .until(end))
    }

    /// An age without a limit: entries never expire, and a read calls no clock.
    public static var unlimited: MaxAge { MaxAge(rule: .unlimited) }

    /// This age, counted from the last access instead of the last write: each read restarts it.
    public var sinceLastAccess: MaxAge {
        // Without an age there is nothing to restart, so equal rules are equal values.
        switch rule {
        case .sinceWrite(let age) where age > 0, .jittered(let age, _): MaxAge(rule: .sinceAccess(age))
        default: self
        }
    }

    /// This age, but each entry ends up to a share of it earlier, so that entries of one moment do not expire at one moment.
    ///
    /// By the age of a cache, the end of an entry follows from its row and the moment of its write: each process finds the same one, and
    /// nothing more is stored. An age of one entry is drawn when it is written. An age since the last access and one until a date have no jitter.
    ///
    /// - Parameter share: The share, from 0 to 1, to the thousandth.
    /// - Returns: The age.
    public func jittered(_ share: Double) -> MaxAge {
        let thousandths = share > 0 ? Int64((min(share, 1) * 1000).rounded()) : 0
        return switch rule {
        // The two numbers are stored as one.
        case .sinceWrite(let age) where age > 0 && age < 1 << 52 && thousandths > 0:
            MaxAge(rule: .jittered(age, thousandths: thousandths))
        case .jittered(let age, _): MaxAge(age: age).jittered(share)
        default: self
        }
    }

    /// An age without jitter, of which that was drawn.
    package var drawn: MaxAge { MaxAge(rule: rule.drawn, isNumber: isNumber) }

    /// Throws if the age was created from not-a-number.
    func requireNumber(_ owner: @autoclosure () -> String) throws(CacheError) {
        if isNumber { return }
        throw CacheError(
            .invalidConfiguration,
            "The maximum age of \(owner()) was created from not-a-number. Use a number, or `.unlimited`.")
    }
}

extension MaxAge: CustomStringConvertible {
    /// The age in English, to the millisecond: "7 days", "1.5 seconds since the last access", "unlimited".
    public var description: String {
        if !isNumber { return "not a number" }
        return switch rule {
        case .unlimited: "unlimited"
        case .sinceWrite(let age): Self.text(age)
        case .jittered(let age, let thousandths):
            Self.text(age) + ", up to \(thousandths / 10)\(Self.fraction(thousandths % 10 * 100)) % earlier"
        case .sinceAccess(let age): Self.text(age) + " since the last access"
        case .until(let end): "until " + Self.moment(end)
        }
    }

    /// Returns a number of milliseconds in the largest unit that divides it, or else in seconds.
    private static func text(_ milliseconds: Int64) -> String {
        for (unit, length) in [("day", 86_400_000 as Int64), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)]
        where milliseconds > 0 && milliseconds % length == 0 {
            let count = milliseconds / length
            return count == 1 ? "1 \(unit)" : "\(count) \(unit)s"
        }
        return "\(milliseconds / 1000)\(fraction(milliseconds % 1000)) seconds"
    }

    /// Returns a moment of the Gregorian calendar in UTC, in the form of ISO 8601.
    private static func moment(_ milliseconds: Int64) -> String {
        // Rounded down, so that the rest is a positive part of a second, which the format would not write exactly.
        let seconds = milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0)
        guard years.contains(seconds) else { return "\(milliseconds) ms after 1970-01-01T00:00:00Z" }
        let text = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
        return "\(text.dropLast())\(fraction(milliseconds - seconds * 1000))Z"
    }

    /// The seconds of the years 1583 to 9999, which the format writes with four digits in the Gregorian calendar.
    private static let years: ClosedRange<Int64> = -12_212_553_600...253_402_300_799

    /// Returns a number of thousandths after a decimal point, without zeros at the end.
    private static func fraction(_ thousandths: Int64) -> String {
        if thousandths == 0 { return "" }
        var digits = String(1000 + thousandths).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return "." + digits
    }
}
