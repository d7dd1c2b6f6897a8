import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Files at the path of a store that other programs have created, or are creating.
struct ForeignFileTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    /// A connection of another program, which creates the file.
    private func other(busyMilliseconds: Int32 = 0) throws -> Connection {
        try Data().write(to: url)
        return try Connection.open(.file(url.real.path), .init(role: .writer, busyMilliseconds: busyMilliseconds))
    }

    @Test func `a database of another program is refused with every access, and stays as it is`() throws {
        do {
            var other = try other()
            try other.execute("CREATE TABLE theirs (x)")
        }
        let before = try Data(contentsOf: url)
        for access in [CacheManager.Access.readWrite, .readOnly] {
            expectError(.foreignFile) { try CacheManager(url: url, configuration: .init(access: access)) }
        }
        #expect(try Data(contentsOf: url) == before)
    }

    @Test func `a database whose first transaction is running is not overwritten`() throws {
        var other = try other(busyMilliseconds: 120_000)
        try other.execute("BEGIN IMMEDIATE; PRAGMA user_version = 7; CREATE TABLE theirs (x)")
        let url = url
        let opening = SideThread { try CacheManager(url: url, configuration: .patient).close() }
        // The opening has its lock file before it looks at the database, which is still empty.
        try Waiting.until { try folder.names.contains("store.sqlite.lock") }
        try other.execute("INSERT INTO theirs VALUES (1); COMMIT")
        expectError(.foreignFile) { try opening.value() }
        #expect(try other.userVersion() == 7)
        #expect(try other.applicationID() == 0)
        #expect(try other.text("SELECT group_concat(name) FROM sqlite_schema") == "theirs")
    }

    @Test(arguments: ["", "PRAGMA page_size = 512; VACUUM", "PRAGMA user_version = 99; VACUUM"])
    func `an empty database becomes a store, with the pages of one`(sql: String) throws {
        do {
            var other = try other()
            try other.execute(sql)
        }
        let manager = try CacheManager(url: url)
        let cache: Cache<Int, Int> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        cache[1] = 1
        #expect(try cache.disk.value(forKey: 1) == 1)
        var shell = try Connection.open(.file(url.real.path), .init(role: .reader, busyMilliseconds: 120_000))
        let (pageSize, vacuum) = (try shell.pragma("page_size"), try shell.pragma("auto_vacuum"))
        #expect(pageSize == 4096 && vacuum == 2)
    }
}
