internal import Synchronization

/// How exactly the moment of the last access is stored.
///
/// An access within the grain of the stored moment is not written down, so that a cache that is only read writes nothing.
@usableFromInline
package final class AccessGrain: Sendable {
    /// The share of a sliding age that is its grain.
    private static let shareOfAge: Int64 = 16

    private static let withLimits: Int64 = 3_600_000
    private static let withoutLimits: Int64 = 86_400_000

    /// The longest time, in milliseconds, for which an access that is to be written down stays in memory alone.
    private static let waits: ClosedRange<Int64> = RowLedger.longestNote...600_000

    private let milliseconds = Atomic<Int64>(withoutLimits)

    /// What the options say; less than 0 where they leave the choice to the library.
    private let chosen = Atomic<Int64>(-1)

    package init() {}

    /// Sets what the options say, in milliseconds; nil leaves the choice to the library.
    package func choose(_ milliseconds: Int64?) { chosen.store(milliseconds ?? -1, ordering: .relaxed) }

    /// Finds the grain that follows from the ages of the handles and from what limits the disk.
    func adapt(to rules: [AgeRule], isLimited: Bool) {
        let chosen = chosen.load(ordering: .relaxed)
        let share = rules.filter(\.isSliding).map { $0.maximum / Self.shareOfAge }.min() ?? .max
        let found = chosen >= 0 ? chosen : min(share, isLimited ? Self.withLimits : Self.withoutLimits)
        milliseconds.store(max(0, found), ordering: .relaxed)
    }

    /// A Boolean value that indicates whether every access is written down.
    var isExact: Bool { milliseconds.load(ordering: .relaxed) == 0 }

    /// A Boolean value that indicates whether the stored moment of an entry has to be renewed after an access.
    @usableFromInline
    package func isStale(_ stored: Int64, age: StoredAge?, at moment: Int64) -> Bool {
        var grain = milliseconds.load(ordering: .relaxed)
        if let age, age.rule.isSliding { grain = min(grain, max(0, age.rule.maximum / Self.shareOfAge)) }
        return grain == 0 || moment.subtractingSaturated(stored) >= grain
    }

    /// How long an access that is to be written down may stay in memory alone, in milliseconds.
    var wait: Int64 {
        let grain = milliseconds.load(ordering: .relaxed)
        return min(max(grain / 4, Self.waits.lowerBound), Self.waits.upperBound)
    }
}
