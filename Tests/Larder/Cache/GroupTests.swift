import Foundation
import Larder
import LarderTestSupport
import Testing

/// What is asked of several entries at once: by tags, by a beginning of the key, by keys.
struct GroupTests {
    @Test(arguments: StoreKind.allCases)
    func `tags are read back, by tag, by entry and all of them`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.words(.minutes(10))
        try cache.setValue(1, forKey: "a", cost: 7, tags: ["x", "y"])
        try cache.setValue(2, forKey: "b", maxAge: .minutes(1), tags: ["x"])
        try cache.setValue(3, forKey: "c", tags: ["z"])
        try cache.setValue(4, forKey: "d")
        #expect(try Set(cache.keys(tagged: "x")) == ["a", "b"] && cache.count(tagged: "x") == 2)
        #expect(try cache.tags() == ["x": 2, "y": 1, "z": 1])
        #expect(try cache.metadata(forKey: "a")?.tags == ["x", "y"] && cache.metadata(forKey: "a")?.cost == 7)
        #expect(try cache.metadata(forKey: "d")?.tags == [] && cache.metadata(forKey: "d")?.cost == nil)
        bench.time.advance(by: .seconds(61))
        #expect(try cache.keys(tagged: "x") == ["a"] && cache.tags() == ["x": 1, "y": 1, "z": 1])
        try cache.setValue(3, forKey: "c", tags: ["y"])
        try cache.removeValue(forKey: "a")
        #expect(try cache.tags() == ["y": 1] && cache.keys(tagged: "y") == ["c"] && cache.count(tagged: "z") == 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `tasks ask the same`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.words()
        try await cache.setValue(1, forKey: "a:1", tags: ["x"])
        try await cache.setValue(2, forKey: "a:2")
        #expect(try await cache.tags() == ["x": 1])
        #expect(try await cache.keys(tagged: "x") == ["a:1"])
        #expect(try await cache.count(tagged: "x") == 1)
        #expect(try await cache.metadata(forKeys: ["a:1", "b"]).mapValues(\.tags) == ["a:1": ["x"]])
        #expect(try await cache.entries(forKeys: ["a:2", "b"]).mapValues(\.value) == ["a:2": 2])
        #expect(try await cache.removeAll(prefix: "a:1") == 1)
        #expect(try await cache.removeValues(forKeys: ["a:1", "a:2"]) == 1)
    }

    @Test func `another cache of the store has tags of its own, and a clear takes them`() throws {
        let bench = try Workbench()
        let (words, numbers) = (try bench.words(), try bench.numbers())
        try words.setValue(1, forKey: "a", tags: ["x"])
        try numbers.setValue("one", forKey: 1, tags: ["x", "y"])
        #expect(try words.tags() == ["x": 1] && numbers.tags() == ["x": 1, "y": 1])
        try words.removeAll()
        #expect(try words.tags() == [:] && words.keys(tagged: "x") == [] && numbers.keys(tagged: "x") == [1])
    }

    @Test func `a tag of nothing, one of a megabyte, and forms of one text`() throws {
        let bench = try Workbench()
        let cache = try bench.words()
        let long = String(repeating: "é", count: 500_000)
        try cache.setValue(1, forKey: "a", tags: ["", long, "e\u{301}"])
        #expect(try cache.keys(tagged: "") == ["a"] && cache.count(tagged: long) == 1 && cache.count(tagged: "é") == 1)
        #expect(try cache.tags() == ["": 1, long: 1, "é": 1] && cache.metadata(forKey: "a")?.tags == ["", long, "é"])
        #expect(try cache.removeAll(tagged: "") == 1 && cache.tags().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `the keys that begin with a text are removed, in memory and on disk`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.words()
        let keys = ["user:", "user:1", "user:2", "user", "use", "user;", "user9", "é:1", "é:2", "e"]
        try await cache.setValues(keys.map { ($0, 1) })
        let changes = cache.changes()
        #expect(try await cache.removeAll(prefix: "user:") == 3)
        #expect(Set(cache.memory.keys) == ["user", "use", "user;", "user9", "é:1", "é:2", "e"])
        #expect(cache["user:1"] == nil && cache["user:"] == nil && cache["user;"] == 1)
        #expect(try await cache.removeAll(prefix: "e\u{301}:") == 2)
        #expect(try await cache.removeAll(prefix: "nothing") == 0)
        bench.time.advance(by: .milliseconds(100))
        var batches = changes.makeAsyncIterator()
        #expect(await batches.next()?.removed == ["user:", "user:1", "user:2", "é:1", "é:2"])
        #expect(try await cache.removeAll(prefix: "") == 5)
        #expect(try cache.isEmpty)
        try expectInvariants(cache)
    }

    @Test func `keys that are no texts begin with nothing`() throws {
        let bench = try Workbench()
        let cache = try bench.numbers()
        try cache.setValues([1: "one", 11: "eleven"])
        #expect(try cache.removeAll(prefix: "1") == 0 && cache.removeAll(prefix: "") == 0 && cache.count == 2)
    }

    @Test func `more keys than a page holds are removed in one step`() throws {
        let bench = try Workbench()
        let cache = try bench.words()
        try cache.setValues((0..<2_000).map { ("\($0 % 2 == 0 ? "even" : "odd") \($0)", $0) })
        #expect(try cache.removeAll(prefix: "even ") == 1_000 && cache.count == 1_000)
        #expect(try cache.removeAll(prefix: "even ") == 0)
    }

    @Test(arguments: [true, false])
    func `a load of a key that begins so stores nothing once they are removed`(isConcerned: Bool) async throws {
        let bench = try Workbench()
        let (cache, gate) = (try bench.words(), LoadGate())
        let load = Task {
            try await cache.value(forKey: "user:1") { _ in
                try await gate.waitInTask()
                return 1
            }
        }
        try await Waiting.until { cache.isGenerating }
        #expect(try await cache.removeAll(prefix: isConcerned ? "user:" : "order:") == 0)
        gate.open()
        #expect(try await load.value == 1)
        #expect((cache["user:1"] == nil) == isConcerned)
    }

    @Test(arguments: StoreKind.allCases)
    func `entries and metadata of many keys are read together`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.words(.minutes(10))
        try cache.setValue(1, forKey: "a", extendedData: Data([1]), tags: ["x"])
        try cache.setValue(2, forKey: "b", maxAge: .minutes(1))
        try cache.setValue(3, forKey: "e\u{301}")
        bench.time.advance(by: .seconds(90))
        let entries = try cache.entries(forKeys: ["a", "b", "é", "none", "a"])
        #expect(entries.mapValues(\.value) == ["a": 1, "é": 3] && entries["a"]?.extendedData == Data([1]))
        let metadata = try cache.metadata(forKeys: ["a", "b", "é"])
        #expect(metadata["a"] == (try cache.metadata(forKey: "a")) && metadata["b"] == nil && metadata.count == 2)
        #expect(try cache.entries(forKeys: []).isEmpty && cache.metadata(forKeys: []).isEmpty)
        #expect(cache.statistics.misses == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `removing many keys says how many there were`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.words()
        try cache.setValues(["a": 1, "b": 2, "c": 3])
        #expect(try cache.removeValues(forKeys: ["a", "none", "a"]) == 1 && cache.removeValues(forKeys: []) == 0)
        #expect(try cache.removeValues(forKeys: ["b", "c"]) == 2 && cache.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a stream of a key has its value now and after each change`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.words()
        try await cache.setValue(1, forKey: "a")
        var values = cache.changes(forKey: "a").makeAsyncIterator()
        #expect(await values.next() == 1)
        try await cache.setValue(5, forKey: "b")
        #expect(bench.time.pendingCount == (kind == .file ? 1 : 0))
        try await cache.setValue(2, forKey: "a")
        try await cache.setValue(3, forKey: "a")
        bench.time.advance(by: .milliseconds(100))
        #expect(await values.next() == 3)
        try await cache.removeAll()
        bench.time.advance(by: .milliseconds(100))
        #expect(await values.next() == .some(nil))
        try await bench.manager.close()
        #expect(await values.next() == nil)
    }
}
