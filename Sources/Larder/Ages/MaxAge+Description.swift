internal import Foundation
internal import LarderStore

extension MaxAge: CustomStringConvertible {
    /// The age in English, to the millisecond: "7 days", "1.5 seconds since the last access", "unlimited".
    public var description: String {
        if !isNumber { return "not a number" }
        return switch rule {
        case .unlimited: "unlimited"
        case .sinceWrite(let age): Self.text(age)
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
