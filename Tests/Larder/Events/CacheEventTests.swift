import Foundation
import Larder
import LarderTestSupport
import Testing

/// What events say of single keys, and who is asked to give memory back.
struct CacheEventTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    @Test func `what a subscript could not throw is told with its key`() async throws {
        let cache: Cache<Int, Double> = try await manager.cache(
            named: "a", version: "1", maxAge: .hours(1), codec: .json)
        cache[42] = .nan
        let failed = try #require(await manager.events.first { $0.kind == .writeFailed })
        #expect(failed.key == "42" && failed.cacheName == "a")
    }

    @Test func `a refresh that failed is told with its key`() async throws {
        struct Stop: Error {}
        let cache: Cache<String, Int> = try await manager.cache(named: "a", version: "1", maxAge: .seconds(10))
        cache["old"] = 1
        place.clock.set(place.clock.now + 11)
        let events = manager.events
        let generator = cache.generator(GenerationPolicy(staleOnError: .seconds(60))) { _ in throw Stop() }
        #expect(try await generator("old") == 1)
        let failed = try #require(await events.first { $0.kind == .refreshFailed })
        #expect(failed.key == "old" && failed.cacheName == "a")
    }

    enum LookUp: CaseIterable { case fileURL, removeValue, value }

    @Test(arguments: LookUp.allCases)
    func `a file that is gone is told of, whoever meets it`(look: LookUp) async throws {
        let cache: Cache<Int, Data> = try await manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled, inlineLimit: 10))
        cache[1] = Data(count: 100)
        try await FileManager.default.removeItem(at: #require(try cache.fileURL(forKey: 1)))
        let events = manager.events
        switch look {
        case .fileURL: #expect(try await cache.fileURL(forKey: 1) == nil)
        case .removeValue: #expect(try await cache.removeValue(forKey: 1) == nil)
        case .value: #expect(try await cache.value(forKey: 1) == nil)
        }
        let told = try #require(await events.first { $0.key == "1" })
        #expect(told.kind == .corruptEntry)
    }

    @Test func `pressure that is handled by hand spares those who want none of it`() throws {
        let caches = try [true, false].map { isCleared -> Cache<Int, Int> in
            var options = CacheOptions()
            options.clearsOnMemoryPressure = isCleared
            return try manager.cache(named: "\(isCleared)", version: "1", maxAge: .hours(1), options: options)
        }
        for cache in caches { try cache.setValues((0..<10).map { ($0, $0) }) }
        manager.handleMemoryPressure(.critical)
        #expect(caches.map(\.memory.count) == [0, 10])
    }

    @Test func `through a manager that was closed memory shows nothing and takes no limits`() throws {
        let other = try place.manager()
        let cache: Cache<Int, Int> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        let same: Cache<Int, Int> = try other.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
        for key in 0..<5 { same[key] = key }
        for key in 0..<5 { #expect(cache[key] == key) }
        var walk = cache.memory.makeIterator()
        #expect(walk.next()?.key == 0)
        try manager.close()
        #expect(walk.next() == nil)
        #expect(cache.memory.count == 0 && Array(cache.memory).isEmpty && !cache.memory.contains(1))
        cache.memory.countLimit = 1
        cache.memory.removeAll()
        #expect(same.memory.count == 5)
    }

    @Test func `a closure without a label is the one that picks, in asynchronous code too`() async throws {
        let cache: Cache<Int, Int> = try await manager.cache(named: "a", version: "1", maxAge: .hours(1))
        for key in 0..<4 { cache[key] = key }
        let count = try await cache.removeAll { $0.key > 1 }
        #expect(count == 2)
        let told = Told<Int>()
        try await cache.clear(progress: { told.add($0.completed) })
        #expect(told.all.last == 2 && Set(told.all).count == told.all.count)
    }
}
