import Foundation
import Larder
import LarderTestSupport
import Testing

/// Passes over what changes meanwhile.
struct CachePassTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache() throws -> Cache<Int, Int> {
        try manager.cache(named: "a", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
    }

    @Test func `a pass may be nested, broken off, and may change what it passes over`() throws {
        let cache = try cache()
        try cache.setValues((0..<3000).map { ($0, $0) })
        let hits = cache.statistics
        #expect(cache.map(\.key) == Array(0..<3000) && cache.map(\.key) == Array(0..<3000))
        #expect(cache.statistics == hits)
        var pairs = 0
        for a in cache.prefix(3) { for b in cache.prefix(3) where a.key + b.key >= 0 { pairs += 1 } }
        #expect(pairs == 9)
        #expect(try StoreProbe(manager).isIdle)
        var seen: [Int] = []
        for (key, _) in cache {
            seen.append(key)
            if key % 2 == 0 { cache[key + 1] = nil }
            if key == 100 { try cache.removeValues(forKeys: 2000..<2500) }
            if key < 50 { cache[3000 + key] = key }
        }
        #expect(seen.count == Set(seen).count && seen == seen.sorted())
        #expect(Set(seen).isSuperset(of: stride(from: 0, to: 2000, by: 2)))
        var iterator = cache.makeIterator()
        while iterator.next() != nil {}
        cache[100_000] = 1
        #expect(iterator.next() == nil && iterator.next() == nil)
        let counts = Locked<[Int]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            let count = cache.reduce(0) { sum, _ in sum + 1 }
            counts.change { $0.append(count) }
        }
        #expect(try counts.value == Array(repeating: cache.count, count: 4))
        try expectInvariants(cache)
    }

    @Test func `a decider leaves what was written since it looked`() throws {
        let cache = try cache()
        for key in 0..<10 { cache[key] = key }
        #expect(
            try cache.removeAll { entry in
                if entry.key == 3 { cache[3] = 33 }
                return true
            } == 9)
        #expect(cache.map(\.value) == [33])
        struct Stop: Error {}
        for key in 0..<10 { cache[key] = key }
        #expect(throws: Stop.self) {
            try cache.removeAll { entry in
                if entry.key == 5 { throw Stop() }
                return true
            }
        }
        #expect(cache.map(\.key) == Array(5..<10))
        try cache.removeAll()
        #expect(
            try cache.removeAll { _ in
                Issue.record("called"); return true
            } == 0)
        try expectInvariants(cache)
    }
}
