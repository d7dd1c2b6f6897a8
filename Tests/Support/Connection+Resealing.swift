package import Foundation
internal import Larder
package import LarderSQLite

extension Connection {
    /// Changes rows by SQL, as a program of the library's would that writes them: with the checksums that fit, and another
    /// revision for each row of which something has changed.
    ///
    /// - Parameter files: The folder of value files.
    package mutating func changeRows(_ sql: String, files: URL) throws {
        try execute("BEGIN IMMEDIATE; \(sql)")
        do {
            try resealCaches()
            try resealEntries(files)
            try execute("COMMIT")
        } catch {
            try execute("ROLLBACK")
            throw error
        }
    }

    /// What is in a value file; nil if it is not there.
    private func contents(_ file: String, _ files: URL) throws -> Data? {
        let url = files.appendingPathComponent(file)
        return FileManager.default.fileExists(atPath: url.path) ? try Data(contentsOf: url) : nil
    }

    private mutating func resealCaches() throws(SQLiteError) {
        let rows = try with(.caches) { (statement) throws(SQLiteError) in
            var rows: [(id: Int64, checksum: Int64)] = []
            while try statement.step() {
                var generation = Generation(
                    name: statement.text(1), version: statement.text(2), codec: statement.text(3),
                    age: StoredAge(kind: statement.int64(4), milliseconds: statement.int64(5)), openedAt: 0)
                generation.id = statement.int64(0)
                generation.keepsExpired = statement.int64(6)
                generation.lineage = statement.int64(8)
                rows.append((generation.id, generation.checksum(isRetired: statement.int64(7) != 0)))
            }
            return rows
        }
        for row in rows {
            try run(.resealCache) { (statement) throws(SQLiteError) in
                try statement.bind(row.id, at: 1)
                try statement.bind(row.checksum, at: 2)
            }
        }
    }

    private mutating func resealEntries(_ files: URL) throws {
        var last = Int64.min
        while true {
            let rows = try checkedRows(after: last, bytes: 1 << 20)
            guard let end = rows.last?.row.facts.id, end > last else { return }
            last = end
            for item in rows {
                let row = item.row
                let payload = try row.facts.file.map { try contents($0, files) } ?? row.payload
                let sum = payload?.withUnsafeBytes { Int64(bitPattern: Checksum.xxh3($0)) } ?? 0
                if sum == row.payloadChecksum { continue }
                try run(.resealEntry) { (statement) throws(SQLiteError) in
                    try statement.bind(row.facts.id, at: 1)
                    try statement.bind(row.facts.checksum ^ row.payloadChecksum ^ sum, at: 2)
                }
            }
        }
    }
}

extension SQL {
    fileprivate static let caches = SQL(
        "SELECT id, name, version, codec, age_rule, age, keeps_expired, is_retired, lineage FROM cache")
    fileprivate static let resealCache = SQL("UPDATE cache SET checksum = ?2 WHERE id = ?1 AND checksum IS NOT ?2")
    fileprivate static let resealEntry = SQL(
        """
        UPDATE entry SET checksum = ?2, revision = revision + iif(revision < 9223372036854775807, 1, -1) WHERE id = ?1
        """)
}
