import Foundation
import Larder
import LarderTestSupport
import Testing

/// The copies in memory: their ends, their limits, and the handles that share them.
struct MemoryCopiesTests {
    private let place: TemporaryStore
    private let manager: CacheManager
    private let start: Date

    init() throws {
        (place, manager) = try TemporaryStore.opened()
        start = place.clock.now
    }

    private func cache(_ age: MaxAge = .hours(1)) throws -> Cache<Int, Int> {
        try manager.cache(named: "numbers", version: "1", maxAge: age, options: CacheOptions().steady)
    }

    /// Expects that key 1 is served some seconds after the start, or not, and that both tiers agree.
    private func expect(
        _ isServed: Bool, at seconds: Double, in cache: Cache<Int, Int>,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        place.clock.set(start + seconds)
        #expect(try cache.contains(1) == isServed, "\(seconds)", sourceLocation: sourceLocation)
        #expect((cache[1] != nil) == isServed, "\(seconds)", sourceLocation: sourceLocation)
        #expect((cache.memory[1] != nil) == isServed, "\(seconds)", sourceLocation: sourceLocation)
    }

    // MARK: - Ends

    /// Two maximum ages, and moments at which an entry is served or not; each look is an access.
    struct Reopening: Sendable {
        let first: MaxAge
        let later: MaxAge
        let looks: [(seconds: Double, isServed: Bool)]

        init(_ first: MaxAge, _ later: MaxAge, _ looks: [(seconds: Double, isServed: Bool)]) {
            (self.first, self.later, self.looks) = (first, later, looks)
        }
    }

    /// The moment ten seconds after a test's start.
    private static let moment = Date(timeIntervalSince1970: 1_700_000_010)

    static let reopenings: [Reopening] = [
        Reopening(.seconds(10), .seconds(100), [(50, true), (100, true), (100.001, false)]),
        Reopening(.seconds(100), .seconds(10), [(5, true), (10, true), (10.001, false)]),
        Reopening(.seconds(10), .unlimited, [(11, true), (100_000, true)]),
        Reopening(.unlimited, .seconds(10), [(10, true), (10.001, false)]),
        Reopening(.seconds(100), .until(moment), [(10, true), (10.001, false)]),
        Reopening(.until(moment), .seconds(100), [(11, true), (100, true), (100.001, false)]),
        Reopening(
            .seconds(100), .seconds(10).sinceLastAccess,
            [(9, true), (18, true), (27, true), (37, true), (47.001, false)]),
        Reopening(.seconds(100).sinceLastAccess, .seconds(10), [(5, true), (10, true), (10.001, false)]),
        Reopening(
            .seconds(10).sinceLastAccess, .seconds(100).sinceLastAccess,
            [(50, true), (150, true), (250.001, false)]),
        Reopening(
            .seconds(100).sinceLastAccess, .seconds(10).sinceLastAccess, [(9, true), (19, true), (29.001, false)]),
        Reopening(.seconds(10).sinceLastAccess, .unlimited, [(11, true), (100_000, true)]),
        Reopening(.unlimited, .seconds(10).sinceLastAccess, [(9, true), (19, true), (29.001, false)]),
    ]

    @Test(arguments: reopenings)
    func `the maximum age of a later open holds for the copies in memory`(reopening: Reopening) throws {
        let old = try cache(reopening.first)
        old[1] = 1
        #expect(old[1] == 1)
        let cache = try cache(reopening.later)
        for look in reopening.looks {
            try expect(look.isServed, at: look.seconds, in: cache)
            #expect((old[1] != nil) == look.isServed, "\(look.seconds)")
        }
        #expect(old.statistics.diskHits == 0)
    }

