import Foundation
import LarderSQLite
import LarderTestSupport
import Testing

struct SettingsTests {
    @Test(arguments: [Connection.Role.writer, .reader, .guardian], [Connection.Synchronous.normal, .full])
    func `every pragma that matters reads back as it was set`(
        role: Connection.Role, synchronous: Connection.Synchronous
    ) throws {
        let file = try DatabaseFile()
        var connection = try Connection.open(
            .file(file.path), .init(role: role, synchronous: synchronous, busyMilliseconds: 1234))
        #expect(try connection.text("PRAGMA journal_mode") == "wal")
        let expected: [(String, Int64)] = [
            ("synchronous", synchronous == .full ? 2 : 1), ("fullfsync", synchronous == .full ? 1 : 0),
            ("checkpoint_fullfsync", 1), ("wal_autocheckpoint", 0),
            ("journal_size_limit", 4 << 20), ("cache_size", role == .guardian ? 16 : -8192), ("mmap_size", 0),
            ("secure_delete", 2), ("foreign_keys", 0), ("temp_store", 2), ("query_only", role == .reader ? 1 : 0),
            ("busy_timeout", 1234), ("page_size", Int64(Connection.pageSize)), ("auto_vacuum", 2),
            ("application_id", 42), ("trusted_schema", 0),
        ]
        for (name, value) in expected { #expect(try connection.pragma(name) == value, "\(name)") }
    }

    @Test func `an emptied database shrinks by incremental vacuum`() throws {
        let file = try DatabaseFile()
        var connection = try file.open(.writer)
        for _ in 0..<10 { try connection.insert(bytes: 100_000) }
        let full = try connection.pragma("page_count")
        try connection.execute("DELETE FROM t")
        try connection.execute("PRAGMA incremental_vacuum")
        #expect(full > 200)
        #expect(try connection.pragma("page_count") < 8)
    }

    @Test func `a reader cannot write`() throws {
        let file = try DatabaseFile()
        var reader = try file.open(.reader)
        let error = #expect(throws: SQLiteError.self) { try reader.insert() }
        #expect(error.map { .readOnly ~= $0.code } == true)
    }

    @Test func `a symbolic link is not followed`() throws {
        let file = try DatabaseFile()
        let link = file.folder.real("link.sqlite").path
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file.path)
        #expect(throws: SQLiteError.self) {
            _ = try Connection.open(.file(link), .init(role: .writer, busyMilliseconds: 0)).isInAutocommit
        }
    }

    @Test func `a path with signs of a URI is a path`() throws {
        let file = try DatabaseFile()
        let odd = file.folder.real("100% ?mode=memory#ü.sqlite").path
        try FileManager.default.copyItem(atPath: file.path, toPath: odd)
        #expect(try FileHead(path: odd).applicationID == 42)
    }
}
