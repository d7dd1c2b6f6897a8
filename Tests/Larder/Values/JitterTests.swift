import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// Ages that end a little earlier for each entry, so that entries of one moment do not expire at one moment.
struct JitterTests {
    private let store: TemporaryStore
    private let start: Date

    init() throws {
        store = try TemporaryStore()
        start = store.clock.now
    }

    private func cache(_ maxAge: MaxAge, memory: MemoryLimits = MemoryLimits()) throws -> Cache<Int, String> {
        try store.manager().cache(
            named: "texts", version: "1", maxAge: maxAge, options: CacheOptions(memory: memory).steady)
    }

    private func ends(_ cache: Cache<Int, String>) -> [Int: TimeInterval] {
        cache.entries(orderedBy: .key).reduce(into: [:]) { ends, entry in
            ends[entry.key] = entry.metadata.expiresAt?.timeIntervalSince(start)
        }
    }

    @Test func `ten thousand entries of one moment expire within the last tenth of their age, evenly`() throws {
        let cache = try cache(.hours(1).jittered(0.1), memory: .disabled)
        try cache.setValues((0..<10_000).map { ($0, "text") })
        let ends = ends(cache)
        #expect(ends.count == 10_000 && ends.values.allSatisfy { (3240...3600).contains($0) })
        var curve: [Int] = []
        for minute in 54..<60 {
            let span = Double(minute) * 60..<Double(minute + 1) * 60
            curve.append(ends.values.count { span.contains($0) })
        }
        // A sixth of them in each minute.
        #expect(curve.allSatisfy { (1500...1850).contains($0) }, "\(curve)")
        // Maintenance and counts follow the same ends.
        store.clock.advance(by: .seconds(3240))
        for minute in 55...60 {
            store.clock.advance(by: .seconds(60))
            try cache.manager.maintain()
            let left = ends.values.count { $0 >= Double(minute) * 60 }
            #expect(try cache.count == left && cache.statistics.expirations == 10_000 - left)
        }
        store.clock.advance(by: .milliseconds(1))
        try cache.manager.maintain()
        #expect(try cache.count == 0)
    }

    @Test func `pins and sliding ages of entries of their own are swept at their own ends`() throws {
        let cache = try cache(.hours(1).jittered(0.5), memory: .disabled)
        for key in 0..<100 {
            switch key % 4 {
            case 0: try cache.setValue("pinned", forKey: key, pinned: true)
            case 1: try cache.setValue("sliding", forKey: key, maxAge: .hours(1).sinceLastAccess)
            case 2: try cache.setValue("own", forKey: key, maxAge: .hours(1).jittered(0.5))
            default: cache[key] = "plain"
            }
        }
        let ends = ends(cache)
        #expect((0..<100).filter { $0 % 4 == 1 }.allSatisfy { ends[$0] == 3600 })
        #expect(Set((0..<100).filter { $0 % 4 != 1 }.map { ends[$0] }).count > 70)
        for minute in stride(from: 30, through: 60, by: 5) {
            store.clock.advance(by: .seconds(minute == 30 ? 1800 : 300))
            try cache.removeExpired()
            let left = ends.filter { $0.value >= Double(minute) * 60 }
            #expect(Set(self.ends(cache).keys) == Set(left.keys))
            // A sweep and a new opening leave the ends as they were.
            #expect(self.ends(cache).allSatisfy { ends[$0.key] == $0.value })
        }
        store.clock.advance(by: .milliseconds(1))
        #expect(try cache.removeExpired() == 25 && cache.count == 0)
    }

    @Test func `each manager finds the same end, and memory, explanations and reads follow it`() throws {
        let cache = try cache(.hours(1).jittered(0.5))
        let other: Cache<Int, String> = try store.manager().cache(
            named: "texts", version: "1", maxAge: .hours(1).jittered(0.5), options: CacheOptions().steady)
        for key in 0..<50 { cache[key] = "text" }
        let ends = ends(cache)
        #expect(self.ends(other) == ends && Set(ends.values).count > 40)
        let first = try #require(ends.min { $0.value < $1.value })
        for key in 0..<50 { #expect(cache[key] == "text" && other[key] == "text") }
        store.clock.advance(by: .milliseconds(Int64((first.value * 1000).rounded())))
        for handle in [cache, other] { #expect(handle[first.key] == "text" && handle.memory[first.key] == "text") }
        store.clock.advance(by: .milliseconds(1))
        for handle in [cache, other] { #expect(handle.memory[first.key] == nil && handle[first.key] == nil) }
        #expect(try cache.explain(first.key).kind == .expired)
        #expect(try cache.count == 49 && Array(cache.keys).count == 49)
        let next = try #require(ends.filter { $0.key != first.key }.keys.first)
        #expect(try cache.setPinned(true, forKey: next) && self.ends(cache)[next] == ends[next])
        // A write has another moment, and so another end.
        cache[next] = "again"
        #expect(self.ends(cache)[next] != ends[next])
    }

    @Test func `an age of one entry is drawn, and that of a load too`() throws {
        let cache = try cache(.days(1))
        for key in 0..<20 { try cache.setValue("text", forKey: key, maxAge: .hours(1).jittered(0.5)) }
        for key in 20..<40 {
            _ = try cache.value(forKey: key) { _, _ in .value("text", maxAge: .hours(1).jittered(0.5)) }
        }
        let ends = ends(cache)
        #expect(ends.values.allSatisfy { (1800...3600).contains($0) } && Set(ends.values).count > 30)
        // A touch keeps the length.
        store.clock.advance(by: .seconds(60))
        try cache.touch(0)
        #expect(self.ends(cache)[0] == ends[0].map { $0 + 60 })
    }

    @Test func `a memory cache draws too`() {
        let memory: MemoryCache<Int, String> = store.clock.memoryCache(maxAge: .hours(1).jittered(0.5))
        for key in 0..<1000 { memory[key] = "text" }
        store.clock.advance(by: .seconds(1799))
        #expect((0..<1000).allSatisfy { memory[$0] != nil })
        store.clock.advance(by: .seconds(901))
        let left = (0..<1000).count { memory[$0] != nil }
        #expect((350...650).contains(left))
        store.clock.advance(by: .seconds(901))
        #expect((0..<1000).allSatisfy { memory[$0] == nil })
    }

    @Test func `an age says its jitter, and what has no length has none`() {
        #expect(MaxAge.days(1).jittered(0.1).description == "1 day, up to 10 % earlier")
        #expect(MaxAge.days(1).jittered(0.025).description == "1 day, up to 2.5 % earlier")
        #expect(MaxAge.days(1).jittered(0.1).jittered(0.2) == .days(1).jittered(0.2))
        #expect(MaxAge.days(1).jittered(7) == .days(1).jittered(1))
        for age in [MaxAge.unlimited, .until(start), .days(1).sinceLastAccess, .seconds(0), .seconds(-1)] {
            #expect(age.jittered(0.5) == age)
        }
        for share in [0, -1, Double.nan] { #expect(MaxAge.days(1).jittered(share) == .days(1)) }
        #expect(MaxAge.days(1).jittered(0.1).sinceLastAccess == .days(1).sinceLastAccess)
    }
}
