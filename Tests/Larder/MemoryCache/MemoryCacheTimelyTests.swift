import Foundation
import Larder
import LarderTestSupport
import Testing

/// What has expired leaves a memory cache without a call.
struct MemoryCacheTimelyTests {
    private let time = ManualClock()

    private func cache<Value>(_ maxAge: MaxAge, of type: Value.Type = Int.self) -> MemoryCache<Int, Value> {
        MemoryCache(
            maxAge: maxAge, clearsOnMemoryPressure: false, seed: HashSeed(first: 1, second: 2),
            injectedClock: { [time] in time.now }, timekeeper: time.timekeeper)
    }

    @Test func `entries go soon after their end, and then there is no timer`() {
        let cache = cache(.seconds(1))
        #expect(time.pendingCount == 0)
        for number in 0..<3000 { cache[number] = number }
        #expect(time.pendingCount == 1)
        time.advance(by: .seconds(1))
        #expect(cache.count == 3000)
        time.advance(by: .milliseconds(1))
        #expect(cache.isEmpty && time.pendingCount == 0)
        cache.checkInvariants()
    }

    @Test func `without an age there is no timer`() {
        let cache = cache(.unlimited)
        cache[1] = 1
        #expect(time.pendingCount == 0)
        time.advance(by: .seconds(1 << 30))
        #expect(cache.count == 1)
    }

    @Test(arguments: [MaxAge.seconds(100), .seconds(100).sinceLastAccess])
    func `what was written, or read, later goes later`(maxAge: MaxAge) {
        let cache = cache(maxAge)
        (cache[1], cache[2]) = (1, 2)
        time.advance(by: .seconds(50))
        #expect(cache[2] == 2)
        cache.setValues([3: 3])
        cache.update(4) { $0 = 4 }
        time.advance(by: .seconds(51))
        #expect(cache.orderedKeys == (maxAge.sinceLastAccess == maxAge ? [2, 3, 4] : [3, 4]))
        #expect(cache.count == cache.orderedKeys.count)
        time.advance(by: .seconds(60))
        #expect(cache.isEmpty && time.pendingCount == 0)
    }

    @Test(arguments: [MaxAge.until(Date(timeIntervalSince1970: 1_700_000_060)), .seconds(0)])
    func `ages that need no start end too`(maxAge: MaxAge) {
        let cache = cache(maxAge)
        cache[1] = 1
        time.advance(by: .seconds(62))
        #expect(cache.isEmpty && time.pendingCount == 0)
    }

    @Test func `an emptied cache has no timer, and neither has one that is gone`() {
        var cache: MemoryCache<Int, Int>? = cache(.seconds(10))
        cache?[1] = 1
        cache?.removeAll()
        #expect(time.pendingCount == 0)
        cache?[1] = 1
        #expect(time.pendingCount == 1)
        weak let held = cache
        cache = nil
        #expect(held == nil && time.pendingCount == 0)
    }

    @Test func `what expires is released where no lock is held`() {
        let cache = cache(.seconds(10), of: Releasing.self)
        let seen = Locked<[Int?]>([])
        cache[1] = Releasing { [weak cache] in
            let count = cache?.count
            seen.change { $0.append(count) }
        }
        time.advance(by: .seconds(11))
        #expect(seen.value == [0])
    }

    @Test func `an eviction task that is released calls nothing more`() {
        let cache = cache(.unlimited)
        let calls = Counter()
        cache[1] = 1
        var task: EvictionTask? = cache.evict(every: .seconds(1)) { _, _ in calls.increment() > 100 }
        time.advance(by: .seconds(1))
        #expect(calls.value == 1 && time.pendingCount == 1)
        #expect(task != nil)
        task = nil
        time.advance(by: .seconds(10))
        #expect(calls.value == 1)
    }
}
