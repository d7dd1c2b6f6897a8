import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
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
