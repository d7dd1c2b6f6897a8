import Larder
import LarderTestSupport
import Testing

struct MemoryCacheBulkTests {
    private let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)

    @Test func `bulk sets replace, dictionaries and sequences of pairs alike`() {
        cache["a"] = 0
        cache.setValues(["a": 1, "b": 2])
        cache.setValues([("b", 3), ("c", 4), ("c", 5)])
        cache.setValues(zip(["d"], [6]))
        #expect(Dictionary(uniqueKeysWithValues: cache.map { ($0.key, $0.value) }) == ["a": 1, "b": 3, "c": 5, "d": 6])
        cache.checkInvariants()
    }

    @Test func `bulk reads and removals take what is there`() {
        cache.setValues(["a": 1, "b": 2, "c": 3])
        #expect(cache.values(forKeys: ["a", "x", "c", "a"]) == ["a": 1, "c": 3])
        cache.removeValues(forKeys: ["a", "x"])
        #expect(Set(cache.keys) == ["b", "c"])
    }

    @Test func `a bulk read makes most recent, in its order`() {
        for key in ["a", "b", "c"] { cache[key] = 0 }
        _ = cache.values(forKeys: ["b", "a"])
        #expect(cache.orderedKeys == ["c", "b", "a"])
    }

    @Test func `a bulk set obeys the limits`() {
        let cache = MemoryCache<Int, Int>(countLimit: 10, clearsOnMemoryPressure: false)
        cache.setValues((0..<100).map { ($0, $0) })
        #expect(cache.orderedKeys == Array(90..<100))
    }

    @Test func `readers see all of a bulk set, or none`() throws {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        let keys = Array(0..<50)
        cache.setValues(keys.map { ($0, 0) })
        let isDone = Locked(false)
        let looks = Counter()
        // A thread of its own: two iterations of one loop may come one after the other.
        let reader = SideThread {
            while !isDone.value {
                let values = cache.values(forKeys: keys)
                looks.increment()
                // The removal of all is one step too.
                if values.isEmpty { continue }
                if values.count != 50 || Set(values.values).count != 1 {
                    Issue.record("a reader saw \(values.count) values of the rounds \(Set(values.values))")
                    break
                }
            }
        }
        var round = 0
        while round < 500 || (looks.value < 500 && reader.result == nil) {
            round += 1
            cache.setValues(keys.map { ($0, round) })
            if round % 7 == 0 { cache.removeValues(forKeys: keys) }
        }
        isDone.change { $0 = true }
        try reader.value()
    }

    @Test func `a predicate may use the cache, and what is replaced meanwhile stays`() {
        for (index, key) in ["a", "b", "c"].enumerated() { cache[key] = index }
        let removed = cache.removeAll { key, _ in
            if key == "a" { cache["a"] = 10 }
            if key == "b" { cache["b"] = nil }
            return true
        }
        #expect(removed == 1 && cache.orderedKeys == ["a"])
        #expect(cache.watchedKeyCount == 0)
    }

    @Test func `what was picked before a predicate throws is removed`() {
        struct Failure: Error {}
        for (index, key) in ["a", "b", "c"].enumerated() { cache[key] = index }
        #expect(throws: Failure.self) {
            try cache.removeAll { key, _ in
                if key == "b" { throw Failure() }
                return true
            }
        }
        #expect(cache.orderedKeys == ["b", "c"] && cache.watchedKeyCount == 0)
    }

    @Test func `none, all, some, and no question for an empty cache`() {
        let removed = cache.removeAll { _, _ in
            Issue.record("asked for an entry of an empty cache")
            return true
        }
        #expect(removed == 0)
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<3000 { cache[key] = key }
        #expect(cache.removeAll { _, _ in false } == 0 && cache.count == 3000)
        #expect(cache.removeAll { key, _ in key % 3 == 0 } == 1000)
        #expect(cache.orderedKeys == (0..<3000).filter { $0 % 3 != 0 })
        #expect(cache.removeAll { _, _ in true } == 2000 && cache.isEmpty)
        cache.checkInvariants()
    }
}
