import Foundation
import Larder
import LarderTestSupport
import Testing

struct MemoryCacheLimitTests {
    @Test func `the least recently used goes, and being at the limit is allowed`() {
        let cache = MemoryCache<String, Int>(countLimit: 3, clearsOnMemoryPressure: false)
        for key in ["a", "b", "c"] { cache[key] = 0 }
        #expect(cache.count == 3)
        _ = cache["a"]
        cache["d"] = 0
        #expect(cache.orderedKeys == ["c", "a", "d"])
        cache.checkInvariants()
        let small = MemoryCache<String, Int>(countLimit: 2, clearsOnMemoryPressure: false)
        for key in ["a", "b", "c"] { small[key] = 0 }
        #expect(small.orderedKeys == ["b", "c"])
    }

    @Test func `entries without a cost are never evicted by cost`() {
        let cache = MemoryCache<Int, Int>(costLimit: 1, clearsOnMemoryPressure: false)
        for key in 0..<1000 { cache[key] = key }
        #expect(cache.count == 1000)
        cache.setValue(0, forKey: -1, cost: 1)
        #expect(cache.count == 1001)
    }

    @Test func `a limit of 0 keeps nothing, or only what costs nothing`() {
        let none = MemoryCache<String, Int>(countLimit: 0, clearsOnMemoryPressure: false)
        none["a"] = 1
        #expect(none["a"] == nil && none.isEmpty)
        let free = MemoryCache<String, Int>(costLimit: 0, clearsOnMemoryPressure: false)
        free.setValue(1, forKey: "a", cost: 1)
        #expect(free["a"] == nil)
        free["b"] = 1
        #expect(free["b"] == 1)
    }

