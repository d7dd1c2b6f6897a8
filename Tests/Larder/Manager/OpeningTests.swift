import Foundation
import Larder
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

struct OpeningTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    private func cache(_ manager: CacheManager) throws -> Cache<Int, String> {
        try manager.cache(named: "a", version: "1", maxAge: .unlimited)
    }

    // MARK: Names and paths

    @Test(arguments: [
        "", ".", "..", "a/b", "../x", "/etc/x", "a\0b", String(repeating: "n", count: 181), "..\u{2F}\u{301}x",
    ])
    func `a name that cannot be the name of a file is refused`(name: String) {
        expectError(.invalidName) { try CacheManager(name: name) }
    }

    @Test(arguments: ["emoji 🐻‍❄️", "ünïcode", "a b", "%2e%2e", "dots.in.it", "-", "a\\b", "new\nline"])
    func `a store can have any other name, and is found again by it`(name: String) throws {
        let url = folder(name + ".sqlite")
        let first = try CacheManager(url: url)
        try cache(first).setValue(name, forKey: 1)
        try first.close()
        #expect(try folder.names.contains(name + ".sqlite"))
        #expect(try cache(CacheManager(url: url))[1] == name)
    }

    @Test func `a missing folder is created, and the manager has the URL of its file`() throws {
        let deep = folder.url.appendingPathComponent("a/b/store.sqlite")
        let manager = try CacheManager(url: deep)
        #expect(manager.url?.path == deep.path)
        #expect(FileManager.default.fileExists(atPath: deep.path))
    }

    @Test func `two spellings of a name are two stores`() throws {
        let (first, second) = (
            try CacheManager(url: folder("\u{e9}.sqlite")), try CacheManager(url: folder("e\u{301}.sqlite"))
        )
        try cache(first).setValue("one", forKey: 1)
        #expect(try cache(second)[1] == nil && cache(first)[1] == "one")
        #expect(try folder.names.count { $0.hasSuffix(".sqlite") } == 2)
    }

    @Test func `a URL of something other than a file is refused`() throws {
        let web = try #require(URL(string: "https://example.com/store.sqlite"))
        expectError(.invalidConfiguration) { try CacheManager(url: web) }
    }

    @Test func `the folder of caches follows the XDG rules`() throws {
        #expect(try CachesFolder.path(environment: ["XDG_CACHE_HOME": "/x", "HOME": "/h"], home: "/p") == "/x")
        #expect(try CachesFolder.path(environment: ["XDG_CACHE_HOME": "", "HOME": "/h"], home: "/p") == "/h/.cache")
        #expect(try CachesFolder.path(environment: ["XDG_CACHE_HOME": "rel", "HOME": "/h"], home: "/p") == "/h/.cache")
        #expect(try CachesFolder.path(environment: [:], home: "/p") == "/p/.cache")
        for home in ["", "/"] {
            expectError(.storageUnavailable) { try CachesFolder.path(environment: [:], home: home) }
        }
    }

    // MARK: The configuration

    @Test func `a negative timeout is refused, and a very long one is not`() throws {
        expectError(.invalidConfiguration) {
            try CacheManager(url: url, configuration: .init(busyTimeout: .seconds(-1)))
        }
        #expect(try folder.names == [])
        try CacheManager(url: url, configuration: .init(busyTimeout: .seconds(Int64.max))).close()
    }

    @Test(arguments: [(CacheManager.Durability.processCrash, Int64(1)), (.powerLoss, 2)])
    func `the durability decides whether a commit waits for the disk`(
        durability: CacheManager.Durability, synchronous: Int64
    ) throws {
        let manager = try CacheManager(url: url, configuration: .init(durability: durability))
        #expect(try manager.store.transaction { try $0.connection.pragma("synchronous") } == synchronous)
    }

    @Test func `stores in memory have no file, and share nothing`() throws {
        let (first, second) = (try CacheManager.inMemory(), try CacheManager.inMemory())
        #expect(first.url == nil)
        try cache(first).setValue("one", forKey: 1)
        #expect(try cache(first).disk.value(forKey: 1) == "one" && cache(second).disk.value(forKey: 1) == nil)
        try first.close()
        expectError(.closed) { try cache(first) }
    }

    @Test func `a stream of events that begins after the close ends at once`() async throws {
        let manager = try CacheManager(url: url)
        try await manager.close()
        for await event in manager.steadyEvents { Issue.record("\(event)") }
    }
}
