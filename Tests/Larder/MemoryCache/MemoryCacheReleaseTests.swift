import Larder
import LarderTestSupport
import Testing

/// User code that runs because of the cache, and calls the cache.
struct MemoryCacheReleaseTests {
    private final class Holder: Sendable {
        let cache: MemoryCache<Int, Releasing>
        let released = Counter()

        init(countLimit: Int = .max) {
            cache = MemoryCache(countLimit: countLimit, clearsOnMemoryPressure: false)
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

    @Test func `a value's deinit may call the cache that replaces, removes, clears, trims or evicts it`() {
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
        let time = ManualClock()
        let cache = MemoryCache<Int, Releasing>(maxAge: .seconds(1), clearsOnMemoryPressure: false, clock: { time.now })
        let released = Counter()
        for key in 0..<3 {
            cache[key] = Releasing { [unowned cache] in
                released.increment()
                _ = cache.count
            }
        }
        time.advance(by: .milliseconds(1001))
        #expect(cache[0] == nil && released.value == 1)
        #expect(cache.values(forKeys: [1]).isEmpty && released.value == 2)
        #expect(cache.removeExpired() == 1 && released.value == 3)
    }

    @Test(arguments: [UpdateEnd.replaced, .removed, .evicted, .thrown])
    func `a value's deinit may update the key whose update let go of it`(end: UpdateEnd) async {
        await #expect(processExitsWith: .success) { [end] in
            let cache = MemoryCache<Int, Releasing>(
                countLimit: end == .evicted ? 1 : .max, clearsOnMemoryPressure: false)
            let updates = Counter()
            func value() -> Releasing {
                Releasing { [unowned cache] in cache.update(0) { _ in _ = updates.increment() } }
            }
            cache[end == .evicted ? 1 : 0] = value()
            do {
                try cache.update(0) { current in
                    current = end == .removed ? nil : value()
                    if end == .thrown { throw Refusal() }
                }
            } catch {}
            precondition(updates.value == 1 && cache.watchedKeyCount == 0)
            // What is left must not outlive the cache that it updates.
            cache.removeAll()
        }
    }

    enum UpdateEnd: Codable { case replaced, removed, evicted, thrown }

    private struct Refusal: Error {}

    /// A key whose hash uses another cache.
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

    /// A key whose hash and whose release use the cache that holds it.
    private final class IntimateKey: Hashable, Sendable {
        static let cache = MemoryCache<IntimateKey, Int>(clearsOnMemoryPressure: false)
        static let (made, released) = (Counter(), Counter())
        let number: Int

        init(_ number: Int) {
            self.number = number
            Self.made.increment()
        }

        deinit {
            Self.released.increment()
            _ = Self.cache.count
        }

        static func == (left: IntimateKey, right: IntimateKey) -> Bool { left.number == right.number }

        func hash(into hasher: inout Hasher) {
            _ = Self.cache.totalCost
            hasher.combine(number)
        }
    }

    @Test func `a key's hash and its release may use the cache that holds it`() {
        let cache = IntimateKey.cache
        cache.countLimit = 20
        for number in 0..<50 { cache[IntimateKey(number)] = number }
        #expect(IntimateKey.released.value == 30, "the evicted ones")
        #expect(cache[IntimateKey(45)] == 45 && cache.contains(IntimateKey(46)))
        cache.setValues([(IntimateKey(60), 60), (IntimateKey(45), 1)])
        #expect(cache.values(forKeys: [IntimateKey(45)]).count == 1)
        cache.update(IntimateKey(45)) { $0 = 2 }
        #expect(cache.removeValue(forKey: IntimateKey(45)) == 2)
        cache.removeValues(forKeys: [IntimateKey(46)])
        #expect(cache.removeAll { key, _ in key.number == 47 } == 1)
        for (key, _) in cache where key.number == 60 { cache[key] = nil }
        #expect(cache.orderedKeys.map(\.number) == Array(31..<45) + [48, 49])
        cache.trim(toCount: 2)
        cache.costLimit = 10
        cache.setValue(0, forKey: IntimateKey(61), cost: 8)
        cache.setValue(0, forKey: IntimateKey(62), cost: 8)
        #expect(cache.orderedKeys.map(\.number) == [62])
        cache.handleMemoryPressure(.warning)
        cache[IntimateKey(63)] = 63
        cache.removeAll()
        #expect(cache.isEmpty && IntimateKey.released.value == IntimateKey.made.value)
        cache.checkInvariants()
    }

    @Test func `growth, eviction and removal by order hash no key again`() {
        let hashes = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        let cache = MemoryCache<BusyKey, Int>(countLimit: 1000, clearsOnMemoryPressure: false)
        for number in 0..<5000 { cache[BusyKey(number, hashes)] = number }
        #expect(hashes[0] == 5000, "one hash for one set, under growth and eviction")
        cache.trim(toCount: 10)
        _ = cache.orderedKeys
        #expect(hashes[0] == 5000)
    }
}
