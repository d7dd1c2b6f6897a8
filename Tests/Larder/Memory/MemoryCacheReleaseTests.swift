import Larder
import LarderTestSupport
import Synchronization
import Testing

/// User code that runs because of the cache, and calls the cache.
struct MemoryCacheReleaseTests {
    private final class Holder: Sendable {
        let cache: MemoryCache<Int, Releasing>
        let released = Counter()

        init(countLimit: Int = .max) {
            cache = MemoryCache(countLimit: countLimit)
        }

        func value() -> Releasing {
            Releasing { [unowned self] in
                released.increment()
                _ = cache.count
                _ = cache[0]
                _ = cache.contains(1)
                cache.trim(toCount: .max)
                cache.setValue(nil, forKey: 12_345)
            }
        }
    }

    @Test func `case 42: a value's deinit may call the cache that replaces, removes, clears, trims or evicts it`() {
        let holder = Holder()
        let cache = holder.cache
        func expectRelease(_ count: Int = 1, _ body: () -> Void) {
            let before = holder.released.value
            body()
            #expect(holder.released.value == before + count)
        }
        func fill(_ keys: Range<Int>) { for key in keys { cache[key] = holder.value() } }

        fill(0..<10)
        expectRelease { cache[0] = holder.value() }
        expectRelease { cache[0] = nil }
        expectRelease { cache.removeValue(forKey: 1) }
        expectRelease(8) { cache.removeAll() }
        fill(0..<10)
        expectRelease(7) { cache.trim(toCount: 3) }
        expectRelease(1) { cache.countLimit = 2 }
        expectRelease(1) { cache[100] = holder.value() }
        expectRelease(2) { cache.setValues((200..<202).map { ($0, holder.value()) }) }
        expectRelease(1) { cache.removeValues(forKeys: [200]) }
        expectRelease(1) { cache.removeAll { _, _ in true } }
        fill(0..<2)
        expectRelease { cache.update(0) { $0 = holder.value() } }
        expectRelease { cache.update(0) { $0 = nil } }
        expectRelease { cache.handleMemoryPressure(.critical) }
        cache.costLimit = 10
        for key in 0..<2 { cache.setValue(holder.value(), forKey: key, cost: 5) }
        expectRelease(2) { cache.setValue(holder.value(), forKey: 3, cost: 10) }
        expectRelease(2) { cache.setValue(holder.value(), forKey: 3, cost: 11) }
        #expect(cache.isEmpty)
        cache.checkInvariants()
    }

    @Test func `an expired value's deinit may call the cache too`() {
        let clock = StoppedClock()
        let cache = MemoryCache<Int, Releasing>(maxAge: .seconds(1), clock: clock.now)
        let released = Counter()
        for key in 0..<3 {
            cache[key] = Releasing { [unowned cache] in
                released.increment()
                _ = cache.count
            }
        }
        clock.advance(milliseconds: 1001)
        #expect(cache[0] == nil && released.value == 1)
        #expect(cache.values(forKeys: [1]).isEmpty && released.value == 2)
        #expect(cache.removeExpired() == 1 && released.value == 3)
    }

    /// A key whose hash uses another cache, and whose release uses its own.
    private final class BusyKey: Hashable, Sendable {
        let number: Int
        let hashed: MemoryCache<Int, Int>

        init(_ number: Int, _ hashed: MemoryCache<Int, Int>) {
            self.number = number
            self.hashed = hashed
        }

        static func == (left: BusyKey, right: BusyKey) -> Bool { left.number == right.number }

        func hash(into hasher: inout Hasher) {
            hashed.update(0) { $0 = ($0 ?? 0) + 1 }
            hasher.combine(number)
        }
    }

    @Test func `growth, eviction and removal by order hash no key again`() {
        let hashes = MemoryCache<Int, Int>()
        let cache = MemoryCache<BusyKey, Int>(countLimit: 1000)
        for number in 0..<5000 { cache[BusyKey(number, hashes)] = number }
        #expect(hashes[0] == 5000, "one hash for one set, under growth and eviction")
        cache.trim(toCount: 10)
        _ = cache.orderedKeys
        #expect(hashes[0] == 5000)
    }
}
