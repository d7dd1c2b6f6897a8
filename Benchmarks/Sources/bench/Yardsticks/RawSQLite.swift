import CSQLite
import Foundation

/// A table of keys and blobs behind prepared statements, as one would write it without a library.
final class RawSQLite: @unchecked Sendable {
    // Safety: a connection is used by one thread at a time; who has several sees to that.
    private var handle: OpaquePointer?
    private var select: OpaquePointer?
    private var upsert: OpaquePointer?
    private var scan: OpaquePointer?
    private var scanKeys: OpaquePointer?
    private var removeBelow: OpaquePointer?
    private var begin: OpaquePointer?
    private var commit: OpaquePointer?
    let path: String

    /// The maximum size of the pages that a connection keeps, in KiB: as much as a connection of the library has.
    private static let cacheKibibytes = 8192

    /// Opens or makes the file: a write-ahead log, 8 MB of page cache, and nothing overwritten that is deleted.
    ///
    /// Everything else is as SQLite has it by itself.
    ///
    /// - Parameter synchronous: FULL brings each commit to the disk, NORMAL leaves that to the system.
    init(_ path: String, synchronous: String = "NORMAL") {
        self.path = path
        precondition(sqlite3_open(path, &handle) == SQLITE_OK)
        run("PRAGMA journal_mode = WAL; PRAGMA synchronous = \(synchronous); PRAGMA secure_delete = 0")
        sqlite3_busy_timeout(handle, 5000)
        run("PRAGMA cache_size = -\(Self.cacheKibibytes)")
        run("CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, value BLOB)")
        select = prepare("SELECT value FROM entry WHERE key = ?1")
        upsert = prepare(
            "INSERT INTO entry (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
        scan = prepare("SELECT key, value FROM entry ORDER BY key")
        scanKeys = prepare("SELECT key FROM entry ORDER BY key")
        removeBelow = prepare("DELETE FROM entry WHERE key < ?1")
        begin = prepare("BEGIN")
        commit = prepare("COMMIT")
    }

    deinit {
        for statement in [select, upsert, scan, scanKeys, removeBelow, begin, commit] { sqlite3_finalize(statement) }
        sqlite3_close(handle)
    }

    private func run(_ sql: String) { precondition(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK) }

    private func prepare(_ sql: String) -> OpaquePointer? {
        var statement: OpaquePointer?
        precondition(
            sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK)
        return statement
    }

    func transaction(_ body: () -> Void) {
        sqlite3_step(begin)
        sqlite3_reset(begin)
        body()
        sqlite3_step(commit)
        sqlite3_reset(commit)
    }

    func set(_ key: Int, _ value: Data) {
        sqlite3_bind_int64(upsert, 1, Int64(key))
        value.withUnsafeBytes { bytes in
            _ = bench_bind_blob(upsert, 2, bytes.baseAddress, Int32(bytes.count))
            precondition(sqlite3_step(upsert) == SQLITE_DONE)
            sqlite3_reset(upsert)
        }
    }

    /// Removes all rows with lesser keys, in one transaction.
    func remove(below key: Int) {
        sqlite3_bind_int64(removeBelow, 1, Int64(key))
        precondition(sqlite3_step(removeBelow) == SQLITE_DONE)
        sqlite3_reset(removeBelow)
    }

    func get(_ key: Int) -> Data? {
        sqlite3_bind_int64(select, 1, Int64(key))
        defer { sqlite3_reset(select) }
        guard sqlite3_step(select) == SQLITE_ROW, let bytes = sqlite3_column_blob(select, 0) else { return nil }
        return Data(bytes: bytes, count: Int(sqlite3_column_bytes(select, 0)))
    }

    /// Every row in the order of the keys.
    func forEach(_ body: (Int, Data) -> Void) {
        while sqlite3_step(scan) == SQLITE_ROW {
            let count = Int(sqlite3_column_bytes(scan, 1))
            guard let bytes = sqlite3_column_blob(scan, 1) else { continue }
            body(Int(sqlite3_column_int64(scan, 0)), Data(bytes: bytes, count: count))
        }
        sqlite3_reset(scan)
    }

    /// Every key in order.
    func forEachKey(_ body: (Int) -> Void) {
        while sqlite3_step(scanKeys) == SQLITE_ROW { body(Int(sqlite3_column_int64(scanKeys, 0))) }
        sqlite3_reset(scanKeys)
    }
}
