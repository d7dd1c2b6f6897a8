import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What is counted of loads, and how long they take.
struct LoadStatisticsTests {
    private let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    private func numbers(_ manager: CacheManager) throws -> Cache<Int, String> {
        try manager.cache(named: "numbers", version: "1", maxAge: .minutes(1), options: CacheOptions().steady)
    }

    /// Loads 100 keys, of which key n takes n milliseconds, and then one that fails.
    private func loadAll(_ load: @Sendable (Int, Int) async throws -> Void) async throws {
        for key in 1...100 { try await load(key, key) }
        await #expect(throws: Offline.self) { try await load(-1, 5) }
    }

    private func expect(_ times: LoadTimes) {
        // Failed loads have no time.
        #expect(times.count == 100 && times.total == .milliseconds(5050) && times.mean == .microseconds(50_500))
        // The bounds are 0.125, 0.25, …, 64 and 128 milliseconds: 64 loads have kept one of 64.
        #expect(times.bound(ofShare: 0.95) == .milliseconds(128) && times.bound(ofShare: 0.64) == .milliseconds(64))
        #expect(times.bound(ofShare: 0.65) == .milliseconds(128) && times.bound(ofShare: 0) == .milliseconds(1))
        #expect(times.bound(ofShare: .nan) == .milliseconds(1) && times.bound(ofShare: 2) == .milliseconds(128))
        #expect(times.counts.reduce(0, +) == 100)
    }

    @Test func `loads, failures and times are counted, reset and stored`() async throws {
        let manager = try store.manager()
        let cache = try numbers(manager)
        let clock = store.clock
        try await loadAll { key, time in
            _ = try await cache.value(forKey: key) { key in
                clock.advance(by: .milliseconds(time))
                if key < 0 { throw Offline() }
                return "loaded"
            }
        }
        expect(cache.statistics.loadTimes)
        #expect(cache.statistics.loads == 101 && cache.statistics.loadFailures == 1)
        #expect(cache.statistics.loadTimeouts == 0 && cache.statistics.staleHits == 0)
        cache.resetStatistics()
        #expect(cache.statistics.loadTimes.count == 0 && cache.statistics.loadTimes.mean == nil)
        #expect(cache.statistics.loadTimes.bound(ofShare: 0.95) == nil && cache.statistics.loadFailures == 0)
        try await manager.close()

        let again = try store.manager()
        let activity = try #require(try await again.cacheInfo().first?.activity)
        expect(activity.loadTimes)
        #expect(activity.loads == 101 && activity.loadFailures == 1)
    }

    @Test func `a synchronous load counts too, and calls that find a value do not`() throws {
        let cache = try numbers(try store.manager())
        for _ in 0..<3 {
            _ = try cache.value(forKey: 1) { _ in
                store.clock.advance(by: .seconds(70))
                return "loaded"
            }
        }
        #expect(cache.statistics.loads == 1 && cache.statistics.loadTimes.total == .seconds(70))
        // It took longer than all bounds.
        #expect(cache.statistics.loadTimes.bound(ofShare: 0.5) == nil)
    }

    @Test func `a memory cache counts the same`() async throws {
        let memory: MemoryCache<Int, String> = store.clock.memoryCache()
        let clock = store.clock
        try await loadAll { key, time in
            _ = try await memory.value(forKey: key) { key in
                clock.advance(by: .milliseconds(time))
                if key < 0 { throw Offline() }
                return "loaded"
            }
        }
        expect(memory.statistics.loadTimes)
        #expect(memory.statistics.loads == 101 && memory.statistics.loadFailures == 1)
        memory.resetStatistics()
        #expect(memory.statistics == MemoryCache<Int, String>().statistics)
    }
}
