import Larder
import LarderTestSupport
import Testing

/// What becomes of the memory of caches when it gets scarce.
struct CachePressureTests {
    private let bench: Workbench

    init() throws {
        bench = try Workbench()
    }

    @Test func `a warning lets half leave memory, a critical level all, and the disk keeps everything`() async throws {
        let cache = try bench.numbers()
        let stream = bench.manager.events
        for number in 1...10 { cache[number] = "\(number % 10)" }
        _ = cache[1]
        try bench.handlePressure(.warning)
        #expect(cache.memory.map(\.key) == [7, 8, 9, 10, 1])
        try bench.handlePressure(.critical)
        #expect(cache.memory.count == 0)
        #expect(Array(cache.keys) == Array(1...10))
        #expect(cache[7] == "7")
        #expect(cache.statistics.evictions == 0)
        try await bench.manager.close()
        var kinds: [String] = []
        for await event in stream where event.cacheName == "numbers" { kinds.append("\(event.kind)") }
        #expect(
            kinds == [
                "memoryPressure(Larder.MemoryPressure.warning)", "memoryPressure(Larder.MemoryPressure.critical)",
            ])
    }

    @Test func `a warning halves the cost too`() throws {
        let cache = try bench.numbers()
        for number in 1...10 { try cache.setValue("\(number)", forKey: number, cost: number > 8 ? 100 : 1) }
        try bench.handlePressure(.warning)
        #expect(cache.memory.map(\.key) == [10])
        // The dear ones went, and the count is not halved a second time.
        for number in 1...10 { try cache.setValue("\(number)", forKey: number, cost: number < 3 ? 100 : 1) }
        try bench.handlePressure(.warning)
        #expect(cache.memory.map(\.key) == [6, 7, 8, 9, 10])
    }

    // In a process of its own, where no other test's cache hears of it
    @Test func `news of the system reach a cache unless it has opted out`() async {
        await #expect(processExitsWith: .success) {
            let manager = try CacheManager.inMemory()
            let quiet: Cache<Int, Int> = try manager.cache(
                named: "quiet", version: "1", maxAge: .unlimited, options: CacheOptions(clearsOnMemoryPressure: false))
            let other: Cache<Int, Int> = try manager.cache(named: "other", version: "1", maxAge: .unlimited)
            quiet[1] = 1
            other[1] = 1
            precondition(other.memory.count == 1)
            PressureWatcher.ofProcess.notify(.critical)
            precondition(quiet.memory.count == 1 && other.memory.count == 0)
        }
    }
}
