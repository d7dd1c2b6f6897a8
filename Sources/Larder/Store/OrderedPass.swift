internal import LarderSQLite

/// A pass over the rows of a sub-cache in one of several orders, as of its start, a page at a time.
///
/// Between two pages it holds nothing but some ids. An entry whose place changes meanwhile comes once still, at the end
/// if its old place was not reached.
package struct OrderedPass: Sendable {
    /// Nil for the order of keys.
    private let order: RowOrder?
    private let isDescending: Bool
    private let prefix: String?
    /// The number of the pass's start on the scale of revisions and uses.
    private let stamp: Int64

    private var bounds: KeyBounds
    private var lastID: Int64?
    private var isOver = false

    // By key
    private var isFirst = true

    // By something else
    private var place: RowPlace
    private var places: ArraySlice<RowPlace> = []
    private var hasMoved = false
    private var seen = SeenIDs()

    /// The bytes of values that a page holds, one value at least.
    private static let bytesPerPage = 1 << 18
    /// How many places are looked up by one scan over all entries.
    private static let placesPerScan = 20_000
    private let placesPerScan: Int

    /// - Parameters:
    ///   - stamp: A number above all that were given to writes and uses, and below all that will be.
    ///   - limit: How many rows are wanted.
    package init(_ order: RowOrder?, descending: Bool, prefix: String?, stamp: Int64, limit: Int?) {
        self.order = order
        self.prefix = prefix
        self.stamp = stamp
        isDescending = descending
        bounds = prefix.map { KeyBounds(prefix: $0) } ?? KeyBounds(lower: .integer(.min), upper: .integer(.max))
        place = descending ? .afterAll : .beforeAll
        placesPerScan = min(Self.placesPerScan, limit ?? .max) + 64
    }

    /// The next page; empty at the end, and from then on.
    package mutating func nextRows(of ledger: RowLedger) throws(CacheError) -> [ListedRow] {
        while !isOver {
            guard let lastID = try begun(ledger) else { break }
            let page: [ListedRow]?
            if let order {
                page = try orderedPage(order, ledger, lastID)
            } else {
                page = try keyPage(ledger, lastID)
            }
            guard let page else { break }
            let rows = page.filter { isWanted($0.key) }
            if !rows.isEmpty { return rows }
        }
        isOver = true
        return []
    }

    /// The greatest id that there was at the start; nil if there was none.
    private mutating func begun(_ ledger: RowLedger) throws(CacheError) -> Int64? {
        if let lastID { return lastID }
        guard let end = try ledger.readMoment({ (c, id) throws(SQLiteError) in try c.passEnd(id) }) ?? nil else {
            return nil
        }
        if prefix == nil { bounds = KeyBounds(lower: bounds.lower, upper: end.key) }
        lastID = end.id
        return end.id
    }

    private func isWanted(_ key: StoredKey) -> Bool {
        guard let prefix else { return true }
        guard case .text(let text) = key else { return false }
        return text.utf8.starts(with: prefix.utf8)
    }

    // MARK: - By key

    private mutating func keyPage(_ ledger: RowLedger, _ lastID: Int64) throws(CacheError) -> [ListedRow]? {
        let (bounds, isFirst, isDescending) = (bounds, isFirst, isDescending)
        let page =
            try ledger.readMoment { (c, id) throws(SQLiteError) in
                try c.rows(
                    id, bounds, isFirst: isFirst, descending: isDescending, upToID: lastID, bytes: Self.bytesPerPage)
            } ?? []
        guard let last = page.last else { return nil }
        self.isFirst = false
        self.bounds =
            isDescending
            ? KeyBounds(lower: bounds.lower, upper: last.key) : KeyBounds(lower: last.key, upper: bounds.upper)
        return page
    }

    // MARK: - By something else

    private mutating func orderedPage(
        _ order: RowOrder, _ ledger: RowLedger, _ lastID: Int64
    ) throws(CacheError) -> [ListedRow]? {
        if places.isEmpty, try !nextPlaces(order, ledger, lastID) { return nil }
        let places = places
        let (rows, count) =
            try ledger.readMoment { (c, id) throws(SQLiteError) -> ([ListedRow], Int) in
                var rows: [ListedRow] = []
                var (count, total) = (0, 0)
                for place in places where total < Self.bytesPerPage && rows.count < Connection.rowsPerPage {
                    count += 1
                    guard let row = try c.row(id, id: place.id) else { continue }
                    rows.append(row)
                    total += Int(clamping: row.row.facts.size)
                }
                return (rows, count)
            } ?? ([], places.count)
        var unseen: [ListedRow] = []
        for row in rows where seen.insert(row.row.facts.id) { unseen.append(row) }
        self.places = self.places.dropFirst(count)
        return unseen
    }

    /// Looks up the next places; false if there are none.
    private mutating func nextPlaces(
        _ order: RowOrder, _ ledger: RowLedger, _ lastID: Int64
    ) throws(CacheError) -> Bool {
        while true {
            let (bounds, place, stamp, limit) = (bounds, place, stamp, placesPerScan)
            let (isDescending, hasMoved) = (isDescending, hasMoved)
            let found =
                try ledger.readMoment { (c, id) throws(SQLiteError) in
                    hasMoved
                        ? try c.movedPlaces(
                            id, order, after: place, upToID: lastID, stamp: stamp, bounds, limit: limit)
                        : try c.places(
                            id, order, descending: isDescending, after: place, upToID: lastID, stamp: stamp, bounds,
                            limit: limit)
                } ?? []
            if let last = found.last {
                self.place = last
                places = found[...]
                return true
            }
            if hasMoved { return false }
            self.hasMoved = true
            self.place = .beforeAll
        }
    }
}

/// Which ids a pass has given, a bit each.
private struct SeenIDs: Sendable {
    private var words: [Int64: UInt64] = [:]

    /// Adds an id; false if it is there.
    mutating func insert(_ id: Int64) -> Bool {
        let bit: UInt64 = 1 << UInt64(id & 63)
        let word = words[id >> 6, default: 0]
        if word & bit != 0 { return false }
        words[id >> 6] = word | bit
        return true
    }
}
