internal import Foundation
internal import LarderSQLite

/// The rows that one read returns of a longer iteration.
package struct Page<Row: Sendable>: Sendable {
    package var rows: [Row] = []
    /// The key after which the next page begins; nil after the last page.
    package var next: StoredKey?
}

/// A key with the facts of its row.
package struct KeyedFacts: Sendable {
    package let key: StoredKey
    package let facts: RowFacts
}

/// A key with its row.
package struct KeyedRow: Sendable {
    package let key: StoredKey
    package let row: StoredRow
}

extension Connection {
    /// Reads a page in the order of keys.
    ///
    /// - Parameters:
    ///   - statements: One for each `KeyRange.Start`.
    ///   - read: Returns what the page has of a row; nil if the row is damaged.
    mutating func page<Row>(
        _ statements: [SQL], keyColumn: Int32, _ range: KeyRange, after last: StoredKey?, _ limit: Int, in cache: Int64,
        _ read: (StoredKey, borrowing Statement) -> Row?
    ) throws(SQLiteError) -> Page<Row> {
        let (start, bound) = range.start(after: last)
        return try with(statements[start.rawValue]) { row throws(SQLiteError) in
            try row.bind(cache, at: 1)
            try row.bind(Int64(limit), at: 2)
            switch bound {
            case .none: break
            case .key(let key): try row.bind(key, at: 3)
            case .bytes(let bytes): try row.bind(textBytes: bytes, at: 3)
            }
            var page = Page<Row>()
            page.rows.reserveCapacity(min(limit, 256))
            var count = 0
            while try row.step() {
                let key = row.key(keyColumn)
                guard range.contains(key) else { return page }
                if let found = read(key, row) { page.rows.append(found) }
                count += 1
                if count == limit { page.next = key }
            }
            // A damaged index could repeat keys without end.
            if let last, let next = page.next, !range.isBeyond(last, next) { throw SQLiteError.damagedOrder }
            return page
        }
    }
}

extension Statement {
    /// The key in a column.
    func key(_ column: Int32) -> StoredKey {
        switch type(of: column) {
        case .integer: .integer(int64(column))
        case .text: .text(text(column))
        default: .blob(data(column))
        }
    }
}

extension SQLiteError {
    static let damagedOrder = SQLiteError(code: .corrupt, message: "rows are not in the order of their keys")
}
