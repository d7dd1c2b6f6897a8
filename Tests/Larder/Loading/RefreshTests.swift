import Foundation
import Larder
import LarderStore
import LarderTestSupport
import Testing

/// Values that are loaded again in the background before they expire.
struct RefreshTests {
    private let bench: Workbench
    private let calls = Counter()

    init() throws { bench = try Workbench() }

    /// A closure that returns the number of its call, with a refresh time of its own.
    private func numbered(
        _ time: Duration?
    ) -> @Sendable (Int, CacheEntry<Int, String>?) async throws -> Generated<String> {
        { [calls] _, _ in .value("\(calls.increment())", maxAge: .hours(1), refreshAfter: time) }
    }

    private func waitForRefresh(_ cache: Cache<Int, String>, _ number: Int) async throws {
        try await Waiting.until { calls.value == number && !cache.isGenerating }
    }

    // MARK: A time that the origin has named

    @Test(arguments: [true, false], [GenerationPolicy(), .init(staleFor: .seconds(60)), .init(refreshAhead: 0.9)])
    func `the first call after an entry's own refresh time loads it again, whatever the policy says`(
        isInMemory: Bool, policy: GenerationPolicy
    ) async throws {
        let cache = try bench.numbers(.days(1), CacheOptions(memory: isInMemory ? MemoryLimits() : .disabled))
        let value = cache.generator(policy, numbered(.seconds(60)))
        #expect(try await value(1) == "1")
        let metadata = try await cache.metadata(forKey: 1)
        #expect(metadata?.refreshesAt == metadata?.writtenAt.addingTimeInterval(60))
        bench.time.advance(by: .milliseconds(59_999))
        #expect(try await value(1) == "1" && calls.value == 1)
        bench.time.advance(by: .milliseconds(1))
        #expect(try await value(1) == "1")
        try await waitForRefresh(cache, 2)
        #expect(try await value(1) == "2")
        // The time counts from the new value.
        bench.time.advance(by: .seconds(59))
        #expect(try await value(1) == "2" && calls.value == 2)
    }

    @Test func `it is stored with the entry, begins again with its age, and ends with a write`() async throws {
        let store = try TemporaryStore()
        let manager = try store.manager()
        let cache: Cache<Int, String> = try await manager.cache(named: "numbers", version: "1", maxAge: .days(1))
        _ = try await cache.value(forKey: 1, generate: numbered(.seconds(60)))
        try await manager.close()
        let again: Cache<Int, String> = try await store.manager().cache(
            named: "numbers", version: "1", maxAge: .days(1))
        let value = again.generator(.init(), numbered(.seconds(60)))
        store.clock.advance(by: .seconds(59))
        try await again.touch(1)
        store.clock.advance(by: .seconds(59))
        #expect(try await value(1) == "1" && calls.value == 1)
        store.clock.advance(by: .seconds(1))
        #expect(try await value(1) == "1")
        try await waitForRefresh(again, 2)
        again[1] = "written"
        #expect(try await again.metadata(forKey: 1)?.refreshesAt == nil)
        store.clock.advance(by: .seconds(60))
        #expect(try await value(1) == "written" && calls.value == 2)
    }

    @Test func `an old value that is still good keeps its refresh time`() async throws {
        let cache = try bench.numbers(.days(1))
        let calls = calls
        let value = cache.generator { _, old in
            calls.increment()
            return old == nil ? .value("old", refreshAfter: .seconds(60)) : .notModified
        }
        #expect(try await value(1) == "old")
        for number in 2...3 {
            bench.time.advance(by: .seconds(60))
            #expect(try await value(1) == "old")
            try await waitForRefresh(cache, number)
        }
        #expect(cache.statistics.writes == 1)
    }

