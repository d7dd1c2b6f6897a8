import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

struct ForeignFileTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    /// A database as another program leaves it.
    private func make(_ sql: String) throws {
        try Data().write(to: url)
        var connection = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
        try connection.execute(sql)
    }

    @Test(arguments: [
        "CREATE TABLE t (x)", "PRAGMA application_id = 7", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)",
        "PRAGMA application_id = 7; CREATE TABLE t (x)", "CREATE VIEW v AS SELECT 1",
    ])
    func `another program's database is refused and stays as it is, byte for byte`(sql: String) throws {
        try make(sql)
        let before = try folder.contents()
        for access in [CacheManager.Access.readWrite, .readOnly] {
            var configuration = CacheManager.Configuration()
            configuration.access = access
            let error = #expect(throws: CacheError.self) {
                try CacheManager(url: url, configuration: configuration)
            }
            #expect(error?.code == .foreignFile)
        }
        var after = try folder.contents()
        after["store.sqlite.lock"] = nil
        #expect(after == before)
    }

    @Test func `a database whose first transaction is under way is not overwritten`() throws {
        try Data().write(to: url)
        var other = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 120_000))
        try other.execute("BEGIN IMMEDIATE; PRAGMA user_version = 7; CREATE TABLE theirs (x)")
        let url = url
        let opening = SideThread { _ = try CacheManager(url: url, configuration: .patient) }
        // The lock file tells that it has looked at the file and found it empty.
        try Waiting.until { try folder.names.contains("store.sqlite.lock") }
        try other.execute("INSERT INTO theirs VALUES (1); COMMIT")
        let error = #expect(throws: CacheError.self) { try opening.value() }
        #expect(error?.code == .foreignFile)
        #expect(try other.userVersion() == 7)
        #expect(try other.applicationID() == 0)
        #expect(try other.text("SELECT group_concat(name) FROM sqlite_schema") == "theirs")
    }

    #if os(Linux)
    @Test func `a database without a mark whose log is there already is left to who makes it`() throws {
        try make("PRAGMA user_version = 99; VACUUM")
        let log = folder("store.sqlite-wal")
        try Data("a log".utf8).write(to: log)
        let (url, lock) = (url, folder("store.sqlite.lock").path)
        let outcome = try FileSystem.withLock(lock, waiting: 0) {
            let opening = SideThread { try CacheManager(url: url, configuration: .patient).close() }
            // It waits for us, or is not going to.
            let waiting = Result {
                try OpenFiles.wait(for: { $0 == lock }, until: { $0 == 2 || opening.result != nil })
            }
            unlink(log.path)
            return (opening, waiting)
        }
        // Without the lock nobody was made to wait for it.
        let (opening, waiting) = try #require(outcome)
        #expect(throws: Never.self) { try opening.value() }
        try waiting.get()
    }
    #endif

    @Test(arguments: [
        "", "PRAGMA page_size = 512; VACUUM", "PRAGMA journal_mode = WAL", "PRAGMA user_version = 99; VACUUM",
    ])
    func `a valid, empty database is taken`(sql: String) throws {
        try make(sql)
        let manager = try CacheManager(url: url)
        try manager.store().insertRow(named: "ours now")
        #expect(try manager.store().rowCount() == 1)
        let settings = try manager.store().read { (connection) throws(SQLiteError) in
            [try connection.pragma("page_size"), try connection.pragma("auto_vacuum")]
        }
        #expect(settings == [Int64(Connection.pageSize), 2])
    }
}
