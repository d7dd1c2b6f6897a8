import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Reads of one tier alone.
struct TierReadTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(
        _ age: MaxAge = .hours(1), _ options: CacheOptions = .init(), version: CacheVersion = "1"
    ) throws -> Cache<Int, String> {
        try manager.cache(named: "a", version: version, maxAge: age, options: options.steady)
    }

    // MARK: - Memory

    @Test(arguments: [MaxAge.hours(1), .unlimited, .hours(1).sinceLastAccess])
    func `memory answers alone, and what it gives was used`(age: MaxAge) throws {
        let cache = try cache(age)
        for key in 1...3 { cache[key] = "\(key)" }
        #expect(cache.memory.value(forKey: 1) == "1")
        #expect(cache.memory[2] == "2")
        #expect(cache.memory.map(\.key) == [3, 1, 2])
        #expect(cache.memory.value(forKey: 4) == nil && cache.memory[4] == nil)
        #expect(cache.statistics.memoryHits == 2)
        cache.memory.removeAll()
        #expect(cache.memory.value(forKey: 1) == nil)
        #expect(cache.statistics.misses == 0 && cache.statistics.diskHits == 0)
        #expect(cache[1] == "1")
        #expect(cache.memory.value(forKey: 1) == "1")
        try expectInvariants(cache)
    }

    @Test func `memory alone follows the age of the cache and the entry's own`() throws {
        do {
            let cache = try cache(.seconds(10))
            cache[1] = "one"
            try cache.setValue("two", forKey: 2, maxAge: .seconds(20))
            place.clock.advance(by: .seconds(10))
            #expect(cache.memory[1] == "one" && cache.memory[2] == "two")
            place.clock.advance(by: .milliseconds(1))
            #expect(cache.memory[1] == nil && cache.memory[2] == "two")
            place.clock.advance(by: .seconds(10))
            #expect(cache.memory[2] == nil && Array(cache.memory.map(\.key)) == [])
        }
        let sliding = try cache(.seconds(10).sinceLastAccess)
        sliding[3] = "three"
        for _ in 0..<5 {
            place.clock.advance(by: .seconds(8))
            #expect(sliding.memory[3] == "three")
        }
        place.clock.advance(by: .milliseconds(10_001))
        #expect(sliding.memory[3] == nil && sliding[3] == nil)
        try expectInvariants(sliding)
    }

    @Test func `after another's commit memory answers alone only what was looked at since`() throws {
        let cache = try cache()
        for key in 1...3 { cache[key] = "\(key)" }
        var intruder = try Intruder(place.url)
        try intruder.execute("DELETE FROM entry WHERE key = 2")
        for key in 1...3 { #expect(cache.memory.value(forKey: key) == nil) }
        #expect(cache[1] == "1" && cache[2] == nil)
        #expect(cache.memory.value(forKey: 1) == "1")
        #expect(cache.memory.value(forKey: 2) == nil && cache.memory.value(forKey: 3) == nil)
        // Own commits change nothing for the other keys.
        cache[2] = "again"
        #expect(cache.memory[1] == "1" && cache.memory[2] == "again")
        #expect(try cache.entry(forKey: 3)?.value == "3")
        try expectInvariants(cache)
    }

    @Test func `nothing is read from the memory of a handle that is superseded, closed or has none`() throws {
        let (none, old) = (try CacheManager.inMemory(), try cache())
        let bare: Cache<Int, String> = try none.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled))
        bare[1] = "one"
        #expect(bare.memory[1] == nil && bare[1] == "one")
        old[1] = "one"
        let cache = try cache(version: "2")
        cache[1] = "new"
        #expect(old.memory[1] == nil && cache.memory[1] == "new")
        try manager.removeAll()
        #expect(cache.memory[1] == nil)
        cache[1] = "again"
        try manager.close()
        #expect(cache.memory[1] == nil)
    }

    // MARK: - Disk

    @Test func `the disk answers past memory, which gets no copy`() async throws {
        let cache = try cache()
        for key in 1...3 { try await cache.setValue("\(key)", forKey: key) }
        cache.memory.removeAll()
        #expect(try await cache.disk.value(forKey: 1) == "1")
        #expect(try { try cache.disk.value(forKey: 2) }() == "2")
        #expect(try await cache.disk.value(forKey: 4) == nil)
        #expect(try { try cache.disk.value(forKey: 4) }() == nil)
        #expect(cache.memory.count == 0)
        #expect(cache.statistics.diskHits == 2 && cache.statistics.misses == 2)
        // The copy in memory is not asked, but used.
        for key in 1...2 { #expect(cache[key] == "\(key)") }
        #expect(try await cache.disk.value(forKey: 1) == "1")
        #expect(cache.memory.map(\.key) == [2, 1])
        #expect(cache.statistics.memoryHits == 0)
        try expectInvariants(cache)
    }

    @Test func `the disk alone follows the same age, and knows of uses in memory`() async throws {
        let cache = try cache(.seconds(10).sinceLastAccess)
        cache[1] = "one"
        for isFromMemory in [true, false, true, false, false] {
            place.clock.advance(by: .seconds(9))
            let value = isFromMemory ? cache.memory[1] : try await cache.disk.value(forKey: 1)
            #expect(value == "one")
        }
        place.clock.advance(by: .milliseconds(10_001))
        #expect(try await cache.disk.value(forKey: 1) == nil)
        #expect(try { try cache.disk.value(forKey: 1) }() == nil)
        try expectInvariants(cache)
    }
}
