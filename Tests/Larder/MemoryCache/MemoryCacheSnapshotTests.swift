import Foundation
import Larder
import LarderTestSupport
import Testing

struct MemoryCacheSnapshotTests {
    private let folder: TemporaryFolder
    private var file: URL { folder("snapshot") }

    init() throws {
        folder = try TemporaryFolder()
    }

    /// The code of what a body throws.
    private func code(_ body: () throws -> Void) -> CacheError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    private struct Picky: Codable, Sendable, Equatable {
        var number: Int

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            if number < 0 {
                throw EncodingError.invalidValue(number, .init(codingPath: [], debugDescription: "no negative ones"))
            }
            try container.encode(number)
        }

        init(_ number: Int) { self.number = number }

        init(from decoder: any Decoder) throws {
            number = try decoder.singleValueContainer().decode(Int.self)
            if number == 13 {
                throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "no thirteens"))
            }
        }
    }

    @Test func `values, costs and the order come back`() throws {
        let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        for (index, key) in ["a", "b\n\0", "ü", ""].enumerated() { cache.setValue(index, forKey: key, cost: index) }
        _ = cache["a"]
        try cache.save(to: file)
        let other = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        other["z"] = 9
        other["a"] = 9
        #expect(try other.load(from: file) == 4)
        #expect(other.orderedKeys == ["z", "b\n\0", "ü", "", "a"])
        #expect(other["a"] == 0 && other.totalCost == 6)
        other.checkInvariants()
    }

    @Test func `a cache is created from a snapshot, or empty if there is none`() throws {
        #expect(try MemoryCache<String, Int>(restoring: file).count == 0)
        let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        cache["a"] = 1
        cache["b"] = 2
        try cache.save(to: file)
        let other = try MemoryCache<String, Int>(restoring: file, countLimit: 1)
        #expect(other["a"] == nil && other["b"] == 2)
        #expect(code { _ = try MemoryCache<String, String>(restoring: file) } == .typeMismatch)
    }

    @Test func `a snapshot is saved and loaded by a task`() async throws {
        let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        cache["a"] = 1
        try await cache.save(to: file)
        let other = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        #expect(try await other.load(from: file) == 1)
        #expect(other["a"] == 1)
    }

    private struct Nested: Codable, Sendable, Equatable {
        var layers: Int??
        var bytes: Data
        var dates: [Date?]
        var table: [Int: [String: UUID]]
        var children: [Nested]
    }

    @Test func `optionals at any depth, NaN, bytes and nested values come back`() throws {
        try expectBack(.some(.some(nil)), .some(.some(3)), .some(nil), nil as Int???)
        try expectBack(Double.infinity, -.infinity, 0.1, -0.0, .leastNonzeroMagnitude)
        try expectBack(Data(), Data([0, 10, 13, 255]), Data(repeating: 7, count: 100_000))
        try expectBack(Date(timeIntervalSinceReferenceDate: 0.1), .distantPast)
        let leaf = Nested(layers: .some(nil), bytes: Data([1]), dates: [nil, .now], table: [:], children: [])
        try expectBack(
            leaf, Nested(layers: nil, bytes: Data(), dates: [], table: [-1: ["": UUID()]], children: [leaf, leaf]))

        let cache = MemoryCache<Int, Float>(clearsOnMemoryPressure: false)
        cache[0] = .nan
        try cache.save(to: file)
        let other = MemoryCache<Int, Float>(clearsOnMemoryPressure: false)
        #expect(try other.load(from: file) == 1 && other[0]?.isNaN == true)
    }

    private func expectBack<Value: Codable & Equatable & Sendable>(_ values: Value...) throws {
        let cache = MemoryCache<Int, Value>(clearsOnMemoryPressure: false)
        for (key, value) in values.enumerated() { cache.setValue(value, forKey: key) }
        try cache.save(to: file)
        let other = MemoryCache<Int, Value>(clearsOnMemoryPressure: false)
        #expect(try other.load(from: file) { Issue.record("\($0)") } == values.count)
        #expect(other.orderedValues == values)
    }

    @Test func `an item that cannot be encoded is named, and the rest is saved`() throws {
        let cache = MemoryCache<String, Picky>(clearsOnMemoryPressure: false)
        for number in [1, -2, 3] { cache["key \(number)"] = Picky(number) }
        let error = #expect(throws: CacheError.self) { try cache.save(to: file) }
        #expect(error?.code == .encodingFailed)
        #expect(error?.message.contains("key -2") == true && error?.message.contains("key 3") == false)
        let other = MemoryCache<String, Picky>(clearsOnMemoryPressure: false)
        #expect(try other.load(from: file) == 2)
        #expect(other.orderedKeys == ["key 1", "key 3"])
    }

    @Test func `what does not decode is skipped, named and listed, and the rest loads`() throws {
        let cache = MemoryCache<Int, Picky>(clearsOnMemoryPressure: false)
        for number in [1, 13, 3] { cache[number] = Picky(number) }
        try cache.save(to: file)
        let (count, loaded, skipped) = try load(Picky.self)
        #expect(count == 2 && loaded.orderedKeys == [1, 3])
        #expect(skipped.count == 1 && skipped.first?.contains("key \"13\"") == true)
    }

    @Test func `whichever byte is damaged, the entries before it load, the loss is listed, and none is wrong`() throws {
        let cache = MemoryCache<Int, String>(clearsOnMemoryPressure: false)
        for number in 1...4 { cache[number] = "value \(number)" }
        try cache.save(to: file)
        let whole = try Data(contentsOf: file)
        var counts: Set<Int> = []
        for place in whole.indices {
            var bytes = whole
            bytes[place] ^= 0x10
            try bytes.write(to: file)
            if let code = code({ _ = try load(String.self) }) {
                #expect(code == .foreignFile && counts.isEmpty, "byte \(place)")
                continue
            }
            let (count, loaded, skipped) = try load(String.self)
            #expect(
                loaded.orderedKeys == Array((1...4).prefix(count)) && skipped.count == 1, "byte \(place): \(skipped)")
            for (key, value) in loaded { #expect(value == "value \(key)") }
            counts.insert(count)
        }
        #expect(counts == [0, 1, 2, 3])
    }

    @Test func `wherever the file was cut, the whole entries load`() throws {
        let cache = MemoryCache<Int, String>(clearsOnMemoryPressure: false)
        for number in 1...4 { cache[number] = "value \(number)" }
        try cache.save(to: file)
        let whole = try Data(contentsOf: file)
        var counts: [Int] = []
        for length in whole.indices {
            try whole.prefix(length).write(to: file)
            guard code({ _ = try load(String.self) }) == nil else { continue }
            let (count, loaded, skipped) = try load(String.self)
            #expect(loaded.orderedKeys == Array((1...4).prefix(count)) && skipped.count <= 1)
            counts.append(count)
        }
        #expect(counts == counts.sorted() && Set(counts) == [0, 1, 2, 3])
    }

    private func load<Value: Codable & Sendable>(
        _ type: Value.Type
    ) throws -> (count: Int, cache: MemoryCache<Int, Value>, skipped: [String]) {
        let cache = MemoryCache<Int, Value>(clearsOnMemoryPressure: false)
        var skipped: [String] = []
        let count = try cache.load(from: file) { skipped.append($0) }
        return (count, cache, skipped)
    }

    @Test func `nothing enters as the wrong type`() throws {
        let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        cache["a"] = 1
        try cache.save(to: file)
        let other = MemoryCache<String, Double>(clearsOnMemoryPressure: false)
        #expect(throws: CacheError.self) { try other.load(from: file) }
        #expect(other.isEmpty)
    }

    private enum Inches { struct Length: Codable, Sendable { var value: Double } }
    private enum Metres { struct Length: Codable, Sendable { var value: Double } }

    @Test func `a type of the same name elsewhere is another type`() throws {
        let inches = MemoryCache<String, Inches.Length>(clearsOnMemoryPressure: false)
        inches["a"] = Inches.Length(value: 1)
        try inches.save(to: file)
        let metres = MemoryCache<String, Metres.Length>(clearsOnMemoryPressure: false)
        #expect(code { try metres.load(from: file) } == .typeMismatch)
        #expect(metres.isEmpty)
        inches.removeAll()
        #expect(try inches.load(from: file) == 1)
        // The first record is not the place for an address, which is another one in each process.
        #expect(try Data(contentsOf: file).range(of: Data("unknown context".utf8)) == nil)
    }

    @Test func `what is no snapshot is refused, what is not there is an error`() throws {
        let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        try Data("hello".utf8).write(to: file)
        #expect(code { try cache.load(from: file) } == .foreignFile)
        try Data().write(to: file)
        #expect(code { try cache.load(from: file) } == .foreignFile)
        let absent = folder("absent")
        #expect(code { try cache.load(from: absent) } == .storageUnavailable)
    }

    @Test func `a save that fails leaves the old file, and no other`() throws {
        let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        cache["a"] = 1
        try cache.save(to: file)
        // A folder with something in it cannot be replaced by a file: the last step fails.
        let blocked = folder("blocked")
        let inside = blocked.appendingPathComponent("inside")
        try FileManager.default.createDirectory(at: inside, withIntermediateDirectories: true)
        #expect(code { try cache.save(to: blocked) } == .storageUnavailable)
        let nowhere = folder("no/where")
        #expect(code { try cache.save(to: nowhere) } == .storageUnavailable)
        #expect(try folder.names == ["blocked", "snapshot"])
        #expect(try MemoryCache<String, Int>(clearsOnMemoryPressure: false).load(from: file) == 1)
    }

    @Test func `a save replaces, is for its owner alone, and of an empty cache is empty`() throws {
        let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        cache["a"] = 1
        try cache.save(to: file)
        cache.removeAll()
        try cache.save(to: file)
        #expect(try MemoryCache<String, Int>(clearsOnMemoryPressure: false).load(from: file) == 0)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func `ages go on from the write, expired items stay out, and limits hold`() throws {
        let time = ManualClock()
        let cache = MemoryCache<Int, Int>(maxAge: .seconds(10), clearsOnMemoryPressure: false, clock: { time.now })
        cache[0] = 0
        time.advance(by: .seconds(5))
        cache[1] = 1
        try cache.save(to: file)
        time.advance(by: .milliseconds(5_001))
        let other = MemoryCache<Int, Int>(maxAge: .seconds(10), clearsOnMemoryPressure: false, clock: { time.now })
        let count = try other.load(from: file) { _ in Issue.record("an old item is no bad one") }
        #expect(count == 1)
        time.advance(by: .milliseconds(4_999))
        #expect(other[1] == 1)
        time.advance(by: .milliseconds(1))
        #expect(other[1] == nil)

        // Those without an age begin theirs when they are loaded.
        let plain = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        plain[1] = 1
        try plain.save(to: file)
        time.advance(by: .seconds(100))
        let aged = MemoryCache<Int, Int>(maxAge: .seconds(10), clearsOnMemoryPressure: false, clock: { time.now })
        #expect(try aged.load(from: file) == 1)
        time.advance(by: .seconds(10))
        #expect(aged[1] == 1)
        time.advance(by: .milliseconds(1))
        #expect(aged[1] == nil)

        let many = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<5000 { many.setValue(key, forKey: key, cost: 1) }
        try many.save(to: file)
        let few = MemoryCache<Int, Int>(countLimit: 3, clearsOnMemoryPressure: false)
        #expect(try few.load(from: file) == 3)
        #expect(few.orderedKeys == [4997, 4998, 4999])
        // Those that were there before go first.
        let mixed = MemoryCache<Int, Int>(costLimit: 5001, clearsOnMemoryPressure: false)
        for key in 5000..<5010 { mixed.setValue(key, forKey: key, cost: 1) }
        #expect(try mixed.load(from: file) == 5000)
        #expect(mixed.count == 5001 && mixed.orderedKeys.first == 5009)
        let none = MemoryCache<Int, Int>(costLimit: 0, clearsOnMemoryPressure: false)
        #expect(try none.load(from: file) == 0 && none.isEmpty)
    }
}
