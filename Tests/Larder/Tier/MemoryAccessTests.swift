import Foundation
import Larder
import LarderTestSupport
import Testing

/// Accesses that memory serves, as limits on disk and metadata know them.
struct MemoryAccessTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    /// Opens a cache of three entries.
    private func cache(
        _ age: MaxAge = .hours(1), countLimit: Int? = 3, in manager: CacheManager? = nil
    ) throws -> Cache<Int, Int> {
        try (manager ?? self.manager).cache(
            named: "numbers", version: "1", maxAge: age,
            options: CacheOptions(disk: DiskLimits(countLimit: countLimit)).steady)
    }

    private func filledCache(_ age: MaxAge = .hours(1)) throws -> Cache<Int, Int> {
        let cache = try cache(age)
        for key in 1...3 { cache[key] = key }
        return cache
    }

    /// A use of key 1.
    enum Use: CaseIterable {
        case read, memory, values, entry, disk, transaction, replacement, update

        func make(in cache: Cache<Int, Int>) throws {
            switch self {
            case .read: #expect(cache[1] == 1)
            case .memory: #expect(cache.memory[1] == 1)
            case .values: #expect(try cache.values(forKeys: [1]) == [1: 1])
            case .entry: #expect(try cache.entry(forKey: 1)?.value == 1)
            case .disk: #expect(try cache.disk.value(forKey: 1) == 1)
            case .transaction: try cache.manager.transaction { _ = try $0.value(forKey: 1, in: cache) }
            case .replacement: try cache.setValue(1, forKey: 1)
            case .update: try cache.update(1) { $0 = 1 }
            }
        }
    }

    /// What memory does between the use and the eviction.
    enum Memory: CaseIterable {
        case keeps, isEmptied, isLimited, isSwitchedOff, isFilledAgain

        func make(in cache: Cache<Int, Int>) {
            switch self {
            case .keeps: break
            case .isEmptied: cache.memory.removeAll()
            case .isLimited: cache.memory.countLimit = 1
            case .isSwitchedOff: cache.memory.countLimit = 0
            case .isFilledAgain:
                cache.memory.removeAll()
                // A read fills memory, and is a use of another key behind that of key 1.
                _ = cache[3]
            }
        }
    }

    @Test(arguments: [MaxAge.hours(1), .unlimited], Use.allCases)
    func `an entry that was only used in memory is not evicted before one that was not used`(
        age: MaxAge, use: Use
    ) throws {
        for memory in Memory.allCases {
            let cache = try filledCache(age)
            place.clock.advance(by: .milliseconds(1))
            try use.make(in: cache)
            place.clock.advance(by: .milliseconds(1))
            memory.make(in: cache)
            cache[4] = 4
            #expect(cache.map(\.key) == [1, 3, 4], "\(memory)")
            try cache.removeAll()
        }
    }

    @Test func `accesses are known after months, and after the clock was set back`() throws {
        let cache = try cache(.unlimited, countLimit: nil)
        for key in 1...3 { cache[key] = key }
        place.clock.advance(by: .seconds(60))
        // A write tells memory the moment of later accesses.
        cache[3] = 3
        _ = cache[2]
        let first = place.clock.now
        for (step, days) in [0, 5, 5, 15, 100, 3000, -4000, 1].enumerated() {
            place.clock.set(place.clock.now + Double(days) * 86_400)
            cache[3] = days
            _ = cache[1]
            if days >= 0 { #expect(try cache.metadata(forKey: 1)?.accessedAt == place.clock.now) }
            let second = try cache.metadata(forKey: 2)?.accessedAt
            // What is too old is forgotten, and never said to be later.
            #expect(second == first || step > 2 && second == first - 60)
            if days < 0 { cache[1] = 1 }
        }
        _ = cache[2]
        #expect(try cache.trim(toCount: 2) == 1)
        #expect(cache.map(\.key) == [1, 2])
        try expectInvariants(cache)
    }

    @Test func `by the system's clock an access is known to the second`() throws {
        let manager = try CacheManager.inMemory()
        let cache = try cache(.hours(1), countLimit: nil, in: manager)
        cache[1] = 1
        let before = Date()
        _ = cache[1]
        let accessed = try #require(try cache.metadata(forKey: 1)?.accessedAt)
        #expect(accessed > before.addingTimeInterval(-1.1) && accessed <= Date())
        try manager.close()
    }

    @Test(arguments: Use.allCases)
    func `a trim of a cache without limits follows the order of use too`(use: Use) throws {
        let cache = try cache(countLimit: nil)
        for key in 1...3 { cache[key] = key }
        place.clock.advance(by: .milliseconds(1))
        try use.make(in: cache)
        #expect(try cache.trim(toCount: 2) == 1)
        #expect(cache.map(\.key) == [1, 3])
        try expectInvariants(cache)
    }

    @Test func `uses count in their order, whichever tier served them`() throws {
        let cache = try cache(countLimit: nil)
        for key in 1...6 { cache[key] = key }
        // From memory, from the disk, and from memory again.
        func use(_ key: Int) {
            place.clock.advance(by: .milliseconds(1))
            _ = cache[key]
        }
        for key in [5, 2] { use(key) }
        cache.memory.removeAll()
        for key in [4, 1, 5, 4] { use(key) }
        // The least recently used go first: 3 and 6 were only written.
        for (count, rest) in [(5, [1, 2, 4, 5, 6]), (4, [1, 2, 4, 5]), (3, [1, 4, 5]), (2, [4, 5]), (1, [4])] {
            #expect(try cache.trim(toCount: count) == 1)
            #expect(cache.map(\.key) == rest)
        }
    }

    @Test func `the uses of many entries are known after all of these have left memory`() throws {
        let cache = try cache(countLimit: nil)
        try cache.setValues((0..<600).map { ($0, $0) })
        for key in stride(from: 0, to: 600, by: 2) { #expect(cache.memory[key] == key) }
        cache.memory.removeAll()
        _ = cache[0]
        #expect(try cache.trim(toCount: 300) == 300)
        #expect(cache.map(\.key) == Array(stride(from: 0, to: 600, by: 2)))
        try expectInvariants(cache)
    }

    @Test(arguments: [MaxAge.hours(1), .unlimited])
    func `a use that memory served is known after the store was opened again`(age: MaxAge) throws {
        do {
            let cache = try filledCache(age)
            place.clock.set(place.clock.now + 60)
            #expect(cache[1] == 1)
            try manager.close()
        }
        let cache = try cache(age, in: place.manager())
        cache[4] = 4
        #expect(cache.map(\.key) == [1, 3, 4])
    }

    @Test func `a read that compares a copy after another store's commit is a use, in both tiers`() throws {
        let neighbour: Cache<Int, Int> = try place.manager().cache(named: "b", version: "1", maxAge: .unlimited)
        let cache = try filledCache()
        neighbour[1] = 1
        #expect(cache[1] == 1)
        #expect(cache.statistics.memoryHits == 1)
        #expect(cache.memory.keys == [2, 3, 1])
        cache[4] = 4
        #expect(cache.map(\.key) == [1, 3, 4])
    }

    @Test(arguments: [false, true])
    func `a use is not forgotten when the attributes of the entry change`(byOtherStore: Bool) throws {
        let neighbour: Cache<Int, Int> = try place.manager().cache(named: "b", version: "1", maxAge: .unlimited)
        let cache = try filledCache()
        #expect(cache[1] == 1)
        // The copy then belongs to the time before a commit of another store, and goes.
        if byOtherStore { neighbour[1] = 1 }
        try cache.setExtendedData(Data([1]), forKey: 1)
        cache[4] = 4
        #expect(cache.map(\.key) == [1, 3, 4])
    }

    @Test(arguments: [MaxAge.hours(1), .unlimited])
    func `metadata knows the moment of the last hit, which without an age is that of the last write or read`(
        age: MaxAge
    ) throws {
        let cache = try filledCache(age)
        place.clock.set(place.clock.now + 60)
        cache[2] = 2
        #expect(cache[1] == 1)
        #expect(cache.statistics.memoryHits == 1)
        #expect(try cache.metadata(forKey: 1)?.accessedAt == place.clock.now)
    }
}
