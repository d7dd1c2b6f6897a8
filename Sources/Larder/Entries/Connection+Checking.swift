package import LarderSQLite

/// A row as a check of the whole store looks at it.
package struct CheckedRow: Sendable {
    package let key: StoredKey
    package let row: EntryRow
    package let generation: Int64
    /// Whether its generation is known.
    package let isOwned: Bool
}

extension Connection {
    /// Rows after an id, of whatever generation, until they come to so many bytes; at least one, if there is one.
    package mutating func checkedRows(after id: Int64, bytes: Int) throws(SQLiteError) -> [CheckedRow] {
        try with(Queries.checkedRows) { (statement) throws(SQLiteError) in
            try statement.bind(id, at: 1)
            var rows: [CheckedRow] = []
            var total = 0
            while total < bytes, rows.count < Self.rowsPerPage, try statement.step() {
                let (key, generation) = (statement.key(13), statement.int64(14))
                let row = statement.row(generation, key)
                total += (row.payload?.count ?? 0) + (row.extended?.count ?? 0)
                rows.append(CheckedRow(key: key, row: row, generation: generation, isOwned: statement.int64(15) != 0))
            }
            return rows
        }
    }

    /// Throws if the index of keys leads from a key to the row of another one.
    package mutating func checkIndex(_ generation: Int64, _ key: StoredKey) throws(SQLiteError) {
        let id = try with(Queries.findID) { (statement) throws(SQLiteError) -> Int64? in
            try statement.bind(generation, at: 1)
            return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                try statement.step() ? statement.int64(0) : nil
            }
        }
        guard let id else { return }
        let isOwner = try with(Queries.findOwner) { (statement) throws(SQLiteError) in
            try statement.bind(id, at: 1)
            return try statement.step() && statement.int64(0) == generation && statement.key(1) == key
        }
        if !isOwner { throw SQLiteError(code: .corrupt, message: "the index of keys leads to the row of another key") }
    }

    /// How many rows there are, of whatever generation.
    package mutating func countRows() throws(SQLiteError) -> Int {
        try with(Queries.countRows) { (statement) throws(SQLiteError) in
            try statement.step() ? Int(statement.int64(0)) : 0
        }
    }

    /// Deletes a row unless it was written since.
    package mutating func deleteRow(_ id: Int64, revision: Int64) throws(SQLiteError) {
        try run(Queries.deleteRow) { (statement) throws(SQLiteError) in
            try statement.bind(id, at: 1)
            try statement.bind(revision, at: 2)
        }
    }

    /// The least recently used rows of all live generations, with their generations.
    package mutating func leastUsedOfAll(
        limit: Int
    ) throws(SQLiteError) -> [(generation: Int64, candidate: TrimCandidate)] {
        try with(Queries.leastUsedOfAll) { (statement) throws(SQLiteError) in
            try statement.bind(Int64(limit), at: 1)
            var rows: [(Int64, TrimCandidate)] = []
            while try statement.step() {
                let candidate = TrimCandidate(
                    key: statement.key(10), facts: statement.facts(), used: statement.int64(11), isExpired: false)
                rows.append((statement.int64(13), candidate))
            }
            return rows
        }
    }

    /// The bytes of all entries of all live generations.
    package mutating func totalSizeOfAll() throws(SQLiteError) -> Int64 {
        try with(Queries.totalSizeOfAll) { (statement) throws(SQLiteError) in
            try statement.step() ? statement.int64(0) : 0
        }
    }
}