    @Test func `a memory cache does the same`() async throws {
        for age in [MaxAge.unlimited, .hours(1)] {
            let memory: MemoryCache<Int, String> = bench.time.memoryCache(maxAge: age)
            let calls = Counter()
            let value = memory.generator { _, old in
                let number = calls.increment()
                return number == 2 ? .notModified : .value("\(number)", refreshAfter: .seconds(60))
            }
            #expect(try await value(1) == "1")
            bench.time.advance(by: .seconds(59))
            #expect(try await value(1) == "1" && calls.value == 1)
            for number in 2...3 {
                bench.time.advance(by: .seconds(60))
                #expect(try await value(1) == "1")
                try await Waiting.until { calls.value == number && memory.waitingCallers == 0 }
            }
            try await Waiting.until { memory[1] == "3" }
            memory[1] = "written"
            bench.time.advance(by: .seconds(61))
            #expect(try await value(1) == "written" && calls.value == 3)
        }
    }

    @Test func `a value is served while a refresh hangs, wherever it is`() async throws {
        let cache = try bench.numbers(.days(1), CacheOptions(memory: .disabled))
        let (gate, calls) = (LoadGate(), calls)
        defer { gate.open() }
        let value = cache.generator { _, _ in
            if calls.increment() == 2 { try await gate.waitInTask() }
            return .value("\(calls.value)", refreshAfter: .seconds(60))
        }
        #expect(try await value(1) == "1")
        bench.time.advance(by: .seconds(60))
        // Each of these would wait for the second call.
        for _ in 0..<3 { #expect(try await value(1) == "1") }
        try await Waiting.until { calls.value == 2 }
        for _ in 0..<3 { #expect(try await value(1) == "1") }
        gate.open()
        try await waitForRefresh(cache, 2)
    }

    @Test func `one of zero makes each later call refresh, and the longest none`() async throws {
        let cache = try bench.numbers(.days(1), CacheOptions(memory: .disabled))
        let value = cache.generator(.init(refreshAhead: .probabilistic), numbered(.seconds(Int64.max)))
        let always = cache.generator(.init(), numbered(.zero))
        #expect(try await value(1) == "1")
        #expect(try await cache.metadata(forKey: 1)?.refreshesAt == nil)
        for _ in 0..<20 { #expect(try await value(1) == "1") }
        #expect(try await always(2) == "2" && !cache.isGenerating && calls.value == 2)
        bench.time.advance(by: .milliseconds(1))
        #expect(try await always(2) == "2")
        try await waitForRefresh(cache, 3)
    }

    @Test func `a pin and extended data leave it, and an update of the value does not`() async throws {
        let cache = try bench.numbers(.days(1))
        for key in 1...3 { _ = try await cache.value(forKey: key, generate: numbered(.seconds(60))) }
        try await cache.setPinned(true, forKey: 1)
        try await cache.setExtendedData(Data([1]), forKey: 2)
        try await cache.update(3) { $0 = "updated" }
        let value = cache.generator(.init(), numbered(.seconds(60)))
        bench.time.advance(by: .seconds(60))
        for key in 1...3 { _ = try await value(key) }
        try await waitForRefresh(cache, 5)
        #expect(cache[3] == "updated")
    }

    @Test func `memory keeps it where it belongs while entries come and go`() async throws {
        let memory: MemoryCache<Int, String> = bench.time.memoryCache(maxAge: .hours(1))
        let calls = calls
        let value = memory.generator { key, _ in
            calls.increment()
            return .value("\(key)", refreshAfter: key % 2 == 0 ? .seconds(60) : nil)
        }
        for key in 0..<5000 { _ = try await value(key) }
        memory.checkInvariants()
        // The table shrinks, and its entries move.
        memory.removeValues(forKeys: 0..<4800)
        for key in 5000..<5100 { memory[key] = "set" }
        memory.checkInvariants()
        bench.time.advance(by: .seconds(60))
        for key in 4800..<5100 { _ = try await value(key) }
        try await Waiting.until { calls.value == 5100 && memory.watchedKeyCount == 0 }
        memory.removeAll()
        memory.checkInvariants()
    }

    // MARK: A share of the age

    @Test func `a share is a number, and a whole one too`() {
        #expect(GenerationPolicy(refreshAhead: 0.8).refreshAhead == .share(0.8))
        #expect(GenerationPolicy(refreshAhead: 1).refreshAhead == .share(1))
    }

    // MARK: A call at random

    @Test func `the likelihood grows as the end comes closer, by the time of a load`() {
        func share(_ left: Int64, _ loadTime: Int64) -> Double {
            let hint = RefreshHint(moment: .max, time: loadTime)
            let times = RefreshTimes(end: 1_000_000, age: 500_000, hint: hint)
            let due = (0..<20_000).count { _ in RefreshRule(.probabilistic).isDue(times, at: 1_000_000 - left) }
            return Double(due) / 20_000
        }
        // Within seven standard deviations, of 0.0035.
        for (left, loadTime) in [(1000, 1000), (500, 1000), (2000, 1000), (100, 1000), (10, 10)] as [(Int64, Int64)] {
            #expect(abs(share(left, loadTime) - exp(-Double(left) / Double(loadTime))) < 0.025)
        }
        #expect(share(0, 1000) == 1)
        // Without a time of a load there is none.
        #expect(share(1, -1) == 0 && share(1, 0) == 0)
    }

    @Test func `the time of a load is stored with the value, and kept in memory`() async throws {
        let store = try TemporaryStore()
        let (calls, clock) = (calls, store.clock)
        let load: @Sendable (Int) async throws -> String = { _ in
            clock.advance(by: .seconds(100))
            return "\(calls.increment())"
        }
        let manager = try store.manager()
        func value(_ manager: CacheManager) async throws -> ValueGenerator<Int, String> {
            let cache: Cache<Int, String> = try await manager.cache(named: "numbers", version: "1", maxAge: .hours(1))
            return cache.generator(GenerationPolicy(refreshAhead: .probabilistic), load)
        }
        let first = try await value(manager)
        #expect(try await first(1) == "1")
        try await manager.close()
        let again = try await value(store.manager())
        let memory: MemoryCache<Int, String> = clock.memoryCache(maxAge: .hours(1))
        let kept = memory.generator(GenerationPolicy(refreshAhead: .probabilistic), load)
        #expect(try await kept(1) == "2")
        // A little more than the time of a load is left: a third of the calls find it due.
        clock.advance(by: .seconds(3390))
        try await Waiting.asking {
            _ = try await again(1)
            return calls.value > 2
        }
        let made = calls.value
        try await Waiting.asking {
            _ = try await kept(1)
            return calls.value > made
        }
    }

    @Test func `a value whose load took long is refreshed about that long before its end`() async throws {
        let cache = try bench.numbers(.hours(1))
        let (calls, time) = (calls, bench.time)
        let value = cache.generator(GenerationPolicy(refreshAhead: .probabilistic)) { key in
            calls.increment()
            if key < 50 { time.advance(by: .seconds(1)) }
            return "\(key)"
        }
        for key in 0..<50 { _ = try await value(key) }
        // The first was written after a second, and is a hundred before its end.
        bench.time.advance(by: .seconds(3450))
        for key in 0..<50 { _ = try await value(key) }
        #expect(calls.value == 50 && !cache.isGenerating)
        // What was written without a load has no such time.
        cache[100] = "written"
        bench.time.advance(by: .seconds(99))
        // Two seconds are left to the first: more than a tenth of the calls find it due.
        try await Waiting.asking {
            _ = try await value(0)
            return calls.value > 50
        }
        try await Waiting.until { !cache.isGenerating }
        let made = calls.value
        bench.time.advance(by: .seconds(3400))
        for _ in 0..<50 { #expect(try await value(100) == "written") }
        #expect(calls.value == made)
    }
}
