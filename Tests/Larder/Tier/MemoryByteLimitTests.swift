import Foundation
import Larder
import LarderTestSupport
import Testing

/// The limit on the bytes of a cache in memory.
struct MemoryByteLimitTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws {
        (place, manager) = try TemporaryStore.opened()
    }

    private func cache<Value: Codable & Sendable>(
        _ type: Value.Type, _ memory: MemoryLimits = MemoryLimits()
    ) throws -> Cache<Int, Value> {
        try manager.cache(
            named: "\(type)", version: "1", maxAge: .hours(1), options: CacheOptions(memory: memory).steady)
    }

    @Test func `the default is 32 MiB of bytes, and no limit of costs`() throws {
        let cache = try cache(Int.self)
        #expect(cache.memory.byteLimit == 32 << 20 && cache.memory.costLimit == nil && cache.memory.countLimit == nil)
        #expect(MemoryLimits().byteLimit == 32 << 20 && MemoryLimits().costLimit == nil)
    }

    @Test func `values that cost nothing are bounded too`() throws {
        let empty = try cache(Data.self, MemoryLimits(byteLimit: 100_000))
        try empty.setValues((0..<3000).map { ($0, Data()) })
        #expect(empty.memory.totalCost == 0)
        #expect((500..<1200).contains(empty.memory.count))
        #expect(empty.memory.totalBytes <= 100_000)
        #expect(empty.memory.map(\.key).last == 2999)
        try expectInvariants(empty)
    }

    @Test func `a cost that is given changes the total of costs, and not the bytes`() throws {
        let cache = try cache(Data.self)
        try cache.setValue(Data(count: 1000), forKey: 1)
        let bytes = cache.memory.totalBytes
        #expect(cache.memory.totalCost == 1000 && bytes > 1100)
        try cache.setValue(Data(count: 1000), forKey: 1, cost: 7)
        #expect(cache.memory.totalCost == 7 && cache.memory.totalBytes == bytes)
        cache.memory.removeAll()
        #expect(cache.memory.totalBytes == 0)
        // What comes from disk counts as what was written.
        #expect(cache[1]?.count == 1000)
        #expect(cache.memory.totalCost == 7 && cache.memory.totalBytes == bytes)
    }

    @Test func `a limit that is set while in use holds at once`() throws {
        let cache = try cache(String.self)
        for key in 0..<100 { cache[key] = String(repeating: "v", count: 1000) }
        let one = cache.memory.totalBytes / 100
        cache.memory.byteLimit = 10 * one
        #expect(cache.memory.map(\.key) == Array(90..<100))
        cache.memory.byteLimit = -1
        #expect(cache.memory.byteLimit == 0 && cache.memory.count == 0)
        cache[5] = "five"
        #expect(cache.memory.count == 0 && cache[5] == "five")
        cache.memory.byteLimit = nil
        #expect(cache[5] == "five" && cache.memory.count == 1)
        #expect(cache.memory.costLimit == nil && cache.memory.countLimit == nil)
    }

    @Test func `a value larger than all of memory is on disk only`() throws {
        let cache = try cache(Data.self, MemoryLimits(byteLimit: 10_000))
        cache[1] = Data(count: 100)
        try cache.setValue(Data(count: 10_000), forKey: 2, cost: 1)
        #expect(cache.memory.map(\.key) == [1])
        #expect(cache[2]?.count == 10_000 && cache.memory.map(\.key) == [1])
    }

    @Test func `pressure halves the bytes of memory`() throws {
        let cache: Cache<Int, Data> = try manager.cache(named: "pressed", version: "1", maxAge: .hours(1))
        cache[0] = Data(count: 10)
        cache[1] = Data(count: 100_000)
        cache[2] = Data(count: 10)
        manager.handleMemoryPressure(.warning)
        #expect(cache.memory.map(\.key) == [2])
    }
}
