import Foundation
import Larder
import LarderTestSupport
import Testing

struct ChangesTests {
    /// What came of `body` in one interval.
    private func batch(
        _ bench: Workbench, _ cache: Cache<Int, String>, _ body: () throws -> Void
    ) async throws -> CacheChanges<Int, String>? {
        var stream = cache.changes().makeAsyncIterator()
        try body()
        bench.time.advance(by: .milliseconds(100))
        return await stream.next()
    }

    @Test(arguments: StoreKind.allCases)
    func `a bulk write and a single one come as one batch`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        let changes = try await batch(bench, cache) {
            try cache.setValues([1: "a", 2: "b"])
            cache[3] = "c"
            cache[2] = "B"
        }
        #expect(changes == CacheChanges(updated: [1: "a", 2: "B", 3: "c"], removed: [], isReset: false))
    }

    @Test(arguments: StoreKind.allCases)
    func `removals are net, and one of nothing is none`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try await cache.setValues((1...9).map { ($0, "\($0)") })
        let changes = try await batch(bench, cache) {
            try cache.removeValues(forKeys: [1, 2, 77])
            try cache.removeValue(forKey: 3)
            try cache.removeValue(forKey: 78)
            try cache.update(4) { $0 = nil }
            cache[20] = "new"
            cache[20] = nil
            cache[5] = nil
            cache[5] = "again"
            cache[79] = nil
            #expect(try cache.removeAll { $0.key == 6 } == 1)
            try bench.manager.transaction { transaction in
                try transaction.removeValue(forKey: 7, in: cache)
                try transaction.setValue("T", forKey: 8, in: cache)
            }
        }
        #expect(changes?.updated == [5: "again", 8: "T"])
        #expect(changes?.removed == [1, 2, 3, 4, 6, 7, 20])
    }

    @Test(arguments: StoreKind.allCases)
    func `expiry and eviction from disk are removals, and leaving memory is none`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.minutes(1))
        cache[1] = "old"
        bench.time.advance(by: .seconds(90))
        for number in 2...6 { cache[number] = "\(number)" }
        let changes = try await batch(bench, cache) {
            cache.memory.removeAll()
            try bench.manager.maintain()
            try cache.trim(toCount: 4)
            try cache.disk.setLimits(DiskLimits(countLimit: 2))
        }
        #expect(changes?.removed == [1, 2, 3, 4])
        #expect(changes?.updated == [:])
    }

    @Test(arguments: StoreKind.allCases)
    func `a clear is a reset`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        cache[1] = "a"
        let changes = try await batch(bench, cache) {
            try cache.removeAll()
            cache[2] = "b"
        }
        #expect(changes == CacheChanges(updated: [:], removed: [], isReset: true))
        let again = try await batch(bench, cache) { try bench.manager.removeAll() }
        #expect(again?.isReset == true)
    }

    @Test(arguments: StoreKind.allCases)
    func `a purge is a reset, and the end`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        var stream = cache.changes().makeAsyncIterator()
        _ = try bench.numbers(version: "2")
        #expect(await stream.next()?.isReset == true)
        #expect(await stream.next() == nil)
        var late = cache.changes().makeAsyncIterator()
        #expect(await late.next() == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `more than ten thousand pending keys are a reset`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        let changes = try await batch(bench, cache) { try cache.setValues((0...10_000).map { ($0, "") }) }
        #expect(changes?.isReset == true)
    }

    @Test(arguments: StoreKind.allCases)
    func `nothing changed: nothing is sent, and no interval begins`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        cache[0] = "before"
        try await bench.manager.flush()
        let stream = cache.changes()
        let pending = bench.time.pendingCount
        #expect(pending == (kind == .file ? 1 : 0))
        cache[1] = "a"
        var iterator = stream.makeAsyncIterator()
        #expect(await iterator.next()?.updated == [1: "a"])
        #expect(bench.time.pendingCount == pending + 1)
        bench.time.advance(by: .milliseconds(100))
        #expect(bench.time.pendingCount <= pending)
        // Had a batch of nothing been sent, it would come first.
        cache[2] = "b"
        #expect(await iterator.next()?.updated == [2: "b"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a reader that waits gets a whole transaction at once`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        let changes = cache.changes()
        let reader = Task {
            var iterator = changes.makeAsyncIterator()
            return await iterator.next()
        }
        try await Waiting.until { cache.streamReaders == 1 }
        try await bench.manager.transaction { transaction in
            for key in 1...50 { try transaction.setValue("\(key)", forKey: key, in: cache) }
        }
        #expect(await reader.value?.updated.count == 50)
    }

    @Test(arguments: StoreKind.allCases)
    func `a change through another handle is seen`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        let other = try bench.numbers(.minutes(5))
        let changes = try await batch(bench, cache) {
            other[1] = "a"
        }
        #expect(changes?.updated == [1: "a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `closing the manager ends the stream behind what is pending`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        cache[1] = "a"
        let stream = cache.changes(every: .seconds(3600))
        cache[1] = nil
        try await bench.manager.close()
        var batches: [CacheChanges<Int, String>] = []
        for await changes in stream { batches.append(changes) }
        #expect(batches == [CacheChanges(updated: [:], removed: [1], isReset: false)])
        for await changes in cache.changes() { batches.append(changes) }
        #expect(batches.count == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `reading a batch is no use of what it holds`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        for number in 1...3 { cache[number] = "\(number)" }
        _ = cache[1]
        let hits = cache.statistics
        let changes = try await batch(bench, cache) {
            try cache.setExtendedData(Data([1]), forKey: 9); cache[2] = "new"
        }
        #expect(changes?.updated == [2: "new"])
        #expect(cache.memory.map(\.key) == [3, 1, 2])
        #expect(cache.statistics.memoryHits == hits.memoryHits)
        #expect(cache.statistics.diskHits == hits.diskHits)
    }
}
