import Foundation
import Larder
import LarderLocks
import LarderTestSupport
import Testing

/// What an article was under version 2, and what it is now.
struct OldHeadline: Codable, Hashable, Sendable { var name: String }
struct Headline: Codable, Hashable, Sendable {
    var title: String
    var edition: Int
}

/// Entries that are carried over to another version.
struct MigrationTests {
    private typealias Step = CacheMigration<Int, Headline>
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func old(
        _ manager: CacheManager? = nil, version: CacheVersion = "1", maxAge: MaxAge = .hours(1),
        _ options: CacheOptions = CacheOptions(inlineLimit: 100)
    ) throws -> Cache<Int, OldHeadline> {
        try (manager ?? self.manager).cache(named: "a", version: version, maxAge: maxAge, options: options.steady)
    }

    private func new(
        _ steps: [CacheMigration<Int, Headline>], _ manager: CacheManager? = nil, maxAge: MaxAge = .hours(1),
        _ options: CacheOptions = CacheOptions(inlineLimit: 100), progress: ProgressHandler? = nil
    ) throws -> Cache<Int, Headline> {
        try (manager ?? self.manager).cache(
            named: "a", version: "2", maxAge: maxAge, options: options.steady, migrations: steps, progress: progress)
    }

    private static let convert = CacheMigration<Int, Headline>.from("1", as: OldHeadline.self) {
        Headline(title: $0.name, edition: 2)
    }

    private func report(of manager: CacheManager? = nil) async -> MigrationReport? {
        for await event in (manager ?? self.manager).events {
            if case .migrated(let report) = event.kind { return report }
        }
        return nil
    }

    /// Expects that the store has nothing of an older version and of a migration.
    private func expectClean(_ count: Int) throws {
        try manager.maintain()
        let probe = StoreProbe(manager)
        #expect(try probe.entryCount() == count && probe.fileProblems(isSwept: true) == [])
        #expect(try manager.verify().isHealthy)
        #expect(!FileManager.default.fileExists(atPath: place.url.path + ".migration"))
    }

    // MARK: What is carried over

