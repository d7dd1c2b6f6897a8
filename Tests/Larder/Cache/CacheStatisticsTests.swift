import Foundation
import Larder
import LarderTestSupport
import Testing

struct CacheStatisticsTests {
    private let bench: Workbench

    init() throws { bench = try Workbench() }

    @Test(arguments: [
        GenerationPolicy(), GenerationPolicy(staleFor: .seconds(60)), GenerationPolicy(staleOnError: .seconds(60)),
    ])
    func `one miss of a generator is one miss, and a hit is one hit`(policy: GenerationPolicy) async throws {
        let cache = try bench.numbers()
        let load = cache.generator(policy) { key in "\(key)" }
        #expect(try await load(1) == "1")
        #expect(cache.statistics.misses == 1 && cache.statistics.hits == 0)
        #expect(try await load(1) == "1")
        #expect(cache.statistics.misses == 1 && cache.statistics.hits == 1 && cache.statistics.hitRate == 0.5)
        let failing = cache.generator(policy) { _ in throw Offline() }
        await #expect(throws: Offline.self) { try await failing(2) }
        #expect(cache.statistics.misses == 2)
    }

    @Test func `a stale answer counts as one hit of the disk`() async throws {
        let cache = try bench.numbers()
        let load = cache.generator(GenerationPolicy(staleFor: .seconds(60))) { key in "\(key)" }
        #expect(try await load(1) == "1")
        bench.time.advance(by: .seconds(3610))
        cache.resetStatistics()
        #expect(try await load(1) == "1")
        try await Waiting.until { !cache.isGenerating }
        #expect(cache.statistics.misses == 0 && cache.statistics.diskHits == 1 && cache.statistics.memoryHits == 0)
    }

    @Test func `entries that a lower limit removes count as evictions`() {
        let cache = MemoryCache<Int, Int>()
        for key in 0..<10 { cache.setValue(key, forKey: key, cost: 1) }
        cache.countLimit = 8
        #expect(cache.statistics.evictions == 2)
        cache.costLimit = 5
        #expect(cache.statistics.evictions == 5)
        cache.byteLimit = 0
        #expect(cache.statistics.evictions == 10)
        cache.trim(toCount: 0)
        #expect(cache.statistics.evictions == 10 && cache.statistics.hitRate == nil)
        cache[1] = 1
        #expect(cache[2] == nil && cache.statistics.hitRate == 0)
    }

    @Test func `a cache is empty if no entry can be served`() throws {
        let cache = try bench.numbers()
        #expect(try cache.isEmpty)
        for key in 0..<2000 { try cache.setValue("x", forKey: key, maxAge: .seconds(10)) }
        #expect(try !cache.isEmpty)
        bench.time.mislead(by: .seconds(20))
        #expect(try cache.isEmpty)
        try cache.setValue("x", forKey: 5000)
        #expect(try !cache.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `the progress of a clear rises in batches, while no lock is held`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try cache.setValues((0..<2000).map { ($0, "x") })
        let seen = Told<CacheProgress>()
        try cache.clear { progress in
            seen.add(progress)
            do { try cache.setValue("y", forKey: -1) } catch { Issue.record(error) }
        }
        let completed = seen.all.map(\.completed)
        #expect(completed.first == 0 && completed.last == 2000 && completed.count > 3)
        #expect(completed == completed.sorted() && seen.all.allSatisfy { $0.total == 2000 })
        #expect(try cache.count == 1)
        let verified = Told<Int>()
        _ = try bench.manager.verify {
            verified.add($0.completed)
            do { try cache.setValue("z", forKey: -2) } catch { Issue.record(error) }
        }
        #expect(!verified.all.isEmpty)
    }
}
