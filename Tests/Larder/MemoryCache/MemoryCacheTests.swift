import Foundation
import Larder
import LarderTestSupport
import Testing

struct MemoryCacheTests {
    private let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)

    @Test func `a value is read back, an unknown key is nil`() {
        cache["a"] = 1
        #expect(cache["a"] == 1)
        #expect(cache.value(forKey: "b") == nil)
        cache.checkInvariants()
    }

    @Test func `a set replaces`() {
        cache["k"] = 1
        cache["k"] = 2
        #expect(cache["k"] == 2)
        #expect(cache.count == 1)
    }

    @Test func `setting nil for an absent key changes nothing`() {
        cache["k"] = nil
        #expect(cache.isEmpty && cache.count == 0)
    }

    @Test func `a removal gives the value back once`() {
        cache["k"] = 1
        #expect(cache.removeValue(forKey: "k") == 1)
        #expect(cache["k"] == nil)
        #expect(cache.removeValue(forKey: "k") == nil)
        cache["k"] = 2
        cache["k"] = nil
        #expect(cache["k"] == nil && cache.isEmpty)
        cache.checkInvariants()
    }

    @Test func `costs add up, and a clear forgets them`() {
        for (key, cost) in [("a", 10), ("b", 20), ("c", 30)] { cache.setValue(0, forKey: key, cost: cost) }
        #expect(cache.totalCost == 60 && cache.count == 3)
        cache.removeAll()
        cache.setValue(0, forKey: "d", cost: 1)
        #expect(cache.totalCost == 1 && cache.count == 1)
        cache.checkInvariants()
    }

    @Test func `a set replaces the cost, by 0 if none is given`() {
        cache.setValue(0, forKey: "k", cost: 5)
        cache.setValue(0, forKey: "k", cost: 3)
        #expect(cache.totalCost == 3)
        cache.setValue(0, forKey: "k", cost: 7)
        #expect(cache.totalCost == 7)
        cache["k"] = 1
        #expect(cache.totalCost == 0 && cache.count == 1)
        cache.checkInvariants()
    }

    @Test func `the order is that of use, and looking for a key is no use`() {
        for key in ["a", "b", "c"] { cache[key] = 0 }
        #expect(cache.orderedKeys == ["a", "b", "c"])
        #expect(cache.contains("a"))
        #expect(cache.orderedKeys == ["a", "b", "c"])
        cache["a"] = 1
        #expect(cache.orderedKeys == ["b", "c", "a"])
        _ = cache["b"]
        #expect(cache.orderedKeys == ["c", "a", "b"])
        #expect(cache.orderedValues == [0, 1, 0])
    }

    @Test func `listings hold exactly what is there`() {
        for (index, key) in ["a", "b", "c"].enumerated() { cache[key] = index }
        #expect(Set(cache.keys) == ["a", "b", "c"] && Set(cache.values) == [0, 1, 2])
        cache["b"] = nil
        #expect(Set(cache.keys) == ["a", "c"] && cache.values.sorted() == [0, 2])
    }

    @Test func `keys of every kind work`() throws {
        struct Custom: Hashable, Sendable {
            var scope: String
            var user: Int
        }
        func check<Key: Hashable & Sendable>(_ keys: [Key]) {
            let cache = MemoryCache<Key, Int>(clearsOnMemoryPressure: false)
            for (index, key) in keys.enumerated() { cache[key] = index }
            #expect(cache.count == keys.count)
            for (index, key) in keys.enumerated() { #expect(cache[key] == index) }
            for key in keys { cache[key] = nil }
            #expect(cache.isEmpty)
            cache.checkInvariants()
        }
        check([Int.min, -1, 0, 1, .max])
        check([UInt.min, 1, .max])
        check((Int8.min...Int8.max).map(\.self))
        check((UInt8.min...UInt8.max).map(\.self))
        check((Int16.min...Int16.max).map(\.self))
        check([UInt16.min, .max])
        check([Int32.min, -1, 0, .max])
        check([UInt32.min, 1, .max])
        check([Int64.min, -1, 0, .max])
        check([UInt64.min, 1, .max])
        check([Int128.min, -1, 0, .max])
        check(["", "a", "\0", "a\0b", String(repeating: "x", count: 1 << 20)])
        check([0.0, 1.5, -.infinity])
        check((0..<100).map { _ in UUID() })
        check([try #require(URL(string: "https://a.b/c")), try #require(URL(string: "https://a.b/d"))])
        check([Custom(scope: "a", user: 1), Custom(scope: "a", user: 2), Custom(scope: "b", user: 1)])
        check([AnyHashableBox(1), AnyHashableBox(2)])
    }

    /// `AnyHashable` is not `Sendable`; what holds one is the nearest a key can come.
    private struct AnyHashableBox: Hashable, Sendable {
        let number: Int

        init(_ number: Int) {
            self.number = number
        }
    }

    @Test func `10,000 sets and removals of one key leave nothing`() {
        for round in 0..<10_000 {
            cache.setValue(round, forKey: "k", cost: 3)
            #expect(cache.removeValue(forKey: "k") == round)
        }
        #expect(cache.isEmpty && cache.totalCost == 0)
        cache.checkInvariants()
    }

    @Test func `what was removed is listed no more`() {
        for key in ["a", "b", "c", "d"] { cache[key] = 0 }
        _ = cache["a"]
        cache["a"] = nil
        #expect(cache.orderedKeys.reversed() == ["d", "c", "b"])
    }

    @Test func `removeAll gives the memory back, and the cache works on`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<100_000 { cache[key] = key }
        #expect(cache.capacity >= 100_000)
        cache.removeAll()
        #expect(cache.capacity < 100 && cache.isEmpty)
        cache[1] = 1
        #expect(cache[1] == 1)
        cache.checkInvariants()
    }

    @Test func `many entries are released without recursion`() {
        var cache: MemoryCache<Int, Releasing>? = MemoryCache(clearsOnMemoryPressure: false)
        let released = Counter()
        for key in 0..<200_000 { cache?[key] = Releasing { released.increment() } }
        cache = nil
        #expect(released.value == 200_000)
    }

    @Test func `each table has a secret of its own`() {
        #expect(Set((0..<100).map { _ in HashSeed().hash(1) }).count == 100)
    }
}