    @Test func `an entry keeps all but its value, in a row and in a file`() async throws {
        let old = try old(maxAge: .hours(1))
        let names = [1: "short", 2: String(repeating: "long", count: 100)]
        for (key, name) in names {
            try await old.setValue(OldHeadline(name: name), forKey: key, maxAge: .hours(3), tags: ["both", "\(key)"])
        }
        try await old.setValue(
            OldHeadline(name: "plain"), forKey: 3, cost: 17, extendedData: Data([1, 2]), pinned: true)
        try await old.setValue(OldHeadline(name: "sliding"), forKey: 4, maxAge: .hours(2).sinceLastAccess)
        try await old.setValue(OldHeadline(name: "until"), forKey: 5, maxAge: .until(place.clock.now + 5_000))
        try await old.setValue(OldHeadline(name: "accessed"), forKey: 6)
        place.clock.advance(by: .seconds(10 * 60))
        _ = (old[6], old[4])
        let before = try await old.metadata(forKeys: 1...6)

        let new = try new([Self.convert])
        let others = [3: "plain", 4: "sliding", 5: "until", 6: "accessed"]
        #expect(try await new.snapshot().mapValues(\.title) == names.merging(others) { a, _ in a })
        let after = try await new.metadata(forKeys: 1...6)
        for key in 1...6 {
            let (a, b) = (try #require(before[key]), try #require(after[key]))
            #expect(a.writtenAt == b.writtenAt && a.expiresAt == b.expiresAt && a.accessedAt == b.accessedAt, "\(key)")
            #expect(a.isPinned == b.isPinned && a.tags == b.tags && a.cost == b.cost && a.isFile == b.isFile, "\(key)")
        }
        #expect(after[2]?.isFile == true && after[3]?.isPinned == true && after[6]?.accessedAt == place.clock.now)
        #expect(try await new.extendedData(forKey: 3) == Data([1, 2]))
        #expect(try await Set(new.keys(tagged: "both")) == [1, 2])
        #expect(try await new.fileURL(forKey: 2) != nil)
        try expectClean(6)
        place.clock.advance(by: .seconds(100 * 60))
        #expect(new[1] != nil && new[4] != nil && new[5] == nil && new[6] == nil)
    }

    @Test func `what has expired is not carried over`() async throws {
        let old = try old(maxAge: .minutes(1))
        try await old.setValue(OldHeadline(name: "old"), forKey: 1)
        try await old.setValue(OldHeadline(name: "older"), forKey: 2, maxAge: .hours(1))
        place.clock.advance(by: .seconds(2 * 60))
        #expect(try await new([Self.convert], maxAge: .unlimited).snapshot().keys.sorted() == [2])
        #expect(await report()?.dropped == 0)
        try expectClean(1)
    }

    @Test func `what is refused or does not decode is dropped, and reported`() async throws {
        let old = try old()
        try await old.setValues((0..<100).map { ($0, OldHeadline(name: "\($0)")) })
        let new = try new([
            .from("1", as: OldHeadline.self) { key, old, metadata in
                #expect(old.name == "\(key)" && metadata.size > 0)
                if key % 4 == 1 { throw Offline() }
                return key % 4 == 2 ? nil : Headline(title: old.name, edition: key)
            }
        ])
        #expect(try await new.snapshot().keys.sorted() == (0..<100).filter { [0, 3].contains($0 % 4) })
        let report = try #require(await report())
        #expect(report.converted == 50 && report.dropped == 50 && report.cacheName == "a")
        #expect(report.oldVersion == "1" && report.version == "2")
        #expect(report.firstDropped == (0..<100).filter { [1, 2].contains($0 % 4) }.prefix(20).map { "\($0)" })
        try expectClean(50)

        struct Other: Codable, Sendable { var number: Int }
        let later: Cache<Int, Other> = try await manager.cache(
            named: "a", version: "3", maxAge: .hours(1), migrations: [.from("2", as: Other.self) { $0 }])
        #expect(try await later.snapshot().isEmpty)
        try expectClean(0)
    }

    @Test(arguments: ["1", "0"])
    func `steps are chained, and the shortest way is taken`(version: CacheVersion) async throws {
        try await old(version: version).setValue(OldHeadline(name: "x"), forKey: 1)
        let new = try new([
            .from("1.5", as: Headline.self) { Headline(title: $0.title + "c", edition: $0.edition + 1) },
            .from("1", as: OldHeadline.self, to: "1.5", as: Headline.self) {
                Headline(title: $0.name + "b", edition: 1)
            },
            .from("0", as: OldHeadline.self, to: "1", as: OldHeadline.self) { OldHeadline(name: $0.name + "a") },
            .from("0", as: OldHeadline.self, to: "1.5", as: Headline.self) {
                Headline(title: $0.name + "z", edition: 1)
            },
        ])
        #expect(new[1] == Headline(title: version == "1" ? "xbc" : "xzc", edition: 2))
    }

    @Test func `a value that may be nil is converted to one`() async throws {
        let old: Cache<Int, Int> = try await manager.cache(named: "a", version: "1", maxAge: .unlimited)
        try await old.setValues([1: 1, 2: 2, 3: 3])
        let new: Cache<Int, Int?> = try await manager.cache(
            named: "a", version: "2", maxAge: .unlimited,
            migrations: [.from("1", as: Int.self) { $0 == 1 ? .none : $0 == 2 ? .some(nil) : .some($0) }])
        #expect(try await new.snapshot() == [2: nil, 3: 3])
    }

    @Test func `kept values are not rewritten, and neither are their files`() async throws {
        let first: Cache<Int, Headline> = try await manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(inlineLimit: 100))
        let values = [
            1: Headline(title: "a", edition: 1), 2: Headline(title: String(repeating: "b", count: 300), edition: 1),
        ]
        try await first.setValues(values)
        try await manager.flush()
        let files = try place.spilledFiles()
        let before = try await first.metadata(forKeys: [1, 2])
        let writes = try StoreProbe(manager).commitCount()
        let new = try new([.keeping("1"), .from("0", as: OldHeadline.self) { _ in nil }])
        #expect(try StoreProbe(manager).commitCount() <= writes + 2)
        #expect(try await new.snapshot() == values)
        #expect(try await new.metadata(forKeys: [1, 2]) == before)
        #expect(try place.spilledFiles() == files && files.count == 1)
        #expect(await report()?.converted == nil)
        #expect(first[1] == nil)
        expectError(.superseded) { try first.setValue(values[1], forKey: 1) }
        try expectClean(2)
    }

