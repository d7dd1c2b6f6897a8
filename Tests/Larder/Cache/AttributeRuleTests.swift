import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// Attributes that the rule of a cache gives to what is written.
struct AttributeRuleTests {
    private struct Article: Codable, Equatable, Sendable {
        var author: String
        var size = 1
    }

    private let store: TemporaryStore
    private let manager: CacheManager
    private let cache: Cache<Int, Article>
    private let asked: Locked<[Int]>

    init() throws {
        (store, manager) = try TemporaryStore.opened()
        let asked = Locked<[Int]>([])
        self.asked = asked
        cache = try Self.open(manager, asked)
    }

    private static func open(
        _ manager: CacheManager, version: CacheVersion = "1", _ asked: Locked<[Int]>,
        migrations: [CacheMigration<Int, Article>] = []
    ) throws -> Cache<Int, Article> {
        try manager.cache(
            named: "articles", version: version, maxAge: .days(1),
            attributes: { key, article in
                asked.change { $0.append(key) }
                return EntryAttributes(
                    tags: article.author.isEmpty ? [] : ["author:\(article.author)"], cost: article.size * 10,
                    maxAge: article.author == "Ann" ? .hours(1) : nil)
            }, migrations: migrations)
    }

    private func keys(_ author: String) throws -> [Int] { try cache.keys(tagged: "author:\(author)").sorted() }

    @Test func `subscripts and writes of one or many keys ask the rule once for each value`() throws {
        cache[1] = Article(author: "Ann", size: 3)
        try cache.setValue(Article(author: "Bob"), forKey: 2)
        try cache.setValue(Article(author: "Ann"), forKey: 3)
        try cache.setValues([4: Article(author: "Ann")])
        try cache.setValues([(5, Article(author: "Bob"))])
        cache.disk[6] = Article(author: "Ann")
        try manager.transaction { try $0.setValue(Article(author: "Bob"), forKey: 7, in: cache) }
        #expect(try keys("Ann") == [1, 3, 4, 6] && keys("Bob") == [2, 5, 7])
        #expect(asked.value == [1, 2, 3, 4, 5, 6, 7])
        let metadata = try #require(try cache.metadata(forKey: 1))
        #expect(metadata.cost == 30 && metadata.expiresAt == store.clock.now.addingTimeInterval(3600))
        #expect(try cache.metadata(forKey: 2)?.expiresAt == store.clock.now.addingTimeInterval(86_400))
        #expect(cache.memory.totalCost == 80)
        // The index follows the value.
        cache[1] = Article(author: "Bob")
        cache[2] = nil
        #expect(try keys("Ann") == [3, 4, 6] && keys("Bob") == [1, 5, 7])
        #expect(try cache.removeAll(tagged: "author:Bob") == 3 && cache[1] == nil)
    }

    @Test func `writes of tasks ask the rule too`() async throws {
        try await cache.setValue(Article(author: "Ann"), forKey: 1)
        try await cache.setValues([(2, Article(author: "Ann"))])
        try await cache.setValues([3: Article(author: "Bob")])
        try await manager.transaction { [cache] in try $0.setValue(Article(author: "Ann"), forKey: 4, in: cache) }
        #expect(try await cache.keys(tagged: "author:Ann").sorted() == [1, 2, 4])
        #expect(try await cache.removeAll(tagged: "author:Bob") == 1 && asked.value == [1, 2, 3, 4])
    }

