import Larder
import LarderTestSupport
import Testing

/// The ways in which `setValues` is called, which are the compiler's to tell apart.
struct SetValuesTests {
    private let place: TemporaryStore
    private let manager: CacheManager
    private let expected = [1: "one", 2: "two"]
    private let names = ["none", "one", "two"]

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(_ name: String = "target") throws -> Cache<Int, String> {
        try manager.cache(named: name, version: "1", maxAge: .hours(1), options: CacheOptions().steady)
    }

    private func source() throws -> Cache<Int, String> {
        let cache = try cache("source")
        for (key, value) in expected { cache[key] = value }
        return cache
    }

    @Test func `whatever gives pairs of key and value is written`() throws {
        let (source, expected, names) = (try source(), expected, names)
        let memory = MemoryCache<Int, String>(clearsOnMemoryPressure: false)
        try memory.setValues(source.snapshot())
        let forms: [(Cache<Int, String>) throws -> Void] = [
            { try $0.setValues([(1, "one"), (2, "two")]) },
            { try $0.setValues([1: "one", 2: "two"]) },
            { try $0.setValues(expected) },
            { try $0.setValues(zip([1, 2], ["one", "two"])) },
            { try $0.setValues([1, 2].map { ($0, names[$0]) }) },
            { try $0.setValues((1...2).lazy.map { ($0, names[$0]) }) },
            { try $0.setValues(expected.map { ($0, $1) }) },
            { try $0.setValues(expected.map { ($0.key, $0.value) }) },
            { try $0.setValues(expected.filter { $0.key > 0 }) },
            { try $0.setValues(source.snapshot()) },
        ]
        let cache = try cache()
        for (index, write) in forms.enumerated() {
            try write(cache)
            #expect(try cache.snapshot() == expected, "form \(index)")
            try cache.removeAll()
        }
        try cache.setValues([])
        try cache.setValues([:])
        #expect(try cache.isEmpty)
        // Its own entries, too.
        try source.setValues(source.snapshot())
        #expect(try source.snapshot() == expected)
        try expectInvariants(source)
    }

    @Test func `whatever gives pairs of key and value is written by who awaits it`() async throws {
        let (source, expected, names) = (try source(), expected, names)
        let forms: [(Cache<Int, String>) async throws -> Void] = [
            { try await $0.setValues([(1, "one"), (2, "two")]) },
            { try await $0.setValues([1: "one", 2: "two"]) },
            { try await $0.setValues(expected) },
            { try await $0.setValues(zip([1, 2], ["one", "two"])) },
            { try await $0.setValues([1, 2].map { ($0, names[$0]) }) },
            { try await $0.setValues((1...2).lazy.map { ($0, names[$0]) }) },
            { try await $0.setValues(expected.map { ($0, $1) }) },
            { try await $0.setValues(expected.map { ($0.key, $0.value) }) },
            { try await $0.setValues(expected.filter { $0.key > 0 }) },
            { try await $0.setValues(source.snapshot()) },
        ]
        let cache = try cache()
        for (index, write) in forms.enumerated() {
            try await write(cache)
            #expect(try await cache.snapshot() == expected, "form \(index)")
            try await cache.removeAll()
        }
        try await cache.setValues([])
        try await cache.setValues([:])
        #expect(try cache.isEmpty)
        try await source.setValues(source.snapshot())
        #expect(try await source.snapshot() == expected)
        try expectInvariants(source)
    }

    @Test func `a memory cache takes the same`() throws {
        let (source, expected, names) = (try source(), expected, names)
        let forms: [(MemoryCache<Int, String>) throws -> Void] = [
            { $0.setValues([(1, "one"), (2, "two")]) },
            { $0.setValues([1: "one", 2: "two"]) },
            { $0.setValues(expected) },
            { $0.setValues(zip([1, 2], ["one", "two"])) },
            { $0.setValues([1, 2].map { ($0, names[$0]) }) },
            { $0.setValues(expected.map { ($0, $1) }) },
            { $0.setValues(try source.snapshot()) },
        ]
        for (index, write) in forms.enumerated() {
            let cache = MemoryCache<Int, String>(clearsOnMemoryPressure: false)
            try write(cache)
            cache.setValues([])
            cache.setValues([:])
            #expect(cache.values(forKeys: [1, 2, 3]) == expected && cache.count == 2, "form \(index)")
        }
    }
}