    @Test func `without a step from what is stored the cache is purged`() async throws {
        try await old(version: "0").setValue(OldHeadline(name: "x"), forKey: 1)
        #expect(try await new([Self.convert]).snapshot().isEmpty)
        #expect(await manager.events.first { _ in true }?.kind == .purged(version: "0"))
    }

    @Test func `a cache that is there already is not migrated`() async throws {
        let first = try new([Self.convert])
        first[1] = Headline(title: "x", edition: 9)
        let again = try new([Self.convert, .keeping("0")])
        #expect(again[1]?.edition == 9)
    }

    @Test(arguments: [ValueCodec<OldHeadline>.json, .propertyList, .cbor])
    func `the old values may have another codec, and transforms are those of the cache`(
        codec: ValueCodec<OldHeadline>
    ) async throws {
        let flip = DataTransform(identifier: "flip", apply: { Data($0.map { ~$0 }) }, undo: { Data($0.map { ~$0 }) })
        let old: Cache<Int, OldHeadline> = try await manager.cache(
            named: "a", version: "1", maxAge: .unlimited, codec: codec.then(flip))
        old[1] = OldHeadline(name: "x")
        let other: Cache<Int, Headline> = try await manager.cache(
            named: "a", version: "2", maxAge: .unlimited, codec: .json.then(flip),
            migrations: [
                .from("1", as: OldHeadline.self, codec: codec.then(flip)) { Headline(title: $0.name, edition: 1) }
            ])
        #expect(other[1]?.title == "x")
        // The codec of the cache is that of its older values.
        let last: Cache<Int, OldHeadline> = try await manager.cache(
            named: "a", version: "3", maxAge: .unlimited, codec: .json.then(flip),
            migrations: [.from("2", as: Headline.self) { OldHeadline(name: $0.title) }])
        #expect(last[1]?.name == "x")
    }

