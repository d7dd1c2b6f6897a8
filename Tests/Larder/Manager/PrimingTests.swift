import Foundation
import Larder
import LarderStore
import LarderTestSupport
import LarderTesting
import Testing

/// Stores that begin as a copy of another one.
struct PrimingTests {
    private let bundle: TemporaryStore
    private let app: TemporaryStore
    /// The store in the bundle.
    private let baked: URL
    private static let large = String(repeating: "large ", count: 50_000)

    init() throws {
        let clock = ManualClock()
        bundle = try TemporaryStore(clock: clock)
        app = try TemporaryStore(clock: clock)
        baked = bundle.folder("Resources/Bundled.sqlite")
        let manager = try bundle.manager()
        let words = try Self.words(manager)
        try words.setValue("one", forKey: 1, extendedData: Data([7]), tags: ["odd"], pinned: true)
        words[2] = Self.large
        let old: Cache<Int, Int> = try manager.cache(named: "numbers", version: "1", maxAge: .days(1))
        old[1] = 1
        let numbers: Cache<Int, Int> = try manager.cache(named: "numbers", version: "2", maxAge: .days(1))
        numbers[2] = 2
        clock.advance(by: .seconds(60))
        _ = words[1]
        try manager.bake(to: baked)
        try manager.close()
    }

    private static func words(_ manager: CacheManager, version: CacheVersion = "1") throws -> Cache<Int, String> {
        try manager.cache(named: "words", version: version, maxAge: .unlimited)
    }

    private func open(_ priming: URL? = nil, _ events: Locked<[LogMessage]>? = nil) throws -> CacheManager {
        var configuration = app.clock.configuration
        configuration.log = { message in events?.change { $0.append(message) } }
        return try CacheManager(url: app.url, priming: priming ?? baked, configuration: configuration)
    }

    @Test func `a missing store begins with all that the other one has, and goes its own way then`() throws {
        let before = try bundle.folder.contents()
        let manager = try open()
        let words = try Self.words(manager)
        let entry = try #require(try words.entry(forKey: 1))
        #expect(entry.value == "one" && entry.extendedData == Data([7]))
        #expect(entry.metadata.tags == ["odd"] && entry.metadata.isPinned)
        #expect(words[2] == Self.large)
        #expect(try words.count == 2)
        let numbers: Cache<Int, Int> = try manager.cache(named: "numbers", version: "2", maxAge: .days(1))
        #expect(numbers[1] == nil && numbers[2] == 2)
        words[2] = nil
        words[3] = "three"
        try manager.maintain()
        #expect(try manager.store.verify().problems == [])
        try manager.close()
        let again = try Self.words(open())
        #expect(again[1] == "one" && again[2] == nil && again[3] == "three")
        #expect(try bundle.folder.contents() == before)
    }

    @Test func `the copy knows nothing of how the other one was used`() throws {
        let manager = try open()
        for info in try manager.cacheInfo() {
            #expect(info.activity.writes == 0 && info.lastOpener == nil)
            #expect(info.openedAt == Date(timeIntervalSince1970: 0))
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: bundle.folder("Resources").path)
        #expect(names.sorted() == ["Bundled.files", "Bundled.sqlite"])
        let metadata = try #require(try Self.words(manager).metadata(forKey: 1))
        #expect(metadata.accessedAt == metadata.writtenAt)
    }

    @Test func `a store that is there is not replaced, and one that was deleted begins again`() throws {
        let empty = try app.manager()
        try Self.words(empty)[5] = "own"
        try empty.close()
        let kept = try open()
        #expect(try Self.words(kept)[5] == "own" && Self.words(kept)[1] == nil)
        try kept.close()
        try CacheManager.deleteStore(at: app.url)
        #expect(try Self.words(open())[1] == "one")
    }

    @Test func `a store that is deleted while it is open does not become older than what was written to it`() throws {
        let manager = try open()
        let words = try Self.words(manager)
        words[1] = "newer"
        for name in try app.folder.names { try FileManager.default.removeItem(at: app.folder(name)) }
        #expect(words[1] != "one")
        // The first write after that finds out.
        for _ in 0..<2 { words[3] = "three" }
        #expect(words[3] == "three" && words[2] == nil)
    }

