import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Stores of earlier and of later steps of the schema.
///
/// `Tests/Stores/2` is that of step 1, as the last library of step 2 has migrated it. `3` and `4` are that of step 2 after the
/// statements of the next steps.
/// `Tests/Stores/1` was written by the last library of step 1, with a count limit of 1,000 for "texts" and an opening of
/// "numbers" under the version "old" before that under "new".
struct MigrationTests {
    private let place: StorePlace
    /// The moment at which the store of step 1 was left.
    private static let moment: Int64 = 1_700_000_060_000

    init() throws { place = try StorePlace() }

    private static let texts = CacheDeclaration(
        name: "texts", version: "1", codec: "cbor", ageRule: .sinceWrite(30 * 86_400_000))
    private static let numbers = CacheDeclaration(
        name: "numbers", version: "new", codec: "data", ageRule: .sinceAccess(7_200_000))

    private func copyStore(
        _ step: Int = 1, to name: String = "store.sqlite", files: String = "store.files"
    ) throws {
        let stores = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Stores/\(step)")
        let manager = FileManager.default
        try manager.copyItem(at: stores.appendingPathComponent("store.sqlite"), to: place.folder(name))
        try manager.copyItem(at: stores.appendingPathComponent("store.files"), to: place.folder(files))
    }

    private func open(_ path: String? = nil, _ change: (inout Store.Options) -> Void = { _ in }) throws -> Store {
        var options = Store.Options()
        options.busyTimeout = 60_000
        options.time = StoreTime(now: { Self.moment }, wake: { _, _ in {} })
        options.report = { if !$0.isRemoval { Issue.record("\($0)") } }
        change(&options)
        return try Store.open(path ?? place.path, options)
    }