    @Test func `old values need not be codable, with a codec of their own`() throws {
        struct Plain: Sendable { var text: String }
        let own = ValueCodec<Plain>(identifier: "plain") {
            Data($0.text.utf8)
        } decode: {
            Plain(text: String(decoding: $0, as: UTF8.self))
        }
        let old: Cache<Int, Plain> = try manager.cache(named: "a", version: "1", maxAge: .hours(1), codec: own)
        old[1] = Plain(text: "x")
        #expect(
            try new([.from("1", as: Plain.self, codec: own) { Headline(title: $0.text, edition: 1) }])[1]?.title == "x")
    }

    @Test(arguments: [true, false])
    func `progress is told, also to a task`(isTask: Bool) async throws {
        try await old().setValues((0..<1_000).map { ($0, OldHeadline(name: "\($0)")) })
        let told = Mutex<[CacheProgress]>([])
        let note: ProgressHandler = { progress in told.withLock { $0.append(progress) } }
        if isTask {
            let _: Cache<Int, Headline> = try await manager.cache(
                named: "a", version: "2", maxAge: .hours(1), migrations: [Self.convert], progress: note)
        } else {
            _ = try new([Self.convert], progress: note)
        }
        let all = told.withLock { $0 }
        #expect(all.count > 2 && all.map(\.completed) == all.map(\.completed).sorted())
        #expect(all.allSatisfy { $0.total == 1_000 } && all.last?.completed == 1_000)
    }

    @Test func `a store in memory and one that is only read have nothing to migrate`() async throws {
        let memory = try CacheManager.inMemory(configuration: place.clock.configuration)
        try await old(memory).setValue(OldHeadline(name: "x"), forKey: 1)
        #expect(try await new([Self.convert], memory).snapshot().isEmpty)
        try await old().setValue(OldHeadline(name: "x"), forKey: 1)
        try await manager.close()
        let reader = try place.manager { $0.access = .readOnly }
        #expect(try await new([Self.convert], reader).snapshot().isEmpty)
        #expect(try old(reader)[1] != nil)
    }

    // MARK: What is refused

    private static let refused: [[CacheMigration<Int, Headline>]] = [
        [.keeping("2")],
        [convert, .from("2", as: Headline.self, to: "1", as: OldHeadline.self) { _ in nil }],
        [convert, convert],
        [convert, .keeping("1")],
        [.from("0", as: OldHeadline.self, to: "1", as: OldHeadline.self) { $0 }],
        [convert, .from("0", as: OldHeadline.self, to: "1", as: Headline.self) { _ in nil }],
        [
            convert, .from("0", as: OldHeadline.self, to: "1", as: OldHeadline.self) { $0 },
            .from("0", as: OldHeadline.self, to: "1", as: OldHeadline.self) { $0 }, .keeping("0"),
        ],
        [
            convert, .keeping("1.1"), .from("0", as: OldHeadline.self, to: "1", as: OldHeadline.self) { $0 },
            .from("0", as: OldHeadline.self, to: "1.1", as: Headline.self) { _ in nil },
        ],
        [.from("1", as: OldHeadline.self, codec: .json) { _ in nil }],
    ]

    @Test(arguments: refused.indices)
    func `loops, ambiguous ways, dead ends and other types are refused, and nothing is touched`(index: Int) throws {
        let old = try old()
        old[1] = OldHeadline(name: "x")
        let error = expectError(.invalidConfiguration) { try new(Self.refused[index]) }
        #expect(error?.message.contains("The migrations of the cache \"a\" cannot be used") == true)
        #expect(old[1] != nil)
        try old.setValue(OldHeadline(name: "y"), forKey: 2)
        try expectClean(2)
    }

    @Test func `an own codec of the cache asks for that of the old values`() throws {
        let own = ValueCodec<Headline>(identifier: "own") {
            Data($0.title.utf8)
        } decode: {
            Headline(title: String(decoding: $0, as: UTF8.self), edition: 0)
        }
        let old = try old()
        old[1] = OldHeadline(name: "x")
        func open(_ codec: ValueCodec<OldHeadline>?) throws -> Cache<Int, Headline> {
            try manager.cache(
                named: "a", version: "2", maxAge: .hours(1), codec: own,
                migrations: [.from("1", as: OldHeadline.self, codec: codec) { Headline(title: $0.name, edition: 1) }])
        }
        expectError(.invalidConfiguration) { try open(nil) }
        #expect(old[1] != nil)
        #expect(try open(.cbor)[1]?.title == "x")
    }

    @Test func `a closed or suspended store migrates nothing, and neither does a body`() throws {
        let old = try old()
        old[1] = OldHeadline(name: "x")
        try manager.transaction { _ in expectError(.reentrant) { try new([Self.convert]) } }
        try manager.suspend()
        expectError(.suspended) { try new([Self.convert]) }
        manager.resume()
        #expect(try new([Self.convert])[1] != nil)
        try manager.close()
        expectError(.closed) { try new([Self.convert]) }
    }
}
