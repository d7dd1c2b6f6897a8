public import Foundation

/// How long an entry is served after it was written.
///
/// An entry precisely this old is served, an older one is not. An age is rounded to the nearest millisecond; a positive
/// one is at least one millisecond, zero and negative ones mean that everything is over, and an infinite one is
/// ``unlimited``. Not-a-number is refused where the age is used.
public struct MaxAge: Hashable, Sendable {
    /// The rule in milliseconds.
    @usableFromInline package let rule: AgeRule

    /// Whether the age was made from a number; one that was not is refused where it is used.
    package let isNumber: Bool

    private init(rule: AgeRule, isNumber: Bool = true) {
        self.rule = rule
        self.isNumber = isNumber
    }

    private init(milliseconds: Double) {
        guard !milliseconds.isNaN else {
            self.init(rule: AgeRule(), isNumber: false)
            return
        }
        let rounded = SystemClock.saturated(milliseconds.rounded())
        self.init(rule: AgeRule(maximum: milliseconds > 0 ? max(1, rounded) : 0))
    }

    /// An age in milliseconds.
    public static func milliseconds(_ milliseconds: Double) -> MaxAge { MaxAge(milliseconds: milliseconds) }

    /// An age in seconds.
    public static func seconds(_ seconds: Double) -> MaxAge { MaxAge(milliseconds: seconds * 1000) }

    /// An age in minutes.
    public static func minutes(_ minutes: Double) -> MaxAge { MaxAge(milliseconds: minutes * 60_000) }

    /// An age in hours.
    public static func hours(_ hours: Double) -> MaxAge { MaxAge(milliseconds: hours * 3_600_000) }

    /// An age in days of 24 hours.
    public static func days(_ days: Double) -> MaxAge { MaxAge(milliseconds: days * 86_400_000) }

    /// An age in weeks of 7 days.
    public static func weeks(_ weeks: Double) -> MaxAge { MaxAge(milliseconds: weeks * 604_800_000) }

    /// An age as Foundation counts it, in seconds.
    public static func timeInterval(_ interval: TimeInterval) -> MaxAge { .seconds(interval) }

    /// An age as the standard library counts it.
    public static func duration(_ duration: Duration) -> MaxAge {
        guard duration > .zero else { return MaxAge(rule: AgeRule(maximum: 0)) }
        let (seconds, attoseconds) = duration.components
        let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: 1000)
        let part = (attoseconds + 500_000_000_000_000) / 1_000_000_000_000_000
        let (sum, isAlsoTooLong) = whole.addingReportingOverflow(part)
        return MaxAge(rule: AgeRule(maximum: isTooLong || isAlsoTooLong ? .max : max(1, sum)))
    }

    /// Served until this moment and not after, whenever the entry was written; later entries are over at once.
    public static func until(_ date: Date) -> MaxAge {
        guard !date.timeIntervalSince1970.isNaN else { return MaxAge(rule: AgeRule(), isNumber: false) }
        return MaxAge(rule: AgeRule(deadline: SystemClock.milliseconds(of: date)))
    }

    /// Served for ever; no clock of the caller's is read for it.
    public static var unlimited: MaxAge { MaxAge(rule: AgeRule()) }

    /// The same age, counted from the last read instead of the last write: each read restarts it.
    public var sinceLastAccess: MaxAge {
        MaxAge(
            rule: AgeRule(maximum: rule.maximum, deadline: rule.deadline, isSliding: true),
            isNumber: isNumber)
    }
}
