import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Expects that everything that can be asked of a sub-cache says the same, and that nothing is left open.
func expectInvariants<Key, Value: Equatable>(
    _ cache: Cache<Key, Value>, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    try expectAgreement(cache, sourceLocation: sourceLocation)
    // Upkeep may be reading at this moment.
    try Waiting.until { try cache.manager.store().isIdle }
}

/// Expects that everything that can be asked of a sub-cache says the same; lets go of nothing.
func expectAgreement<Key, Value: Equatable>(
    _ cache: Cache<Key, Value>, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let listed = cache.map { ($0.key, $0.value) }
    #expect(try cache.count == listed.count, sourceLocation: sourceLocation)
    #expect(try cache.isEmpty == listed.isEmpty, sourceLocation: sourceLocation)
    let dictionary = Dictionary(listed) { first, _ in first }
    #expect(dictionary.count == listed.count, "no key twice", sourceLocation: sourceLocation)
    #expect(try cache.snapshot() == dictionary, sourceLocation: sourceLocation)
    for (key, value) in listed {
        // Memory first, the disk alone, without the value, and without anything.
        #expect(try cache.value(forKey: key) == value, sourceLocation: sourceLocation)
        #expect(try cache.entry(forKey: key)?.value == value, sourceLocation: sourceLocation)
        #expect(try cache.metadata(forKey: key) != nil, sourceLocation: sourceLocation)
        #expect(try cache.contains(key), sourceLocation: sourceLocation)
    }
    #expect(try cache.values(forKeys: listed.map(\.0)) == dictionary, sourceLocation: sourceLocation)
    let store = try cache.manager.store()
    let rows = try RawRows(store, cacheNamed: cache.name)
    #expect(rows.count >= listed.count, sourceLocation: sourceLocation)
    #expect(try cache.sizeOnDisk == rows.size, sourceLocation: sourceLocation)
    #expect(rows.unsound == 0, "size is not that of the bytes", sourceLocation: sourceLocation)
}

/// Expects that a store in `time` holds nobody up for longer than it may.
///
/// Whoever asks the store itself, whether it is idle or to copy its log, makes it let go first. Another process cannot ask:
/// once the readers' time is over, it copies all of the log, what was committed after their reads too.
func expectNothingHeld(
    at url: URL, _ time: ManualTime, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    time.advance(by: .seconds(1))
    var other = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
    var guardian = try Connection.open(.file(url.path), .init(role: .guardian, busyMilliseconds: 0))
    // A copy is complete beside a reader that has seen the last commit.
    try other.execute("UPDATE cache SET opened_at = opened_at")
    #expect(try other.checkpoint(guardedBy: &guardian)?.isComplete == true, sourceLocation: sourceLocation)
}

/// What the tables say of a sub-cache.
struct RawRows {
    let count: Int
    let size: Int64
    let unsound: Int

    init(_ store: Store, cacheNamed name: String) throws {
        (count, size, unsound) = try store.read { (connection) throws(SQLiteError) in
            try connection.with(.rows) { (statement) throws(SQLiteError) in
                try statement.bind(name, at: 1)
                _ = try statement.step()
                return (Int(statement.int64(0)), statement.int64(1), Int(statement.int64(2)))
            }
        }
    }
}

extension SQL {
    fileprivate static let rows = SQL(
        """
        SELECT count(*), ifnull(sum(size), 0),
            ifnull(sum(CASE WHEN file IS NULL
                THEN payload IS NULL OR size <> length(payload) + ifnull(length(extended), 0)
                ELSE payload IS NOT NULL END), 0)
        FROM entry JOIN cache ON cache.id = entry.cache WHERE cache.name = ?1 AND cache.is_retired = 0
        """)
}

/// Somebody else who works on the file, in no way known to the store.
struct Intruder: ~Copyable {
    private var connection: Connection
    private let files: URL

    init(_ url: URL) throws {
        connection = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 120_000))
        files = url.deletingPathExtension().appendingPathExtension("files")
    }

    /// Runs SQL as it is: a row that it changes does not fit its checksum any more.
    mutating func execute(_ sql: String) throws { try connection.execute(sql) }

    /// Changes rows by SQL, with the checksums that fit.
    mutating func change(_ sql: String) throws { try connection.changeRows(sql, files: files) }

    /// Runs `body` while SQLite does not know that there is an index of the keys.
    static func hideIndex(at url: URL, _ body: (inout Intruder) throws -> Void) throws {
        func change(_ sql: String) throws {
            var intruder = try Intruder(url)
            try intruder.execute("PRAGMA writable_schema = ON; \(sql); PRAGMA writable_schema = OFF")
        }
        try change("CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'entry_key'")
        try change("DELETE FROM sqlite_schema WHERE name = 'entry_key'")
        var intruder = try Intruder(url)
        try body(&intruder)
        try change("INSERT INTO sqlite_schema SELECT * FROM kept")
        try change("DROP TABLE kept")
    }
}

/// Expects a `CacheError` of this code.
@discardableResult
func expectError<R>(
    _ code: CacheError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> R
) -> CacheError? {
    do {
        _ = try body()
        Issue.record("nothing was thrown", sourceLocation: sourceLocation)
        return nil
    } catch {
        let error = error as? CacheError
        #expect(error?.code == code, "\(String(describing: error))", sourceLocation: sourceLocation)
        #expect(error?.message.isEmpty == false, sourceLocation: sourceLocation)
        return error
    }
}
