import Foundation
import LarderSQLite
import LarderTestSupport

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
