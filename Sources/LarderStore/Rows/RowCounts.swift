/// What the writer knows of the rows of each incarnation, by its id.
///
/// Rows are counted outside the writer's lock: see ``Writer/countRows(atMost:_:)``. After a commit of another store a count
/// is an estimate, which has the changes of this store alone, until the rows are counted again.
struct RowCounts {
    /// What the committed transactions have left.
    private var known: [Int64: RowCount] = [:]
    /// What the open transaction changes.
    ///
    /// It counts once it is committed.
    private var open: [(id: Int64, difference: Totals)] = []
    /// What was committed since each of the running counts has begun, by its number.
    private var recorded: [UInt: [Int64: RowCount]] = [:]
    private var lastNumber: UInt = 0
    /// The retired rows that are not deleted yet, as far as it is known.
    private(set) var retired: Int64 = 0

    /// What is known with the changes of the open transaction; nil if the rows were never counted.
    subscript(id: Int64) -> RowCount? {
        guard var count = known[id] else { return nil }
        count.totals += difference(of: id)
        return count
    }

    /// What the open transaction has added to an incarnation, less what it has removed.
    func difference(of id: Int64) -> Totals { open.first { $0.id == id }?.difference ?? Totals() }

    /// The incarnations to which the open transaction has added more rows or bytes than it has removed.
    var additions: [(id: Int64, difference: Totals)] {
        open.filter { $0.difference.count > 0 || $0.difference.size > 0 }
    }

    /// The number of rows in the file, as far as it is known.
    var rowCount: Int64 { known.values.reduce(retired) { $0.addingSaturated($1.totals.count) } }

    // MARK: Changes

    mutating func add(_ difference: Totals, to id: Int64) {
        if let place = open.firstIndex(where: { $0.id == id }) {
            open[place].difference += difference
        } else {
            open.append((id, difference))
        }
    }

    /// Notes when a row ends that was written.
    ///
    /// If the transaction is undone, the moment is only too early.
    mutating func note(end: Int64, of id: Int64) {
        if end == .max { return }
        for number in recorded.keys { recorded[number]?[id, default: RowCount()].note(end: end) }
        guard var count = known[id], end < count.firstEnd else { return }
        count.note(end: end)
        known[id] = count
    }

    /// Notes an incarnation that has no row yet.
    mutating func begin(_ id: Int64) { known[id] = RowCount() }

    /// Notes that an incarnation was retired.
    mutating func retire(_ id: Int64) {
        retired = retired.addingSaturated(self[id]?.totals.count ?? 0)
        known[id] = nil
    }

    /// Notes that retired rows were deleted.
    mutating func noteReclaimed(_ count: Int) { retired = max(0, retired - Int64(count)) }

    /// Notes that no retired row is left.
    mutating func noteAllReclaimed() { retired = 0 }

    /// Notes that the rows of an incarnation end at other moments than before, or that the first of them were removed.
    mutating func forgetEnds(of id: Int64) {
        known[id]?.firstEnd = .max
        known[id]?.knowsEnds = false
        // A running count has the earlier ends.
        for number in recorded.keys { recorded[number]?[id, default: RowCount()].knowsEnds = false }
    }

    mutating func commit() {
        // An iteration over the array itself would keep a copy of it.
        for index in open.indices {
            let (id, difference) = open[index]
            for number in recorded.keys { recorded[number]?[id, default: RowCount()].totals += difference }
            guard var count = known[id] else { continue }
            count.totals += difference
            known[id] = count
        }
        open.removeAll(keepingCapacity: true)
    }

    mutating func rollBack() { open.removeAll(keepingCapacity: true) }

    /// Makes all counts estimates: another store has committed, or it is not known whether this one has.
    mutating func becomeEstimates() { for id in known.keys { known[id]?.isExact = false } }

    // MARK: Counting

    var isCounting: Bool { !recorded.isEmpty }

    /// Begins to record changes, and returns the number of the count.
    mutating func beginCount() -> UInt {
        lastNumber += 1
        recorded[lastNumber] = [:]
        return lastNumber
    }

    /// Takes over what was counted at the moment of ``beginCount()``, with the changes since.
    ///
    /// - Parameter isExact: A Boolean value that indicates whether no other store has committed since.
    mutating func endCount(_ number: UInt, _ counted: [Int64: RowCount], isExact: Bool) {
        let changes = recorded.removeValue(forKey: number) ?? [:]
        for (id, count) in counted {
            var count = count
            if let changes = changes[id] {
                count.totals += changes.totals
                count.note(end: changes.firstEnd)
                count.knowsEnds = changes.knowsEnds
            }
            count.isExact = isExact
            known[id] = count
        }
    }

    /// Takes over a count of an incarnation, since which no store has committed.
    mutating func set(_ count: RowCount, of id: Int64) { known[id] = count }
}

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
