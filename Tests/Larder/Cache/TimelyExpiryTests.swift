import Foundation
import Larder
import LarderTestSupport
import Testing

/// What has expired goes soon, in both tiers, although nobody calls.
struct TimelyExpiryTests {
    private let place: TemporaryStore

    init() throws {
        place = try TemporaryStore(of: #fileID)
    }

    private var time: ManualClock { place.clock }

    private func manager(upkeep: Duration? = .seconds(60)) throws -> CacheManager {
        try place.manager { $0.maintenanceInterval = upkeep }
    }

    private func cache(
        _ manager: CacheManager, _ maxAge: MaxAge, _ name: String = "a", _ options: CacheOptions = CacheOptions()
    ) throws -> Cache<Int, Int> {
        try manager.cache(named: name, version: "1", maxAge: maxAge, options: options.steady)
    }

    @Test func `rows and values are gone soon after an age of one second, without traffic`() throws {
        let manager = try manager()
        let cache = try cache(manager, .seconds(1))
        try cache.setValues((0..<3000).map { ($0, $0) })
        time.advance(by: .seconds(1))
        #expect(cache.memory.count == 3000)
        time.advance(by: .seconds(1))
        #expect(cache.memory.count == 0)
        #expect(try StoreProbe(manager).entryCount() == 0)
        #expect(cache.statistics.expirations == 3000)
        try expectInvariants(cache)
        // After the upkeep that follows every write nothing waits.
        try Waiting.until {
            time.advance(by: .seconds(60))
            return time.pendingCount == 0
        }
    }

    @Test func `an idle store with unlimited ages has no timer`() async throws {
        let manager = try manager()
        let cache = try cache(manager, .unlimited)
        time.advance(by: .seconds(2))
        #expect(time.pendingCount == 0)
        cache[1] = 1
        // The upkeep after a write may begin something that ends with the next timer.
        try await Waiting.until {
            time.advance(by: .seconds(60))
            return time.pendingCount == 0
        }
        time.advance(by: .seconds(86_400))
        #expect(cache.memory.count == 1 && time.pendingCount == 0)
    }

    @Test func `the upkeep goes on while anything is left, and ends after that`() throws {
        let manager = try manager()
        let cache = try cache(manager, .seconds(100))
        for key in 0..<10 {
            cache[key] = key
            time.advance(by: .seconds(10))
        }
        for seconds in 1...10 {
            time.advance(by: .seconds(10))
            // A share of the age later than precisely then.
            #expect((0...2).contains(cache.memory.count - (10 - seconds)), "\(seconds)")
            #expect(try (0...2).contains(StoreProbe(manager).entryCount() - (10 - seconds)), "\(seconds)")
        }
        time.advance(by: .seconds(10))
        #expect(try StoreProbe(manager).entryCount() == 0)
        #expect(cache.memory.count == 0)
    }

    @Test func `a read restarts a sliding age, and the timer follows`() throws {
        let manager = try manager()
        let cache = try cache(manager, MaxAge.seconds(10).sinceLastAccess)
        (cache[1], cache[2]) = (1, 2)
        for _ in 0..<5 {
            time.advance(by: .seconds(8))
            #expect(cache[1] == 1)
        }
        #expect(cache.memory.map(\.key) == [1] && cache.memory.count == 1)
        time.advance(by: .seconds(20))
        #expect(cache.memory.count == 0)
    }

    @Test func `an age of an entry's own ends on time in a cache without one`() throws {
        let manager = try manager()
        let cache = try cache(manager, .unlimited)
        cache[1] = 1
        try cache.setValue(2, forKey: 2, maxAge: .seconds(5))
        try cache.setValue(3, forKey: 3, maxAge: .until(time.now + 8))
        time.advance(by: .seconds(6))
        #expect(cache.memory.map(\.key) == [1, 3] && cache.memory.count == 2)
        time.advance(by: .seconds(3))
        #expect(cache.memory.count == 1)
        // The rows follow after the time in which another process may note that it has read one.
        time.advance(by: .seconds(20))
        #expect(try StoreProbe(manager).entryCount() == 1)
    }

    @Test func `rows that are there at the opening expire on time, those of caches that nobody opens too`() throws {
        let first = try manager()
        try cache(first, .seconds(100), "forgotten").setValue(1, forKey: 1)
        let limited = try cache(first, .unlimited)
        try limited.setValue(1, forKey: 1, maxAge: .seconds(100))
        try limited.setValue(2, forKey: 2)
        try first.close()
        let second = try manager()
        let opened = try cache(second, .unlimited)
        time.advance(by: .seconds(120))
        time.advance(by: .seconds(120))
        #expect(try StoreProbe(second).entryCount() == 1)
        #expect(opened[2] == 2)
    }

    @Test func `what is to be kept after its end is kept for as long`() throws {
        let manager = try manager()
        let cache = try cache(manager, .seconds(10), "a", CacheOptions(keepsExpired: .seconds(100)))
        cache[1] = 1
        time.advance(by: .seconds(109))
        #expect(try cache.entry(forKey: 1, allowingExpired: true)?.isExpired == true)
        time.advance(by: .seconds(10))
        #expect(try StoreProbe(manager).entryCount() == 0)
        #expect(cache.memory.count == 0)
    }

    @Test func `what expires is released where no lock is held`() throws {
        let manager = try manager()
        let seen = Locked<[Int?]>([])
        let home = Locked<Cache<Int, Releasing>?>(nil)
        let cache: Cache<Int, Releasing> = try manager.cache(
            named: "releasing", version: "1", maxAge: .seconds(10), options: CacheOptions().steady)
        home.change { $0 = cache }
        defer { home.change { $0 = nil } }
        cache[1] = Releasing {
            // A lock that were held would never come free.
            let count = home.value?.memory.count
            seen.change { $0.append(count) }
        }
        time.advance(by: .seconds(12))
        #expect(seen.value == [0])
    }

    @Test func `a closed manager has no timer`() throws {
        let manager = try manager()
        try cache(manager, .seconds(10)).setValue(1, forKey: 1)
        #expect(time.pendingCount == 1)
        try manager.close()
        #expect(time.pendingCount == 0)
    }

    // MARK: - The clock

    @Test func `a clock that is wrong at the opening is believed`() throws {
        let first = try manager()
        try cache(first, .hours(1)).setValue(1, forKey: 1)
        try first.close()
        time.mislead(by: .seconds(86_400))
        let second = try manager()
        #expect(try cache(second, .hours(1)).removeExpired() == 1)
    }
}
