package import LarderSQLite

/// Where a pass over a sub-cache ends: what is added later is not waited for.
package struct PassEnd: Sendable {
    package let key: StoredKey
    package let id: Int64
}

/// One that a trim may take.
package struct TrimCandidate: Sendable {
    package let key: StoredKey
    package let facts: EntryFacts
    /// Its place in the order of use.
    package let used: Int64
    package let isExpired: Bool
}

extension Connection {
    /// Where a pass that begins now ends; nil if there is nothing to pass over.
    package mutating func passEnd(_ generation: Int64) throws(SQLiteError) -> PassEnd? {
        let key = try with(Queries.lastKey) { (statement) throws(SQLiteError) -> StoredKey? in
            try statement.bind(generation, at: 1)
            return try statement.step() ? statement.key(0) : nil
        }
        guard let key else { return nil }
        return PassEnd(key: key, id: try lastID())
    }

    private mutating func lastID() throws(SQLiteError) -> Int64 {
        try with(Queries.lastID) { (statement) throws(SQLiteError) in
            _ = try statement.step()
            return statement.int64(0)
        }
    }

    /// The rows behind `key` in key order, until they come to so many bytes; at least one, if there is one.
    package mutating func rows(
        _ generation: Int64, after key: StoredKey?, to end: PassEnd, bytes: Int
    ) throws(SQLiteError) -> [ListedRow] {
        try page(generation, key, end.key, end.id, first: Queries.firstRows, next: Queries.nextRows) {
            (statement) throws(SQLiteError) in try statement.listedRows(generation, bytes: bytes)
        }
    }

    /// The keys behind `key` with what their rows say, in key order.
    package mutating func facts(
        _ generation: Int64, after key: StoredKey?, to end: PassEnd
    ) throws(SQLiteError) -> [ListedFacts] {
        try page(generation, key, end.key, end.id, first: Queries.firstFacts, next: Queries.nextFacts) {
            (statement) throws(SQLiteError) in
            var rows: [ListedFacts] = []
            while rows.count < Self.rowsPerPage, try statement.step() {
                rows.append(ListedFacts(key: statement.key(10), facts: statement.facts()))
            }
            return rows
        }
    }

    /// The keys behind `key` alone, in key order; nil if an entry has an age of its own, so that rows have to be read.
    package mutating func keys(
        _ generation: Int64, after key: StoredKey?, to end: PassEnd
    ) throws(SQLiteError) -> [StoredKey]? {
        if try number(Queries.anyOwnAge, generation) == 1 { return nil }
        let isAnyNew = try lastID() > end.id
        let (first, next) =
            isAnyNew
            ? (Queries.firstKeys, Queries.nextKeys) : (Queries.firstOfAllKeys, Queries.nextOfAllKeys)
        return try page(generation, key, end.key, isAnyNew ? end.id : nil, first: first, next: next) {
            (statement) throws(SQLiteError) in
            var keys: [StoredKey] = []
            keys.reserveCapacity(Self.rowsPerPage)
            while keys.count < Self.rowsPerPage, try statement.step() { keys.append(statement.key(0)) }
            return keys
        }
    }

