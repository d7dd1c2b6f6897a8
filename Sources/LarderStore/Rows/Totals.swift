/// The totals of a cache, and what is known of the ends of its rows.
struct RowCount: Sendable {
    var totals = Totals()
    /// A moment before which no row expires.
    var firstEnd = Int64.max
    /// A Boolean value that indicates whether no other store has committed since the rows were counted.
    var isExact = true
    /// A Boolean value that indicates whether `firstEnd` is that of the rows, and not only that of later writes.
    var knowsEnds = true

    mutating func note(end: Int64) { firstEnd = min(firstEnd, end) }
}

/// A number of entries and their bytes.
package struct Totals: Hashable, Sendable {
    package var count: Int64 = 0
    package var size: Int64 = 0

    package init(count: Int64 = 0, size: Int64 = 0) { (self.count, self.size) = (count, size) }

    /// Sums of damaged rows end at the largest number.
    static func += (a: inout Totals, b: Totals) {
        a.count = a.count.addingSaturated(b.count)
        a.size = a.size.addingSaturated(b.size)
    }

    static func -= (a: inout Totals, b: Totals) {
        a.count = a.count.subtractingSaturated(b.count)
        a.size = a.size.subtractingSaturated(b.size)
    }

    static func - (a: Totals, b: Totals) -> Totals {
        var difference = a
        difference -= b
        return difference
    }
}
