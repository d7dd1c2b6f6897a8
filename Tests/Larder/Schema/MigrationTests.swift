import Foundation
import Larder
import LarderMigrations
import LarderSQLite
import LarderTestSupport
import Testing

struct MigrationTests {
    static let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Fixtures", isDirectory: true).standardizedFileURL

    @Test func `the steps are numbered without a gap`() {
        #expect(MigrationStep.all.map(\.number) == Array(1...Schema.current))
    }

    @Test func `every step has a store that a release with it has left`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.fixtures.path)
        for step in MigrationStep.all { #expect(names.contains("schema-\(step.number).sqlite")) }
    }

    // case 288
    @Test(arguments: MigrationStep.all.map(\.number))
    func `a store of an older schema is brought up to date with its data`(number: Int32) throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        try FileManager.default.copyItem(at: Self.fixtures.appendingPathComponent("schema-\(number).sqlite"), to: url)
        let manager = try CacheManager(url: url)
        let (version, rows) = try manager.store().read { (connection) throws(SQLiteError) in
            (try connection.userVersion(), try connection.fixtureRows())
        }
        #expect(version == Schema.current)
        #expect(
            rows == [
                "settings|1|cbor|text|hello", "settings|1|cbor|integer|1,2,3", "articles|build 7|json|blob|file ab/cd",
            ])
        #expect(try folder.names.allSatisfy { !$0.contains("corrupt") })
    }

    // case 288
    @Test(arguments: [false, true])
    func `a file of a store from before schema 2 is read, verified and replaced by the checksum of its time`(
        isDamaged: Bool
    ) throws {
        let place = try StorePlace()
        try FileManager.default.copyItem(at: Self.fixtures.appendingPathComponent("schema-1.sqlite"), to: place.url)
        var bytes = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        let sum = Int64(bitPattern: bytes.withUnsafeBytes { Checksum.xxh64($0) })
        do {
            var shell = try Intruder(place.url)
            try shell.execute("UPDATE entry SET key = 7, checksum = \(sum) WHERE file = 'ab/cd'")
        }
        if isDamaged { bytes[99_999] ^= 1 }
        let file = place.folder.url.appendingPathComponent("store.files/ab/cd")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try bytes.write(to: file)

        let manager = try place.manager()
        #expect(try manager.verify().problems.count == (isDamaged ? 1 : 0))
        let codec = ValueCodec<Data>(identifier: "json", encode: { $0 }, decode: { $0 })
        let cache: Cache<Int, Data> = try manager.cache(
            named: "articles", version: "build 7", maxAge: .hours(1), options: CacheOptions(inlineLimit: 1000),
            codec: codec)
        #expect(try cache.value(forKey: 7) == (isDamaged ? nil : bytes))
        #expect(try cache.entry(forKey: 7)?.extendedData == (isDamaged ? nil : Data([1, 2, 3])))
        let newer = Data(bytes.reversed())
        try cache.setValue(newer, forKey: 7)
        #expect(cache.disk.first { $0.key == 7 }?.value == newer)
        #expect(try place.spilledFiles().count == 1 && !FileManager.default.fileExists(atPath: file.path))
        #expect(try manager.verify().isHealthy)
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
        let manager = try CacheManager.inMemory()
        let store = try manager.store()
        try store.insertRow(named: "a")
        #expect(throws: CacheError.self) { try store.insertRow(named: "a") }
        let insert = SQL(
            "INSERT INTO entry (cache, key, size, written_at, accessed_at, revision) VALUES (1, 'k', 0, 0, 0, 0)")
        try store.write { (connection) throws(SQLiteError) in try connection.run(insert) }
        #expect(throws: CacheError.self) {
            try store.write { (connection) throws(SQLiteError) in try connection.run(insert) }
        }
    }
}

extension Connection {
    /// What Tests/Fixtures/make.sh puts into a store.
    fileprivate mutating func fixtureRows() throws(SQLiteError) -> [String] {
        try with(.fixtureRows) { (statement) throws(SQLiteError) in
            var rows: [String] = []
            while try statement.step() { rows.append(statement.text(0)) }
            return rows
        }
    }
}

extension SQL {
    fileprivate static let fixtureRows = SQL(
        """
        SELECT cache.name || '|' || version || '|' || codec || '|' || typeof(key) || '|'
            || coalesce(CAST(payload AS TEXT), 'file ' || file)
        FROM entry JOIN cache ON cache.id = entry.cache ORDER BY entry.id
        """)
}
