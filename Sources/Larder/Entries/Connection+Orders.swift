internal import Foundation
package import LarderSQLite

/// By what entries are listed.
package enum RowOrder: Hashable, Sendable {
    case written, accessed, size

    fileprivate var query: SQL {
        switch self {
        case .written: Queries.writtenPlaces
        case .accessed: Queries.accessedPlaces
        case .size: Queries.sizePlaces
        }
    }
}

/// Where a row is in an order.
private struct RowPlace: Comparable {
    let first: Int64
    let second: Int64
    let id: Int64

    static func < (one: RowPlace, other: RowPlace) -> Bool {
        (one.first, one.second, one.id) < (other.first, other.second, other.id)
    }
}

/// Between which keys a listing is, both included.
package struct KeyBounds: Sendable {
    package let lower: StoredKey
    package let upper: StoredKey

    package init(lower: StoredKey, upper: StoredKey) {
        self.lower = lower
        self.upper = upper
    }

    /// The keys that begin with a text, and perhaps one more.
    package init(prefix: String) {
        lower = .text(prefix)
        var scalars = Array(prefix.unicodeScalars)
        var upper: StoredKey?
        // The next text that does not begin so: its bytes stand in the order of its scalars.
        while upper == nil, let last = scalars.popLast() {
            guard let next = Unicode.Scalar(last.value == 0xD7FF ? 0xE000 : last.value + 1) else { continue }
            var text = String.UnicodeScalarView(scalars)
            text.append(next)
            upper = .text(String(text))
        }
        // Blobs sort after all texts.
        self.upper = upper ?? .blob(Data())
    }
}

extension Connection {
    /// The rows between the bounds in key order, until they come to so many bytes; at least one, if there is one.
    ///
    /// - Parameter isFirst: Whether the bound at which the page begins is included.
    package mutating func rows(
        _ generation: Int64, _ bounds: KeyBounds, isFirst: Bool, descending: Bool, upToID id: Int64, bytes: Int
    ) throws(SQLiteError) -> [ListedRow] {
        let up = isFirst ? Queries.firstRowsUp : Queries.nextRowsUp
        let down = isFirst ? Queries.firstRowsDown : Queries.nextRowsDown
        return try with(descending ? down : up) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            try statement.bind(bounds.lower, at: 2)
            try statement.bind(bounds.upper, at: 3)
            try statement.bind(id, at: 4)
            return try statement.listedRows(generation, bytes: bytes)
        }
    }

    /// The ids of all rows between two keys, in an order.
    ///
    /// They are sorted here: SQLite's own sorting takes twice the memory.
    ///
    /// - Parameter uses: Places in the order of use that are not written down.
    package mutating func ids(
        _ generation: Int64, _ order: RowOrder, descending: Bool, _ bounds: KeyBounds, _ uses: [StoredKey: Int64] = [:]
    ) throws(SQLiteError) -> [Int64] {
        let count = try countAll(generation)
        var places = try with(order.query) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            try statement.bind(bounds.lower, at: 2)
            try statement.bind(bounds.upper, at: 3)
            var places: [RowPlace] = []
            places.reserveCapacity(count)
            while try statement.step() {
                places.append(
                    RowPlace(first: statement.int64(1), second: statement.int64(2), id: statement.int64(0)))
            }
            return places
        }
        try move(&places, of: generation, to: uses)
        places.sort()
        return descending ? places.reversed().map(\.id) : places.map(\.id)
    }

    /// Gives rows the places that uses have given them which are not written down.
    private mutating func move(
        _ places: inout [RowPlace], of generation: Int64, to uses: [StoredKey: Int64]
    ) throws(SQLiteError) {
        var later: [Int64: Int64] = [:]
        for (key, used) in uses {
            let id = try with(Queries.findID) { (statement) throws(SQLiteError) -> Int64? in
                try statement.bind(generation, at: 1)
                return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                    try statement.step() ? statement.int64(0) : nil
                }
            }
            if let id { later[id] = used }
        }
        if later.isEmpty { return }
        for index in places.indices {
            let place = places[index]
            guard let used = later[place.id], used > place.first else { continue }
            places[index] = RowPlace(first: used, second: place.second, id: place.id)
        }
    }

    /// The row with an id, unless it has gone.
    package mutating func row(_ generation: Int64, id: Int64) throws(SQLiteError) -> ListedRow? {
        try with(Queries.rowWithID) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            try statement.bind(id, at: 2)
            return try statement.step() ? statement.listedRow(generation) : nil
        }
    }
}
