import Foundation
import Larder
import LarderTestSupport
import Testing

struct PresenceTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(_ version: CacheVersion = "1") throws -> Cache<Int, String> {
        try manager.cache(
            named: "a", version: version, maxAge: .hours(1),
            options: CacheOptions(inlineLimit: 100, keepsExpired: .seconds(90_000)).steady)
    }

    @Test func `an explanation says why a read gives what it gives, and changes nothing`() throws {
        let cache = try cache()
        #expect(try cache.explain(1).kind == .absent && cache.explain(1).metadata == nil)
        cache[1] = "one"
        let served = try cache.explain(1)
        #expect(served.kind == .inMemory && served.metadata?.size == 4)
        #expect(served.description == "The value of key \"1\" in the cache \"a\" is in memory and on disk.")
        cache.memory.removeAll()
        let before = cache.statistics
        for _ in 0..<3 { #expect(try cache.explain(1).kind == .onDisk) }
        #expect(cache.memory.count == 0 && cache.statistics == before)
        #expect(try cache.metadata(forKey: 1)?.accessedAt == cache.metadata(forKey: 1)?.writtenAt)
        place.clock.advance(by: .seconds(3601))
        let expired = try cache.explain(1)
        #expect(expired.kind == .expired && expired.description.contains("has expired at"))
        #expect(cache[1] == nil)
    }

    @Test func `damage and values that do not decode are explained, and stay`() async throws {
        let cache = try cache()
        try await cache.setValue(String(repeating: "x", count: 200), forKey: 1)
        let path = try #require(try await cache.fileURL(forKey: 1)).path
        try FileManager.default.removeItem(atPath: path)
        let numbers: Cache<Int, Int> = try await manager.cache(
            named: "b", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
        try await numbers.setValue(7, forKey: 1)
        let events = manager.events
        for _ in 0..<2 { #expect(try await cache.explain(1).kind == .damaged) }
        let other = try place.manager()
        let texts: Cache<Int, String> = try await other.cache(
            named: "b", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
        for _ in 0..<2 { #expect(try await texts.explain(1).kind == .undecodable) }
        let kind = try await numbers.explain(1).kind
        #expect(kind == .onDisk || kind == .inMemory)
        try await manager.close()
        for await event in events { Issue.record("\(event)") }
    }

    @Test func `a handle that finds nothing says which version is open`() throws {
        let old = try cache("1")
        old[1] = "one"
        let newer = try cache("2")
        #expect(try newer.explain(1).kind == .otherVersion)
        #expect(try newer.explain(2).kind == .absent)
        let superseded = try old.explain(1)
        #expect(
            superseded.kind == .superseded
                && superseded.description
                    == "The handle under version \"1\" finds nothing any more, since the cache \"a\" is open under version \"2\". Open"
                    + " the cache again."
        )
        newer[5] = "five"
        try newer.removeAll()
        #expect(try newer.explain(5).kind == .absent)
        try manager.removeCache(named: "a")
        #expect(try newer.explain(1).description.contains("was removed"))
        try manager.close()
        #expect(try newer.explain(1).kind == .closed)
    }
}