    @Test func `what a call gives wins, each attribute for itself`() throws {
        try cache.setValue(Article(author: "Ann"), forKey: 1, tags: ["front page"])
        try cache.setValue(Article(author: "Ann"), forKey: 2, cost: 7)
        try cache.setValue(Article(author: "Ann"), forKey: 3, maxAge: .minutes(1), extendedData: Data([1]))
        #expect(try keys("Ann") == [2, 3] && cache.keys(tagged: "front page") == [1])
        #expect(try cache.metadata(forKey: 1)?.cost == 10 && cache.metadata(forKey: 2)?.cost == 7)
        let metadata = try #require(try cache.metadata(forKey: 3))
        #expect(metadata.expiresAt == store.clock.now.addingTimeInterval(60) && metadata.cost == 10)
        #expect(try cache.extendedData(forKey: 3) == Data([1]))
        #expect(throws: CacheError.self) {
            let other: Cache<Int, Int> = try manager.cache(
                named: "ages", version: "1", maxAge: .days(1),
                attributes: { _, _ in EntryAttributes(maxAge: .days(.nan)) })
            try other.setValue(1, forKey: 1)
        }
    }

    @Test func `an update gives the tags of the new value, or those of its call`() throws {
        try cache.setValue(Article(author: "Ann"), forKey: 1, extendedData: Data([1]))
        try cache.update(1) { $0?.author = "Bob" }
        #expect(try keys("Ann") == [] && keys("Bob") == [1] && cache.extendedData(forKey: 1) == Data([1]))
        try cache.update(1) { $0?.author = "" }
        #expect(try cache.metadata(forKey: 1)?.tags == [])
        try cache.update(1, tags: ["front page"]) { $0?.author = "Ann" }
        let metadata = try #require(try cache.metadata(forKey: 1))
        #expect(metadata.tags == ["front page"])
        #expect(metadata.expiresAt == store.clock.now.addingTimeInterval(3600) && metadata.cost == 10)
        try cache.update(1, tags: []) { $0?.author = "Ann" }
        #expect(try cache.metadata(forKey: 1)?.tags == [])
    }

    @Test func `an update without a rule keeps the tags unless its call gives some`() throws {
        let plain: Cache<Int, String> = try manager.cache(named: "plain", version: "1", maxAge: .days(1))
        try plain.setValue("a", forKey: 1, tags: ["red"])
        try plain.update(1) { $0 = "b" }
        #expect(try plain.metadata(forKey: 1)?.tags == ["red"])
        try plain.update(1, tags: ["blue"]) { $0 = "c" }
        #expect(try plain.metadata(forKey: 1)?.tags == ["blue"] && plain[1] == "c")
    }

    @Test func `loads and generators ask the rule for what they store`() async throws {
        _ = try await cache.value(forKey: 1) { _ in Article(author: "Ann") }
        _ = try await cache.value(forKey: 2) { _, _ in
            Generated.value(Article(author: "Ann"), maxAge: .minutes(1), tags: ["front page"])
        }
        _ = try await cache.values(forKeys: [3, 4]) { $0.reduce(into: [:]) { $0[$1] = Article(author: "Bob") } }
        #expect(try keys("Ann") == [1] && keys("Bob") == [3, 4])
        #expect(try await cache.keys(tagged: "front page") == [2])
        #expect(try await cache.metadata(forKey: 2)?.expiresAt == store.clock.now.addingTimeInterval(60))
    }

    @Test func `a migration gives what the rule gives for each new value`() throws {
        cache[1] = Article(author: "Ann")
        try cache.setValue(Article(author: "Bob"), forKey: 2, maxAge: .days(3), tags: ["front page"])
        let written = store.clock.now
        store.clock.advance(by: .seconds(60))
        let migrated = try Self.open(
            manager, version: "2", asked,
            migrations: [.from("1", as: Article.self) { Article(author: $0.author == "Ann" ? "Bob" : "Ann", size: 5) }])
        #expect(try migrated.keys(tagged: "author:Ann") == [2] && migrated.keys(tagged: "author:Bob") == [1])
        #expect(try migrated.keys(tagged: "front page") == [])
        // The age counts from the write, and one that the rule leaves out stays.
        #expect(try migrated.metadata(forKey: 2)?.expiresAt == written.addingTimeInterval(3600))
        #expect(try migrated.metadata(forKey: 1)?.expiresAt == written.addingTimeInterval(3600))
        #expect(try migrated.metadata(forKey: 1)?.cost == 50)
        let kept = try Self.open(manager, version: "3", asked, migrations: [.keeping("2")])
        #expect(try kept.keys(tagged: "author:Ann") == [2])
    }

    @Test func `a handle without a rule writes none of its attributes`() throws {
        let plain: Cache<Int, Article> = try manager.cache(named: "articles", version: "1", maxAge: .days(1))
        plain[1] = Article(author: "Ann")
        #expect(try keys("Ann") == [] && asked.value == [])
    }
}