    @Test func `everyone may read a copy for a bundle, and it may be reached by links`() throws {
        func mode(_ name: String) throws -> Int? {
            let path = bundle.folder(name).path
            return try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode("Resources/Bundled.sqlite") == 0o644 && mode("Resources/Bundled.files") == 0o755)
        let link = bundle.folder("link.sqlite")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: baked)
        let words = try Self.words(open(link))
        #expect(words[1] == "one" && words[2] == Self.large)
    }

    @Test func `a version that the copy does not have finds nothing`() throws {
        let words = try Self.words(open(), version: "2")
        #expect(words[1] == nil)
        #expect(try words.count == 0)
    }

    @Test func `one that is missing, damaged, incomplete or no store is reported, and the new one is empty`()
        async throws
    {
        let file = bundle.folder("other.sqlite")
        let whole = try Data(contentsOf: baked)
        var damaged = whole
        damaged.replaceSubrange(8192..<16_384, with: Data(repeating: 0xA5, count: 8192))
        let cases: [(content: Data?, reason: String)] = [
            (nil, "is missing"), (Data("text".utf8), "is no store"), (damaged, "is damaged"), (Data(), "is no store"),
            (whole.prefix(5000), "is damaged"),
        ]
        for (content, reason) in cases {
            try? FileManager.default.removeItem(at: file)
            try content?.write(to: file)
            let messages = Locked<[LogMessage]>([])
            let manager = try open(file, messages)
            var events = manager.events.makeAsyncIterator()
            let event = await events.next()
            #expect(event?.kind == .notPrimed(file), "\(reason)")
            #expect(event?.message.contains(reason) == true, "\(event?.message ?? "")")
            #expect(messages.value.filter { $0.level == .warning }.count == 1)
            let words = try Self.words(manager)
            #expect(Array(words).isEmpty)
            try await words.setValue("works", forKey: 1)
            try await manager.close()
            try await CacheManager.deleteStore(at: app.url)
            #expect(try app.folder.contents().isEmpty)
        }
        try whole.write(to: file)
        try Data(repeating: 1, count: 100).write(to: URL(fileURLWithPath: file.path + "-wal"))
        let manager = try open(file)
        var events = manager.events.makeAsyncIterator()
        #expect(await events.next()?.message.contains("Make it with “larder bake”") == true)
    }

    @Test func `a value file that the other one lacks is a miss`() throws {
        let files = bundle.folder("Resources/Bundled.files")
        for name in try FileManager.default.contentsOfDirectory(atPath: files.path) {
            try FileManager.default.removeItem(at: files.appendingPathComponent(name))
        }
        let words = try Self.words(open())
        #expect(words[1] == "one" && words[2] == nil)
    }

    @Test func `a copy replaces no file, and a closed store and one in memory have none`() throws {
        let manager = try bundle.manager()
        #expect(throws: CacheError.self) { try manager.bake(to: baked) }
        try manager.close()
        let other = bundle.folder("other.sqlite")
        #expect(throws: CacheError.self) { try manager.bake(to: other) }
        #expect(throws: CacheError.self) { try CacheManager.inMemory().bake(to: other) }
        #expect(try bundle.folder.names.filter { $0.hasPrefix("other") } == [])
    }

    @Test func `a store that is only read cannot begin as a copy`() throws {
        var configuration = app.clock.configuration
        configuration.access = .readOnly
        let error = #expect(throws: CacheError.self) {
            try CacheManager(url: app.url, priming: baked, configuration: configuration)
        }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func `the other one can be read where it is, in a folder that may not be written`() throws {
        let folder = bundle.folder("Resources").path
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: folder)
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder) }
        let manager = try CacheManager(
            url: baked, configuration: .init(clock: { [clock = app.clock] in clock.now }, access: .readOnly))
        let words = try Self.words(manager)
        #expect(words[1] == "one" && words[2] == Self.large)
    }

    @Test func `two managers that open at once begin with one copy`() async throws {
        let managers = try await withThrowingTaskGroup(of: CacheManager.self) { group in
            for _ in 0..<4 {
                group.addTask { [app, baked] in
                    try await CacheManager.open(url: app.url, priming: baked, configuration: app.clock.configuration)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        for manager in managers { #expect(try Self.words(manager)[1] == "one") }
        #expect(try app.folder.names.filter { $0.contains("unfinished") || $0.contains("damaged") } == [])
    }
}
