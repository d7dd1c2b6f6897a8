import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// Keys, values and entries for tasks.
struct AsyncElementsTests {
    private let store: TemporaryStore
    private let manager: CacheManager
    private let cache: Cache<Int, String>

    init() throws {
        (store, manager) = try TemporaryStore.opened()
        cache = try manager.cache(
            named: "texts", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
    }

    private func list<S: AsyncSequence>(_ elements: S) async throws -> [S.Element] {
        var found: [S.Element] = []
        for try await element in elements { found.append(element) }
        return found
    }

    @Test func `keys and values come in the order of keys, over many pages`() async throws {
        try await cache.setValues((0..<3000).map { ($0, "\($0)") })
        #expect(try await list(cache.keys.async) == Array(0..<3000))
        #expect(try await list(cache.values.async) == (0..<3000).map { "\($0)" })
        try await cache.removeAll()
        #expect(try await list(cache.keys.async).isEmpty)
        #expect(try await list(cache.values.async).isEmpty)
    }

    @Test func `entries come in any order, as many as are wanted`() async throws {
        for key in [3, 1, 2] {
            try await cache.setValue(String(repeating: "x", count: 10 - key), forKey: key)
            store.clock.advance(by: .seconds(1))
        }
        #expect(try await list(cache.entries().async).map(\.key) == [1, 2, 3])
        #expect(try await list(cache.entries(orderedBy: .written).async).map(\.key) == [3, 1, 2])
        #expect(try await list(cache.entries(orderedBy: .size, limit: 2).async).map(\.key) == [3, 2])
        #expect(try await list(cache.entries(descending: true, limit: 1).async).map(\.key) == [3])
        #expect(try await list(cache.entries(limit: 0).async).isEmpty)
        let many = (100..<900).map { ($0, "") }
        try await cache.setValues(many)
        #expect(try await list(cache.entries(limit: 500).async).count == 500)
    }

    @Test func `what is in memory comes in the order of use`() async throws {
        for key in 0..<600 { try await cache.setValue("\(key)", forKey: key) }
        _ = try await cache.value(forKey: 5)
        let found = try await list(cache.memory.async)
        #expect(found.map(\.key) == Array(0..<600).filter { $0 != 5 } + [5] && found.last?.value == "5")
        #expect(await cache.memory.contains(5))
        cache.memory.removeAll()
        #expect(try await list(cache.memory.async).isEmpty)
        #expect(await !cache.memory.contains(5))
    }

    @Test func `a failure and a cancellation are thrown`() async throws {
        try await cache.setValues((0..<2000).map { ($0, "\($0)") })
        var keys = cache.keys.async.makeAsyncIterator()
        #expect(try await keys.next() == 0)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            for try await _ in cache.values.async { Issue.record("a cancelled task goes on") }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        try await manager.close()
        await #expect(throws: CacheError.self) { try await list(cache.values.async) }
        await #expect(throws: CacheError.self) { try await list(cache.entries(orderedBy: .size).async) }
        await #expect(throws: CacheError.self) { while try await keys.next() != nil {} }
    }

    @Test func `two iterations of one sequence are two`() async throws {
        try await cache.setValues((0..<10).map { ($0, "\($0)") })
        let keys = cache.keys.async
        #expect(try await list(keys) == Array(0..<10))
        #expect(try await list(keys) == Array(0..<10))
    }
}
