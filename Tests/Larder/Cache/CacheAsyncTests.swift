import Foundation
import Larder
import LarderTestSupport
import Testing

/// The asynchronous forms of calls.
struct CacheAsyncTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(inlineLimit: Int = 1000) throws -> Cache<Int, String> {
        try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(inlineLimit: inlineLimit).steady)
    }

    @Test func `every asynchronous form does what its synchronous form does, in the order of its task`() async throws {
        let cache = try cache()
        try await cache.setValue("one", forKey: 1, extendedData: Data([1]))
        #expect(try await cache.value(forKey: 1) == "one")
        try await cache.setValues([2: "two", 3: "three"])
        try await cache.setValues([(4, "four")])
        #expect(try await cache.values(forKeys: 1...9).count == 4)
        #expect(try await cache.entry(forKey: 1)?.extendedData == Data([1]))
        #expect(try await cache.metadata(forKey: 1)?.size == 5)
        try await cache.setExtendedData(Data([2]), forKey: 1)
        #expect(try await cache.extendedData(forKey: 1) == Data([2]))
        #expect(try await cache.contains(2))
        #expect(try await cache.removeValue(forKey: 2) == "two")
        #expect(try await !cache.contains(2))
        try await cache.remove(3)
        try await cache.setValue(nil, forKey: 3)
        try await cache.removeValues(forKeys: [4, 5])
        #expect(try await cache.snapshot() == [1: "one"])
        #expect(try await cache.removeExpired() == 0)
        #expect(try await cache.trim(toSize: 0) == 1)
        try await cache.setValue("again", forKey: 1)
        #expect(try await cache.trim(toCount: 1) == 0)
        #expect(try await cache.removeAll() == 1)
        try await cache.setValue("again", forKey: 1)
        let told = Told<CacheProgress>()
        try await cache.clear { told.add($0) }
        #expect(told.all.last?.completed == 1)
        for number in 0..<200 {
            try await cache.setValue("\(number)", forKey: 1)
            if number % 3 == 0 { try await cache.remove(1) }
            #expect(cache[1] == (number % 3 == 0 ? nil : "\(number)"))
        }
        try expectInvariants(cache)
        try await manager.flush()
        try await manager.close()
        let error = await #expect(throws: CacheError.self) { try await cache.value(forKey: 1) }
        #expect(error?.code == .closed)
        let other = await #expect(throws: CacheError.self) { try await cache.setValue("x", forKey: 1) }
        #expect(other?.code == .closed)
    }

    @Test func `attributes, tags, bodies and calls of a manager have asynchronous forms too`() async throws {
        let cache = try cache(inlineLimit: 0)
        try await cache.setValue("one", forKey: 1, tags: ["t"])
        #expect(try await cache.touch(1, maxAge: .minutes(1)))
        #expect(try await cache.metadata(forKey: 1)?.expiresAt == place.clock.now + 60)
        #expect(try await cache.setPinned(true, forKey: 1))
        #expect(try await cache.trim(toCount: 0) == 0)
        #expect(try await cache.entries(tagged: "t").map(\.key) == [1])
        #expect(try await cache.fileURL(forKey: 1) != nil)
        let old = try await cache.update(1) { value -> String? in
            defer { value = "two" }
            return value
        }
        #expect(old == "one")
        let seen = try await manager.transaction { transaction in
            try transaction.setValue("three", forKey: 3, in: cache)
            return try transaction.value(forKey: 1, in: cache)
        }
        #expect(seen == "two")
        #expect(try await manager.cacheInfo().map(\.count) == [2])
        #expect(try await manager.verify().isHealthy)
        #expect(try await manager.maintain().expired == 0)
        #expect(try await cache.removeAll(tagged: "t") == 1)
        let other: Cache<Int, String> = try await manager.cache(named: "b", version: "1", maxAge: .unlimited)
        try await other.setValue("b", forKey: 1, tags: ["t"])
        #expect(try await manager.removeAll(tagged: "t") == 1)
        try await manager.removeAll()
        #expect(try await manager.cacheInfo().map(\.count) == [0, 0])
        try await manager.removeCache(named: "b")
        #expect(try await manager.cacheInfo().map(\.name) == ["a"])
        try await manager.close()
        let again = try await CacheManager.open(url: place.url, configuration: place.clock.configuration)
        #expect(try await again.cacheInfo().map(\.name) == ["a"])
    }

    @Test func `a closure given to removeAll is a predicate, with await or without, trailing or not`() async throws {
        let cache = try cache()
        try await cache.setValues([1: "one", 2: "two"])
        let isOld = cache.name == "old"
        #expect(try await cache.removeAll { _ in isOld } == 0)
        #expect(try await cache.removeAll { _ in false } == 0)
        #expect(try await cache.removeAll(where: { _ in isOld }) == 0)
        #expect(try await cache.removeAll { _, _ in isOld } == 0)
        #expect(try await cache.removeAll(whereMetadata: { _, metadata in metadata.isPinned }) == 0)
        #expect(try await cache.removeAll { $0.isExpired } == 0)
        try expectPredicates(cache, isOld)
        #expect(try await cache.snapshot().count == 2)
        #expect(try await cache.removeAll { $0.key == 1 } == 1)
        #expect(try await cache.snapshot() == [2: "two"])
        #expect(try await cache.removeAll() == 1)
        #expect(try await cache.removeAll() == 0)
    }

    private func expectPredicates(_ cache: Cache<Int, String>, _ isOld: Bool) throws {
        #expect(try cache.removeAll { _ in isOld } == 0)
        #expect(try cache.removeAll(where: { _ in false }) == 0)
        #expect(try cache.removeAll { _, _ in isOld } == 0)
        #expect(try cache.removeAll(whereMetadata: { _, _ in isOld }) == 0)
    }

    @MainActor
    private final class Loader {
        private var count = 0

        func load(_ key: Int) throws -> String {
            count += 1
            return "\(key) by \(count)"
        }

        func loadLater(_ key: Int) async throws -> String { try load(key) }

        func values(of cache: Cache<Int, String>) async throws -> [String] {
            [
                try await cache.value(forKey: 1) { try await self.load($0) },
                try await cache.value(forKey: 2, generate: loadLater),
            ]
        }
    }

    @Test func `a method of the main actor loads values, in a closure or by its name if it suspends`() async throws {
        #expect(try await Loader().values(of: cache()) == ["1 by 1", "2 by 2"])
    }
}
