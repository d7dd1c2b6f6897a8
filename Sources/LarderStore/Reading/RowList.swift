internal import LarderSQLite

/// An order of rows that no index has.
package enum RowOrder: Int, Sendable {
    case written, accessed, size
}

/// The rows of a cache at one moment in another order than that of keys, in 16 bytes each.
package struct RowList: Sendable {
    /// SQLite can give the id of a deleted row to another one, so the hash of the key goes with it.
    fileprivate var places: [(id: Int64, keyHash: Int)] = []
    package var count: Int { places.count }

    package init() {}
}

extension Connection {
    /// Lists the rows of a cache by a value, and rows with the same one by their ids.
    mutating func list(
        _ order: RowOrder, _ range: KeyRange, in cache: Incarnation, _ accesses: AccessBook
    ) throws(SQLiteError) -> RowList {
        var found: [(value: Int64, id: Int64, keyHash: Int)] = []
        // Accesses that are not stored.
        let noted = order == .accessed ? accesses.moments : [:]
        try with(SQL.lists[order.rawValue]) { row throws(SQLiteError) in
            try row.bind(cache.id, at: 1)
            var (last, disorder): (StoredKey?, Int) = (nil, 0)
            while try row.step() {
                let key = row.key(1)
                // A damaged key is out of order, and a damaged index could repeat keys without end.
                if let last, !last.precedes(key) { disorder += 1 }
                if disorder > 1000 { throw SQLiteError.damagedOrder }
                last = key
                if !range.contains(key) { continue }
                var value = order == .size ? row.size(2) : row.int64(2)
                if order == .size, row.type(of: 3) != .null {
                    value += Int64(RowMeta(packed: row.data(3))?.extendedData?.count ?? 0)
                }
                if let moment = noted[row.int64(0)] { value = max(value, Access.order(at: moment)) }
                found.append((value, row.int64(0), key.hashValue))
            }
        }
        found.sort {
            range.isDescending ? ($1.value, $1.id) < ($0.value, $0.id) : ($0.value, $0.id) < ($1.value, $1.id)
        }
        var list = RowList()
        list.places = found.map { ($0.id, $0.keyHash) }
        return list
    }

    /// Returns the rows at places of a list that are still there, and the place at which the next page begins.
    mutating func rows(
        _ list: RowList, _ places: Range<Int>, in cache: Incarnation, _ accesses: AccessBook
    ) throws(SQLiteError) -> (rows: [StoredRow], end: Int) {
        var (rows, bytes): ([StoredRow], Int64) = ([], 0)
        for place in places {
            if bytes >= pageBytes { return (rows, place) }
            guard let row = try listedRow(list.places[place].id, in: cache, accesses),
                row.header.key.hashValue == list.places[place].keyHash
            else { continue }
            bytes += row.header.payloadSize
            rows.append(row)
        }
        return (rows, places.upperBound)
    }

    /// Returns the headers of rows at places of a list that are still there.
    mutating func headers(
        _ list: RowList, _ places: Range<Int>, in cache: Incarnation, _ accesses: AccessBook
    ) throws(SQLiteError) -> [EntryHeader] {
        var headers: [EntryHeader] = []
        for place in list.places[places] {
            try forEachHeader([place.id], in: cache, accesses, withAccess: true) {
                if $0.key.hashValue == place.keyHash { headers.append($0) }
            }
        }
        return headers
    }

    /// Returns a row of a cache by its id, with its last access; nil if it is not there.
    mutating func listedRow(_ id: Int64, in cache: Incarnation, _ accesses: AccessBook) throws(SQLiteError)
        -> StoredRow?
    {
        let found = try with(.listedRow) { row throws(SQLiteError) in
            try row.bind(id, at: 1)
            try row.bind(cache.id, at: 2)
            return try row.step() ? row.storedRow(row.key(9), in: cache) : nil
        }
        guard var found else { return nil }
        try addAccess(to: &found.header, accesses, always: true)
        return found
    }
}
