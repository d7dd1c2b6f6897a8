internal import LarderSQLite

/// An order of rows that no index has.
package enum RowOrder: Int, Sendable {
    case written, accessed, size
}

/// The rows of a cache at one moment in another order than that of keys, in 16 bytes each.
package struct RowList: Sendable {
    /// Safety of identity: SQLite gives the id of a deleted row to another one, so a part of the key's hash goes with it.
    private struct Place {
        let id: Int64
        /// 44 bits of the value that decides, then ``fingerprintBits`` of the key's hash.
        let valueAndFingerprint: UInt64

        static let fingerprintBits: UInt64 = 20
        var value: UInt64 { valueAndFingerprint >> Self.fingerprintBits }
        var fingerprint: UInt64 { valueAndFingerprint & (1 << Self.fingerprintBits - 1) }
    }

    private var places: [Place] = []
    package var count: Int { places.count }

    package init() {}

    mutating func append(id: Int64, _ key: StoredKey, _ value: Int64) {
        let value = UInt64(min(max(0, value), 1 << 44 - 1))
        places.append(
            Place(id: id, valueAndFingerprint: value << Place.fingerprintBits | Self.fingerprint(of: key)))
    }

    /// Sorts by the value, and rows with the same one by their ids.
    mutating func sort(descending isDescending: Bool) {
        places.sort { isDescending ? ($1.value, $1.id) < ($0.value, $0.id) : ($0.value, $0.id) < ($1.value, $1.id) }
    }

    func id(at index: Int) -> Int64 { places[index].id }

    /// Returns whether a row with this key was listed at a place.
    func holds(_ key: StoredKey, at index: Int) -> Bool { places[index].fingerprint == Self.fingerprint(of: key) }

    private static func fingerprint(of key: StoredKey) -> UInt64 {
        UInt64(truncatingIfNeeded: key.hashValue) & (1 << Place.fingerprintBits - 1)
    }
}

extension Connection {
    /// Lists the rows of a cache in an order.
    mutating func list(
        _ order: RowOrder, isDescending: Bool, in cache: Generation
    ) throws(SQLiteError) -> RowList {
        var list = RowList()
        try with(SQL.lists[order.rawValue]) { row throws(SQLiteError) in
            try row.bind(cache.id, at: 1)
            var (last, disorder): (StoredKey?, Int) = (nil, 0)
            while try row.step() {
                let key = row.key(1)
                // A damaged key is out of order, and a damaged index could repeat keys without end.
                if let last, !last.precedes(key) { disorder += 1 }
                if disorder > 1000 { throw SQLiteError.damagedOrder }
                last = key
                var value = row.int64(2)
                if order == .size, row.type(of: 3) != .null {
                    value += Int64(RowMeta(packed: row.data(3))?.extendedData?.count ?? 0)
                }
                list.append(id: row.int64(0), key, value)
            }
        }
        list.sort(descending: isDescending)
        return list
    }

    /// Returns the rows at places of a list that are still there.
    mutating func rows(
        _ list: RowList, _ places: Range<Int>, in cache: Generation, _ uses: Uses
    ) throws(SQLiteError) -> [StoredRow] {
        var rows: [StoredRow] = []
        for place in places {
            try with(.listedRow) { row throws(SQLiteError) in
                try row.bind(list.id(at: place), at: 1)
                try row.bind(cache.id, at: 2)
                guard try row.step() else { return }
                let key = row.key(9)
                guard list.holds(key, at: place), let stored = row.storedRow(key, in: cache) else { return }
                rows.append(stored)
            }
        }
        for index in rows.indices { try addAccess(to: &rows[index].facts, uses) }
        return rows
    }
}
