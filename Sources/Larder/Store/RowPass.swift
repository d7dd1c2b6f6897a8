internal import LarderSQLite

/// A pass over the rows of a sub-cache in key order, a page at a time.
///
/// Between two pages it holds nothing: no lock, no statement, no transaction.
package struct RowPass: Sendable {
    private var end: PassEnd?
    private var cursor: StoredKey?
    private var hasBegun = false
    private var isOver = false

    /// The bytes of values that a page holds, one value at least.
    private static let bytesPerPage = 1 << 18

    package init() {}

    /// The next page; empty at the end, and from then on.
    package mutating func nextRows(of ledger: RowLedger) throws(CacheError) -> [ListedRow] {
        try next(of: ledger, key: \.key) { (c, id, cursor, end) throws(SQLiteError) in
            try c.rows(id, after: cursor, to: end, bytes: Self.bytesPerPage)
        }
    }

    /// The next page without bytes.
    package mutating func nextFacts(of ledger: RowLedger) throws(CacheError) -> [ListedFacts] {
        try next(of: ledger, key: \.key) { (c, id, cursor, end) throws(SQLiteError) in
            try c.facts(id, after: cursor, to: end)
        }
    }

    /// The next page of keys, with what their rows say unless every entry counts.
    package mutating func nextKeys(of ledger: RowLedger, _ rule: AgeRule) throws(CacheError) -> [ListedKey] {
        let isPlain = rule.isUnlimited && !ledger.knowsUnreadable
        return try next(of: ledger, key: \.key) { (c, id, cursor, end) throws(SQLiteError) in
            if isPlain, let keys = try c.keys(id, after: cursor, to: end) { return keys }
            return try c.facts(id, after: cursor, to: end).map { ListedKey(key: $0.key, facts: $0.facts) }
        }
    }

    private mutating func next<Row: Sendable>(
        of ledger: RowLedger, key: (Row) -> StoredKey,
        _ read: @escaping @Sendable (inout Connection, Int64, StoredKey?, PassEnd) throws(SQLiteError) -> [Row]
    ) throws(CacheError) -> [Row] {
        if isOver { return [] }
        if !hasBegun {
            hasBegun = true
            end = try ledger.readMoment { (c, id) throws(SQLiteError) in try c.passEnd(id) } ?? nil
        }
        var page: [Row] = []
        if let end {
            let after = cursor
            page = try ledger.readMoment { (c, id) throws(SQLiteError) in try read(&c, id, after, end) } ?? []
        }
        guard let last = page.last else {
            isOver = true
            return []
        }
        cursor = key(last)
        return page
    }
}

extension RowLedger {
    /// Every row, as of one moment.
    package func allRows() throws(CacheError) -> [ListedRow] {
        try readMoment { (c, id) throws(SQLiteError) in
            guard let end = try c.passEnd(id) else { return [] }
            var rows: [ListedRow] = []
            while true {
                let page = try c.rows(id, after: rows.last?.key, to: end, bytes: .max)
                if page.isEmpty { return rows }
                rows += page
            }
        } ?? []
    }
}
