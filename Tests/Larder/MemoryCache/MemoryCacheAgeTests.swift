import Foundation
import Larder
import LarderTestSupport
import Testing

struct MemoryCacheAgeTests {
    private let time = ManualClock()

    private func cache(_ maxAge: MaxAge) -> MemoryCache<String, Int> {
        MemoryCache(maxAge: maxAge, clearsOnMemoryPressure: false, clock: { [time] in time.now })
    }

    @Test func `precisely at the limit served, a millisecond later gone, and so is the count`() {
        let cache = cache(.seconds(10))
        cache["k"] = 1
        time.advance(by: .seconds(10))
        #expect(cache["k"] == 1 && cache.contains("k"))
        time.advance(by: .milliseconds(1))
        #expect(!cache.contains("k") && cache.count == 1)
        #expect(cache["k"] == nil && cache.isEmpty)
        cache.checkInvariants()
    }

    @Test func `a read does not postpone the end`() {
        let cache = cache(.seconds(10))
        cache["k"] = 1
        time.advance(by: .seconds(6))
        #expect(cache["k"] == 1)
        time.advance(by: .seconds(6))
        #expect(cache["k"] == nil)
    }

    @Test func `a read of a sliding age does`() {
        let cache = cache(MaxAge.seconds(10).sinceLastAccess)
        cache["k"] = 1
        for _ in 0..<3 {
            time.advance(by: .seconds(10))
            #expect(cache["k"] == 1)
        }
        time.advance(by: .milliseconds(10_001))
        #expect(cache["k"] == nil)
    }

    @Test(arguments: [MaxAge.seconds(0), .seconds(-1), .seconds(-.infinity), .until(.distantPast)])
    func `an age that is over means that everything is`(maxAge: MaxAge) {
        let cache = cache(maxAge)
        cache["k"] = 1
        #expect(!cache.contains("k") && cache.orderedKeys.isEmpty && Array(cache).isEmpty)
        #expect(cache["k"] == nil && cache.isEmpty)
    }

    @Test func `a deadline is served and not a moment after, later entries neither`() {
        let cache = cache(.until(time.now + 5))
        cache["k"] = 1
        time.advance(by: .seconds(5))
        #expect(cache["k"] == 1)
        time.advance(by: .milliseconds(1))
        #expect(cache["k"] == nil)
        cache["k"] = 2
        #expect(cache["k"] == nil)
    }

    @Test func `a sweep removes exactly what is over, and counts it`() {
        let cache = cache(.seconds(10))
        for number in 0..<3000 { cache["old \(number)"] = number }
        time.advance(by: .seconds(6))
        for number in 0..<100 { cache["new \(number)"] = number }
        time.advance(by: .seconds(5))
        #expect(cache.removeExpired() == 3000)
        #expect(cache.count == 100 && cache.removeExpired() == 0)
        cache.checkInvariants()
    }

    @Test func `listings and iteration leave out what is over`() {
        let cache = cache(.seconds(10))
        cache["old"] = 1
        time.advance(by: .seconds(6))
        cache["new"] = 2
        time.advance(by: .seconds(5))
        #expect(cache.keys == ["new"] && cache.values == [2] && cache.orderedKeys == ["new"])
        #expect(cache.map(\.key) == ["new"])
        #expect(cache.values(forKeys: ["old", "new"]) == ["new": 2])
        #expect(cache.removeValue(forKey: "old") == nil)
    }

    @Test func `a write time in the future counts as now until the clock has caught up`() {
        let cache = cache(.seconds(10))
        cache["k"] = 1
        time.set(time.now - 3600)
        #expect(cache["k"] == 1)
        time.set(time.now + 3610.001)
        #expect(cache["k"] == nil)
    }

    @Test func `and so it does in a sweep`() {
        let cache = cache(.seconds(10))
        cache["k"] = 1
        time.set(time.now - 3600)
        #expect(cache.removeExpired() == 0)
        time.set(time.now + 3610.001)
        #expect(cache.removeExpired() == 1)
    }

    @Test func `a cache without an age never asks for the time`() {
        let readings = Counter()
        let cache = MemoryCache<String, Int>(
            maxAge: .unlimited, clearsOnMemoryPressure: false,
            clock: { [time] in
                readings.increment()
                return time.now
            })
        cache["k"] = 1
        _ = cache["k"]
        _ = cache.contains("k")
        cache.update("k") { $0 = 2 }
        cache.setValues(["l": 3])
        _ = cache.values(forKeys: ["k"])
        _ = cache.orderedKeys
        _ = Array(cache)
        cache.removeExpired()
        cache.removeAll { _, _ in false }
        _ = cache.removeValue(forKey: "k")
        #expect(readings.value == 0)
    }

    @Test func `a clock that reads the cache does not hang`() {
        let inner = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        inner["k"] = 7
        let cache = MemoryCache<String, Int>(
            maxAge: .seconds(1), clearsOnMemoryPressure: false,
            clock: { Date(timeIntervalSince1970: Double(inner["k"] ?? 0)) })
        cache["k"] = 1
        #expect(cache["k"] == 1)
    }

    @Test func `with the system's clock an entry within its age is served`() {
        let cache = MemoryCache<String, Int>(maxAge: .hours(1), clearsOnMemoryPressure: false)
        cache["k"] = 1
        #expect(cache["k"] == 1 && cache["k"] == 1 && cache.count == 1)
        let over = MemoryCache<String, Int>(
            maxAge: .until(Date(timeIntervalSince1970: 0)), clearsOnMemoryPressure: false)
        over["k"] = 1
        #expect(over["k"] == nil && over.isEmpty)
    }

    @Test func `in an age of not-a-number nothing is served`() {
        let cache = MemoryCache<String, Int>(maxAge: .seconds(.nan))
        cache["k"] = 1
        #expect(cache["k"] == nil && cache.isEmpty)
    }
}