    @Test(arguments: [MaxAge.seconds(10), .until(moment)], [false, true])
    func `an own age in a cache without a limit ends to the millisecond, in memory and on disk`(
        age: MaxAge, isOnDiskAlone: Bool
    ) throws {
        let cache = try cache(.unlimited)
        if isOnDiskAlone { cache.memory.countLimit = 0 }
        try cache.setValue(1, forKey: 1, maxAge: age)
        cache[2] = 2
        for (seconds, isServed) in [(0, true), (9.999, true), (10, true), (10.001, false), (100_000, false)] {
            let values = isServed ? [1: 1, 2: 2] : [2: 2]
            place.clock.set(start + seconds)
            #expect((cache.memory[1] != nil) == (isServed && !isOnDiskAlone), "\(seconds)")
            #expect((cache[1] != nil) == isServed, "\(seconds)")
            #expect(try (cache.entry(forKey: 1) != nil) == isServed, "\(seconds)")
            #expect(try cache.values(forKeys: [1, 2]) == values, "\(seconds)")
            #expect(cache[2] == 2)
        }
        #expect(isOnDiskAlone || cache.statistics.memoryHits > 0)
        try expectInvariants(cache)
    }

    enum Attribute: CaseIterable { case pin, extendedData }

    @Test(arguments: Attribute.allCases)
    func `a pin or extended data leaves a sliding end where the last access has put it`(attribute: Attribute) throws {
        let cache = try cache(.seconds(10).sinceLastAccess)
        cache[1] = 1
        try expect(true, at: 9, in: cache)
        switch attribute {
        case .pin: try cache.setPinned(true, forKey: 1)
        case .extendedData: try cache.setExtendedData(Data([1]), forKey: 1)
        }
        try expect(true, at: 18, in: cache)
        try expect(true, at: 28, in: cache)
        try expect(false, at: 38.001, in: cache)
    }

    enum DiskRead: CaseIterable { case entry, disk, transaction }

    @Test(arguments: DiskRead.allCases)
    func `a read past memory moves the sliding end of the copy`(read: DiskRead) throws {
        let cache = try cache(.seconds(10).sinceLastAccess)
        cache[1] = 1
        place.clock.set(start + 9)
        let value =
            switch read {
            case .entry: try cache.entry(forKey: 1)?.value
            case .disk: try cache.disk.value(forKey: 1)
            case .transaction: try manager.transaction { try $0.value(forKey: 1, in: cache) }
            }
        #expect(value == 1)
        try expect(true, at: 19, in: cache)
        try expect(false, at: 29.001, in: cache)
    }

    @Test func `a read that memory may not keep moves a sliding end all the same`() throws {
        let cache = try cache(.seconds(10).sinceLastAccess)
        cache[1] = 1
        place.clock.set(start + 9)
        // A transaction that writes keeps memory closed to reads.
        try manager.transaction { (step: borrowing CacheTransaction) in
            try step.setValue(2, forKey: 2, in: cache)
            #expect(try cache.values(forKeys: [1]) == [1: 1])
        }
        try expect(true, at: 19, in: cache)
        try expect(false, at: 29.001, in: cache)
    }

    // MARK: - Limits

    static let limits: [MemoryLimits] = [
        MemoryLimits(countLimit: 3), MemoryLimits(costLimit: 250), MemoryLimits(byteLimit: 1500),
        MemoryLimits(countLimit: 5, costLimit: 300, byteLimit: 2000), MemoryLimits(),
    ]

