import Foundation
import Larder
import LarderTestSupport
import Testing

/// Copies in memory beside another manager of the same file, as another process has one.
struct OtherStoreTests {
    private let place: TemporaryStore
    private let hook = CodecHook()
    private let manager: CacheManager
    private let otherManager: CacheManager

    init() throws {
        (place, manager) = try TemporaryStore.opened()
        otherManager = try place.manager()
    }

    /// The cache, and the same one of the other manager.
    private func caches(_ values: ValuePlace = .rows) throws -> (Cache<Int, Int>, Cache<Int, Int>) {
        (try hook.cache(in: manager, values), try CodecHook().cache(in: otherManager, values))
    }

    // MARK: - Changes of the other store

    @Test(arguments: OvertakingChange.allCases, [ValuePlace.rows, .files])
    func `a change by another store reaches the next read`(change: OvertakingChange, values: ValuePlace) throws {
        let (cache, other) = try caches(values)
        try cache.setValue(1, forKey: 1, tags: ["t"])
        #expect(cache.memory[1] == 1)
        try change.make(in: other, place.clock)
        #expect(cache.memory[1] == nil)
        try expectServed(change.value, in: cache)
        try expectInvariants(cache)
    }

    @Test(arguments: OvertakingChange.allCases, [ValuePlace.rows, .files])
    func `a read that a change by another store overtakes leaves no old value in memory`(
        change: OvertakingChange, values: ValuePlace
    ) throws {
        let ((cache, other), time) = (try caches(values), place.clock)
        try cache.setValue(1, forKey: 1, tags: ["t"])
        cache.memory.removeAll()
        hook.runBesideDecoding { try change.make(in: other, time) }
        #expect([1, change.value].contains(cache[1]))
        #expect(hook.isDone)
        try expectServed(change.value, in: cache)
        try expectInvariants(cache)
    }

    @Test(arguments: OvertakingChange.allCases)
    func `a read of several keys that a change by another store overtakes is of one moment`(
        change: OvertakingChange
    ) throws {
        let ((cache, other), time) = (try caches(), place.clock)
        for key in 1...2 { try cache.setValue(1, forKey: key, tags: ["t"]) }
        cache.memory.removeAll()
        hook.runBesideDecoding(after: 1) { try change.make(in: other, time) }
        #expect(try cache.values(forKeys: [1, 2]) == [1: 1, 2: 1])
        #expect(hook.isDone)
        let rest = try other.snapshot()
        #expect(try cache.values(forKeys: [1, 2]) == rest.filter { $0.key <= 2 })
        for key in 1...2 { try expectServed(rest[key], forKey: key, in: cache) }
    }

    @Test func `values that another store wrote together come together, though memory has some of both`() throws {
        let (cache, other) = try caches()
        try cache.setValues([1: 1, 2: 1, 3: 1])
        try other.setValues([1: 2, 2: 2])
        #expect(cache[1] == 2)
        #expect(try cache.values(forKeys: [1, 2, 3]) == [1: 2, 2: 2, 3: 1])
        // All are in memory now, so none is decoded again.
        let count = hook.count
        #expect(try cache.values(forKeys: [1, 2, 3]) == [1: 2, 2: 2, 3: 1])
        #expect(hook.count == count)
        try expectInvariants(cache)
    }

    @Test func `a copy whose row another store left alone is served after one comparison, as a hit in memory`() throws {
        let (cache, other) = try caches()
        try cache.setValues([1: 1, 2: 1])
        other[2] = 2
        #expect(cache.memory[1] == nil)
        #expect(cache[1] == 1)
        #expect(cache.statistics.memoryHits == 1 && cache.statistics.diskHits == 0)
        #expect(cache.memory[1] == 1)
        #expect(cache[1] == 1)
        #expect(cache.statistics.memoryHits == 3 && cache.statistics.diskHits == 0)
        #expect(hook.count == 0)
        #expect(cache[2] == 2)
        #expect(cache.statistics.memoryHits == 3 && cache.statistics.diskHits == 1)
        #expect(hook.count == 1)
        #expect(cache.memory[2] == 2)
        #expect(cache.statistics.misses == 0)
    }

