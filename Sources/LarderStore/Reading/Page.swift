internal import Foundation
internal import LarderSQLite

/// The rows that one read returns of a longer iteration.
package struct Page<Row: Sendable>: Sendable {
    package var rows: [Row] = []
    /// Where the next page begins; nil after the last page.
    package var next: PagePosition?
}

/// The place after a page of an iteration.
package struct PagePosition: Hashable, Sendable {
    /// The last key of the page.
    let key: StoredKey
    /// The highest id when the iteration began.
    ///
    /// Rows with higher ids are left out, so the iteration ends although entries are added ahead of it.
    let highestID: Int64
}

/// The bytes of payloads after which a page ends.
let pageBytes: Int64 = 1 << 20

extension Connection {
    /// Reads a page in the order of keys, and returns where the next one begins.
    ///
    /// - Parameters:
    ///   - statements: One for each `KeyRange.Start`.
    ///   - body: Takes a row, and returns the bytes of its payload.
    mutating func page(
        _ statements: [SQL], keyColumn: Int32, _ range: KeyRange, after last: PagePosition?, _ limit: Int,
        in cache: Incarnation,
        _ body: (StoredKey, borrowing Statement) -> Int64
    ) throws(SQLiteError) -> PagePosition? {
        let highestID = try number(.highestID) ?? .min
        let newest = last?.highestID ?? highestID
        let (start, bound) = range.start(after: last?.key)
        return try with(statements[start.rawValue]) { row throws(SQLiteError) in
            try row.bind(cache.id, at: 1)
            try row.bind(Int64(limit), at: 2)
            switch bound {
            case .none: break
            case .key(let key): try row.bind(key, at: 3)
            case .bytes(let bytes): try row.bind(textBytes: bytes, at: 3)
            }
            var (count, bytes, next): (Int, Int64, StoredKey?) = (0, 0, nil)
            while next == nil, try row.step() {
                let key = row.key(keyColumn)
                guard range.contains(key) else { return nil }
                if row.int64(0) <= newest { bytes += body(key, row) }
                count += 1
                if count == limit || bytes >= pageBytes { next = key }
            }
            // A damaged index could repeat keys without end.
            if let last, let next, !range.isBeyond(last.key, next) { throw SQLiteError.damagedOrder }
            return next.map { PagePosition(key: $0, highestID: newest) }
        }
    }
}

extension Statement {
    func key(_ column: Int32) -> StoredKey {
        switch type(of: column) {
        case .integer: .integer(int64(column))
        case .text: .text(text(column))
        default: .blob(data(column))
        }
    }
}

extension SQLiteError {
    static let damagedIndex = SQLiteError(code: .corrupt, message: "an index leads to the row of another key")
    static let damagedOrder = SQLiteError(code: .corrupt, message: "rows are not in the order of their keys")
}
