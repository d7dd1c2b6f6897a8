import Foundation
import LarderCSQLite

/// The yardstick: one table with one unique index behind prepared statements, WAL, NORMAL, 8 MB of page cache.
final class Raw {
    private var handle: OpaquePointer?
    private var statements: [String: OpaquePointer] = [:]

    init(_ path: String) {
        precondition(sqlite3_open(path, &handle) == SQLITE_OK)
        run(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = 0; PRAGMA cache_size = -8192"
        )
        run("CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, value BLOB)")
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement) }
        sqlite3_close(handle)
    }

    func run(_ sql: String) { precondition(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK) }

    private func step(_ sql: String, _ bind: (OpaquePointer) -> Void = { _ in }) {
        if statements[sql] == nil {
            var statement: OpaquePointer?
            precondition(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
            statements[sql] = statement
        }
        guard let statement = statements[sql] else { return }
        bind(statement)
        precondition(sqlite3_step(statement) == SQLITE_DONE)
        sqlite3_reset(statement)
    }

    func set(_ key: Int64, _ value: Data) {
        value.withUnsafeBytes { bytes in
            step(
                "INSERT INTO entry (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            ) { statement in
                sqlite3_bind_int64(statement, 1, key)
                guard let start = bytes.baseAddress else { return }
                _ = larder_bind_blob_static(statement, 2, start, UInt64(bytes.count))
            }
        }
    }

    func remove(_ key: Int64) { step("DELETE FROM entry WHERE key = ?1") { sqlite3_bind_int64($0, 1, key) } }

    /// Deletes at most 500 rows through the index.
    ///
    /// Returns how many.
    func removeSlice() -> Int {
        step("DELETE FROM entry WHERE key IN (SELECT key FROM entry ORDER BY key LIMIT 500)")
        return Int(sqlite3_changes(handle))
    }

    func transaction(_ body: () -> Void) {
        step("BEGIN")
        body()
        step("COMMIT")
    }
}
