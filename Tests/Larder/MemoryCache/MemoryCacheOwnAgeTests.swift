import Foundation
import Larder
import LarderTestSupport
import Testing

/// Entries whose age is not that of their cache.
struct MemoryCacheOwnAgeTests {
    private let time = ManualClock()

    private func cache(_ maxAge: MaxAge) -> MemoryCache<String, Int> { .inTime(time, maxAge: maxAge) }

    @Test func `an entry of a cache without an age expires by its own, and others stay`() {
        let cache = cache(.unlimited)
        cache["other"] = 1
        cache.setValue(2, forKey: "own", maxAge: .seconds(10))
        time.advance(by: .seconds(10))
        #expect(cache["own"] == 2 && cache.contains("own"))
        time.mislead(by: .milliseconds(1))
        #expect(!cache.contains("own") && cache.orderedKeys == ["other"] && cache.snapshot() == ["other": 1])
        #expect(cache["own"] == nil && cache.count == 1 && cache.statistics.expirations == 1)
        cache.checkInvariants()
    }

    @Test func `an own age is longer or shorter than the cache's, and nil is the cache's`() {
        let cache = cache(.seconds(10))
        cache.setValue(1, forKey: "short", maxAge: .seconds(1))
        cache.setValue(2, forKey: "long", maxAge: .seconds(100))
        cache.setValue(3, forKey: "forever", maxAge: .unlimited)
        cache.setValue(4, forKey: "usual", maxAge: nil)
        time.advance(by: .seconds(2))
        #expect(Set(cache.keys) == ["long", "forever", "usual"])
        time.advance(by: .seconds(20))
        #expect(Set(cache.keys) == ["long", "forever"])
        time.advance(by: .seconds(86_400_000))
        #expect(cache.keys == ["forever"] && cache["forever"] == 3)
        cache.checkInvariants()
    }

    @Test func `an own age slides, and one that does not stays in a cache whose age does`() {
        let fixed = cache(.seconds(10))
        let sliding = cache(MaxAge.seconds(10).sinceLastAccess)
        fixed.setValue(1, forKey: "sliding", maxAge: MaxAge.seconds(5).sinceLastAccess)
        sliding.setValue(1, forKey: "fixed", maxAge: .seconds(5))
        sliding["sliding"] = 2
        for _ in 0..<4 {
            time.advance(by: .seconds(4))
            #expect(fixed["sliding"] == 1 && sliding["sliding"] == 2)
            _ = sliding["fixed"]
        }
        #expect(sliding["fixed"] == nil)
        time.advance(by: .milliseconds(5_001))
        #expect(fixed["sliding"] == nil)
    }

    @Test func `a plain write, an update and a bulk write give an entry the age of the cache`() {
        let cache = cache(.unlimited)
        for key in ["set", "update", "bulk", "left"] { cache.setValue(0, forKey: key, maxAge: .seconds(1)) }
        cache["set"] = 1
        cache.update("update") { $0 = 1 }
        cache.setValues(["bulk": 1])
        time.advance(by: .seconds(3600))
        #expect(cache.snapshot() == ["set": 1, "update": 1, "bulk": 1])
        cache.checkInvariants()
    }

    @Test(arguments: [MaxAge.seconds(0), .seconds(-1), .seconds(-.infinity), .seconds(.nan), .until(.distantPast)])
    func `an expired age, and one that is no number, keep nothing and remove the old entry`(maxAge: MaxAge) {
        let cache = cache(.unlimited)
        cache["k"] = 1
        cache.setValue(2, forKey: "k", maxAge: maxAge)
        #expect(cache["k"] == nil && cache.isEmpty)
    }

    @Test func `a negative cost counts as none, with an age too`() {
        let cache = cache(.unlimited)
        cache.setValue(1, forKey: "k", cost: -5, maxAge: .seconds(1))
        #expect(cache.totalCost == 0 && cache["k"] == 1)
        cache.setValue(nil, forKey: "k", cost: -5, maxAge: .seconds(1))
        #expect(cache.isEmpty)
    }

