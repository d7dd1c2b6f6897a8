import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Synchronization
import Testing

struct ForeignFileTests {
    let folder: TemporaryFolder
    let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = folder("store.sqlite")
    }

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
        let failure = Mutex<CacheError?>(nil)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            do throws(CacheError) {
                _ = try CacheManager(url: url, configuration: .patient)
            } catch {
                failure.withLock { $0 = error }
            }
            done.signal()
        }
        // The lock file tells that it has looked at the file and found it empty.
        try Waiting.until { try folder.names.contains("store.sqlite.lock") }
        try other.execute("INSERT INTO theirs VALUES (1); COMMIT")
        done.wait()
        #expect(failure.withLock { $0 }?.code == .foreignFile)
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
        let failure = Mutex<CacheError?>(nil)
        let isDone = Atomic(false)
        let done = DispatchSemaphore(value: 0)
        let outcome = try FileSystem.withLock(lock, waiting: 0) { () -> Result<Void, any Error> in
            Thread.detachNewThread {
                do throws(CacheError) {
                    try CacheManager(url: url).close()
                } catch {
                    failure.withLock { $0 = error }
                }
                isDone.store(true, ordering: .sequentiallyConsistent)
                done.signal()
            }
            // It waits for us, or is not going to.
            let waiting = Result {
                try OpenFiles.wait(
                    for: { $0 == lock }, until: { $0 == 2 || isDone.load(ordering: .sequentiallyConsistent) })
            }
            unlink(log.path)
            return waiting
        }
        // Without the lock nobody was made to wait for it.
        let waiting = try #require(outcome)
        done.wait()
        try waiting.get()
        let error = failure.withLock { $0 }
        #expect(error == nil)
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