    @Test func `a lowered limit takes effect at once`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<3 { cache.setValue(key, forKey: key, cost: 1) }
        cache.costLimit = 2
        #expect(cache.costLimit == 2 && cache.orderedKeys == [1, 2])
        cache.costLimit = 0
        #expect(cache.costLimit == 0 && cache.isEmpty)
        cache.costLimit = .max
        for key in 0..<5000 { cache[key] = key }
        cache.countLimit = 3
        #expect(cache.countLimit == 3 && cache.orderedKeys == [4997, 4998, 4999])
        cache.checkInvariants()
    }

    @Test func `a trim keeps the most recent`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<10 { cache[key] = key }
        cache.trim(toCount: 3)
        #expect(cache.orderedKeys == [7, 8, 9])
    }

    @Test func `a trim to more changes nothing, one to less than nothing empties`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<5 { cache.setValue(key, forKey: key, cost: 1) }
        cache.trim(toCost: 100)
        cache.trim(toCount: .max)
        #expect(cache.count == 5)
        cache.trim(toCost: 0)
        #expect(cache.isEmpty)
        cache[1] = 1
        cache.trim(toCost: -5)
        #expect(cache.count == 1, "a total of 0 is reached already")
        cache.trim(toCount: -5)
        #expect(cache.isEmpty)
    }

    @Test func `trim by cost goes strictly from the least recent end, and stops at the total`() {
        let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        cache["free"] = 0
        cache.setValue(0, forKey: "dear", cost: 10)
        cache["free too"] = 0
        cache.trim(toCost: 0)
        #expect(cache.orderedKeys == ["free too"])
    }

    @Test func `what costs more than the limit is refused, evicts nothing, and removes what the key held`() {
        let cache = MemoryCache<Int, Int>(costLimit: 10, clearsOnMemoryPressure: false)
        for key in 0..<10 { cache.setValue(key, forKey: key, cost: 1) }
        cache.setValue(0, forKey: 99, cost: 11)
        #expect(cache.count == 10 && cache[99] == nil)
        cache.setValue(0, forKey: 3, cost: 11)
        #expect(cache.count == 9 && cache[3] == nil && cache.totalCost == 9)
        cache.checkInvariants()
    }

    @Test func `a negative cost counts as 0, and absurd ones are clamped`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        cache.setValue(0, forKey: 1, cost: -5)
        #expect(cache.totalCost == 0)
        cache.setValue(0, forKey: 2, cost: .max)
        #expect(cache.totalCost == 1 << 53)
        for key in 0..<2000 { cache.setValue(0, forKey: key, cost: .max) }
        #expect(cache.totalCost == .max, "2,000 times 2^53 is more than an Int holds")
        for key in 2..<2000 { cache[key] = nil }
        #expect(cache.totalCost == 2 << 53)
        cache.checkInvariants()
    }

    @Test func `a total beyond 2^31 is kept exactly`() {
        let cache = MemoryCache<Int, Int>(costLimit: 5_000_000_000, clearsOnMemoryPressure: false)
        for key in 0..<6 { cache.setValue(0, forKey: key, cost: 1_000_000_000) }
        #expect(cache.totalCost == 5_000_000_000 && cache.orderedKeys == [1, 2, 3, 4, 5])
    }

    @Test func `a cost that grows evicts the others, and the total is right`() {
        let cache = MemoryCache<Int, Int>(costLimit: 100, clearsOnMemoryPressure: false)
        cache.setValue(0, forKey: 0)
        for key in 1...5 { cache.setValue(0, forKey: key, cost: 10) }
        cache.setValue(0, forKey: 0, cost: 100)
        #expect(cache.orderedKeys == [0] && cache.totalCost == 100)
        cache.setValue(0, forKey: 1, cost: 1)
        #expect(cache.orderedKeys == [1] && cache.totalCost == 1)
        cache.checkInvariants()
    }

    @Test func `one set may evict many`() {
        let cache = MemoryCache<Int, Int>(costLimit: 1000, clearsOnMemoryPressure: false)
        for key in 0..<1000 { cache.setValue(0, forKey: key, cost: 1) }
        cache.setValue(0, forKey: -1, cost: 995)
        #expect(cache.orderedKeys == [995, 996, 997, 998, 999, -1] && cache.totalCost == 1000)
        cache.checkInvariants()
    }

    @Test func `limits of Int.max are none, negative ones are 0`() {
        let cache = MemoryCache<Int, Int>(countLimit: .max, costLimit: .max, clearsOnMemoryPressure: false)
        for key in 0..<1000 { cache.setValue(0, forKey: key, cost: 1 << 50) }
        #expect(cache.count == 1000)
        cache.countLimit = -1
        #expect(cache.countLimit == 0 && cache.isEmpty)
        cache.costLimit = .min
        #expect(cache.costLimit == 0)
        #expect(MemoryCache<Int, Int>(countLimit: .min, costLimit: .min, clearsOnMemoryPressure: false).countLimit == 0)
    }

    @Test func `limits that are raised again and again still let the table grow`() {
        let cache = MemoryCache<Int, Int>(countLimit: 1, clearsOnMemoryPressure: false)
        for limit in 1...5000 {
            cache.countLimit = limit
            cache[limit] = limit
        }
        #expect(cache.count == 5000)
        cache.checkInvariants()
    }

    @Test func `with many entries a look-up looks at a few chunks`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<200_000 { cache[key &* 0x9E37_79B9] = key }
        let probes = (0..<200_000).reduce(0) { $0 + cache.probeCount($1 &* 0x9E37_79B9) }
        #expect(Double(probes) / 200_000 < 1.25)
    }

    @Test(.enabled(if: isRelease && LongTests.areEnabled, "a long test in release mode"))
    func `ten million entries fit`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<10_000_000 { cache[key] = key }
        #expect(cache.count == 10_000_000 && cache[9_999_999] == 9_999_999 && cache[0] == 0)
        cache.trim(toCount: 5)
        #expect(cache.orderedKeys == [9_999_996, 9_999_997, 9_999_998, 9_999_999, 0])
    }
}

/// Whether this is a release build.
var isRelease: Bool {
    #if DEBUG
    false
    #else
    true
    #endif
}