    @Test func `an entry with an own age leaves on time, without traffic`() {
        let cache = cache(.unlimited)
        #expect(time.pendingCount == 0)
        cache.setValue(1, forKey: "k", maxAge: .seconds(10))
        #expect(time.pendingCount == 1)
        time.advance(by: .seconds(9))
        #expect(cache.count == 1)
        time.advance(by: .seconds(2))
        #expect(cache.isEmpty && time.pendingCount == 0)
    }

    @Test func `an own age is kept by a snapshot, sliding or not`() throws {
        let folder = try TemporaryFolder()
        let cache = cache(.seconds(10))
        cache["usual"] = 1
        cache.setValue(2, forKey: "long", cost: 7, maxAge: .seconds(100))
        cache.setValue(3, forKey: "sliding", maxAge: MaxAge.seconds(20).sinceLastAccess)
        cache.setValue(4, forKey: "forever", maxAge: .unlimited)
        time.advance(by: .seconds(5))
        try cache.save(to: folder("s"))
        for rule in [MaxAge.seconds(10), .unlimited] {
            let other = self.cache(rule)
            #expect(try other.load(from: folder("s")) == 4)
            #expect(other.totalCost == 7)
            time.advance(by: .seconds(14))
            #expect(other["sliding"] == 3)
            time.advance(by: .seconds(19))
            #expect(other["sliding"] == 3 && other["long"] == 2)
            time.advance(by: .seconds(63))
            #expect(other["long"] == nil && other["sliding"] == nil && other["forever"] == 4)
            #expect((other["usual"] == 1) == (rule == .unlimited))
            time.mislead(by: .seconds(-96))
        }
    }

    @Test func `in a cache with a deadline an entry without an end keeps none in a snapshot`() throws {
        let folder = try TemporaryFolder()
        let cache = cache(.until(time.now + 10))
        cache.setValue(1, forKey: "forever", maxAge: .unlimited)
        cache["usual"] = 2
        try cache.save(to: folder("s"))
        let other = self.cache(.until(time.now + 10))
        try other.load(from: folder("s"))
        time.advance(by: .seconds(20))
        #expect(other.snapshot() == ["forever": 1])
    }

    @Test func `the bytes of an own age count`() {
        let cache = MemoryCache<Int, Int>.inTime(time)
        cache[1] = 1
        let plain = cache.totalBytes
        cache.setValue(2, forKey: 2, maxAge: .seconds(1))
        #expect(cache.totalBytes >= 2 * plain + 16)
    }

    @Test(arguments: 0..<20) func `any order of calls does as a plain table would`(seed: UInt64) {
        var random = Seeded(seed + 1)
        let hasAge = random.next() % 2 == 0
        let cache = MemoryCache<Int, Int>.inTime(time, maxAge: hasAge ? .seconds(20) : .unlimited)
        var model: [Int: (value: Int, end: Date, slide: Double)] = [:]
        for step in 0..<400 {
            let key = Int(random.next() % 12)
            switch random.next() % 6 {
            case 0:
                let end = hasAge ? time.now + 20 : .distantFuture
                (cache[key], model[key]) = (step, (step, end, 0))
            case 1:
                let age = Double(random.next() % 30 + 1)
                let slides = random.next() % 2 == 0
                cache.setValue(step, forKey: key, maxAge: slides ? .seconds(age).sinceLastAccess : .seconds(age))
                model[key] = (step, time.now + age, slides ? age : 0)
            case 2:
                cache.removeValue(forKey: key)
                model[key] = nil
            case 3: time.advance(by: .seconds(Int64(random.next() % 8)))
            default:
                let wanted = model[key].flatMap { $0.end >= time.now ? $0.value : nil }
                #expect(cache[key] == wanted)
                if wanted != nil, let slide = model[key]?.slide, slide > 0 { model[key]?.end = time.now + slide }
            }
        }
        #expect(cache.snapshot() == model.filter { $0.value.end >= time.now }.mapValues(\.value))
        cache.checkInvariants()
    }
}
