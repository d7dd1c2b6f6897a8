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
        try next(of: ledger, none: [], key: \.last?.key) { (c, id, cursor, end) throws(SQLiteError) in
            try c.rows(id, after: cursor, to: end, bytes: Self.bytesPerPage)
        }
    }

    /// The next page without bytes.
    package mutating func nextFacts(of ledger: RowLedger) throws(CacheError) -> [ListedFacts] {
        try next(of: ledger, none: [], key: \.last?.key) { (c, id, cursor, end) throws(SQLiteError) in
            try c.facts(id, after: cursor, to: end)
        }
    }

    /// The next page of keys, with what their rows say if that is needed, or if an entry has an age of its own.
    package mutating func nextKeys(of ledger: RowLedger, needsFacts: Bool) throws(CacheError) -> ListedKeys {
        let isPlain = !needsFacts && !ledger.knowsUnreadable
        return try next(of: ledger, none: .plain([]), key: \.last) { (c, id, cursor, end) throws(SQLiteError) in
            if isPlain, let keys = try c.keys(id, after: cursor, to: end) { return .plain(keys) }
            return .judged(try c.facts(id, after: cursor, to: end))
        }
    }

    private mutating func next<Page: Sendable>(
        of ledger: RowLedger, none: Page, key: (Page) -> StoredKey?,
        _ read: @escaping @Sendable (inout Connection, Int64, StoredKey?, PassEnd) throws(SQLiteError) -> Page
    ) throws(CacheError) -> Page {
        if isOver { return none }
        if !hasBegun {
            hasBegun = true
            end = try ledger.readMoment { (c, id) throws(SQLiteError) in try c.passEnd(id) } ?? nil
        }
        var page = none
        if let end {
            let after = cursor
            page = try ledger.readMoment { (c, id) throws(SQLiteError) in try read(&c, id, after, end) } ?? none
        }
        let last = key(page)
        if let cursor, let last { try ledger.checkProgress(from: cursor, to: last) }
        cursor = last
        isOver = cursor == nil
        return page
    }
}

extension ListedKeys {
    fileprivate var last: StoredKey? {
        switch self {
        case .judged(let rows): rows.last?.key
        case .plain(let keys): keys.last
        }
    }
}

extension RowLedger {
    /// Every row as of one moment, the files read of those that are not over by these terms.
    package func allRows(_ terms: AgeTerms) throws(CacheError) -> [ListedRow] {
        let read: @Sendable (inout Connection, Int64) throws(SQLiteError) -> [ListedRow] = {
            (c, id) throws(SQLiteError) in
            guard let end = try c.passEnd(id) else { return [] }
            var rows: [ListedRow] = []
            while true {
                let page = try c.rows(id, after: rows.last?.key, to: end, bytes: .max)
                guard let last = page.last?.key else { return rows }
                if let key = rows.last?.key, !key.precedes(last) { throw .keysDoNotRise }
                rows += page
            }
        }
        return try together(try readMoment(read), terms, read) ?? []
    }
}
