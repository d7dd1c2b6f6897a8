import Foundation
import Larder
import LarderTestSupport
import Testing

struct CacheConcurrencyTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(_ options: CacheOptions = .init()) throws -> Cache<Int, Int> {
        try manager.cache(named: "a", version: "1", maxAge: .hours(1), options: options.steady)
    }

    @Test func `of a hundred tasks that write at once each learns its own outcome`() async throws {
        let cache: Cache<Double, Int> = try await manager.cache(named: "d", version: "1", maxAge: .unlimited)
        let store = StoreProbe(manager)
        let manager = manager
        // They all come while a transaction holds them up, so that they meet.
        let tasks = try await onThread {
            try manager.transaction { _ in
                let tasks = (0..<100).map { number in
                    Task { () -> CacheError.Code? in
                        do {
                            try await cache.setValue(number, forKey: number % 10 == 3 ? .nan : Double(number))
                            return nil
                        } catch {
                            return (error as? CacheError)?.code
                        }
                    }
                }
                // The other ten are refused before they come to wait.
                try Waiting.until { try store.waitingCount == 90 }
                return tasks
            }
        }
        var refused = 0
        for task in tasks where await task.value == .encodingFailed { refused += 1 }
        #expect(refused == 10)
        #expect(try cache.count == 90)
        try expectInvariants(cache)
    }

    @Test func `writes that another process's lock refuses all fail, and no read sees any of them`() async throws {
        let place = try TemporaryStore(of: #fileID)
        let manager = try place.manager { $0.busyTimeout = .zero }
        let cache: Cache<Int, Int> = try await manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
        try await cache.setValue(2, forKey: 2)
        var intruder = try Intruder(place.url)
        try intruder.execute("BEGIN IMMEDIATE")
        let tasks = (0..<20).map { number in
            Task { () -> CacheError.Code? in
                do {
                    try await cache.setValue(number, forKey: 1)
                    return nil
                } catch {
                    return (error as? CacheError)?.code
                }
            }
        }
        for task in tasks { #expect(await task.value == .busy) }
        #expect(cache[1] == nil && cache[2] == 2)
        try intruder.execute("ROLLBACK")
        #expect(try cache.count == 1)
        try await cache.setValue(1, forKey: 1)
        #expect(cache[1] == 1)
        try expectInvariants(cache)
    }

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
        let (seen, sums2) = (cache.statistics, sums.value)
        #expect(seen.memoryHits + seen.diskHits + seen.misses == sums2.reads)
        #expect(seen.writes == sums2.writes && seen.removals == sums2.removals && seen.failures == 0)
        #expect(countLimit > 0 || seen.memoryHits == 0)
        cache.resetStatistics()
        #expect(cache.statistics.writes == 0 && cache.statistics.misses == 0)
        try expectInvariants(cache)
    }

    @Test func `events say what went without being asked for, each once`() async throws {
        let cache = try cache(CacheOptions(memory: MemoryLimits(countLimit: 2)))
        let events = manager.events
        for key in 0..<10 { cache[key] = key }
        cache[77] = nil
        try await cache.remove(0)
        try await cache.setValue(1, forKey: 1, maxAge: .seconds(1))
        place.clock.advance(by: .seconds(5))
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

    @Test func `each entry that goes is told of once, though many threads take them away`() async throws {
        let cache = try cache()
        let events = manager.events
        for key in 0..<600 { try await cache.setValue(key, forKey: key, maxAge: key % 3 == 0 ? .seconds(1) : nil) }
        place.clock.set(place.clock.now + 5)
        let removed = Told<Int>()
        let failures = try await onThread {
            errors(ofThreads: 6) { lane in
                removed.add(try lane % 2 == 0 ? cache.trim(toCount: 300 - 40 * lane) : cache.removeExpired())
            }
        }
        #expect(failures == [])
        #expect(try cache.count == 140)
        let seen = cache.statistics
        #expect(seen.expirations == 200 && seen.countEvictions == 260)
        try await manager.close()
        var (expired, evicted): ([String], [String]) = ([], [])
        for await event in events {
            switch event.kind {
            case .expired: expired.append(event.key ?? "")
            case .evicted(.count): evicted.append(event.key ?? "")
            default: Issue.record("\(event.kind)")
            }
        }
        #expect(Set(expired) == Set((0..<600).filter { $0 % 3 == 0 }.map(String.init)) && expired.count == 200)
        #expect(evicted.count == 260 && Set(evicted).count == 260)
        #expect(removed.all.reduce(0, +) == 460)
    }

    @Test func `clears and reopens leave no descriptor behind`() throws {
        let cache = try cache()
        for round in 0..<21 {
            try cache.setValues((0..<50).map { ($0, round) })
            _ = cache.map(\.key)
            try cache.removeAll()
            withExtendedLifetime(try self.cache()) {}
        }
        try manager.close()
        try OpenFiles.wait(for: { $0.hasPrefix(place.folder.realURL.path) }, until: { $0 == 0 })
    }
}
