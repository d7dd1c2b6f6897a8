import Foundation
import Larder
import LarderLocks
import LarderTestSupport
import Testing

struct DeciderTests {
    @Test(arguments: [true, false], StoreKind.allCases) func `a decider evicts what it picks, after each interval`(
        readsValues: Bool, kind: StoreKind
    ) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.days(1))
        for number in 1...6 { cache[number] = "\(number)" }
        let task =
            readsValues
            ? cache.evict(every: .seconds(60), where: { Int($0.value)! > 4 })
            : cache.evict(every: .seconds(60), whereMetadata: { key, _ in key > 4 })
        bench.time.advance(by: .seconds(59))
        #expect(try cache.count == 6)
        bench.time.advance(by: .seconds(1))
        #expect(cache.map(\.key) == [1, 2, 3, 4])
        #expect(cache[5] == nil)
        cache[9] = "9"
        bench.time.advance(by: .seconds(60))
        #expect(cache.map(\.key) == [1, 2, 3, 4])
        #expect(cache.statistics.evictions == 3)
        #expect(cache.statistics.deciderEvictions == 3)
        #expect(cache.statistics.removals == 0)
        task.cancel()
        cache[9] = "9"
        bench.time.advance(by: .seconds(600))
        #expect(cache[9] == "9")
    }

    @Test(arguments: StoreKind.allCases)
    func `the metadata form reads no value`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let calls = Counter()
        let codec = ValueCodec<String>(identifier: "counted", encode: { Data($0.utf8) }) { data in
            calls.increment()
            return String(decoding: data, as: UTF8.self)
        }
        let cache: Cache<Int, String> = try bench.manager.cache(
            named: "coded", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled), codec: codec)
        for number in 1...5 { cache[number] = String(repeating: "x", count: number) }
        let task = cache.evict(every: .seconds(1), whereMetadata: { $1.size > 3 })
        bench.time.advance(by: .seconds(1))
        #expect(Array(cache.keys) == [1, 2, 3])
        #expect(calls.value == 0)
        task.cancel()
    }

    @Test(arguments: StoreKind.allCases)
    func `a decider is not called for nothing`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.minutes(1))
        cache[1] = "over"
        bench.time.advance(by: .seconds(100))
        let calls = Counter()
        let task = cache.evict(every: .seconds(1), where: { _ in calls.increment() > 0 })
        bench.time.advance(by: .seconds(1))
        #expect(calls.value == 0)
        task.cancel()
    }

    @Test(arguments: StoreKind.allCases)
    func `a decider may use the cache, and what was replaced meanwhile stays`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.days(1))
        for number in 1...4 { cache[number] = "\(number)" }
        let task = cache.evict(every: .seconds(1)) { entry in
            if entry.key == 2 { cache[2] = "replaced" }
            cache[100 + entry.key] = "side"
            return entry.key < 100
        }
        bench.time.advance(by: .seconds(1))
        #expect(cache.map(\.key).filter { $0 < 100 } == [2])
        #expect(cache[2] == "replaced")
        task.cancel()
    }

    @Test(arguments: StoreKind.allCases)
    func `what was replaced meanwhile stays, where the metadata decide too`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.days(1))
        for number in 1...4 { cache[number] = "\(number)" }
        let task = cache.evict(
            every: .seconds(1),
            whereMetadata: { key, _ in
                if key == 2 { cache[2] = "replaced" }
                return true
            })
        bench.time.advance(by: .seconds(1))
        #expect(cache.map(\.key) == [2])
        #expect(cache[2] == "replaced")
        task.cancel()
    }

    @Test(arguments: StoreKind.allCases)
    func `dropping the task cancels it`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.days(1))
        cache[1] = "1"
        do {
            let task = cache.evict(every: .seconds(1), where: { _ in true })
            withExtendedLifetime(task) {}
        }
        bench.time.advance(by: .seconds(5))
        #expect(cache[1] == "1")
    }

    @Test(arguments: StoreKind.allCases)
    func `a task that is cancelled from its own closure stops there`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.days(1))
        for number in 1...10 { cache[number] = "\(number)" }
        let held = Mutex<EvictionTask?>(nil)
        let calls = Counter()
        let task = cache.evict(every: .seconds(1)) { entry in
            if calls.increment() == 3 { held.withLock { $0 }?.cancel() }
            return true
        }
        held.withLock { $0 = task }
        bench.time.advance(by: .seconds(1))
        #expect(calls.value == 3)
        #expect(try cache.count == 7)
        held.withLock { $0 = nil }
    }

    @Test(arguments: [Duration.zero, .seconds(-1)], StoreKind.allCases)
    func `an interval of nothing is refused, told of, and evicts nothing`(interval: Duration, kind: StoreKind)
        async throws
    {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.days(1))
        var events = bench.manager.steadyEvents.makeAsyncIterator()
        cache[1] = "1"
        let task = cache.evict(every: interval, where: { _ in true })
        let event = await events.next()
        #expect(event.map { "\($0.kind)" } == "writeFailed")
        #expect(event?.message.contains("The interval of an eviction is \(interval)") == true)
        bench.time.advance(by: .seconds(100))
        #expect(cache[1] == "1")
        task.cancel()
    }

    @Test(arguments: [Duration.nanoseconds(1), .microseconds(999)])
    func `an interval below a millisecond is a millisecond`(interval: Duration) throws {
        let bench = try Workbench(.file)
        let cache = try bench.numbers(.days(1))
        cache[1] = "1"
        let task = cache.evict(every: interval, where: { _ in true })
        bench.time.advance(by: .microseconds(500))
        #expect(try cache.count == 1)
        bench.time.advance(by: .microseconds(600))
        #expect(try cache.count == 0)
        task.cancel()
    }

    @Test(arguments: StoreKind.allCases)
    func `an eviction is told of as a decider's, and ends with the manager`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.days(1))
        cache[1] = "1"
        let stream = bench.manager.events
        let task = cache.evict(every: .seconds(1), where: { _ in true })
        bench.time.advance(by: .seconds(1))
        try await bench.manager.close()
        bench.time.advance(by: .seconds(10))
        var kinds: [String] = []
        for await event in stream { kinds.append("\(event.kind)") }
        #expect(kinds == ["evicted(Larder.CacheEvent.Eviction.decider)"])
        task.cancel()
    }
}
