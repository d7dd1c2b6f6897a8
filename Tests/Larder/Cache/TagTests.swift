import Foundation
import Larder
import LarderTestSupport
import Testing

/// Entries with tags, and their removal by tag.
struct TagTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(
        _ name: String = "tagged", _ manager: CacheManager? = nil, options: CacheOptions = CacheOptions()
    ) throws -> Cache<Int, String> {
        try (manager ?? self.manager).cache(named: name, version: "1", maxAge: .hours(1), options: options)
    }

    @Test(arguments: [true, false])
    func `the entries of a tag are removed and no others`(hasMemory: Bool) throws {
        let cache = try cache(options: hasMemory ? CacheOptions() : CacheOptions(memory: .disabled))
        for key in 1...6 {
            try cache.setValue("v\(key)", forKey: key, tags: key.isMultiple(of: 2) ? ["even", "user:\(key)"] : ["odd"])
        }
        #expect(try cache.entries(tagged: "even").map(\.key).sorted() == [2, 4, 6])
        #expect(try cache.entries(tagged: "user:4").map(\.value) == ["v4"])
        #expect(try cache.removeAll(tagged: "even") == 3)
        #expect(try cache.snapshot().keys.sorted() == [1, 3, 5])
        #expect(cache[2] == nil && cache[3] == "v3")
        #expect(try cache.removeAll(tagged: "even") == 0)
        #expect(try cache.removeAll(tagged: "no such tag") == 0)
        try expectInvariants(cache)
    }

    @Test func `a plain write takes the tags away, and another write sets others`() throws {
        let cache = try cache()
        try cache.setValue("a", forKey: 1, tags: ["old"])
        try cache.setValue("b", forKey: 2, tags: ["old"])
        cache[1] = "plain"
        try cache.setValue("c", forKey: 2, tags: ["new"])
        #expect(try cache.removeAll(tagged: "old") == 0)
        #expect(try cache.removeAll(tagged: "new") == 1)
        #expect(try cache.snapshot() == [1: "plain"])
    }

    @Test func `touching, pinning, extended data and updates keep the tags`() throws {
        let cache = try cache()
        try cache.setValue("a", forKey: 1, tags: ["t"])
        try cache.touch(1)
        try cache.setPinned(true, forKey: 1)
        try cache.setExtendedData(Data([1]), forKey: 1)
        try cache.update(1) { $0 = "b" }
        #expect(try cache.entries(tagged: "t").map(\.key) == [1])
        #expect(try cache.removeAll(tagged: "t") == 1)
    }

    @Test func `the clock may read the store while tags are counted`() throws {
        let (home, failures, time) = (Locked<Cache<Int, String>?>(nil), Counter(), place.clock)
        let manager = try place.manager { configuration in
            configuration.clock = {
                // The read asks for the time too.
                if let cache = home.change({ $0.take() }) {
                    do { _ = try cache.disk.value(forKey: 1) } catch { failures.increment() }
                    home.change { $0 = cache }
                }
                return time.now
            }
        }
        let cache = try cache("tagged", manager)
        try cache.setValue("a", forKey: 1, tags: ["t"])
        home.change { $0 = cache }
        #expect(try cache.tags() == ["t": 1] && cache.count(tagged: "t") == 1)
        home.change { $0 = nil }
        #expect(failures.value == 0)
    }

    @Test func `an entry with the number of a deleted one has none of its tags`() throws {
        let cache = try cache(options: CacheOptions(memory: .disabled))
        try cache.setValue("a", forKey: 1, tags: ["t"])
        try cache.remove(1)
        // SQLite gives the highest number again.
        cache[2] = "b"
        #expect(try cache.removeAll(tagged: "t") == 0)
        #expect(cache[2] == "b")
    }

    @Test func `any text is a tag, and equal texts are one`() throws {
        let cache = try cache()
        let tags: Set<String> = ["", "a\"b\\c", "line\nbreak", "nul\u{0}", "e\u{301}", "👩‍🚀", "[1,2]"]
        try cache.setValue("v", forKey: 1, tags: tags)
        for tag in tags { #expect(try cache.entries(tagged: tag).count == 1, "\(tag.debugDescription)") }
        #expect(try cache.entries(tagged: "\u{E9}").count == 1)
        #expect(try cache.entries(tagged: "nul").isEmpty)
        #expect(try cache.removeAll(tagged: "👩‍🚀") == 1)
    }

    @Test func `a store is cleared of a tag in one step, in caches that no handle uses too`() throws {
        let first = try cache("first")
        do {
            let closed = try cache("closed")
            try closed.setValue("x", forKey: 1, tags: ["user:7"])
            closed[2] = "stays"
        }
        try first.setValue("y", forKey: 1, tags: ["user:7", "other"])
        try first.setValue(String(repeating: "z", count: 300_000), forKey: 2, tags: ["user:7"])
        first[3] = "stays"
        #expect(try place.spilledFiles().count == 1)
        #expect(try manager.removeAll(tagged: "user:7") == 3)
        #expect(try first.snapshot() == [3: "stays"])
        #expect(try cache("closed").snapshot() == [2: "stays"])
        #expect(try place.spilledFiles() == [])
    }

    @Test func `tags are there after reopening, and after a salvage`() throws {
        do {
            let cache = try cache()
            try cache.setValue("a", forKey: 1, tags: ["t", "u"])
            cache[2] = "b"
            try manager.close()
        }
        let again = try place.manager()
        #expect(try cache("tagged", again).entries(tagged: "u").map(\.key) == [1])
        let report = try again.verify(repairing: true)
        #expect(report.isHealthy)
        #expect(try cache("tagged", again).removeAll(tagged: "t") == 1)
    }

    @Test func `maintenance deletes the notes of tags that no entry has`() throws {
        let cache = try cache()
        for key in 0..<100 { try cache.setValue("a", forKey: key, tags: ["t\(key % 10)", "all"]) }
        for key in 0..<90 { cache[key] = "plain" }
        try manager.maintain()
        #expect(try StoreProbe(manager).tagCount() == 20)
        #expect(try cache.removeAll(tagged: "all") == 10)
    }

    @Test func `removal by tag is told to those who follow the changes`() async throws {
        let cache = try cache()
        try await cache.setValue("a", forKey: 1, tags: ["t"])
        try await cache.setValue("b", forKey: 2, tags: ["u"])
        var changes = cache.changes(every: .zero).makeAsyncIterator()
        try await cache.removeAll(tagged: "t")
        #expect(await changes.next()?.removed == [1])
        try await manager.removeAll(tagged: "u")
        #expect(await changes.next()?.removed == [2])
        #expect(try await cache.entries(tagged: "t").isEmpty)
    }

    @Test func `a transaction writes tags, and a load that is overtaken by a removal does not store`() throws {
        let cache = try cache()
        try manager.transaction { try $0.setValue("a", forKey: 1, in: cache, tags: ["t"]) }
        #expect(try cache.removeAll(tagged: "t") == 1)
        #expect(throws: CacheError.self) { try cache.update(2) { _ in try cache.removeAll(tagged: "t") } }
    }
}
