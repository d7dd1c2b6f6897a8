/// The totals of a cache, and what is known of the ends of its rows.
struct RowCount: Sendable {
    var totals = Totals()
    /// A moment before which no row expires.
    var firstEnd = Int64.max

    mutating func note(end: Int64) { firstEnd = min(firstEnd, end) }
}

/// A number of entries and their bytes.
package struct Totals: Hashable, Sendable {
    package var count: Int64 = 0
    package var size: Int64 = 0

    package init(count: Int64 = 0, size: Int64 = 0) { (self.count, self.size) = (count, size) }

    static func += (a: inout Totals, b: Totals) {
        a.count += b.count
        a.size += b.size
    }
}
