import Foundation
import Larder
import LarderLocks
import LarderTestSupport
import Testing

struct IterationTests {
    @Test(arguments: StoreKind.allCases)
    func `two nested loops over three entries give nine pairs`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        for number in 1...3 { cache[number] = "\(number)" }
        var pairs: [[Int]] = []
        for (outer, _) in cache { for (inner, _) in cache { pairs.append([outer, inner]) } }
        #expect(pairs.count == 9)
        #expect(Set(pairs).count == 9)
        #expect(try bench.isIdle)
    }

    @Test(arguments: StoreKind.allCases)
    func `the sequence operations of the standard library work, in key order`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        for number in [30, -1, 200, 7] { cache[number] = "\(number)" }
        #expect(cache.map(\.key) == [-1, 7, 30, 200])
        #expect(cache.map(\.key) == cache.map(\.key))
        #expect(cache.filter { $0.key > 10 }.map(\.value) == ["30", "200"])
        #expect(cache.compactMap { $0.key < 0 ? $0.value : nil } == ["-1"])
        #expect(cache.reduce(0) { $0 + $1.key } == 236)
        #expect(Array(cache.lazy.map(\.key).filter { $0 > 0 }.prefix(2)) == [7, 30])
        #expect(cache.contains { $0.key == 7 })
        #expect(Array(cache.keys) == [-1, 7, 30, 200])
        #expect(Array(cache.values) == ["-1", "7", "30", "200"])
        #expect(cache.disk.map(\.key) == [-1, 7, 30, 200])
        var seen = 0
        cache.forEach { _ in seen += 1 }
        #expect(seen == 4)
        var generator = cache.makeIterator()
        while generator.next() != nil {}
        cache[500] = "late"
        #expect(generator.next() == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `a loop that is left early leaves no statement`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try cache.setValues((0..<2000).map { ($0, "\($0)") })
        for (key, _) in cache where key == 700 { break }
        for _ in cache.keys { break }
        for _ in cache.entries(orderedBy: .size, descending: true) { break }
        func first() -> Int? {
            for value in cache.values { return value.count }
            return nil
        }
        #expect(first() == 1)
        #expect(try bench.isIdle)
    }

    @Test(arguments: StoreKind.allCases)
    func `the loop's body may write and remove what it walks over`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try cache.setValues((0..<2000).map { ($0, "\($0)") })
        var seen: [Int] = []
        for (key, _) in cache {
            seen.append(key)
            // An entry that is written during the pass may be in it.
            guard key < 2000 else { continue }
            cache[key] = key.isMultiple(of: 2) ? nil : "again"
            cache[key + 1_000_000] = "new"
        }
        #expect(seen.filter { $0 < 2000 } == Array(0..<2000))
        #expect(Set(seen).count == seen.count)
        #expect(try cache.count == 3000)
    }

    @Test(arguments: StoreKind.allCases)
    func `a pass fills no memory and is no use of an entry`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        for number in 1...3 { cache[number] = "\(number)" }
        _ = cache[1]
        let order = cache.memory.map(\.key)
        #expect(order == [2, 3, 1])
        for _ in cache {}
        for _ in cache.entries(orderedBy: .accessed) {}
        #expect(cache.memory.map(\.key) == order)
        cache.memory.removeAll()
        for _ in cache {}
        for _ in cache.disk {}
        #expect(cache.memory.count == 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `what is over or does not decode is skipped, and keys read no value`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        struct Picky: Codable, Sendable { var text: String }
        let calls = Counter()
        let codec = ValueCodec<String>(identifier: "counted", encode: { Data($0.utf8) }) { data in
            calls.increment()
            guard data != Data("bad".utf8) else { throw Offline() }
            return String(decoding: data, as: UTF8.self)
        }
        let cache: Cache<Int, String> = try bench.manager.cache(
            named: "coded", version: "1", maxAge: .minutes(10), options: CacheOptions(memory: .disabled), codec: codec)
        cache[1] = "old"
        bench.time.advance(by: .seconds(601))
        for (key, text) in [(2, "a"), (3, "bad"), (4, "b")] { cache[key] = text }
        #expect(Array(cache.keys) == [2, 3, 4])
        #expect(calls.value == 0)
        #expect(cache.map(\.key) == [2, 4])
        #expect(cache.entries(orderedBy: .written).map(\.key) == [2, 4])
    }

    @Test(arguments: StoreKind.allCases)
    func `a pass ends though writers insert without pause`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try cache.setValues((0..<1500).map { ($0, "\($0)") })
        var next = 10_000
        func count(_ entries: some Sequence) -> Int {
            var seen = 0
            for _ in entries {
                seen += 1
                guard seen <= 100_000 else {
                    Issue.record("it follows its own insertions")
                    break
                }
                cache[next] = "more"
                next += 1
            }
            return seen
        }
        #expect(count(cache) == 1500)
        #expect(count(cache.keys) == 3000)
        #expect(count(cache.entries(orderedBy: .written)) == 6000)
    }

    @Test(arguments: StoreKind.allCases)
    func `a pass over a cache that is superseded half way ends`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try cache.setValues((0..<1500).map { ($0, "\($0)") })
        var seen = 0
        for _ in cache {
            seen += 1
            if seen == 100 { _ = try bench.numbers(version: "2") }
        }
        #expect(seen >= 100)
        #expect(seen < 1500)
        #expect(try bench.isIdle)
    }

    @Test(arguments: StoreKind.allCases)
    func `two threads each see a complete pass of their own`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try await cache.setValues((0..<3000).map { ($0, "\($0)") })
        async let first = onThread { cache.map(\.key) }
        async let second = onThread { cache.disk.map(\.key) }
        let passes = try await [first, second]
        #expect(passes == [Array(0..<3000), Array(0..<3000)])
    }

    @Test(arguments: StoreKind.allCases)
    func `the asynchronous form gives the same, and can be cancelled`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try await cache.setValues((0..<1200).map { ($0, "\($0)") })
        var keys: [Int] = []
        for try await (key, value) in cache.async {
            #expect(value == "\(key)")
            keys.append(key)
        }
        #expect(keys == Array(0..<1200))
        let task = Task {
            var iterator = cache.async.makeAsyncIterator()
            _ = try await iterator.next()
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await iterator.next()
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try bench.isIdle)
    }

    @Test(arguments: StoreKind.allCases)
    func `an asynchronous pass over a closed cache throws`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        cache[1] = "1"
        try await bench.manager.close()
        let error = await #expect(throws: CacheError.self) { for try await _ in cache.async {} }
        #expect(error?.code == .closed)
        #expect(cache.map(\.key) == [])
    }
}
