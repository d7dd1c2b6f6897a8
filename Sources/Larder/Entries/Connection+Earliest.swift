package import LarderSQLite

/// The moments from which the next expiration in a cache follows.
package struct EarliestMoments: Sendable {
    /// When the row was written that was written first, of those without an age of their own; nil if there is none.
    package var written: Int64?

    /// The same for the last access.
    package var accessed: Int64?

    /// The earliest end of the rows with an age of their own that have one; nil if there is none.
    package var ownEnd: Int64?
}

extension Connection {
    /// The moments from which the next expiration in a generation follows.
    ///
    /// - Complexity: O(n)
    package mutating func earliestMoments(_ generation: Int64) throws(SQLiteError) -> EarliestMoments {
        var moments = EarliestMoments()
        try with(Queries.earliestMoments) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            guard try statement.step() else { return }
            if statement.type(of: 0) != .null { moments.written = statement.int64(0) }
            if statement.type(of: 1) != .null { moments.accessed = statement.int64(1) }
        }
        try with(Queries.earliestOwnEnd) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            if try statement.step(), statement.type(of: 0) != .null { moments.ownEnd = statement.int64(0) }
        }
        return moments
    }

    /// The least age by which a row that is there may expire, in milliseconds, 0 where it is not known; nil if none does.
    package mutating func leastAge() throws(SQLiteError) -> Int64? {
        let rules = try liveGenerations().map(\.age.rule).filter { !$0.isUnlimited }
        if let age = rules.map(\.pauseAge).min() { return age }
        return try with(Queries.anyOwnEnd) { (statement) throws(SQLiteError) in try statement.step() } ? 0 : nil
    }
}
