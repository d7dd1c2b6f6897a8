import Foundation
import Larder
import LarderMigrations
import LarderSQLite
import LarderTestSupport
import Testing

struct MigrationTests {
    @Test func `the steps are numbered without a gap`() {
        #expect(MigrationStep.all.map(\.number) == Array(1...Schema.current))
    }

    // case 137
    @Test func `a newer schema is refused and left alone, or set aside if the policy says so`() throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        do {
            let manager = try CacheManager(url: url)
            try manager.store().write { (connection) throws(SQLiteError) in
                try connection.insertRow(named: "of the future")
                try connection.setUserVersion(Schema.current + 1)
            }
        }
        let before = try folder.contents()
        for access in [CacheManager.Access.readWrite, .readOnly] {
            var configuration = CacheManager.Configuration()
            configuration.access = access
            let error = #expect(throws: CacheError.self) { try CacheManager(url: url, configuration: configuration) }
            #expect(error?.code == .newerSchema)
        }
        #expect(try folder.contents()["store.sqlite"] == before["store.sqlite"])
        #expect(try folder.names.allSatisfy { !$0.contains("corrupt") })

        var configuration = CacheManager.Configuration()
        configuration.newerSchema = .recreate
        let manager = try CacheManager(url: url, configuration: configuration)
        #expect(try manager.store().rowCount() == 0)
        #expect(try folder.names.contains { $0.contains("corrupt") })
    }

    @Test func `a step that fails leaves the schema where it was`() throws {
        var connection = try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
        _ = try connection.claimEmptyDatabase(applicationID: Schema.applicationID)
        // In the way of the second table of step 1.
        try connection.execute("CREATE TABLE entry (x)")
        do {
            try Schema.migrate(&connection)
            Issue.record("a step went through over a table in its way")
        } catch {
            #expect(error.message.contains("already exists"))
        }
        #expect(try connection.userVersion() == 0)
        let tables = try connection.text("SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table'")
        #expect(tables == "entry")
    }

    // case 314
    @Test func `two rows for one key, and two live generations of one name, cannot be`() throws {
        var connection = try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
        try Schema.migrate(&connection)
        for sql in [
            "INSERT INTO cache (name, version, codec, age_rule, opened_at) VALUES ('a', '', '', 0, 0)",
            "INSERT INTO entry (cache, key, size, written_at, accessed_at, revision) VALUES (1, 'k', 0, 0, 0, 0)",
        ] {
            try connection.execute(sql)
            do {
                try connection.execute(sql)
                Issue.record("the second one went in: \(sql)")
            } catch {
                #expect(.constraint ~= error.code)
            }
        }
    }
}