    @Test func `a read that compares a copy restarts a sliding age`() throws {
        let cache = try hook.cache(in: manager, maxAge: .seconds(10).sinceLastAccess)
        let neighbour: Cache<Int, Int> = try otherManager.cache(named: "neighbour", version: "1", maxAge: .unlimited)
        cache[1] = 1
        neighbour[1] = 1
        for _ in 0..<4 {
            place.clock.set(place.clock.now + 9)
            #expect(cache[1] == 1)
        }
        place.clock.set(place.clock.now + 10.001)
        #expect(cache[1] == nil)
        #expect(try !cache.contains(1))
    }

    // MARK: - Versions

    enum Opener: CaseIterable { case own, other }

    private func opening(_ opener: Opener) -> CacheManager { opener == .own ? manager : otherManager }

    @Test(arguments: Opener.allCases)
    func `after another version and back no value from before is served`(opener: Opener) throws {
        let cache = try hook.cache(in: manager)
        cache[1] = 1
        #expect(cache[1] == 1)
        let newer = try CodecHook().cache(in: opening(opener), version: "2")
        newer[1] = 2
        #expect(cache.memory[1] == nil && cache[1] == nil)
        expectError(.superseded) { try cache.setValue(5, forKey: 1) }
        #expect(cache.memory[1] == nil && cache[1] == nil)
        let back = try CodecHook().cache(in: opening(opener))
        #expect(cache.memory[1] == nil && cache[1] == nil && back[1] == nil)
        #expect(newer.memory[1] == nil && newer[1] == nil)
        back[1] = 3
        try expectServed(3, in: cache)
        cache[1] = 4
        try expectServed(4, in: back)
        try expectServed(nil, in: newer)
        try expectInvariants(cache)
    }

    @Test(arguments: Opener.allCases, [false, true])
    func `a read during which the cache is opened under another version leaves nothing that is served`(
        opener: Opener, goesBack: Bool
    ) throws {
        let (cache, openingManager) = (try hook.cache(in: manager), opening(opener))
        let versions: [CacheVersion] = goesBack ? ["2", "1"] : ["2"]
        cache[1] = 1
        cache.memory.removeAll()
        hook.runBesideDecoding {
            for version in versions {
                let opened = try CodecHook().cache(in: openingManager, version: version)
                opened[2] = 2
            }
        }
        #expect([1, nil].contains(cache[1]))
        #expect(hook.isDone)
        try expectServed(nil, in: cache)
        try expectServed(goesBack ? 2 : nil, forKey: 2, in: cache)
    }

    @Test(arguments: Opener.allCases)
    func `after a cache was removed its handles serve nothing`(opener: Opener) throws {
        let cache = try hook.cache(in: manager)
        cache[1] = 1
        #expect(cache[1] == 1)
        try opening(opener).removeCache(named: cache.name)
        try expectServed(nil, in: cache)
        expectError(.superseded) { try cache.setValue(2, forKey: 1) }
        let back = try CodecHook().cache(in: opening(opener))
        back[1] = 3
        try expectServed(3, in: cache)
    }

    @Test func `a removal is counted and reported once, though a handle of an older version is still there`() throws {
        let expired = Counter()
        let loggingManager = try place.manager { configuration in
            configuration.log = { message in if message.text.contains("has expired") { expired.increment() } }
        }
        let old = try CodecHook().cache(in: loggingManager)
        old[1] = 1
        let new = try CodecHook().cache(in: loggingManager, version: "2")
        new[1] = 2
        place.clock.set(place.clock.now + 3601)
        #expect(try new.removeExpired() == 1)
        #expect(new.statistics.expirations == 1)
        #expect(old.statistics.expirations == 0)
        #expect(expired.value == 1)
    }
}
