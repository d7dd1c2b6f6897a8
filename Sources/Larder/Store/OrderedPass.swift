internal import LarderSQLite

/// An iteration over the rows of a cache in one of several orders, a page at a time.
///
/// In another order than by key it takes the ids of all rows once, at its start: 8 bytes an entry. A row that changes later
/// comes at its old place, with what it holds by then. Between two pages nothing but ids and keys is held.
package struct OrderedPass: Sendable {
    /// Nil for the order of keys.
    private let order: RowOrder?
    private let isDescending: Bool
    private let prefix: String?

    private var bounds: KeyBounds
    /// The greatest id at the start; nil before the first page.
    private var lastID: Int64?
    private var isFirst = true
    private var isDone = false
    /// The ids that are left, where the order is not that of keys.
    private var ids: ArraySlice<Int64> = []

    /// The bytes of values that a page holds, one value at least.
    private static let bytesPerPage = 1 << 18

    /// Creates an iteration that has not begun.
    package init(_ order: RowOrder?, descending: Bool, prefix: String?) {
        self.order = order
        self.prefix = prefix
        isDescending = descending
        bounds = prefix.map { KeyBounds(prefix: $0) } ?? KeyBounds(lower: .integer(.min), upper: .integer(.max))
    }

    /// Returns the next page; an empty one at the end, and from then on.
    package mutating func nextRows(of ledger: RowLedger) throws(CacheError) -> [ListedRow] {
        while !isDone {
            if lastID == nil, try !begin(ledger) { break }
            guard let page = try order == nil ? keyPage(ledger) : idPage(ledger) else { break }
            let rows = page.filter { isWanted($0.key) }
            if !rows.isEmpty { return rows }
        }
        isDone = true
        return []
    }

    /// Looks where the iteration ends; false if there is no row.
    private mutating func begin(_ ledger: RowLedger) throws(CacheError) -> Bool {
        guard let end = try ledger.readMoment({ (c, id) throws(SQLiteError) in try c.passEnd(id) }) ?? nil else {
            return false
        }
        if prefix == nil { bounds = KeyBounds(lower: bounds.lower, upper: end.key) }
        lastID = end.id
        guard let order else { return true }
        let (bounds, isDescending) = (bounds, isDescending)
        let uses = order == .accessed ? ledger.knownUses().mapValues(\.used) : [:]
        let found = try ledger.readMoment { (c, id) throws(SQLiteError) in
            try c.ids(id, order, descending: isDescending, bounds, uses)
        }
        ids = found?[...] ?? []
        return true
    }

    private func isWanted(_ key: StoredKey) -> Bool {
        guard let prefix else { return true }
        guard case .text(let text) = key else { return false }
        return text.utf8.starts(with: prefix.utf8)
    }

    private mutating func keyPage(_ ledger: RowLedger) throws(CacheError) -> [ListedRow]? {
        let (bounds, isFirst, isDescending, lastID) = (bounds, isFirst, isDescending, lastID ?? 0)
        let page =
            try ledger.readMoment { (c, id) throws(SQLiteError) in
                try c.rows(
                    id, bounds, isFirst: isFirst, descending: isDescending, upToID: lastID, bytes: Self.bytesPerPage)
            } ?? []
        guard let last = page.last?.key else { return nil }
        if !isFirst {
            let (old, new) = isDescending ? (last, bounds.upper) : (bounds.lower, last)
            try ledger.checkProgress(from: old, to: new)
        }
        self.isFirst = false
        self.bounds =
            isDescending
            ? KeyBounds(lower: bounds.lower, upper: last) : KeyBounds(lower: last, upper: bounds.upper)
        return page
    }

    private mutating func idPage(_ ledger: RowLedger) throws(CacheError) -> [ListedRow]? {
        if ids.isEmpty { return nil }
        let ids = ids
        let found = try ledger.readMoment { (c, generation) throws(SQLiteError) -> ([ListedRow], Int) in
            var rows: [ListedRow] = []
            var (count, total) = (0, 0)
            for id in ids where total < Self.bytesPerPage && rows.count < Connection.rowsPerPage {
                count += 1
                guard let row = try c.row(generation, id: id) else { continue }
                rows.append(row)
                total += Int(clamping: row.row.facts.size)
            }
            return (rows, count)
        }
        guard let (rows, count) = found else { return nil }
        self.ids = ids.dropFirst(count)
        return rows
    }
}

extension RowLedger {
    /// Throws if a page of an iteration led back: with a damaged index the same keys would come again and again.
    func checkProgress(from old: StoredKey, to new: StoredKey) throws(CacheError) {
        if old.precedes(new) { return }
        try store.onDatabase("cannot iterate over cache \"\(name)\" in") { (_) throws(SQLiteError) in
            throw .keysDoNotRise
        }
    }
}

extension SQLiteError {
    /// The keys of an index are not in their order.
    static let keysDoNotRise = SQLiteError(code: .corrupt, message: "the keys of an index do not rise")
}
