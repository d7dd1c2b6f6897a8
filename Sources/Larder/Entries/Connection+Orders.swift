internal import Foundation
package import LarderSQLite

/// By what entries are listed.
package enum RowOrder: Hashable, Sendable {
    case written, accessed, size

    fileprivate func query(descending: Bool) -> SQL {
        switch self {
        case .written: descending ? Queries.writtenDown : Queries.writtenUp
        case .accessed: descending ? Queries.accessedDown : Queries.accessedUp
        case .size: descending ? Queries.sizeDown : Queries.sizeUp
        }
    }

    fileprivate var queryOfMoved: SQL { self == .accessed ? Queries.usedSince : Queries.writtenSince }
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

/// Where an entry stands in an order.
package struct RowPlace: Sendable {
    package let id: Int64
    let first: Int64
    let second: Int64

    /// Before all others of an ascending order.
    package static let beforeAll = RowPlace(id: .min, first: .min, second: .min)
    /// Before all others of a descending order.
    package static let afterAll = RowPlace(id: .max, first: .max, second: .max)
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

    /// The next places in an order, of entries with ids up to `id` whose place is that of the moment `stamp`.
    package mutating func places(
        _ generation: Int64, _ order: RowOrder, descending: Bool, after place: RowPlace, upToID id: Int64,
        stamp: Int64, _ bounds: KeyBounds, limit: Int
    ) throws(SQLiteError) -> [RowPlace] {
        try places(order.query(descending: descending), generation, place, id, stamp, bounds, limit)
    }

    /// The next of those whose place has changed since.
    package mutating func movedPlaces(
        _ generation: Int64, _ order: RowOrder, after place: RowPlace, upToID id: Int64, stamp: Int64,
        _ bounds: KeyBounds, limit: Int
    ) throws(SQLiteError) -> [RowPlace] {
        try places(
            order.queryOfMoved, generation, RowPlace(id: place.id, first: 0, second: 0), id, stamp, bounds, limit)
    }

    private mutating func places(
        _ sql: SQL, _ generation: Int64, _ place: RowPlace, _ id: Int64, _ stamp: Int64, _ bounds: KeyBounds,
        _ limit: Int
    ) throws(SQLiteError) -> [RowPlace] {
        try with(sql) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            try statement.bind(id, at: 2)
            try statement.bind(stamp, at: 3)
            try statement.bind(bounds.lower, at: 4)
            try statement.bind(bounds.upper, at: 5)
            try statement.bind(place.first, at: 6)
            try statement.bind(place.second, at: 7)
            try statement.bind(place.id, at: 8)
            try statement.bind(Int64(limit), at: 9)
            var places: [RowPlace] = []
            while try statement.step() {
                places.append(
                    RowPlace(id: statement.int64(0), first: statement.int64(1), second: statement.int64(2)))
            }
            return places
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
