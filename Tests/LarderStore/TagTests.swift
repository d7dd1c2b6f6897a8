import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Payloads above 100 bytes are files here.
struct TagTests {
    /// The memory in front of a cache, which keeps what it learns.
    private final class ToldMemory: TierDelegate {
        let removed = Told<RemovedRow>()
        func rowsAreRemoved() {}
        func rowsWereRemoved(_ rows: [RemovedRow]) { for row in rows { removed.add(row) } }
        func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool) {}
        func takeAccesses(at now: Int64) -> [Access] { [] }
        func overtakeLoads(_ loads: Overtaken) {}
        func takeActivity() -> [Int64: Int64] { [:] }
    }

    private let place: StorePlace
    private let clock = StoreClock()

    init() throws { place = try StorePlace() }

    /// Opens the store with the caches "a" and "b".
    private func open() throws -> (store: Store, a: CacheRows, b: CacheRows) {
        let store = try place.open(clock)
        return (store, try store.open(.a, inlineLimit: 100), try store.open(.named("b"), inlineLimit: 100))
    }

    /// The number of rows of a table, those of retired incarnations included.
    private func count(_ table: String) throws -> Int {
        var other = try place.otherConnection()
        let text = try other.text("SELECT count(*) FROM \(table)")
        return try #require(text.flatMap { Int($0) })
    }

    /// Runs a pass of the upkeep.
    private func runPass(_ store: Store) throws {
        _ = try store.open(.a, inlineLimit: 100)
        clock.advance(1000)
    }

    private static let entries = [
        EntryWrite(1, "one", tags: ["x"]), EntryWrite(2, big("two"), tags: ["y", "x"]),
        EntryWrite(3, "three", tags: ["y"]), EntryWrite(4, big("four")),
    ]

    // MARK: Removing

    @Test func `the entries of a cache that have a tag are removed, with their value files`() throws {
        let (store, a, b) = try open()
        for rows in [a, b] { try rows.run(.put(Self.entries)) }
        #expect(try a.removeAll(tagged: "x") == 2)
        #expect(try a.text(1) == nil && a.text(2) == nil && a.text(3) == "three" && a.text(4) == big("four"))
        #expect(try a.totals() == Totals(count: 2, size: 805))
        #expect(try b.text(1) == "one" && b.text(2) == big("two") && b.totals() == Totals(count: 4, size: 1408))
        #expect(try a.removeAll(tagged: "x") == 0 && a.removeAll(tagged: "X") == 0)
        try store.close()
        #expect(try place.fileNames() == place.namedFiles() && place.fileNames().count == 3)
        #expect(try open().a.totals() == Totals(count: 2, size: 805))
    }

    @Test(arguments: [false, true])
    func `a tag is removed from all caches, and each memory learns of its entries`(isReopened: Bool) throws {
        var (store, a, b) = try open()
        for rows in [a, b] { try rows.run(.put(Self.entries)) }
        if isReopened {
            try store.close()
            (store, a, b) = try open()
        }
        let caches = [a, b].map { ($0, ToldMemory()) }
        for (rows, memory) in caches { rows.attach(memory) }
        let header = try caches.map { rows, _ in try [1, 2].compactMap { try rows.header(StoredKey.integer($0)) } }
        #expect(try store.removeAll(tagged: "x") == 4 && store.removeAll(tagged: "x") == 0)
        for ((rows, memory), header) in zip(caches, header) {
            let removed = memory.removed.all
            #expect(Set(removed.map(\.key)) == [.integer(1), .integer(2)])
            #expect(Set(removed.map(\.id)) == Set(header.map(\.id)))
            #expect(Set(removed.map(\.revision)) == Set(header.map(\.revision)))
            #expect(removed.map(\.cause) == [.tagged, .tagged])
            #expect(try rows.text(1) == nil && rows.text(2) == nil && rows.text(4) == big("four"))
            #expect(try rows.totals() == Totals(count: 2, size: 805))
            try rows.removeAll(tagged: "y")
            #expect(memory.removed.all.count == 3)
            rows.detach(memory)
        }
        try store.close()
        #expect(try place.fileNames() == place.namedFiles() && place.fileNames().count == 2)
    }

    @Test(arguments: [false, true])
    func `another reader sees all entries of a tag or none`(overAll: Bool) throws {
        let (store, a, b) = try open()
        let (caches, entries) = (overAll ? [a, b] : [a], (0..<50).map { EntryWrite($0, "x", tags: ["t"]) })
        let (isDone, reads) = (Locked(false), Counter())
        defer { isDone.change { $0 = true } }
        let reader = SideThread {
            var other = try place.otherConnection()
            var seen: Set<String> = []
            while !isDone.value {
                seen.insert(try other.text("SELECT count(*) FROM entry") ?? "")
                reads.increment()
            }
            return seen
        }
        try Waiting.until { reads.value > 0 || reader.result != nil }
        for _ in 0..<100 {
            try store.transaction { state in
                for rows in caches { _ = try state.perform(.put(entries), on: rows) }
            }
            let removed = try overAll ? store.removeAll(tagged: "t") : a.removeAll(tagged: "t")
            #expect(removed == (overAll ? 100 : 50))
        }
        isDone.change { $0 = true }
        #expect(try reader.value().isSubset(of: ["0", overAll ? "100" : "50"]))
    }

    // MARK: What a tag does not concern

    @Test func `an entry that was replaced without its tag stays`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            for tags in [[], ["y"]] {
                try rows.run(.put([EntryWrite(1, "old", tags: ["x"])]))
                try rows.run(.put([EntryWrite(1, "new", tags: tags)]))
                #expect(try rows.removeAll(tagged: "x") == 0 && store.removeAll(tagged: "x") == 0)
                #expect(try rows.text(1) == "new" && rows.totals() == Totals(count: 1, size: 3))
            }
            #expect(try store.removeAll(tagged: "y") == 1)
        }
    }

    @Test func `an entry is not removed by the tag of an entry that was removed before it`() throws {
        let (store, a, b) = try open()
        for (rows, key) in [(a, Int64(1)), (a, 2), (b, 1)] {
            try a.run(.put([EntryWrite(1, "old", tags: ["x"])]))
            let id = try #require(try a.header(.integer(1))).id
            try a.run(.remove([.integer(1)]))
            try rows.put(key, "new")
            #expect(try store.removeAll(tagged: "x") == 0 && rows.removeAll(tagged: "x") == 0)
            #expect(try rows.text(key) == "new" && rows.header(.integer(key))?.id != id)
            try rows.run(.put([EntryWrite(key, "newer", tags: ["x"])]))
            #expect(try store.removeAll(tagged: "x") == 1 && rows.text(key) == nil)
        }
    }

    @Test func `a change of attributes keeps the tags`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            for change in [AttributeChange.pin(true), .extendedData(Data([1])), .touch(at: 5, ownAge: nil)] {
                try rows.run(.put([EntryWrite(1, "one", tags: ["x", "y"])]))
                try rows.run(.change(.integer(1), change))
                #expect(try rows.header(.integer(1))?.meta.tags == ["x", "y"])
                #expect(try rows.removeAll(tagged: "y") == 1 && rows.totals() == Totals())
            }
        }
    }

    @Test func `rows of another version are not removed`() throws {
        let (store, old, _) = try open()
        try old.run(.put([EntryWrite(1, "old", tags: ["x"])]))
        let new = try store.open(.named("a", version: "2"))
        try new.run(.put([EntryWrite(2, "new", tags: ["x"])]))
        #expect(try store.removeAll(tagged: "x") == 1 && new.totals() == Totals() && count("entry") == 1)
        let error = #expect(throws: StoreError.self) { try old.removeAll(tagged: "x") }
        #expect(error?.code == .superseded)
    }

    // MARK: The table of tags

    @Test func `the rows of tags go with their entries or their cache, and no others`() throws {
        let (store, a, b) = try open()
        try b.run(.put([EntryWrite(1, "b", tags: ["x"])]))
        try a.run(.put((0..<100).map { EntryWrite($0, "a", tags: ["x", "\($0)"]) }))
        try a.run(.remove((0..<50).map { StoredKey.integer($0) }))
        try a.run(.put((50..<60).map { EntryWrite($0, "a") }))
        for key in Int64(60)..<70 { try a.run(.change(.integer(key), .pin(true))) }
        #expect(try count("tag") == 81)
        #expect(try a.removeAll(tagged: "65") == 1 && a.removeAll(tagged: "x") == 39)
        try b.run(.clear)
        try store.maintain()
        #expect(try count("tag") == 0)
    }

    @Test func `passes delete the rows of tags of 600 entries that a clear has removed`() throws {
        let (store, a, b) = try open()
        for rows in [a, b] { try rows.run(.put((0..<600).map { EntryWrite($0, "a", tags: ["x"]) })) }
        try a.run(.clear)
        for _ in 0..<2 { try runPass(store) }
        #expect(try count("entry") == 600 && count("tag") == 600 && store.removeAll(tagged: "x") == 600)
    }

    @Test func `an entry without tags needs no statement of the table of tags`() throws {
        let (_, a, b) = try open()
        var other = try place.otherConnection()
        try other.execute("ALTER TABLE tag RENAME TO gone")
        let changes: [Change] = [
            .put([EntryWrite(1, "one"), EntryWrite(2, big("two"))]),
            .put([EntryWrite(1, "more")]), .change(.integer(1), .pin(true)),
            .change(.integer(1), .touch(at: 5, ownAge: nil)), .remove([.integer(1)]), .take(.integer(2)), .clear,
        ]
        for change in changes { for rows in [a, b] { try rows.run(change) } }
        #expect(throws: StoreError.self) { try a.run(.put([EntryWrite(1, "one", tags: ["x"])])) }
        #expect(try count("gone") == 0)
    }

    @Test func `a tag can be any text`() throws {
        let long = String(repeating: "x", count: 999)
        let tags = ["", " ", "a", "a\u{0}", "a\u{0}b", "a'\"%_", "é", "É", "日本", "😀", long]
        try withStores { store in
            let rows = try store.open(.a)
            for (key, tag) in tags.enumerated() {
                try rows.run(.put([EntryWrite(Int64(key), "x", tags: [tag])]))
                #expect(try rows.header(.integer(Int64(key)))?.meta.tags == [tag])
            }
            try rows.run(.put([EntryWrite(100, "all", tags: tags + tags)]))
            for (key, tag) in tags.enumerated() {
                #expect(try rows.removeAll(tagged: tag) == (key == 0 ? 2 : 1), "\(tag)")
                #expect(try rows.row(.integer(Int64(key))) == nil && rows.row(.integer(100)) == nil, "\(tag)")
            }
        }
    }

    @Test func `tagged entries equal a model after each of many random steps`() throws {
        let (store, a, b) = try open()
        var (random, models) = (Seeded(), [[StoredKey: [String]]](repeating: [:], count: 2))
        for step in 0..<400 {
            let comment: Comment = "step \(step), seed \(random.seed)"
            let index = Int.random(in: 0...1, using: &random)
            let (rows, number) = ([a, b][index], Int64.random(in: 0..<12, using: &random))
            let (key, tag) = (StoredKey.integer(number), ["x", "y", "z"].randomElement(using: &random) ?? "")
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<10:
                let tags = ["x", "y", "z"].filter { _ in Bool.random(using: &random) }
                try rows.run(.put([EntryWrite(number, step % 3 == 0 ? big("v") : "v", tags: tags)]))
                models[index][key] = tags
            case 10, 11:
                try rows.run(.remove([key]))
                models[index][key] = nil
            case 12: try rows.run(.change(key, .pin(step % 2 == 0)))
            case 13: try runPass(store)
            case 14: try store.maintain()
            case 15:
                try rows.run(.clear)
                models[index] = [:]
            case 16, 17:
                let expected = models[index].filter { $0.value.contains(tag) }
                #expect(try rows.removeAll(tagged: tag) == expected.count, comment)
                models[index] = models[index].filter { !$0.value.contains(tag) }
            default:
                let expected = models.joined().count { $0.value.contains(tag) }
                #expect(try store.removeAll(tagged: tag) == expected, comment)
                models = models.map { $0.filter { !$0.value.contains(tag) } }
            }
            for (rows, model) in zip([a, b], models) {
                let found = try rows.headers().rows.map { ($0.key, $0.meta.tags) }
                #expect(Dictionary(uniqueKeysWithValues: found) == model, comment)
                #expect(try rows.totals().count == Int64(model.count), comment)
            }
        }
        try store.maintain()
        #expect(try count("tag") == models.joined().reduce(0) { $0 + $1.value.count })
    }
}

extension EntryWrite {
    fileprivate init(_ key: Int64, _ text: String, tags: [String]) {
        var meta = RowMeta()
        meta.tags = tags
        self.init(key, text, meta: meta)
    }
}

extension CacheDeclaration {
    static func named(_ name: String, version: String = "1", _ rule: AgeRule = .unlimited) -> CacheDeclaration {
        CacheDeclaration(name: name, version: version, codec: "data", ageRule: rule)
    }
}
