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
    /// As since the write, but up to so many thousandths of the age earlier, by the id of the row and the moment.
    case jittered(Int64, thousandths: Int64)

    /// Returns the last moment at which an entry is served; `.max` if it never expires, a moment before the
    /// write if its age is 0 or less.
    ///
    /// - Parameter id: The id of the row, so that each process finds the same end; 0 if there is none yet, for the latest one.
    package func end(writtenAt: Int64, accessedAt: Int64, id: Int64) -> Int64 {
        switch self {
        case .unlimited: .max
        case .sinceWrite(let age): Self.end(writtenAt, age)
        case .jittered(let age, let thousandths):
            Self.end(writtenAt, age - Self.jitter(age, thousandths, id == 0 ? 0 : Self.share(of: id, writtenAt)))
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
        case .sinceWrite(let age), .sinceAccess(let age), .jittered(let age, _): age <= 0
        }
    }

    /// The rule of one entry, whose jitter is drawn at random: for what stores its end, or has no revision.
    package var drawn: AgeRule {
        guard case .jittered(let age, let thousandths) = self else { return self }
        return .sinceWrite(age - Self.jitter(age, thousandths, .random(in: 0..<1)))
    }

    /// The time by which an entry ends earlier; at least a millisecond of its age is left.
    private static func jitter(_ age: Int64, _ thousandths: Int64, _ share: Double) -> Int64 {
        min(max(0, age - 1), Int64(Double(max(0, age)) * Double(thousandths) / 1000 * share))
    }

    /// Spreads numbers that follow each other between 0 and 1.
    private static func share(of id: Int64, _ moment: Int64) -> Double {
        var mixed = (UInt64(bitPattern: id) ^ (UInt64(bitPattern: moment) << 24)) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Double((mixed ^ (mixed >> 31)) >> 11) * 0x1p-53
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
        case .jittered(let age, let thousandths): (4, age << 10 | thousandths)
        }
    }

    init(kind: Int64, milliseconds: Int64) {
        self =
            switch kind {
            case 1: .sinceWrite(milliseconds)
            case 2: .sinceAccess(milliseconds)
            case 3: .until(milliseconds)
            case 4: .jittered(milliseconds >> 10, thousandths: min(milliseconds & 1023, 1000))
            default: .unlimited
            }
    }
}