    /// When the oldest entry was written; nil if there is none.
    package mutating func oldestWrite(_ generation: Int64) throws(SQLiteError) -> Int64? {
        try with(Queries.oldestWrite) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            guard try statement.step(), statement.type(of: 0) != .null else { return nil }
            return statement.int64(0)
        }
    }

    /// How many rows a page has at most.
    package static let rowsPerPage = 512

    private mutating func page<R>(
        _ generation: Int64, _ key: StoredKey?, _ last: StoredKey, _ lastID: Int64?, first: SQL, next: SQL,
        _ body: (borrowing Statement) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try with(key == nil ? first : next) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            if let key { try statement.bind(key, at: 2) }
            try statement.bind(last, at: 3)
            if let lastID { try statement.bind(lastID, at: 4) }
            return try body(statement)
        }
    }

    /// What a trim takes first: the expired, then the least recently used; never what is pinned.
    ///
    /// - Parameter other: A second rule by which an entry has to be over.
    package mutating func leastUsed(
        _ generation: Int64, _ rule: AgeRule, and other: AgeRule? = nil, now: Int64, limit: Int
    ) throws(SQLiteError) -> [TrimCandidate] {
        try with(other == nil ? Queries.leastUsed : Queries.leastUsedByTwo) { (statement) throws(SQLiteError) in
            try statement.bind(generation, rule, now)
            try statement.bind(Int64(limit), at: 5)
            if let other = other.map({ StoredAge($0) }) {
                try statement.bind(other.kind, at: 6)
                try statement.bind(other.milliseconds, at: 7)
            }
            var candidates: [TrimCandidate] = []
            while try statement.step() {
                candidates.append(
                    TrimCandidate(
                        key: statement.key(10), facts: statement.facts(), used: statement.int64(11),
                        isExpired: statement.int64(12) == 0))
            }
            return candidates
        }
    }

    /// The last moment at which all entries with an age of their own are served that are at `now`; `.max` if there are none.
    package mutating func nextOwnEnd(_ generation: Int64, now: Int64) throws(SQLiteError) -> Int64 {
        try number(Queries.nextOwnEnd, generation, AgeRule(), now)
    }

    /// How many entries are served at `now`.
    package mutating func countLive(_ generation: Int64, _ rule: AgeRule, now: Int64) throws(SQLiteError) -> Int {
        // Where only ages of their own end entries, the index on the keys counts, and the few are looked at.
        guard rule.isUnlimited else { return Int(try number(Queries.countLive, generation, rule, now)) }
        return try countAll(generation) - Int(number(Queries.countOwnExpired, generation, rule, now))
    }

    /// Whether any entry is served at `now`.
    package mutating func isAnyLive(_ generation: Int64, _ rule: AgeRule, now: Int64) throws(SQLiteError) -> Bool {
        try number(Queries.anyLive, generation, rule, now) == 1
    }

    /// Whether any entry has an age of its own that runs from the last read.
    package mutating func isAnySliding(_ generation: Int64) throws(SQLiteError) -> Bool {
        try number(Queries.anySliding, generation) == 1
    }

    /// How many rows there are, expired ones included.
    package mutating func countAll(_ generation: Int64) throws(SQLiteError) -> Int {
        Int(try number(Queries.countAll, generation))
    }

    /// The bytes of all entries, expired ones included.
    package mutating func totalSize(_ generation: Int64) throws(SQLiteError) -> Int64 {
        try number(Queries.totalSize, generation)
    }

    private mutating func number(_ sql: SQL, _ generation: Int64) throws(SQLiteError) -> Int64 {
        try with(sql) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            return try statement.step() ? statement.int64(0) : 0
        }
    }

    private mutating func number(
        _ sql: SQL, _ generation: Int64, _ rule: AgeRule, _ now: Int64
    ) throws(SQLiteError) -> Int64 {
        try with(sql) { (statement) throws(SQLiteError) in
            try statement.bind(generation, rule, now)
            return try statement.step() ? statement.int64(0) : 0
        }
    }
}

extension Statement {
    /// The row on which the statement stands, of a query that lists rows with their keys.
    func listedRow(_ generation: Int64) -> ListedRow {
        let key = key(13)
        return ListedRow(key: key, row: row(generation, key))
    }

    /// The rows that such a query gives, a page at most, until they come to so many bytes; at least one, if there is one.
    func listedRows(_ generation: Int64, bytes: Int) throws(SQLiteError) -> [ListedRow] {
        var rows: [ListedRow] = []
        var total = 0
        while total < bytes, rows.count < Connection.rowsPerPage, try step() {
            let row = listedRow(generation)
            total += Int(clamping: row.row.facts.size)
            rows.append(row)
        }
        return rows
    }

    fileprivate func bind(_ generation: Int64, _ rule: AgeRule, _ now: Int64) throws(SQLiteError) {
        let age = StoredAge(rule)
        try bind(generation, at: 1)
        try bind(now, at: 2)
        try bind(age.kind, at: 3)
        try bind(age.milliseconds, at: 4)
    }
}