    /// Expects everything that the store of step 1 has.
    private func expectAll(in store: Store) throws {
        let (texts, numbers) = (try store.open(Self.texts), try store.open(Self.numbers))
        let rows = try texts.allRows()
        #expect(rows.count == 41)
        for number in 0..<40 {
            let row = try #require(try texts.row(.text("key \(number)")))
            #expect(
                String(decoding: row.payload.suffix("text \(number)".utf8.count), as: UTF8.self) == "text \(number)")
            #expect(row.header.meta.cost == Int64(number) && row.header.meta.isPinned == (number == 7))
            #expect(row.header.meta.extendedData == (number == 5 ? Data([1, 2, 3]) : nil))
        }
        let large = try #require(try texts.row(.text("large")))
        #expect(large.payload.count == 6003 && large.header.slidingAge == 3_600_000)
        #expect(try texts.rows(tagged: "all").count == 20 && texts.rows(tagged: "tens").count == 4)
        #expect(try numbers.allRows().map(\.payload) == (0..<10).map { Data([UInt8($0), 1]) })
        // Ten entries were read a minute after they were written.
        let accessed = try texts.headers(withAccess: true).rows.filter { $0.accessedAt > $0.writtenAt }
        #expect(Set(accessed.map(\.key)) == Set((0..<10).map { .text("key \($0)") }))
        #expect(try store.verify().problems == [])
    }

    private func schemaNumber() throws -> String? {
        var other = try place.otherConnection()
        return try other.text("PRAGMA user_version")
    }

    @Test(arguments: [1, 2, 3, 4])
    func `opening a store of an earlier step for writing keeps each entry, and everything of it`(step: Int) throws {
        try copyStore(step)
        let store = try open { $0.opener = ("a program", "9.9") }
        #expect(try schemaNumber() == "\(Schema.current)")
        try expectAll(in: store)
        var other = try place.otherConnection()
        #expect(try other.text("SELECT size_limit FROM store") == "50000000")
        #expect(try other.text("SELECT count_limit FROM cache WHERE name = 'texts' AND state = 0") == "1000")
        try store.open(Self.texts).run(.put([EntryWrite(1, "new", at: Self.moment)]))
        #expect(
            try other.text("SELECT program || ' ' || library || ' ' || opened_at FROM store")
                == "a program 9.9 \(Self.moment)")
        try store.maintain()
        try store.close()
        #expect(try open().open(Self.texts).text(1) == "new")
        #expect(try place.folder.names.filter { $0.contains("damaged") || $0.contains("salvaged") } == [])
    }

    @Test func `the first opening of a cache of step 4 notes the kind of its keys, and later ones write nothing`()
        throws
    {
        try copyStore(4)
        func declaration(_ kind: KeyKind) -> CacheDeclaration {
            CacheDeclaration(
                name: "texts", version: "1", codec: "cbor", ageRule: .sinceWrite(30 * 86_400_000), keyKind: kind)
        }
        let store = try open()
        _ = try store.open(declaration(.text))
        var other = try place.otherConnection()
        #expect(try other.text("SELECT key_kind FROM cache WHERE name = 'texts' AND state = 0") == "2")
        try store.close()
        let again = try open { $0.busyTimeout = 0 }
        try other.execute("BEGIN IMMEDIATE")
        #expect(try again.open(declaration(.text)).row(.text("key 1")) != nil)
        try other.execute("ROLLBACK")
        let error = #expect(throws: StoreError.self) { try again.open(declaration(.integer)) }
        #expect(error?.code == .otherKeys)
    }

    @Test func `a store without an ending gets a folder of its own for its large values`() throws {
        try copyStore(to: "store", files: "store.files")
        let store = try open(place.folder("store").path)
        try expectAll(in: store)
        #expect(
            try place.folder.names.filter { $0.hasPrefix("store.") && !$0.contains("lock") } == [
                "store.ballast", "store.values",
            ])
    }

    @Test(arguments: [1, 2, 3, 4])
    func `a store of an earlier step is read as it is, and stays so`(step: Int) throws {
        try copyStore(step)
        let before = try place.folder.contents()
        let store = try open { $0.isReadOnly = true }
        try expectAll(in: store)
        let look = try store.look(activityOf: 90, until: Self.moment, counts: true)
        #expect(look.caches.map(\.declaration.name) == ["numbers", "texts"])
        #expect(try store.open(Self.texts).notes().isEmpty)
        let list = try store.open(Self.texts).list(.accessed)
        #expect(list.count == 41)
        #expect(throws: StoreError.self) { try store.open(Self.texts).put(1, "new") }
        try store.close()
        #expect(try place.folder.contents() == before)
        // Nothing hinders the migration afterwards.
        try expectAll(in: open())
    }

    @Test func `a store of the first step without an ending is read with its large values`() throws {
        try copyStore(to: "store", files: "store.files")
        try expectAll(in: open(place.folder("store").path) { $0.isReadOnly = true })
    }

    @Test(arguments: [1, 2, 3, 4])
    func `a store that is migrated while an older form of it is read is read on`(step: Int) throws {
        try copyStore(step)
        let store = try open { ($0.isReadOnly, $0.recovery) = (true, .fail) }
        try expectAll(in: store)
        let writer = try open()
        let withKind = CacheDeclaration(
            name: "texts", version: "1", codec: "cbor", ageRule: .sinceWrite(30 * 86_400_000), keyKind: .text)
        let new = EntryWrite(key: .text("new"), payload: Data("new".utf8), writtenAt: Self.moment)
        try writer.open(withKind).run(.put([new]))
        #expect(try store.open(Self.texts).row(.text("new"))?.payload == Data("new".utf8))
        #expect(try store.open(Self.texts).notes().isEmpty)
        try writer.close()
    }

    @Test(arguments: [1, 2, 3, 4])
    func `a store of an earlier step is the beginning of a new one, and can be baked`(step: Int) throws {
        try copyStore(step, to: "bundled.sqlite", files: "bundled.files")
        let primed = Locked(0)
        let store = try open {
            $0.primingPath = place.folder("bundled.sqlite").path
            $0.report = { if case .primed = $0 { primed.change { $0 += 1 } } }
        }
        #expect(primed.value == 1)
        try expectAll(in: store)
        try store.close()
        let source = try open(place.folder("bundled.sqlite").path) { $0.isReadOnly = true }
        try source.bake(to: place.folder("baked.sqlite").path)
        let baked = try open(place.folder("baked.sqlite").path) { $0.isReadOnly = true }
        #expect(try baked.open(Self.texts).allRows().count == 41 && baked.open(Self.numbers).allRows().count == 10)
        #expect(try baked.open(Self.texts).row(.text("large"))?.payload.count == 6003)
        #expect(try baked.verify().problems == [])
        let error = #expect(throws: StoreError.self) { try source.bake(to: place.folder("baked.sqlite").path) }
        #expect(error?.message.contains("is there already") == true)
    }

    @Test func `an older store that takes the place of an open one is migrated too`() throws {
        let store = try open { $0.report = { _ in } }
        try store.open(Self.texts).put(1, "one")
        try copyStore(to: "old.sqlite", files: "old.files")
        try FileManager.default.moveItem(at: place.folder("old.files"), to: place.folder("store.files"))
        try FileManager.default.removeItem(at: place.folder("store.sqlite"))
        try FileManager.default.moveItem(at: place.folder("old.sqlite"), to: place.folder("store.sqlite"))
        #expect(throws: StoreError.self) { try store.open(Self.texts).put(2, "two") }
        try expectAll(in: store)
    }

    @Test func `a process that is killed while it migrates leaves the old step or the new one`() throws {
        var random = Seeded()
        var numbers: Set<String> = []
        for round in 0..<(LongTests.areEnabled ? 200 : 12) {
            let place = try StorePlace()
            try MigrationTests(place).copyStore()
            let time = round == 0 ? 0 : Int.random(in: 1..<6000, using: &random)
            try ChildProcess("larder-test-rows", ["migrate", place.path, "\(time)"]).finish()
            let migration = MigrationTests(place)
            numbers.insert(try migration.schemaNumber() ?? "")
            try migration.expectAll(in: migration.open())
        }
        #expect(
            numbers.isSubset(of: ["1", "\(Schema.current)"]) && numbers.contains("\(Schema.current)"),
            "seed \(random.seed)")
    }

    private init(_ place: StorePlace) { self.place = place }

    // MARK: Later steps

    enum Newer: CaseIterable {
        case renamedColumn, newColumn, numberAlone

        var sql: String {
            switch self {
            case .renamedColumn: "ALTER TABLE entry RENAME COLUMN meta TO m; ALTER TABLE cache RENAME COLUMN age TO a"
            case .newColumn: "ALTER TABLE entry ADD COLUMN more INTEGER NOT NULL DEFAULT 1"
            case .numberAlone: "SELECT 1"
            }
        }
    }

    @Test(arguments: Newer.allCases)
    func `each call on a store that a later release has migrated says so, and changes nothing`(newer: Newer) throws {
        let events = Told<StoreEvent>()
        let store = try place.open { options in
            options.newerSchemaReports(to: events)
        }
        let rows = try store.open(.a, inlineLimit: 100)
        try rows.run(.put([EntryWrite(1, "one"), EntryWrite(2, String(repeating: "x", count: 1000))]))
        let (reader, alone) = (SideThread { try rows.text(1) }, try rows.text(1))
        #expect(try reader.value() == alone)
        var other = try place.otherConnection()
        try other.execute("BEGIN IMMEDIATE; \(newer.sql); PRAGMA user_version = \(Schema.current + 1); COMMIT")
        let dump = "SELECT group_concat(quote(id) || quote(key) || quote(payload)) FROM entry"
        let before = try other.text(dump)
        let calls: [() throws -> Void] = [
            { try rows.put(1, "two") }, { _ = try rows.text(1) }, { _ = try rows.keys() }, { _ = try rows.totals() },
            { try rows.run(.clear) }, { _ = try store.open(.a) }, { try store.maintain() }, { try store.removeAll() },
            { _ = try store.caches() }, { try store.removeAll(tagged: "t") },
            { _ = try rows.trim(to: Limits(count: 0)) },
            { try store.transaction { _ = try $0.perform(.remove([.integer(1)]), on: rows) } },
        ]
        for (index, call) in calls.enumerated() {
            let error = #expect(throws: StoreError.self, "call \(index)") { try call() }
            #expect(error?.code == .newerSchema, "call \(index): \(String(describing: error))")
        }
        try store.close()
        #expect(try other.text(dump) == before && other.text("PRAGMA user_version") == "\(Schema.current + 1)")
        #expect(try place.folder.names.filter { $0.contains("damaged") } == [])
        #expect(events.all.isEmpty)
        #expect(throws: StoreError.self) { try place.open() }
    }
}

extension Store.Options {
    /// Keeps each report but those of removals.
    fileprivate mutating func newerSchemaReports(to events: Told<StoreEvent>) {
        report = { if !$0.isRemoval { events.add($0) } }
    }
}
