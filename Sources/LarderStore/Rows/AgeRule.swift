/// The rule by which entries of a cache expire.
///
/// All moments are milliseconds since 1970.
///
/// An entry exactly as old as the maximum is served, an older one is not.
package enum AgeRule: Hashable, Sendable {
    case unlimited
    /// A number of milliseconds since the write.
    case sinceWrite(Int64)
    /// A number of milliseconds since the last access.
    case sinceAccess(Int64)
    /// Until a moment, whenever the entry was written.
    case until(Int64)

    /// Returns whether an entry has expired at `now`.
    ///
    /// A write in the future counts as one at `now`.
    package func isExpired(writtenAt: Int64, accessedAt: Int64, now: Int64) -> Bool {
        switch self {
        case .unlimited: false
        case .sinceWrite(let age): Self.isOlder(writtenAt, than: age, now: now)
        case .sinceAccess(let age): Self.isOlder(max(writtenAt, accessedAt), than: age, now: now)
        case .until(let end): now > end
        }
    }

    private static func isOlder(_ start: Int64, than age: Int64, now: Int64) -> Bool {
        age <= 0 || (now > start && UInt64(bitPattern: now &- start) > UInt64(age))
    }

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
