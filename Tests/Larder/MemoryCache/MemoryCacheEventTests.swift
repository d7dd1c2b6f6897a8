import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What a memory cache reports that no call can throw.
struct MemoryCacheEventTests {
    private let events = Locked<[CacheEvent]>([])

    private var handler: @Sendable (CacheEvent) -> Void {
        { [events] event in events.change { $0.append(event) } }
    }

    @Test func `a refresh that fails, and memory that was given back, are events`() async throws {
        let clock = ManualClock()
        let cache = MemoryCache<Int, String>(
            maxAge: .minutes(1), clearsOnMemoryPressure: false, clock: { clock.now }, onEvent: handler)
        cache.name = "numbers"
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(600))) { _ in throw Offline() }
        cache[7] = "old"
        clock.advance(by: .seconds(61))
        #expect(try await value(7) == "old")
        try await Waiting.until { events.value.count == 1 }
        let event = events.value[0]
        #expect(event.kind == .refreshFailed && event.cacheName == "numbers" && event.key == "7")
        #expect(event.message.contains("key \"7\" of the memory cache \"numbers\""))
        cache.handleMemoryPressure(.critical)
        #expect(events.value.last?.kind == .memoryPressure(.critical) && cache.isEmpty)
    }

    @Test func `a save that fails is an event`() async throws {
        let folder = try TemporaryFolder()
        let file = folder("missing").appendingPathComponent("snapshot")
        let cache = MemoryCache<Int, String>(clearsOnMemoryPressure: false, onEvent: handler)
        cache[1] = "one"
        let task = await cache.autosave(to: file, every: .milliseconds(1))
        try await Waiting.until { events.value.contains { $0.kind == .writeFailed && $0.cacheName == nil } }
        task.cancel()
    }
}
