import Foundation
import Larder
import LarderTestSupport
import Testing

/// The streams of a memory cache, with the semantics of those of a cache.
struct MemoryCacheChangesTests {
    private let time = ManualClock()

    private func cache(countLimit: Int = .max, maxAge: MaxAge = .unlimited) -> MemoryCache<Int, String> {
        .inTime(time, countLimit: countLimit, maxAge: maxAge)
    }

    /// What came of `body` in one interval.
    private func batch(
        _ cache: MemoryCache<Int, String>, _ body: () throws -> Void
    ) async rethrows -> CacheChanges<Int, String>? {
        var stream = cache.changes().makeAsyncIterator()
        try body()
        time.advance(by: .milliseconds(100))
        return await stream.next()
    }

    @Test func `a batch is the net of its interval`() async {
        let cache = cache()
        cache.setValues((1...9).map { ($0, "\($0)") })
        let changes = await batch(cache) {
            cache[10] = "a"
            cache[10] = "b"
            cache[1] = nil
            cache[77] = nil
            cache.removeValues(forKeys: [2, 78])
            cache.removeAll { key, _ in key == 3 }
            cache.update(4) { $0 = nil }
            cache.update(5) { $0 = "five" }
            cache[6] = nil
            cache[6] = "again"
        }
        #expect(
            changes == CacheChanges(updated: [10: "b", 5: "five", 6: "again"], removed: [1, 2, 3, 4], isReset: false))
    }

    @Test func `expiry and eviction are removals, and removing all is a reset`() async {
        let aged = cache(countLimit: 2, maxAge: .seconds(10))
        let expired = await batch(aged) {
            aged.setValues([(1, "a"), (2, "b"), (3, "c")])
            time.advance(by: .seconds(60))
        }
        #expect(expired == CacheChanges(updated: [:], removed: [1, 2, 3], isReset: false))
        let cleared = await batch(aged) { aged.removeAll() }
        #expect(cleared == CacheChanges(updated: [:], removed: [], isReset: true))
    }

    @Test func `a write of many keys is one step, also for a stream that waits for nothing`() async {
        let cache = cache()
        var stream = cache.changes(every: .zero).makeAsyncIterator()
        cache.setValues((0..<100).map { ($0, "x") })
        #expect(await stream.next()?.updated.count == 100)
        cache.removeValues(forKeys: 0..<50)
        #expect(await stream.next()?.removed.count == 50)
    }

    @Test func `more keys than a batch holds are a reset`() async {
        let cache = cache()
        let changes = await batch(cache) { for key in 0...10_000 { cache[key] = "x" } }
        #expect(changes?.isReset == true)
    }

    @Test func `a loaded value is a change, and a hit is none`() async throws {
        let cache = cache()
        let changes = try await batch(cache) {
            _ = try cache.value(forKey: 1) { _ in "one" }
            _ = try cache.value(forKey: 1) { _ in "two" }
        }
        #expect(changes == CacheChanges(updated: [1: "one"], removed: [], isReset: false))
    }

    @Test func `a stream of a key has its value now and after each change, and of no other key`() async {
        let cache = cache()
        cache[1] = "a"
        var values = cache.changes(forKey: 1).makeAsyncIterator()
        #expect(await values.next() == "a")
        cache[2] = "other"
        #expect(time.pendingCount == 0)
        cache[1] = "b"
        cache[1] = "c"
        time.advance(by: .milliseconds(100))
        #expect(await values.next() == "c")
        cache.removeAll()
        time.advance(by: .milliseconds(100))
        #expect(await values.next() == .some(nil))
    }

    @Test func `a hundred streams that are released leave nothing`() async {
        let cache = cache()
        var streams = (0..<100).map { cache.changes(forKey: $0 % 3).makeAsyncIterator() }
        for index in streams.indices { #expect(await streams[index].next() == .some(nil)) }
        #expect(cache.hub.streams.count == 100)
        streams = []
        #expect(cache.hub.streams.isEmpty && !cache.hub.isObserved)
    }
}
