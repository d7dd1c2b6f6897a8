import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// An age of copies in memory, after which they are compared with their rows.
struct MemoryAgeTests {
    private let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    /// - Parameter reads: Counts the payloads that are decoded.
    private func cache(
        _ age: MaxAge?, reads: Counter = Counter(), maxAge: MaxAge = .hours(1)
    ) throws -> Cache<Int, String> {
        let codec = ValueCodec<String>(identifier: "counted") {
            Data($0.utf8)
        } decode: { data in
            reads.increment()
            return String(decoding: data, as: UTF8.self)
        }
        return try store.manager().cache(
            named: "texts", version: "1", maxAge: maxAge,
            options: CacheOptions(memory: MemoryLimits(maxAge: age)).steady, codec: codec)
    }

    @Test func `a copy is used for its age, then compared with its row, and used again`() throws {
        let reads = Counter()
        let cache = try cache(.seconds(10), reads: reads)
        cache[1] = "one"
        store.clock.advance(by: .seconds(10))
        #expect(cache.memory[1] == "one" && cache[1] == "one")
        store.clock.advance(by: .milliseconds(1))
        // Memory alone has no value that is known to be good.
        #expect(cache.memory[1] == nil)
        #expect(cache[1] == "one" && reads.value == 0)
        #expect(cache.memory[1] == "one")
        store.clock.advance(by: .seconds(10))
        #expect(cache.memory[1] == "one" && cache.memory.contains(1))
        #expect(cache.statistics.memoryHits == 5 && cache.statistics.diskHits == 0)
        // The age of the entry is that of the cache.
        store.clock.advance(by: .seconds(3600))
        #expect(cache[1] == nil)
    }

    @Test func `many keys are compared too, and a copy that was read is one`() throws {
        let reads = Counter()
        let cache = try cache(.seconds(10), reads: reads)
        for key in 1...3 { cache[key] = "\(key)" }
        cache.memory.removeAll()
        #expect(try cache.values(forKeys: 1...3).count == 3 && reads.value == 3)
        #expect(try cache.values(forKeys: 1...3).count == 3 && reads.value == 3)
        store.clock.advance(by: .milliseconds(10_001))
        #expect(cache.memory.contains(2) && Array(cache.memory).count == 3)
        #expect(try cache.values(forKeys: 1...3) == [1: "1", 2: "2", 3: "3"])
    }

    @Test func `it can be set in use, and sliding entries have it too`() throws {
        let cache = try cache(nil, maxAge: .hours(1).sinceLastAccess)
        for key in 0..<100 { cache[key] = "\(key)" }
        #expect(cache.memory.maxAge == nil)
        cache.memory.maxAge = .seconds(10)
        // What was there is compared first.
        #expect(cache.memory[7] == nil && cache[7] == "7" && cache.memory[7] == "7")
        for _ in 0..<3 {
            store.clock.advance(by: .milliseconds(6_000))
            _ = cache[8]
        }
        store.clock.advance(by: .milliseconds(10_001))
        #expect(cache.memory[7] == nil && cache[7] == "7")
        cache[1000] = "new"
        #expect(cache.memory[1000] == "new")
        cache.memory.removeAll()
        cache[5] = "five"
        #expect(cache.memory[5] == "five")
        cache.memory.maxAge = nil
        store.clock.advance(by: .seconds(600))
        #expect(cache.memory[5] == "five")
        // Each read compares.
        cache.memory.maxAge = .seconds(0)
        store.clock.advance(by: .milliseconds(1))
        #expect(cache.memory[5] == nil && cache[5] == "five")
    }

    @Test func `a row that was replaced or removed behind the store's back is noticed`() throws {
        let cache = try cache(.seconds(10))
        for key in 1...2 { cache[key] = "old" }
        let other: Cache<Int, String> = try self.cache(nil)
        other[1] = "new"
        other[2] = nil
        store.clock.advance(by: .milliseconds(10_001))
        #expect(cache[1] == "new" && cache[2] == nil)
    }
}
