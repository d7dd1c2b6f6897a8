import Foundation
import Larder
import Synchronization
import Testing

final class MemoryCacheSnapshotTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
    private var file: URL { folder.appendingPathComponent("snapshot") }

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        do { try FileManager.default.removeItem(at: folder) } catch { Issue.record(error) }
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
        let cache = MemoryCache<String, Int>()
        for (index, key) in ["a", "b\n\0", "ü", ""].enumerated() { cache.setValue(index, forKey: key, cost: index) }
        _ = cache["a"]
        try cache.save(to: file)
        let other = MemoryCache<String, Int>()
        other["z"] = 9
        other["a"] = 9
        #expect(try other.load(from: file) == 4)
        #expect(other.orderedKeys == ["z", "b\n\0", "ü", "", "a"])
        #expect(other["a"] == 0 && other.totalCost == 6)
        other.checkInvariants()
    }

    @Test func `numbers JSON has no word for come back`() throws {
        let cache = MemoryCache<Int, Double>()
        for (key, value) in [Double.infinity, -.infinity, .nan, 0.1, -0.0].enumerated() { cache[key] = value }
        try cache.save(to: file)
        let other = MemoryCache<Int, Double>()
        #expect(try other.load(from: file) == 5)
        #expect(other[0] == .infinity && other[1] == -.infinity && other[2]?.isNaN == true && other[3] == 0.1)
    }

    @Test func `case 293: an item that cannot be encoded is named, and the rest is saved`() throws {
        let cache = MemoryCache<String, Picky>()
        for number in [1, -2, 3] { cache["key \(number)"] = Picky(number) }
        let error = #expect(throws: CacheError.self) { try cache.save(to: file) }
        #expect(error?.code == .encodingFailed)
        #expect(error?.message.contains("key -2") == true && error?.message.contains("key 3") == false)
        let other = MemoryCache<String, Picky>()
        #expect(try other.load(from: file) == 2)
        #expect(other.orderedKeys == ["key 1", "key 3"])
    }

    @Test func `case 292: bad items are skipped and listed, good ones load`() throws {
        let cache = MemoryCache<Int, Picky>()
        for number in [1, 13, 3, 4, 5] { cache[number] = Picky(number) }
        try cache.save(to: file)
        // One flipped digit makes another valid item: the checksum has to find it. The last line is cut.
        var text = try String(contentsOf: file, encoding: .utf8)
        text = text.replacingOccurrences(of: "\"v\":4", with: "\"v\":7")
        text.removeLast(4)
        try Data(text.utf8).write(to: file)
        let other = MemoryCache<Int, Picky>()
        let skipped = Mutex<[String]>([])
        let count = try other.load(from: file) { sentence in skipped.withLock { $0.append(sentence) } }
        #expect(count == 2)
        #expect(other.orderedKeys == [1, 3] && other.count == 2)
        #expect(skipped.withLock(\.count) == 3)
    }

    @Test func `case 292: nothing enters as the wrong type`() throws {
        let cache = MemoryCache<String, Int>()
        cache["a"] = 1
        try cache.save(to: file)
        let other = MemoryCache<String, Double>()
        #expect(throws: CacheError.self) { try other.load(from: file) }
        #expect(other.isEmpty)
    }

    @Test func `what is no snapshot is refused, what is not there is an error`() throws {
        let cache = MemoryCache<String, Int>()
        try Data("hello".utf8).write(to: file)
        #expect(code { try cache.load(from: file) } == .foreignFile)
        try Data().write(to: file)
        #expect(code { try cache.load(from: file) } == .foreignFile)
        let absent = folder.appendingPathComponent("absent")
        #expect(code { try cache.load(from: absent) } == .storageUnavailable)
    }

    @Test func `a save that fails leaves the old file, and no other`() throws {
        let cache = MemoryCache<String, Int>()
        cache["a"] = 1
        try cache.save(to: file)
        // A folder with something in it cannot be replaced by a file: the last step fails.
        let blocked = folder.appendingPathComponent("blocked")
        let inside = blocked.appendingPathComponent("inside")
        try FileManager.default.createDirectory(at: inside, withIntermediateDirectories: true)
        #expect(code { try cache.save(to: blocked) } == .storageUnavailable)
        let nowhere = folder.appendingPathComponent("no/where")
        #expect(code { try cache.save(to: nowhere) } == .storageUnavailable)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["blocked", "snapshot"])
        #expect(try MemoryCache<String, Int>().load(from: file) == 1)
    }

    @Test func `a save replaces, is for its owner alone, and of an empty cache is empty`() throws {
        let cache = MemoryCache<String, Int>()
        cache["a"] = 1
        try cache.save(to: file)
        cache.removeAll()
        try cache.save(to: file)
        #expect(try MemoryCache<String, Int>().load(from: file) == 0)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func `ages go on from the write, expired items stay out, and limits hold`() throws {
        let clock = StoppedClock()
        let cache = MemoryCache<Int, Int>(maxAge: .seconds(10), clock: clock.now)
        cache[0] = 0
        clock.advance(milliseconds: 5_000)
        cache[1] = 1
        try cache.save(to: file)
        clock.advance(milliseconds: 5_001)
        let other = MemoryCache<Int, Int>(maxAge: .seconds(10), clock: clock.now)
        let count = try other.load(from: file) { _ in Issue.record("an old item is no bad one") }
        #expect(count == 1)
        clock.advance(milliseconds: 4_999)
        #expect(other[1] == 1)
        clock.advance(milliseconds: 1)
        #expect(other[1] == nil)

        let many = MemoryCache<Int, Int>()
        for key in 0..<5000 { many.setValue(key, forKey: key, cost: 1) }
        try many.save(to: file)
        let few = MemoryCache<Int, Int>(countLimit: 3)
        #expect(try few.load(from: file) == 5000)
        #expect(few.orderedKeys == [4997, 4998, 4999])
        let none = MemoryCache<Int, Int>(costLimit: 0)
        #expect(try none.load(from: file) == 0 && none.isEmpty)
    }
}
