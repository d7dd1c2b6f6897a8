import Foundation
import Larder
import LarderTestSupport
import Testing

struct CacheKeyTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache<Key, Value>(_ name: String = "a", _ options: CacheOptions = .init()) throws -> Cache<Key, Value>
    where Value: Codable {
        try manager.cache(named: name, version: "1", maxAge: .unlimited, options: options)
    }

    @Test(arguments: [false, true])
    func `odd texts are keys like others`(isOnDiskAlone: Bool) throws {
        let cache: Cache<String, Int> = try cache("a", isOnDiskAlone ? CacheOptions(memory: .disabled) : .init())
        let long = String(repeating: "x", count: 1 << 20)
        let keys = ["", "a\0b", "a\0c", "\0", "🦊", "'; DROP TABLE entry", long, long + "y", "\u{E9}", "a"]
        for (index, key) in keys.enumerated() { try cache.setValue(index, forKey: key) }
        for (index, key) in keys.enumerated() { #expect(cache[key] == index) }
        #expect(try cache.count == keys.count)
        #expect(Set(cache.map(\.key)) == Set(keys))
        #expect(cache.map(\.key) == keys.sorted())
        // Canonically equal ones are one, and a listing gives the composed one.
        cache["e\u{301}"] = 77
        #expect(cache["\u{E9}"] == 77)
        #expect(try cache.count == keys.count)
        #expect(cache.contains { $0.key.utf8.elementsEqual("\u{E9}".utf8) })
        try cache.removeValues(forKeys: ["a\0b", "nobody", ""])
        #expect(cache["a\0b"] == nil && cache["a\0c"] == 2 && cache[""] == nil)
        try expectInvariants(cache)
    }

    private struct Point: Codable, Hashable {
        var x: Int
        var tags: Set<String> = []
        var names: [Int: String] = [:]
    }

    private enum Kind: String, Codable, Hashable { case a, b }

    @Test func `every codable type is a key, and comes back as itself`() throws {
        let points: Cache<Point, Int> = try cache("points")
        let many = (0..<20).map { Point(x: $0, tags: ["a", "b", "\($0)"], names: [$0: "n", -1: "o"]) }
        for point in many { points[point] = point.x }
        for point in many { #expect(points[point] == point.x) }
        #expect(Set(points.map(\.key)) == Set(many))
        let kinds: Cache<Kind, Int> = try cache("kinds")
        kinds[.a] = 1
        #expect(kinds[.b] == nil && kinds.map(\.key) == [.a])
        let urls: Cache<URL, Int> = try cache("urls")
        urls[place.folder.url] = 1
        #expect(urls.map(\.key) == [place.folder.url])
        let identifiers: Cache<UUID, Int> = try cache("identifiers")
        let identifier = UUID()
        identifiers[identifier] = 1
        #expect(identifiers[identifier] == 1 && identifiers[UUID()] == nil)
        let wide: Cache<UInt64, Int> = try cache("wide")
        let numbers: [UInt64] = [0, 1, UInt64(Int64.max), UInt64(Int64.max) + 1, .max]
        for number in numbers { wide[number] = 1 }
        #expect(wide.map(\.key) == numbers)
        let floats: Cache<Double, Int> = try cache("floats")
        floats[-0.0] = 1
        #expect(floats[0.0] == 1)
        expectError(.encodingFailed) { try floats.setValue(1, forKey: .nan) }
        expectError(.encodingFailed) { try floats.value(forKey: .nan) }
        floats[.nan] = 3
        #expect(floats[.nan] == nil && floats.statistics.failures == 2)
        try expectInvariants(points)
        try expectInvariants(wide)
    }

    @Test func `failures that a subscript cannot throw are told of`() async throws {
        let floats: Cache<Double, Int> = try cache("floats", CacheOptions(clearsOnMemoryPressure: false))
        let events = manager.events
        floats[.nan] = 1
        #expect(floats[.nan] == nil)
        try await manager.close()
        var seen: [String] = []
        for await event in events { seen.append("\(event.kind) \(event.cacheName ?? "")") }
        #expect(seen == ["writeFailed floats", "readFailed floats"])
    }

    @Test func `caches share nothing, and bytes are stored as they are`() throws {
        let a: Cache<Int, Data> = try cache("a")
        let b: Cache<Int, Data> = try cache("b")
        let bytes = Data(0...255)
        a[1] = bytes
        #expect(b[1] == nil)
        #expect(try a.sizeOnDisk == 256)
        b[1] = Data()
        #expect(b[1] == Data() && a[1] == bytes)
        a[1] = nil
        #expect(b[1] == Data())
        #expect(try b.sizeOnDisk == 0 && b.count == 1)
        try expectInvariants(b)
    }

    @Test func `ten thousand keys go in, come out and go`() throws {
        let cache: Cache<Int, Int> = try cache("many", CacheOptions(memory: MemoryLimits(countLimit: 1000)))
        cache[5] = -1
        let store = StoreProbe(manager)
        let before = try store.commitCount()
        try cache.setValues((0..<10_000).lazy.map { ($0, $0 * 2) })
        #expect(try store.commitCount() == before + 1)
        #expect(try cache.count == 10_000)
        #expect(cache[5] == 10)
        let some = try cache.values(forKeys: stride(from: -5_000, to: 15_000, by: 2))
        #expect(some.count == 5_000)
        #expect(some.allSatisfy { $1 == $0 * 2 })
        let all = try cache.snapshot()
        #expect(all.count == 10_000)
        try cache.removeValues(forKeys: 0..<9_000)
        #expect(try cache.count == 1000)
        #expect(cache[8_999] == nil && cache[9_000] == 18_000)
        try cache.setValues([Int: Int]())
        try cache.removeValues(forKeys: [])
        #expect(cache.statistics.writes == 10_001 && cache.statistics.removals == 9_000)
        #expect(try store.isIdle)
    }

    @Test func `a bulk write that fails at one item leaves nothing`() throws {
        let cache: Cache<Double, Int> = try cache("bulk")
        cache[1] = 1
        let items = (0..<1000).map { ($0 == 500 ? Double.nan : Double($0), $0 + 5) }
        expectError(.encodingFailed) { try cache.setValues(items) }
        #expect(try cache.count == 1)
        #expect(cache[1] == 1 && cache[2] == nil)
        expectError(.encodingFailed) { try cache.removeValues(forKeys: [1, .nan]) }
        #expect(cache[1] == 1)
        try expectInvariants(cache)
    }

    @Test func `the last of two items with one key is the value`() throws {
        let cache: Cache<String, Int> = try cache("twice")
        try cache.setValues([("a", 1), ("b", 2), ("a", 3)])
        #expect(cache["a"] == 3)
        #expect(try cache.entry(forKey: "a")?.value == 3)
        #expect(try cache.values(forKeys: ["a", "a", "b"]) == ["a": 3, "b": 2])
        try expectInvariants(cache)
    }

    @Test func `a value that was never asked for costs nothing to default`() throws {
        let cache: Cache<String, [Int]> = try cache("default")
        #expect(cache["a", default: [1]] == [1])
        #expect(cache["a"] == nil)
        cache["a", default: []].append(4)
        cache["a", default: []].append(5)
        #expect(cache["a"] == [4, 5])
        try expectInvariants(cache)
    }

    @Test(.enabled(if: LongTests.areEnabled, "a long test"))
    func `what a row cannot hold is refused as too large, and changes nothing`() throws {
        let cache: Cache<Int, Data> = try cache("large", CacheOptions(inlineLimit: .max))
        cache[1] = Data([1])
        // SQLite's limit for a row is a thousand million bytes.
        let huge = Data(count: 1_000_000_001)
        expectError(.tooLarge) { try cache.setValue(huge, forKey: 1) }
        #expect(cache[1] == Data([1]))
        try expectInvariants(cache)
    }
}
