/// The rule by which entries of a cache expire.
///
/// All moments are milliseconds since 1970.
///
/// An entry exactly as old as the maximum is served, an older one is not.
@usableFromInline
package enum AgeRule: Hashable, Sendable {
    case unlimited
    case sinceWrite(Int64)
    case sinceAccess(Int64)
    /// Until a moment, whenever the entry was written.
    case until(Int64)

    /// Returns the last moment at which an entry is served; `.max` if it never expires, a moment before the
    /// write if its age is 0 or less.
    package func end(writtenAt: Int64, accessedAt: Int64) -> Int64 {
        switch self {
        case .unlimited: .max
        case .sinceWrite(let age): Self.end(writtenAt, age)
        case .sinceAccess(let age): Self.end(max(writtenAt, accessedAt), age)
        case .until(let end): end
        }
    }

    /// A Boolean value that indicates whether no clock is needed to know that an entry is served.
    @inlinable package var isUnlimited: Bool { if case .unlimited = self { true } else { false } }

    /// A Boolean value that indicates whether an age is zero or less, so that nothing is ever served.
    package var isOverAtOnce: Bool {
        switch self {
        case .unlimited, .until: false
        case .sinceWrite(let age), .sinceAccess(let age): age <= 0
        }
    }

    /// The milliseconds by which each access moves the end; nil if none does.
    package var slidingAge: Int64? { if case .sinceAccess(let age) = self { age } else { nil } }

    /// Returns the rule of an entry in a cache with this rule: its own, if it has one.
    func of(expiresAt: Int64?, slidingAge: Int64?) -> AgeRule {
        slidingAge.map { .sinceAccess($0) } ?? expiresAt.map { .until($0) } ?? self
    }

    private static func end(_ start: Int64, _ age: Int64) -> Int64 { start.addingSaturated(age > 0 ? age : -1) }

    /// The rule as two columns: the kind, and milliseconds.
    var stored: (kind: Int64, milliseconds: Int64) {
        switch self {
        case .unlimited: (0, 0)
        case .sinceWrite(let age): (1, age)
        case .sinceAccess(let age): (2, age)
        case .until(let end): (3, end)
        }
    }

    init(kind: Int64, milliseconds: Int64) {
        self =
            switch kind {
            case 1: .sinceWrite(milliseconds)
            case 2: .sinceAccess(milliseconds)
            case 3: .until(milliseconds)
            default: .unlimited
            }
    }
}
