internal import Foundation
package import LarderSQLite

extension Connection {
    /// Returns the row of a key; nil if there is none, or if its checksum does not fit.
    package mutating func row(_ key: StoredKey, in cache: Int64) throws(SQLiteError) -> StoredRow? {
        try with(.readRow) { row throws(SQLiteError) in
            try row.bind(cache, at: 1)
            try row.bind(key, at: 2)
            return try row.step() ? row.storedRow(key, in: cache) : nil
        }
    }

    /// Returns the facts of a row, which no checksum protects, and its checksum.
    mutating func find(_ key: StoredKey, in cache: Int64) throws(SQLiteError) -> (facts: RowFacts, checksum: Int64)? {
        try with(.findRow) { row throws(SQLiteError) in
            try row.bind(cache, at: 1)
            try row.bind(key, at: 2)
            return try row.step() ? (row.facts(key), row.int64(7)) : nil
        }
    }

    /// Returns the live generations by name.
    mutating func liveGenerations() throws(SQLiteError) -> [String: Generation] {
        try with(.liveGenerations) { row throws(SQLiteError) in
            var found: [String: Generation] = [:]
            while try row.step() {
                let cache = CacheDeclaration(
                    name: row.text(1), version: row.text(2), codec: row.text(3),
                    ageRule: AgeRule(kind: row.int64(4), milliseconds: row.int64(5)))
                found[cache.name] = Generation(id: row.int64(0), cache: cache)
            }
            return found
        }
    }

    /// Counts the rows of a cache and their bytes.
    mutating func totals(of cache: Int64) throws(SQLiteError) -> Totals {
        try with(.countRows) { row throws(SQLiteError) in
            try row.bind(cache, at: 1)
            var totals = Totals()
            while try row.step() {
                let meta = row.type(of: 2) == .null ? nil : RowMeta(packed: row.data(2))
                totals += Totals(count: row.int64(0), size: row.int64(1) + Int64(meta?.extendedData?.count ?? 0))
            }
            return totals
        }
    }
}

/// The columns of a row, in the order of ``SQL``'s `facts`.
extension Statement {
    /// The facts of a row.
    ///
    /// Damaged attributes count as none, and do not fit the checksum.
    func facts(_ key: StoredKey) -> RowFacts {
        RowFacts(
            key: key, id: int64(0), revision: int64(1), writtenAt: int64(2),
            expiresAt: type(of: 3) == .null ? nil : int64(3),
            payloadSize: int64(4), file: type(of: 5) == .null ? nil : text(5),
            meta: RowMeta(packed: packedMeta) ?? RowMeta())
    }

    /// The facts and the payload of a row; nil if they do not fit its checksum.
    func storedRow(_ key: StoredKey, in cache: Int64) -> StoredRow? {
        let (facts, payload) = (facts(key), data(8))
        let columns = RowChecksum.ofColumns(
            cache: cache, key: key, writtenAt: facts.writtenAt, expiresAt: facts.expiresAt, meta: packedMeta)
        guard int64(7) == columns ^ RowChecksum.ofPayload(payload) else { return nil }
        return StoredRow(facts: facts, payload: payload)
    }

    private var packedMeta: Data? { type(of: 6) == .null ? nil : data(6) }
}
