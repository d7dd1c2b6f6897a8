import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Limits while writes go on, and trims while reads do.
struct DiskLimitTests {
    private let folder: TemporaryFolder
    private let time = ManualClock()
    private let manager: CacheManager

    init() throws {
        folder = try TemporaryFolder()
        manager = try CacheManager(url: folder("store.sqlite"), configuration: time.configuration)
    }

    @Test(arguments: [500, 5000])
    func `a size limit holds after every set, and takes the least recently used`(size: Int) throws {
        let limit = Int64(size) * 100
        let cache: Cache<Int, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .hours(1),
            options: CacheOptions(disk: DiskLimits(sizeLimit: limit), inlineLimit: 1000))
        for key in 0..<400 {
            try cache.setValue(Data(count: size), forKey: key)
            #expect(try cache.value(forKey: 0)?.count == size)
            let now = try cache.sizeOnDisk
            #expect(now <= limit + limit / 10, "\(key): \(now)")
            #expect(key < 105 || now >= limit - limit / 10, "\(key): \(now)")
            #expect(try cache.contains(key))
        }
        let keys = Array(cache.keys)
        // The last ones without a gap, and the one that is always read.
        #expect(keys == [0] + Array((401 - keys.count)..<400))
        #expect(cache.statistics.sizeEvictions == 400 - keys.count)
        #expect(cache.statistics.countEvictions == 0)
        try expectInvariants(cache)
    }

    @Test(arguments: [false, true])
    func `an entry as large as the limit evicts all others, and stays until the next write`(
        isOfAll: Bool
    ) throws {
        var configuration = time.configuration
        if isOfAll { configuration.sizeLimit = 1000 }
        let manager = try CacheManager(url: folder("limited.sqlite"), configuration: configuration)
        let cache: Cache<Int, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .hours(1),
            options: CacheOptions(disk: DiskLimits(sizeLimit: isOfAll ? nil : 1000)))
        for key in 0..<5 { cache[key] = Data(count: 100) }
        try cache.setValue(Data(count: 1000), forKey: 9)
        #expect(cache[9] == Data(count: 1000))
        #expect(Array(cache.keys) == [9])
        cache[10] = Data(count: 100)
        #expect(Array(cache.keys) == [10])
        // Of many the last one is the one just written.
        try cache.setValues([(1, Data(count: 900)), (2, Data(count: 900)), (3, Data(count: 900))])
        #expect(Array(cache.keys) == [3])
        try manager.maintain()
        #expect(Array(cache.keys) == [3])
        try expectInvariants(cache)
    }

    @Test func `an entry is not evicted by its own write though all others are pinned, unless nothing may stay`() throws
    {
        let cache: Cache<Int, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(disk: DiskLimits(countLimit: 2)))
        for key in 0..<3 { try cache.setValue(key, forKey: key, pinned: true) }
        for key in 3..<6 {
            // Where pins hold all others, the next search comes a second later.
            time.advance(by: .seconds(1))
            cache[key] = key
            #expect(Array(cache.keys) == [0, 1, 2, key])
        }
        try cache.disk.setLimits(DiskLimits(countLimit: 0))
        #expect(Array(cache.keys) == [0, 1, 2])
        time.advance(by: .seconds(1))
        cache[9] = 9
        #expect(Array(cache.keys) == [0, 1, 2])
    }

    @Test func `what is over goes first, also if it ended since somebody looked what goes next`() throws {
        let (place, manager) = try TemporaryStore.opened()
        let cache: Cache<Int, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .hours(1),
            options: CacheOptions(disk: DiskLimits(countLimit: 2000)).steady)
        for key in 0..<1000 { cache[key] = key }
        for key in 1000..<2000 { try cache.setValue(key, forKey: key, maxAge: .seconds(1)) }
        // The limit acts, and who goes next is known.
        for key in 2000..<2101 { cache[key] = key }
        #expect(cache.statistics.countEvictions > 0)
        place.clock.set(place.clock.now + 1.001)
        let before = Set(cache.keys)
        for key in 2101..<2600 { cache[key] = key }
        let after = Set(cache.keys)
        #expect(before.allSatisfy { after.contains($0) })
    }

    @Test func `while a hundred thousand rows are trimmed others read and write`() throws {
        let (rounds, evicted) = (Counter(), Counter())
        var configuration = time.configuration
        configuration.log = { message in
            // Told of each one by the thread that trims, between two slices: whatever it held then would hold up the other.
            guard message.level == .debug, evicted.increment() % 4000 == 1 else { return }
            // Of two rounds that end from here on the second one also begins here.
            let enough = rounds.value + 2
            do { try Waiting.until { rounds.value >= enough } } catch { Issue.record(error) }
        }
        let manager = try CacheManager(url: folder("trimmed.sqlite"), configuration: configuration)
        let cache: Cache<Int, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled))
        try cache.setValues((0..<100_000).lazy.map { ($0, $0) })
        let (isDone, removed) = (Counter(), Locked(0))
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            do {
                let count = try cache.trim(toCount: 1000)
                removed.change { $0 = count }
            } catch {
                Issue.record(error)
            }
            isDone.increment()
            ended.signal()
        }
        var number = 0
        // Should a round throw, the thread must not wait for more of them.
        defer { for _ in 0..<100 { rounds.increment() } }
        while isDone.value == 0 {
            #expect(try cache.value(forKey: 99_999) == 99_999)
            // The youngest, which a trim takes last.
            try cache.setValue(number, forKey: 200_000)
            #expect(try cache.value(forKey: 200_000) == number)
            number += 1
            rounds.increment()
        }
        ended.wait()
        #expect(try cache.count == 1000 || cache.count == 1001)
        #expect((99_000...99_001).contains(removed.change { $0 }))
        #expect(try cache.value(forKey: 200_000) == number - 1)
    }

    @Test func `limits that are changed while many work hold in the end, and fail nobody`() throws {
        let cache: Cache<Int, Int> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        let failures = Counter()
        DispatchQueue.concurrentPerform(iterations: 4) { lane in
            for round in 0..<150 {
                do {
                    switch lane {
                    case 0: cache.memory.countLimit = round % 3 == 0 ? nil : round % 20
                    case 1: try cache.disk.setLimits(DiskLimits(countLimit: 10 + round % 50))
                    case 2: try cache.setValue(round, forKey: round)
                    default: if let value = try cache.value(forKey: round), value != round { failures.increment() }
                    }
                } catch {
                    failures.increment()
                }
            }
        }
        #expect(failures.value == 0 && cache.statistics.failures == 0)
        cache.memory.countLimit = 3
        try cache.disk.setLimits(DiskLimits(countLimit: 5))
        // The last limits hold, and what is written a millisecond later goes last.
        time.advance(by: .milliseconds(1))
        for key in 0..<20 { cache[key] = key }
        #expect(cache.memory.count == 3)
        #expect(Array(cache.keys) == [15, 16, 17, 18, 19])
        try expectInvariants(cache)
    }
}
