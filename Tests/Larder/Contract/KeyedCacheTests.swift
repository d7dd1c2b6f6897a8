import Foundation
import Larder
import LarderTestSupport
import Testing

/// What holds for everything that conforms to `KeyedCache`: both types of the library, and a fake as a program writes it.
struct KeyedCacheTests {
    enum Kind: CaseIterable {
        case memory, inMemory, onDisk, disk, fake
    }

    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func cache(_ kind: Kind) throws -> any KeyedCache<String, Int> {
        switch kind {
        case .memory: return MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        case .inMemory: return try CacheManager.inMemory().cache(named: "a", version: "1", maxAge: .unlimited) as Cache
        case .onDisk: return try place.manager().cache(named: "a", version: "1", maxAge: .unlimited) as Cache
        case .disk:
            let cache: Cache<String, Int> = try place.manager().cache(named: "a", version: "1", maxAge: .unlimited)
            return cache.disk
        case .fake: return FakeCache()
        }
    }

    @Test(arguments: Kind.allCases) func `values are set, read, replaced and removed`(kind: Kind) throws {
        let cache = try cache(kind)
        #expect(try cache["a"] == nil && cache.value(forKey: "a") == nil && cache.removeValue(forKey: "a") == nil)
        cache["a"] = 1
        try cache.setValue(2, forKey: "b")
        #expect(try cache["a"] == 1 && cache.value(forKey: "b") == 2)
        cache["a"] = 3
        try cache.setValue(nil, forKey: "b")
        #expect(cache["a"] == 3 && cache["b"] == nil)
        #expect(try cache.removeValue(forKey: "a") == 3 && cache.value(forKey: "a") == nil)
        for key in ["x", "y", "z"] { cache[key] = 1 }
        cache["x"] = nil
        #expect(cache["x"] == nil && cache["y"] == 1)
        try cache.removeAll()
        #expect(cache["y"] == nil && cache["z"] == nil)
    }

    @Test(arguments: Kind.allCases) func `a key is contained while it has a value`(kind: Kind) async throws {
        let cache = try cache(kind)
        #expect(try await !cache.contains("a"))
        cache["a"] = 1
        #expect(try await cache.contains("a"))
        cache["a"] = nil
        #expect(try await !cache.contains("a"))
    }

    @Test func `code for tasks runs with a cache, in memory and with a store`() async throws {
        func visits(of page: String, _ cache: some AsyncKeyedCache<String, Int>) async throws -> Int {
            let count = (try await cache.value(forKey: page) ?? 0) + 1
            try await cache.setValue(count, forKey: page)
            return count
        }
        func tries(_ cache: some AsyncKeyedCache<String, Int>) async throws {
            for expected in 1...3 { #expect(try await visits(of: "home", cache) == expected) }
            #expect(try await cache.contains("home"))
            #expect(try await cache.value(forKey: "new") { $0.count } == 3)
            try await cache.setValue(nil, forKey: "home")
            #expect(try await !cache.contains("home"))
            try await cache.removeAll()
            #expect(try await cache.value(forKey: "new") == nil)
        }
        try await tries(MemoryCache<String, Int>(clearsOnMemoryPressure: false))
        let cache: Cache<String, Int> = try await place.manager().cache(named: "a", version: "1", maxAge: .unlimited)
        try await tries(cache)
    }

    @Test(arguments: Kind.allCases) func `one load serves all callers, and an error is not stored`(kind: Kind)
        async throws
    {
        let (cache, gate, count) = (try cache(kind), LoadGate(), Counter())
        await #expect(throws: CocoaError.self) {
            try await cache.value(forKey: "a") { _ in throw CocoaError(.fileNoSuchFile) }
        }
        let callers = (0..<10).map { _ in
            Task {
                try await cache.value(forKey: "a") { key in
                    count.increment()
                    try await gate.waitInTask()
                    return key.count
                }
            }
        }
        try await Waiting.until { count.value == 1 }
        gate.open()
        for caller in callers { #expect(try await caller.value == 1) }
        #expect(count.value == 1 && cache["a"] == 1)
    }

    @Test(arguments: Kind.allCases) func `code over the protocol runs with each`(kind: Kind) async throws {
        let cache = try cache(kind)
        func visits(of page: String, _ cache: some KeyedCache<String, Int>) throws -> Int {
            let count = (try cache.value(forKey: page) ?? 0) + 1
            try cache.setValue(count, forKey: page)
            return count
        }
        for expected in 1...3 { #expect(try visits(of: "home", cache) == expected) }
    }
}

/// A cache of a program's own for its tests, as the guide has it.
private final class FakeCache<Key: Hashable & Sendable, Value: Sendable>: KeyedCache {
    private let values = Locked<[Key: Value]>([:])
    private let loads = Locked<[Key: Task<Value, any Error>]>([:])

    subscript(key: Key) -> Value? {
        get { values.value[key] }
        set { values.change { $0[key] = newValue } }
    }

    func value(forKey key: Key) -> Value? { self[key] }
    func setValue(_ value: Value?, forKey key: Key) { self[key] = value }
    func removeValue(forKey key: Key) -> Value? { values.change { $0.removeValue(forKey: key) } }
    func removeAll() { values.change { $0 = [:] } }

    func value(forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value) async throws -> Value {
        if let value = self[key] { return value }
        let load = loads.change { loads in
            loads[key]
                ?? {
                    let load = Task { try await generate(key) }
                    loads[key] = load
                    return load
                }()
        }
        defer { loads.change { $0[key] = nil } }
        let value = try await load.value
        self[key] = value
        return value
    }
}
