import CSQLite
import Foundation

/// The library's own tables and statements, prepared and called from plain code: what the library could reach at best.
///
/// It works on a copy of a store's file. Reads are in one open transaction, and scans in pages as the library's. A write looks
/// the row up by its key, updates it by its id, and looks at the path once a transaction. Its read transaction stays open over
/// commits, until the log is copied.
final class OwnSchema: @unchecked Sendable {
    // Safety: a connection is used by one thread at a time.
    private var handle: OpaquePointer?
    private var select, find, update, begin, commit, rowPage, keyPage, keeper: OpaquePointer?
    private let pagesInLog = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
    private var isKept = false
    private let path: String
    private var cache: Int64 = 0

    /// - Parameter isReading: Whether a read transaction stays open.
    init(copyOf store: URL, isReading: Bool) {
        path = Workplace.path().path
        attempt { try FileManager.default.copyItem(atPath: store.path, toPath: path) }
        precondition(sqlite3_open(path, &handle) == SQLITE_OK)
        run(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = FAST; PRAGMA cache_size = -8192"
        )
        run("PRAGMA journal_size_limit = 4194304")
        let caches = prepare("SELECT id FROM cache WHERE state = 0")
        precondition(sqlite3_step(caches) == SQLITE_ROW)
        cache = sqlite3_column_int64(caches, 0)
        sqlite3_finalize(caches)
        let header = "id, revision, written_at, expires_at, coalesce(size, length(payload)), file, meta, checksum"
        select = prepare(
            """
            SELECT id, revision, written_at, expires_at, size, file, meta, checksum, payload
            FROM entry WHERE cache = ?1 AND key = ?2
            """)
        find = prepare("SELECT \(header) FROM entry WHERE cache = ?1 AND key = ?2")
        update = prepare(
            """
            UPDATE entry SET revision = ?1, written_at = ?2, expires_at = NULL, checksum = ?3, meta = NULL, payload = ?4,
                file = NULL, size = NULL
            WHERE id = ?5
            """)
        let page = "FROM entry WHERE cache = ?1 AND key > ?2 ORDER BY key LIMIT 256"
        rowPage = prepare("SELECT \(header), payload, key \(page)")
        keyPage = prepare("SELECT id, key \(page)")
        begin = prepare("BEGIN IMMEDIATE")
        commit = prepare("COMMIT")
        keeper = prepare("SELECT 1 FROM sqlite_schema LIMIT 1")
        pagesInLog.initialize(to: 0)
        _ = sqlite3_wal_hook(
            handle,
            { place, _, _, pages in
                place?.assumingMemoryBound(to: Int32.self).pointee = pages
                return SQLITE_OK
            }, pagesInLog)
        if isReading { run("BEGIN; SELECT count(*) FROM cache") }
    }

    deinit {
        for statement in [select, find, update, begin, commit, rowPage, keyPage, keeper] { sqlite3_finalize(statement) }
        sqlite3_close(handle)
        pagesInLog.deallocate()
    }

    private func run(_ sql: String) { precondition(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK) }

    private func prepare(_ sql: String) -> OpaquePointer? {
        var statement: OpaquePointer?
        precondition(
            sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK)
        return statement
    }

    func get(_ key: Int) -> Data? {
        sqlite3_bind_int64(select, 1, cache)
        sqlite3_bind_int64(select, 2, Int64(key))
        defer { sqlite3_reset(select) }
        guard sqlite3_step(select) == SQLITE_ROW, let bytes = sqlite3_column_blob(select, 8) else { return nil }
        return Data(bytes: bytes, count: Int(sqlite3_column_bytes(select, 8)))
    }

    func forEach(_ body: (Int, Data) -> Void) {
        pages(rowPage) { row in
            let key = sqlite3_column_int64(row, 9)
            let bytes = sqlite3_column_blob(row, 8)
            body(Int(key), bytes.map { Data(bytes: $0, count: Int(sqlite3_column_bytes(row, 8))) } ?? Data())
            return key
        }
    }

    func forEachKey(_ body: (Int) -> Void) {
        pages(keyPage) { row in
            let key = sqlite3_column_int64(row, 1)
            body(Int(key))
            return key
        }
    }

    /// - Parameter body: Returns the key of its row.
    private func pages(_ page: OpaquePointer?, _ body: (OpaquePointer?) -> Int64) {
        var (last, count) = (Int64.min, 0)
        repeat {
            sqlite3_bind_int64(page, 1, cache)
            sqlite3_bind_int64(page, 2, last)
            count = 0
            while sqlite3_step(page) == SQLITE_ROW {
                last = body(page)
                count += 1
            }
            sqlite3_reset(page)
        } while count == 256
    }

    /// Runs `body` in a transaction.
    func transaction(_ body: () -> Void) {
        run(begin)
        body()
        if !isKept { precondition(sqlite3_step(keeper) == SQLITE_ROW) }
        run(commit)
        isKept = pagesInLog.pointee < 1000
        if !isKept {
            sqlite3_reset(keeper)
            sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        }
        var status = stat()
        precondition(lstat(path, &status) == 0)
    }

    private func run(_ statement: OpaquePointer?) {
        precondition(sqlite3_step(statement) == SQLITE_DONE)
        sqlite3_reset(statement)
    }

    /// Replaces the value of a key that is there.
    func set(_ key: Int, _ value: Data) {
        sqlite3_bind_int64(find, 1, cache)
        sqlite3_bind_int64(find, 2, Int64(key))
        precondition(sqlite3_step(find) == SQLITE_ROW)
        let (id, revision) = (sqlite3_column_int64(find, 0), sqlite3_column_int64(find, 1))
        sqlite3_reset(find)
        sqlite3_bind_int64(update, 1, revision &* 6_364_136_223_846_793_005 &+ 1)
        sqlite3_bind_int64(update, 2, Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000))
        sqlite3_bind_int64(update, 3, revision)
        sqlite3_bind_int64(update, 5, id)
        value.withUnsafeBytes { bytes in
            _ = bench_bind_blob(update, 4, bytes.baseAddress, Int32(bytes.count))
            run(update)
        }
    }
}
