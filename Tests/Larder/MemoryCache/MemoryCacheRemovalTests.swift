import Foundation
import Larder
import LarderTestSupport
import Testing

/// What the closure of the program hears of values that leave.
struct MemoryCacheRemovalTests {
    private let time = ManualClock()
    private let told = Told<String>()

    private func cache(
        countLimit: Int = .max, costLimit: Int = .max, maxAge: MaxAge = .unlimited
    ) -> MemoryCache<Int, String> {
        .inTime(time, countLimit: countLimit, costLimit: costLimit, maxAge: maxAge) { [told] in
            told.add("\($0) \($1) \($2)")
        }
    }

    @Test func `each cause is told, with the key and the value`() {
        let cache = cache(countLimit: 3)
        cache[1] = "a"
        cache[1] = "b"
        cache[1] = nil
        cache[1] = nil
        for key in 2...5 { cache[key] = "c" }
        cache.countLimit = 2
        cache.trim(toCount: 1)
        cache.setValue("d", forKey: 6, maxAge: .seconds(1))
        time.advance(by: .seconds(10))
        cache.handleMemoryPressure(.critical)
        #expect(
            told.all == [
                "1 a replaced", "1 b removed", "2 c evicted", "3 c evicted", "4 c evicted", "6 d expired",
                "5 c pressure",
            ])
    }

    @Test func `calls for many keys tell of each`() {
        let cache = cache(countLimit: 4)
        cache.setValues([(1, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "e")])
        cache.removeValues(forKeys: [2, 2, 9])
        cache.removeAll { key, _ in key == 3 }
        cache.update(4) { $0 = "f" }
        cache.update(4) { $0 = nil }
        cache.update(5) { $0 = nil }
        cache[6] = "g"
        cache.removeAll()
        #expect(
            told.all == [
                "1 a replaced", "2 c removed", "3 d removed", "4 e replaced", "4 f removed", "1 b removed",
                "6 g removed",
            ])
    }

    @Test func `a warning tells of what it removes, and an eviction closure evicts`() {
        let cache = cache()
        cache.setValues([(1, "a"), (2, "b"), (3, "c")])
        cache.handleMemoryPressure(.warning)
        let task = cache.evict(every: .seconds(1)) { key, _ in key == 3 }
        time.advance(by: .seconds(1))
        task.cancel()
        #expect(told.all == ["1 a pressure", "2 b pressure", "3 c evicted"])
    }

    @Test func `what has expired is told so by whatever finds it`() {
        let cache = cache(maxAge: .seconds(10))
        cache.setValues([(1, "a"), (2, "b"), (3, "c"), (4, "d")])
        time.mislead(by: .seconds(20))
        #expect(cache[1] == nil && cache.values(forKeys: [2]).isEmpty && cache.removeValue(forKey: 3) == nil)
        #expect(cache.removeExpired() == 1)
        #expect(told.all == ["1 a expired", "2 b expired", "3 c expired", "4 d expired"])
    }

    @Test func `a value that is too large is not kept and not told, and what it displaces is`() {
        let cache = cache(costLimit: 10)
        cache.setValue("a", forKey: 1, cost: 5)
        cache.setValue("b", forKey: 1, cost: 50)
        cache.setValue("c", forKey: 2, cost: 50)
        #expect(told.all == ["1 a replaced"] && cache.isEmpty)
    }

    @Test func `the closure may use the cache, which has let the value go`() {
        let seen = Told<String>()
        let home = Locked<MemoryCache<Int, String>?>(nil)
        let cache = MemoryCache<Int, String>.inTime(time, countLimit: 2) { key, value, cause in
            guard let cache = home.value else { return }
            seen.add("\(key) \(value) \(cause) \(cache[key] ?? "-")")
            if cause == .evicted { cache.update(100) { $0 = ($0 ?? "") + value } }
            if value == "last" { cache.removeAll() }
        }
        home.change { $0 = cache }
        cache[1] = "a"
        cache[1] = "b"
        cache.update(1) { $0 = "c" }
        cache[2] = "last"
        cache[2] = nil
        #expect(seen.all == ["1 a replaced b", "1 b replaced c", "2 last removed -", "1 c removed -"])
        home.change { $0 = nil }
    }

    @Test func `from many threads each value that leaves is told once`() {
        let (set, left) = (Counter(), Told<Int>())
        let cache = MemoryCache<Int, Int>.inTime(time, countLimit: 20) { _, value, _ in left.add(value) }
        let errors = errors(ofThreads: 4) { thread in
            var random = Seeded(UInt64(thread + 1))
            for _ in 0..<2_000 {
                let key = Int(random.next() % 40)
                switch random.next() % 8 {
                case 0: cache.removeValue(forKey: key)
                case 1: cache.update(key) { $0 = nil }
                case 2: cache.trim(toCount: 10)
                default: cache.setValue(set.increment(), forKey: key)
                }
            }
        }
        let all = left.all + cache.values
        #expect(errors.isEmpty)
        #expect(Set(all).count == all.count && all.count == set.value)
    }

    @Test func `the objects of a cache with a closure are released outside the lock`() {
        let home = Locked<MemoryCache<Int, Releasing>?>(nil)
        let cache = MemoryCache<Int, Releasing>.inTime(time, countLimit: 1) { _, _, _ in _ = home.value?.count }
        home.change { $0 = cache }
        let released = Counter()
        for key in 0..<3 { cache[key] = Releasing { _ = (home.value?.count, released.increment()) } }
        cache.removeAll()
        home.change { $0 = nil }
        #expect(released.value == 3)
    }
}
