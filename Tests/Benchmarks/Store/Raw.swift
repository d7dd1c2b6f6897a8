import Foundation
import LarderCSQLite

/// The yardstick: one table with one unique index behind prepared statements, WAL, NORMAL, 8 MB of page cache.
final class Raw {
    private var handle: OpaquePointer?
    private var statements: [String: OpaquePointer] = [:]

    init(_ path: String, isNew: Bool = true) {
        precondition(sqlite3_open(path, &handle) == SQLITE_OK)
        run(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = 0; PRAGMA cache_size = -8192"
        )
        if isNew {
            run("CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, value BLOB)")
        }
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement) }
        sqlite3_close(handle)
    }

    func run(_ sql: String) { precondition(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK) }

    private func step(_ sql: String, _ bind: (OpaquePointer) -> Void = { _ in }) {
        let statement = prepared(sql)
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

    /// Returns a copy of a value, as a program needs it.
    func get(_ key: Int64) -> Data? {
        var value: Data?
        rows("SELECT value FROM entry WHERE key = ?1", { sqlite3_bind_int64($0, 1, key) }) { value = Self.blob($0, 0) }
        return value
    }

    /// Returns copies of all values in the order of keys.
    func values() -> [Data] {
        var found: [Data] = []
        rows("SELECT value FROM entry ORDER BY key") { found.append(Self.blob($0, 0)) }
        return found
    }

    /// Returns all keys in their order.
    func keys() -> [Int64] {
        var found: [Int64] = []
        rows("SELECT key FROM entry ORDER BY key") { found.append(sqlite3_column_int64($0, 0)) }
        return found
    }

    /// Looks at each entry of the index of keys.
    func scanKeys() { rows("SELECT sum(key & 1) FROM entry") { _ in } }

    private static func blob(_ row: OpaquePointer, _ column: Int32) -> Data {
        Data(bytes: sqlite3_column_blob(row, column), count: Int(sqlite3_column_bytes(row, column)))
    }

    private func rows(
        _ sql: String, _ bind: (OpaquePointer) -> Void = { _ in }, _ body: (OpaquePointer) -> Void
    ) {
        let statement = prepared(sql)
        bind(statement)
        while sqlite3_step(statement) == SQLITE_ROW { body(statement) }
        sqlite3_reset(statement)
    }

    private func prepared(_ sql: String) -> OpaquePointer {
        if let statement = statements[sql] { return statement }
        var statement: OpaquePointer?
        precondition(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
        statements[sql] = statement
        return statement!
    }

    func transaction(_ body: () -> Void) {
        step("BEGIN")
        body()
        step("COMMIT")
    }
}
