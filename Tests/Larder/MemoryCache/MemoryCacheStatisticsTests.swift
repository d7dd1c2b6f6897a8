import Foundation
import Larder
import LarderLocks
import LarderTestSupport
import Testing

/// What a memory cache tells of itself, and its eviction by a closure.
struct MemoryCacheStatisticsTests {
    @Test func `hits, misses and evictions are counted`() {
        let cache = MemoryCache<Int, Int>(countLimit: 2, clearsOnMemoryPressure: false)
        cache[1] = 1
        cache[2] = 2
        _ = cache[1]
        _ = cache[1]
        _ = cache[9]
        cache[3] = 3
        #expect(cache.statistics.hits == 2)
        #expect(cache.statistics.misses == 1)
        #expect(cache.statistics.evictions == 1)
        #expect(cache[2] == nil)
        cache.resetStatistics()
        #expect(cache.statistics.misses == 0)
    }

    @Test func `an expired entry is a miss and an expiration`() {
        let time = Mutex(Date(timeIntervalSince1970: 1_700_000_000))
        let cache = MemoryCache<Int, Int>(maxAge: .seconds(10), clearsOnMemoryPressure: false) { time.withLock { $0 } }
        for key in 0..<5 { cache[key] = key }
        _ = cache[0]
        time.withLock { $0 += 11 }
        _ = cache[0]
        #expect(cache.removeExpired() == 4)
        #expect(cache.statistics.hits == 1 && cache.statistics.misses == 1)
        #expect(cache.statistics.expirations == 5)
    }

    @Test func `a snapshot has what is served, and a cache has a name`() {
        let time = Mutex(Date(timeIntervalSince1970: 1_700_000_000))
        let cache = MemoryCache<String, Int>(maxAge: .seconds(10), clearsOnMemoryPressure: false) {
            time.withLock { $0 }
        }
        cache["old"] = 1
        time.withLock { $0 += 6 }
        cache["new"] = 2
        time.withLock { $0 += 6 }
        #expect(cache.snapshot() == ["new": 2])
        #expect("\(cache)" == "MemoryCache(2 entries)")
        cache.name = "articles"
        #expect(cache.name == "articles")
        #expect("\(cache)" == "MemoryCache(\"articles\", 2 entries)")
    }

    @Test func `a closure evicts after each interval`() throws {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<10 { cache[key] = key }
        let task = cache.evict(every: .milliseconds(1)) { key, _ in key.isMultiple(of: 2) }
        try Waiting.until { cache.count == 5 }
        cache[100] = 100
        try Waiting.until { cache.count == 5 }
        #expect(cache.keys.sorted() == [1, 3, 5, 7, 9])
        task.cancel()
    }
}

/// Versions that are made of several.
struct ComposedVersionTests {
    @Test func `a version of two parts changes with either`() throws {
        let version = CacheVersion.custom("4").and(.custom("17"))
        #expect(version == CacheVersion("4").and("17"))
        #expect(version != CacheVersion("4").and("18") && version != CacheVersion("5").and("17"))
        #expect(version != "4 + 17" && version != CacheVersion("417"))
        #expect(version.description == "4 + 17")
        #expect(!CacheVersion.locale.description.isEmpty && !CacheVersion.osVersion.description.isEmpty)

        let (place, manager) = try TemporaryStore.opened()
        func open(_ version: CacheVersion, _ manager: CacheManager) throws -> Cache<Int, Int> {
            try manager.cache(named: "composed", version: version, maxAge: .unlimited)
        }
        let cache = try open(version, manager)
        cache[1] = 1
        #expect(try manager.cacheInfo().first?.version == version)
        try manager.close()
        let again = try place.manager()
        #expect(try open(version, again)[1] == 1)
        #expect(try open(CacheVersion("4").and("18"), again)[1] == nil)
    }
}
