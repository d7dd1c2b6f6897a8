import Foundation
import Larder
import LarderTestSupport
import Testing

/// What the log and the events say, and how often.
struct LogTests {
    private let place: TemporaryStore
    private let messages = Told<LogMessage>()

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func manager() throws -> CacheManager {
        try place.manager { [messages] in $0.log = { messages.add($0) } }
    }

    private func texts(_ level: LogMessage.Level) -> [String] { messages.all.filter { $0.level == level }.map(\.text) }

    enum Call: CaseIterable {
        case value, subscripted, listing, count, write, bulk, tag

        func make(_ cache: Cache<Int, String>) throws {
            switch self {
            case .value: _ = try cache.value(forKey: 1)
            case .subscripted: _ = cache[1]
            case .listing: _ = Array(cache)
            case .count: _ = try cache.count
            case .write: try cache.setValue("x", forKey: 1)
            case .bulk: try cache.setValues([1: "x"])
            case .tag: try cache.removeAll(tagged: "t")
            }
        }
    }

    @Test(arguments: Call.allCases)
    func `a superseded handle is reported once, at the first call that finds it`(call: Call) async throws {
        let manager = try manager()
        let old: Cache<Int, String> = try await manager.cache(named: "a", version: "1", maxAge: .hours(1))
        let second: Cache<Int, String> = try await manager.cache(named: "a", version: "1", maxAge: .hours(1))
        try await old.setValue("one", forKey: 1)
        let other = try place.manager()
        let newer: Cache<Int, String> = try await other.cache(named: "a", version: 2, maxAge: .hours(1))
        #expect(texts(.warning) == [])
        for handle in [old, old, second] {
            do { try call.make(handle) } catch { #expect((error as? CacheError)?.code == .superseded) }
        }
        let text =
            "A handle on the cache \"a\" under version \"1\" finds nothing any more: the cache was opened under another version"
            + " or codec, or removed. Open it under its newest version."
        #expect(texts(.warning) == [text, text])
        try await manager.close()
        var events: [CacheEvent] = []
        for await event in manager.events { events.append(event) }
        #expect(events.filter { $0.kind == .superseded(version: "1") }.count == 2)
        #expect(newer.version.description == "2")
    }

    @Test func `the same failure of a handle has a line, and then one for each power of ten`() throws {
        let manager = try manager()
        let cache: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        let other: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        try manager.close()
        for key in 0..<600 { #expect(cache[key] == nil) }
        for key in 0..<600 { cache[key] = "x" }
        for _ in 0..<600 { #expect(Array(cache).isEmpty) }
        let text = "The cache \"a\" could not read the value of key \"0\". The store was closed. Open it again."
        #expect(texts(.error).count == 4 && texts(.error).first == text)
        for (text, count) in zip(texts(.error).dropFirst(), [10, 100, 1000]) {
            #expect(text.hasSuffix(" Open it again. This handle has met it \(count) times."))
        }
        #expect(other[1] == nil && texts(.error).count == 5, "another handle says it too")
        #expect(cache.statistics.failures == 1801)
    }

    @Test func `what concerns an entry has a line for each`() throws {
        let manager = try manager()
        let cache: Cache<Double, String> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        for _ in 0..<20 { cache[.nan] = "x" }
        #expect(texts(.error).count == 20)
    }

    @Test(arguments: [MaxAge.seconds(0), .seconds(-5)])
    func `a cache that is opened with an age of zero or less says so`(age: MaxAge) throws {
        let manager = try manager()
        let cache: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: age)
        cache[1] = "x"
        #expect(cache[1] == nil)
        let text =
            "The cache \"a\" was opened with the maximum age \(age), so its entries are expired at once. Use an age above zero,"
            + " unless that is meant."
        #expect(texts(.warning) == [text])
    }

    @Test func `an open without limits leaves those that the cache has, and one that changes them says so`() throws {
        let manager = try manager()
        var options = CacheOptions(memory: MemoryLimits(countLimit: 2), disk: DiskLimits(countLimit: 5))
        let cache: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .hours(1), options: options)
        let again: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        #expect(again.memory.countLimit == 2 && again.disk.limits == DiskLimits(countLimit: 5))
        for key in 0..<9 { cache[key] = "x" }
        #expect(try cache.count == 5)
        #expect(texts(.info) == [])
        options = CacheOptions(memory: MemoryLimits(countLimit: 3), disk: DiskLimits())
        let _: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .minutes(5), options: options)
        #expect(
            texts(.info) == [
                "The cache \"a\" is open, and another open has changed the maximum age from 1 hour to 5 minutes, the limits on disk"
                    + " from 5 entries to none, the limits in memory from 2 entries and 33554432 bytes to 3 entries and 33554432"
                    + " bytes."
            ])
        try manager.close()
        // The file has the limits for the next manager.
        let next = try place.manager()
        let reopened: Cache<Int, String> = try next.cache(named: "a", version: "1", maxAge: .hours(1))
        #expect(reopened.disk.limits == DiskLimits())
        try reopened.disk.setLimits(DiskLimits(countLimit: 7))
        let last = try place.manager()
        let unlimited: Cache<Int, String> = try last.cache(named: "a", version: "1", maxAge: .hours(1))
        #expect(unlimited.disk.limits == DiskLimits(countLimit: 7))
        let bumped: Cache<Int, String> = try last.cache(named: "a", version: "2", maxAge: .hours(1))
        #expect(bumped.disk.limits == DiskLimits(countLimit: 7))
    }

    @Test func `a purge names both versions, and an eviction its reason`() async throws {
        let manager = try manager()
        let options = CacheOptions(disk: DiskLimits(countLimit: 1))
        let old: Cache<Int, String> = try await manager.cache(named: "a", version: "1", maxAge: .hours(1))
        try await old.setValue("x", forKey: 1)
        let events = manager.events
        let cache: Cache<Int, String> = try await manager.cache(
            named: "a", version: "2", maxAge: .hours(1), options: options)
        try await cache.setValues([(1, "x"), (2, "y")])
        try await manager.close()
        var texts: [String] = []
        for await event in events { texts.append(event.message) }
        #expect(
            texts.contains(
                "The cache \"a\" was written under version \"1\" and opened under version \"2\", so its entries were purged."
            ))
        #expect(
            texts.contains(
                "The entry of key \"1\" in the cache \"a\" was evicted, because there were too many entries."))
    }

    @Test func `each sentence of a failure is said once`() throws {
        let manager = try manager()
        let cache: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        try manager.close()
        cache[1] = "x"
        let message = try #require(messages.all.last)
        let text = "The cache \"a\" could not set the value of key \"1\". The store was closed. Open it again."
        #expect(message.description == text && message.error?.description == "closed: " + text)
        let own = CacheError(.storageFull, "No room.", underlying: CacheError(.busy, "Somebody writes."))
        #expect(own.description == "storageFull: No room. (busy: Somebody writes.)" && own.code == .storageFull)
    }

    @Test func `the standard log hears warnings and errors, a line each, and a program can silence it`() throws {
        for isSilent in [false, true] {
            let child = try ChildProcess(
                "larder-test-peer", ["warn", place.folder("\(isSilent).sqlite").path, "\(isSilent)"],
                through: ["sh", "-c", "\"$0\" \"$@\" 2>&1"])
            let lines = try child.finish().lines
            let line =
                "larder: error: The cache \"a\" could not set the value of key \"1\". The store was closed. Open it again."
            #expect(lines == (isSilent ? [] : [line]))
        }
    }

    @Test func `messages say what the program has done`() throws {
        let manager = try manager()
        let cache: Cache<Int, String> = try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(disk: DiskLimits(sizeLimit: 100)))
        func message(_ call: () throws -> Void) -> String {
            do { try call() } catch { return (error as? CacheError)?.message ?? "\(error)" }
            return ""
        }
        #expect(
            message { try cache.setValue(String(repeating: "x", count: 200), forKey: 1) }
                == "The cache \"a\" could not set the value of key \"1\". The entry has 202 bytes, and the size limit of its cache is"
                + " 100 bytes. Raise the limit.")
        #expect(
            message { let _: Cache<String, Int> = try manager.cache(named: "a", version: "1", maxAge: .hours(1)) }
                == "The cache \"a\" is open in this manager with keys of type Int and values of type String, and not String and Int."
                + " Use the types that are open, release the handle that has them, or open another version.")
        #expect(
            message { try cache.update(1) { _ in try cache.setValue("x", forKey: 2) } }.hasSuffix(
                "The closure of an update or a transaction has made this call. Use what the closure is given, or call after it."
            ))
        #expect(
            message { _ = try cache.value(forKey: 1) { _ in try cache.value(forKey: 1) { _ in "x" } } }
                == "The closure that loads key \"1\" of cache \"a\" has asked for the same key, itself or through another load, and"
                + " would wait for itself. Return a value without asking for this key.")
    }

    @Test func `caches and managers describe themselves`() throws {
        let manager = try place.manager()
        #expect("\(manager)" == "CacheManager(\(place.url.path), no open caches)")
        let cache: Cache<Int, String> = try manager.cache(named: "a", version: 3, maxAge: .hours(1))
        cache[1] = "x"
        #expect("\(cache)" == "Cache(\"a\", version \"3\", 1 entry in memory, \(place.url.path))")
        #expect("\(manager)" == "CacheManager(\(place.url.path), open: \"a\")")
        try manager.close()
        #expect("\(manager)" == "CacheManager(\(place.url.path), closed)")
        let memory = try CacheManager.inMemory()
        #expect("\(memory)" == "CacheManager(in memory, no open caches)")
    }
}