    @Test(arguments: limits)
    func `limits of memory hold after every operation, and the total cost is that of the entries`(
        limits: MemoryLimits
    ) throws {
        let cache: Cache<Int, Data> = try manager.cache(
            named: "bytes", version: "1", maxAge: .hours(1), options: CacheOptions(memory: limits).steady)
        var (random, costs): (Seeded, [Int: Int]) = (Seeded(7), [:])
        for step in 0..<400 {
            let (key, kind) = (Int.random(in: 0..<12, using: &random), Int.random(in: 0..<12, using: &random))
            let (size, cost) = (Int.random(in: 0..<120, using: &random), Int.random(in: 0..<150, using: &random))
            let value = Data(repeating: UInt8(key), count: size)
            switch kind {
            case 0...1: try cache.setValue(value, forKey: key)
            case 2...3: try cache.setValue(value, forKey: key, cost: cost)
            case 4: try cache.setValues([key: value, 11 - key: Data(count: 40)])
            case 5: try cache.update(key) { $0 = value }
            case 6: try manager.transaction { try $0.setValue(value, forKey: key, in: cache, cost: cost) }
            case 7: try cache.remove(key)
            case 8: cache.memory.trim(toCount: 1)
            default: _ = cache[key]
            }
            switch kind {
            case 0...1, 5: costs[key] = nil
            case 2...3, 6: costs[key] = cost
            case 4: for key in [key, 11 - key] { costs[key] = nil }
            default: break
            }
            try expectLimits(limits, in: cache, costs, "step \(step)")
        }
        let lower = MemoryLimits(countLimit: 2, costLimit: 90, byteLimit: 400)
        for key in 0..<12 { _ = cache[key] }
        cache.memory.countLimit = lower.countLimit
        cache.memory.costLimit = lower.costLimit
        cache.memory.byteLimit = lower.byteLimit
        try expectLimits(lower, in: cache, costs, "lowered")
        try expectInvariants(cache)
    }

    /// Expects that memory is within its limits.
    ///
    /// - Parameter costs: The costs that were given; those of other keys are the sizes of their values.
    private func expectLimits(
        _ limits: MemoryLimits, in cache: Cache<Int, Data>, _ costs: [Int: Int], _ comment: Comment
    ) throws {
        let (memory, keys) = (cache.memory, cache.memory.keys)
        #expect(memory.count <= limits.countLimit ?? .max, comment)
        #expect(memory.totalCost <= limits.costLimit ?? .max, comment)
        #expect(memory.totalBytes <= limits.byteLimit ?? .max, comment)
        #expect(memory.count == keys.count, comment)
        var total = 0
        for key in keys {
            let metadata = try #require(try cache.metadata(forKey: key))
            total += costs[key] ?? metadata.size
        }
        #expect(memory.totalCost == total, comment)
    }

    // MARK: - Handles and numbers

    @Test func `two handles on one cache see each other's writes in memory`() throws {
        let (a, b) = (try cache(), try cache())
        a[1] = 1
        #expect(b.memory[1] == 1)
        try b.update(1) { $0 = 2 }
        #expect(a.memory[1] == 2)
        try manager.transaction { try $0.setValue(3, forKey: 1, in: a) }
        #expect(b.memory[1] == 3)
        try b.setValues([1: 4, 2: 4])
        #expect(a.memory[1] == 4 && a.memory[2] == 4)
        try a.remove(1)
        #expect(b.memory[1] == nil && b[1] == nil)
        b.memory.removeAll()
        #expect(a.memory[2] == nil && a[2] == 4)
        #expect(b.memory[2] == 4)
        try a.removeAll()
        #expect(b.memory.count == 0 && b[2] == nil)
        #expect(a.statistics == b.statistics)
        try expectInvariants(b)
    }

    @Test(arguments: [false, true])
    func `a value that does not decode is one miss and one failure, read alone or with others`(
        isReadAlone: Bool
    ) throws {
        struct Refusal: Error {}
        let codec = ValueCodec<Int>(
            identifier: "refusing", encode: { Data("\($0)".utf8) },
            decode: { bytes in
                guard let number = Int(String(decoding: bytes, as: UTF8.self)), number != 2 else { throw Refusal() }
                return number
            })
        let cache: Cache<Int, Int> = try manager.cache(
            named: "refusing", version: "1", maxAge: .hours(1), options: CacheOptions(undecodable: .keep).steady,
            codec: codec)
        try cache.setValues([1: 1, 2: 2])
        cache.memory.removeAll()
        if isReadAlone {
            #expect(cache[1] == 1 && cache[2] == nil)
        } else {
            #expect(try cache.values(forKeys: [1, 2]) == [1: 1])
        }
        let seen = cache.statistics
        #expect(seen.diskHits == 1 && seen.memoryHits == 0)
        #expect(seen.misses == 1 && seen.failures == 1)
    }
}
