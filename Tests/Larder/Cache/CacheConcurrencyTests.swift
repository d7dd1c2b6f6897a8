import Foundation
import Larder
import LarderTestSupport
import Testing

struct CacheConcurrencyTests {
    private let folder: TemporaryFolder
    private let time = ManualTime()
    private let manager: CacheManager

    init() throws {
        folder = try TemporaryFolder()
        manager = try CacheManager(url: folder("store.sqlite"), configuration: time.configuration)
    }

    private func cache(_ options: CacheOptions = .init()) throws -> Cache<Int, Int> {
        var options = options
        // What other tests do to memory would change the numbers.
        options.clearsOnMemoryPressure = false
        return try manager.cache(named: "a", version: "1", maxAge: .hours(1), options: options)
    }

    @Test func `a hundred tasks share few transactions, and each learns its own outcome`() async throws {
        let cache: Cache<Double, Int> = try manager.cache(named: "d", version: "1", maxAge: .unlimited)
        let queue = try manager.store().queue
        let before = queue.transactions
        let manager = manager
        // They all come while a transaction holds them up, so that they meet.
        let tasks = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var tasks: [Task<CacheError.Code?, Never>] = []
                do {
                    try manager.transaction { _ in
                        tasks = (0..<100).map { number in
                            Task {
                                do {
                                    try await cache.setValue(number, forKey: number % 10 == 3 ? .nan : Double(number))
                                    return nil
                                } catch {
                                    return (error as? CacheError)?.code
                                }
                            }
                        }
                        // The other ten are refused before they come to wait.
                        try Waiting.until { queue.waitingCount == 90 }
                    }
                } catch {
                    Issue.record(error)
                }
                continuation.resume(returning: tasks)
            }
        }
        var refused = 0
        for task in tasks where await task.value == .encodingFailed { refused += 1 }
        #expect(refused == 10)
        #expect(try cache.count == 90)
        #expect(queue.transactions == before + 1)
        try expectInvariants(cache)
    }

    // case 208, 264
    @Test(arguments: [0, 10, 1_000_000])
    func `the numbers are exact, whichever threads the calls come from`(countLimit: Int) throws {
        let cache = try cache(CacheOptions(memory: MemoryLimits(countLimit: countLimit)))
        let sums = Locked((reads: 0, writes: 0, removals: 0))
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            var random = Seeded(UInt64(thread) + 1)
            var (reads, writes, removals) = (0, 0, 0)
            for _ in 0..<300 {
                let key = Int.random(in: 0..<50, using: &random)
                do {
                    switch Int.random(in: 0..<10, using: &random) {
                    case 0..<5:
                        _ = cache[key]
                        reads += 1
                    case 5:
                        _ = try cache.entry(forKey: key)
                        reads += 1
                    case 6:
                        _ = try cache.values(forKeys: [key, key + 1, 999])
                        reads += 3
                    case 7:
                        if try cache.removeValue(forKey: key) != nil { removals += 1 }
                    case 8:
                        cache[key] = key
                        writes += 1
                    default:
                        try cache.setValues([key: 1, key + 1: 2])
                        writes += 2
                    }
                } catch {
                    Issue.record(error)
                }
            }
            let counts = (reads, writes, removals)
            sums.change { $0 = ($0.reads + counts.0, $0.writes + counts.1, $0.removals + counts.2) }
        }
        let (seen, sums2) = (cache.statistics, sums.change { $0 })
        #expect(seen.memoryHits + seen.diskHits + seen.misses == sums2.reads)
        #expect(seen.writes == sums2.writes && seen.removals == sums2.removals && seen.failures == 0)
        #expect(countLimit > 0 || seen.memoryHits == 0)
        cache.resetStatistics()
        #expect(cache.statistics.writes == 0 && cache.statistics.misses == 0)
        try expectInvariants(cache)
    }

    // case 209, 210, 213
    @Test func `events say what went without being asked for, each once`() async throws {
        let cache = try cache(CacheOptions(memory: MemoryLimits(countLimit: 2)))
        let events = manager.events
        for key in 0..<10 { cache[key] = key }
        cache[77] = nil
        try await cache.remove(0)
        try await cache.setValue(1, forKey: 1, maxAge: .seconds(1))
        time.advance(by: .seconds(5))
        #expect(try await cache.trim(toCount: 5) == 4)
        try await manager.close()
        var seen: [String] = []
        for await event in events {
            #expect(event.cacheName == "a")
            seen.append("\(event.kind) \(event.key ?? "")")
        }
        #expect(
            seen == [
                "expired 1", "evicted(Larder.CacheEvent.Eviction.count) 2",
                "evicted(Larder.CacheEvent.Eviction.count) 3", "evicted(Larder.CacheEvent.Eviction.count) 4",
            ])
        // Two have room: each of the other eight put one out, and so did 1 when it was written again.
        #expect(cache.statistics.memoryEvictions == 9)
    }

    private final class Calling: Codable, Sendable {
        let number: Int
        init(_ number: Int) { self.number = number }

        static let home = Locked<Cache<Int, Int>?>(nil)
        static let failures = Locked(0)

        deinit {
            guard let cache = Self.home.change({ $0 }) else { return }
            do {
                try cache.setValue(number, forKey: number)
                _ = try cache.value(forKey: number)
            } catch {
                Self.failures.change { $0 += 1 }
            }
        }
    }

    // case 42
    @Test func `a value's deinit may use the store, whatever takes the value away`() throws {
        let numbers = try cache()
        let values: Cache<Int, Calling> = try manager.cache(
            named: "values", version: "1", maxAge: .hours(1), options: CacheOptions(memory: MemoryLimits(countLimit: 3))
        )
        for key in 0..<3 { values[key] = Calling(key) }
        Calling.home.change { $0 = numbers }
        defer { Calling.home.change { $0 = nil } }
        values[0] = Calling(10)
        values[1] = nil
        values[3] = Calling(3)
        values[4] = Calling(4)
        try values.setValues([5: Calling(5), 6: Calling(6)])
        try manager.transaction { try $0.setValue(Calling(7), forKey: 6, in: values) }
        try values.trim(toCount: 1)
        try values.removeAll { _ in true }
        values[8] = Calling(8)
        try values.removeAll()
        try manager.removeCache(named: "values")
        #expect(try numbers.count > 5)
        #expect(Calling.failures.change { $0 } == 0)
    }

    // case 196, 274
    @Test func `codecs, clocks, deciders and logs may call the cache`() throws {
        let inner = try cache()
        inner[0] = 0
        var configuration = CacheManager.Configuration()
        let calls = Locked(0)
        @Sendable func call() {
            calls.change { $0 += 1 }
            inner[1] = (inner[1] ?? 0) + 1
            _ = inner[2]
        }
        configuration.clock = {
            call()
            return Date(timeIntervalSince1970: 1_800_000_000)
        }
        configuration.log = { _ in call() }
        configuration.wake = { [time] in time.wake(after: $0, $1) }
        // The same store by another manager, with closures that go back into it.
        let manager = try CacheManager(url: folder("store.sqlite"), configuration: configuration)
        let codec = ValueCodec<Int>(
            identifier: "calling",
            encode: {
                call(); return Data("\($0)".utf8)
            },
            decode: {
                call(); return Int(String(decoding: $0, as: UTF8.self)) ?? -1
            })
        let cache: Cache<Int, Int> = try manager.cache(
            named: "b", version: "1", maxAge: .hours(1), options: CacheOptions(memory: MemoryLimits(countLimit: 2)),
            codec: codec)
        try cache.setValues([1: 1, 2: 2, 3: 3])
        for key in 1...3 { #expect(cache[key] == key) }
        #expect(
            try cache.removeAll { entry in
                call()
                cache[entry.key + 10] = entry.value
                return entry.key == 2
            } == 1)
        #expect(
            try cache.removeAll(whereMetadata: { key, _ in
                call(); return key > 10
            }) == 3)
        #expect(try cache.snapshot() == [1: 1, 3: 3])
        try cache.update(1) { $0 = 5 }
        #expect(try cache.trim(toCount: 1) == 1)
        #expect(try cache.removeExpired() == 0)
        let before = calls.change { $0 }
        #expect(before > 10 && inner[1] != nil)
        try manager.close()
    }

    // case 168, 169, 170, 171, 174, 178
    @Test func `a pass may be nested, broken off, and may change what it passes over`() throws {
        let cache = try cache()
        try cache.setValues((0..<3000).map { ($0, $0) })
        let hits = cache.statistics
        #expect(cache.map(\.key) == Array(0..<3000) && cache.map(\.key) == Array(0..<3000))
        #expect(cache.statistics == hits)
        var pairs = 0
        for a in cache.prefix(3) { for b in cache.prefix(3) where a.key + b.key >= 0 { pairs += 1 } }
        #expect(pairs == 9)
        #expect(try manager.store().isIdle)
        var seen: [Int] = []
        for (key, _) in cache {
            seen.append(key)
            if key % 2 == 0 { cache[key + 1] = nil }
            if key == 100 { try cache.removeValues(forKeys: 2000..<2500) }
            if key < 50 { cache[3000 + key] = key }
        }
        #expect(seen.count == Set(seen).count && seen == seen.sorted())
        #expect(Set(seen).isSuperset(of: stride(from: 0, to: 2000, by: 2)))
        #expect(seen.allSatisfy { $0 < 3000 && !(2000..<2500).contains($0) })
        var iterator = cache.makeIterator()
        while iterator.next() != nil {}
        cache[100_000] = 1
        #expect(iterator.next() == nil && iterator.next() == nil)
        let counts = Locked<[Int]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            let count = cache.reduce(0) { sum, _ in sum + 1 }
            counts.change { $0.append(count) }
        }
        #expect(try counts.change { $0 } == Array(repeating: cache.count, count: 4))
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
        // case 253
        struct Stop: Error {}
        for key in 0..<10 { cache[key] = key }
        #expect(throws: Stop.self) {
            try cache.removeAll { entry in
                if entry.key == 5 { throw Stop() }
                return true
            }
        }
        #expect(cache.map(\.key) == Array(5..<10))
        // case 246
        try cache.removeAll()
        #expect(
            try cache.removeAll { _ in
                Issue.record("called"); return true
            } == 0)
        try expectInvariants(cache)
    }

    @Test func `an update holds up its own key and no other`() throws {
        let cache = try cache()
        let queue = try manager.store().queue
        cache[1] = 1
        let (isWritten, isReplaced) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try cache.update(1) { value in
            Thread.detachNewThread {
                cache[2] = 2
                isWritten.signal()
            }
            isWritten.wait()
            #expect(cache[2] == 2)
            Thread.detachNewThread {
                cache[1] = 9
                isReplaced.signal()
            }
            try Waiting.until { queue.waitingCount == 1 }
            value = 5
        }
        isReplaced.wait()
        #expect(cache[1] == 9)
        try expectInvariants(cache)
    }

    // case 93
    @Test func `clears and reopens leave no descriptor behind`() throws {
        let cache = try cache()
        for round in 0..<20 {
            try cache.setValues((0..<50).map { ($0, round) })
            _ = cache.map(\.key)
            try cache.removeAll()
        }
        try manager.close()
        try OpenFiles.wait(for: { [folder] in $0.hasPrefix(folder.url.path) }, until: { $0 == 0 })
    }
}
