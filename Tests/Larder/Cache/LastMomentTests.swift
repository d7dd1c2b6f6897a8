import Foundation
import Larder
import LarderTestSupport
import Testing

/// The last moment at which an entry is served, and the one after it, for every call.
struct LastMomentTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private typealias Ask = @Sendable (Cache<Int, String>) async throws -> Bool

    /// An age of a hundred seconds, in each form in which a cache or an entry can have it.
    enum Age: CaseIterable {
        case ofCache, slidingOfCache, untilOfCache, own, ownSliding, ownUntil

        func ofCache(_ end: Date) -> MaxAge {
            switch self {
            case .ofCache: .seconds(100)
            case .slidingOfCache: .seconds(100).sinceLastAccess
            case .untilOfCache: .until(end)
            case .own, .ownSliding, .ownUntil: .hours(1)
            }
        }

        func own(_ end: Date) -> MaxAge? {
            switch self {
            case .own: .seconds(100)
            case .ownSliding: .seconds(100).sinceLastAccess
            case .ownUntil: .until(end)
            default: nil
            }
        }
    }

    enum Tier: CaseIterable { case memory, disk, file }

    /// Calls the synchronous form of what `body` asks.
    private static func onThisThread<R>(_ body: () throws -> R) rethrows -> R { try body() }

    /// Every call that shows whether key 1 is served.
    private static let asks: [(name: String, ask: Ask)] = [
        ("value", { cache in try onThisThread { try cache.value(forKey: 1) } == "one" }),
        ("value in a task", { try await $0.value(forKey: 1) == "one" }),
        ("subscript", { $0[1] == "one" }),
        ("entry", { cache in try onThisThread { try cache.entry(forKey: 1) }?.value == "one" }),
        ("entry in a task", { try await $0.entry(forKey: 1)?.isExpired == false }),
        ("entry that may have expired", { try await $0.entry(forKey: 1, allowingExpired: true)?.isExpired == false }),
        ("metadata", { cache in try onThisThread { try cache.metadata(forKey: 1) } != nil }),
        ("metadata in a task", { try await $0.metadata(forKey: 1) != nil }),
        ("extended data", { cache in try onThisThread { try cache.extendedData(forKey: 1) } == Data([7]) }),
        ("extended data in a task", { try await $0.extendedData(forKey: 1) == Data([7]) }),
        ("contains", { cache in try onThisThread { try cache.contains(1) } }),
        ("contains in a task", { try await $0.contains(1) }),
        ("values", { cache in try onThisThread { try cache.values(forKeys: [1]) } == [1: "one"] }),
        ("values in a task", { try await $0.values(forKeys: [1]) == [1: "one"] }),
        ("count", { try $0.count == 1 }),
        ("isEmpty", { try !$0.isEmpty }),
        ("snapshot", { cache in try onThisThread { try cache.snapshot() } == [1: "one"] }),
        ("snapshot in a task", { try await $0.snapshot() == [1: "one"] }),
        ("iteration", { $0.map(\.key) == [1] }),
        ("iteration in a task", { try await $0.async.reduce(0) { sum, _ in sum + 1 } == 1 }),
        ("keys", { Array($0.keys) == [1] }),
        ("all values", { Array($0.values) == ["one"] }),
        ("entries by key", { $0.entries(orderedBy: .key).map(\.key) == [1] }),
        ("entries by write", { $0.entries(orderedBy: .written).map(\.key) == [1] }),
        ("entries by access", { $0.entries(orderedBy: .accessed).map(\.key) == [1] }),
        ("entries by size", { $0.entries(orderedBy: .size).map(\.key) == [1] }),
        ("entries by tag", { cache in try onThisThread { try cache.entries(tagged: "t") }.map(\.key) == [1] }),
        ("disk", { $0.disk.map(\.key) == [1] }),
        ("value on disk", { cache in try onThisThread { try cache.disk.value(forKey: 1) } == "one" }),
        ("value on disk in a task", { try await $0.disk.value(forKey: 1) == "one" }),
        ("presence on disk", { try $0.disk.contains(1) }),
        ("count on disk", { try $0.disk.count == 1 }),
        (
            "transaction",
            { cache in
                try onThisThread { try cache.manager.transaction { try $0.value(forKey: 1, in: cache) } } == "one"
            }
        ),
        ("update", { cache in try onThisThread { try cache.update(1) { $0 } } == "one" }),
        ("touch", { cache in try onThisThread { try cache.touch(1) } }),
        ("pin", { cache in try onThisThread { try cache.setPinned(true, forKey: 1) } }),
        ("load", { cache in try onThisThread { try cache.value(forKey: 1) { _ in "loaded" } } == "one" }),
        ("load in a task", { try await $0.value(forKey: 1) { _ async in "loaded" } == "one" }),
        ("load of many", { try await $0.values(forKeys: [1]) { _ async in [1: "loaded"] } == [1: "one"] }),
        ("removal by a predicate", { cache in try onThisThread { try cache.removeAll { _ in true } } == 1 }),
        ("removal by metadata", { cache in try onThisThread { try cache.removeAll { _, _ in true } } == 1 }),
        ("removal", { cache in try onThisThread { try cache.removeValue(forKey: 1) } == "one" }),
    ]

    private static let asksOfMemory: [(name: String, ask: Ask)] = [
        ("value in memory", { $0.memory.value(forKey: 1) == "one" }),
        ("presence in memory", { $0.memory.contains(1) }),
        ("iteration over memory", { $0.memory.map(\.key) == [1] }),
    ]

    private static let asksOfFiles: [(name: String, ask: Ask)] = [
        ("URL of the file", { cache in try onThisThread { try cache.fileURL(forKey: 1) } != nil })
    ]

    /// Returns a new cache with key 1, some milliseconds after the last moment of that.
    private func cache(_ name: String, _ age: Age, _ tier: Tier, after delay: Int) throws -> Cache<Int, String> {
        let end = place.clock.now + 100
        let options = CacheOptions(
            memory: tier == .memory ? .init() : .disabled, inlineLimit: tier == .file ? 0 : .max)
        let cache: Cache<Int, String> = try manager.cache(
            named: "\(name) \(delay)", version: "1", maxAge: age.ofCache(end), options: options.steady)
        try cache.setValue("one", forKey: 1, maxAge: age.own(end), extendedData: Data([7]), tags: ["t"])
        place.clock.set(end + Double(delay) / 1000)
        return cache
    }

    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: Age.allCases, Tier.allCases)
    func `at the last moment of its age every call serves an entry, and no call a millisecond later`(
        age: Age, tier: Tier
    ) async throws {
        let asks =
            Self.asks + (tier == .memory ? Self.asksOfMemory : []) + (tier == .file ? Self.asksOfFiles : [])
        for (name, ask) in asks {
            #expect(try await ask(try cache(name, age, tier, after: 0)), "\(name)")
            #expect(try await !ask(try cache(name, age, tier, after: 1)), "\(name)")
        }
    }

    @Test(arguments: Age.allCases, Tier.allCases)
    func `at the last moment of its age no sweep deletes an entry, and each sweep does a millisecond later`(
        age: Age, tier: Tier
    ) async throws {
        do {
            let cache = try cache("last", age, tier, after: 0)
            #expect(try await cache.removeExpired() == 0)
            #expect(try await cache.trim(toCount: 1) == 0)
            #expect(try await cache.trim(toSize: cache.sizeOnDisk) == 0)
            #expect(try await manager.maintain().expired == 0)
            #expect(try await manager.cacheInfo().map(\.count) == [1])
            #expect(cache[1] == "one")
            try await cache.removeAll()
        }
        do {
            let cache = try cache("expired", age, tier, after: 1)
            #expect(try await manager.cacheInfo().allSatisfy { $0.count == 0 })
            #expect(try await cache.removeExpired() == 1)
            #expect(try await cache.entry(forKey: 1, allowingExpired: true) == nil)
            #expect(try await cache.removeExpired() == 0)
        }
        let cache = try cache("maintained", age, tier, after: 0)
        #expect(try await manager.maintain().expired == 0)
        place.clock.set(place.clock.now + 0.001)
        #expect(try await manager.maintain().expired == 1)
        #expect(try await cache.entry(forKey: 1, allowingExpired: true) == nil)
    }
}
