import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

struct OpeningTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    private func failure(_ url: URL, _ configuration: CacheManager.Configuration = .init()) -> CacheError? {
        #expect(throws: CacheError.self) { try CacheManager(url: url, configuration: configuration) }
    }

    // case 96
    @Test func `a missing folder is made, for its owner alone, and so are the files`() throws {
        let deep = folder.url.appendingPathComponent("a/b/store.sqlite")
        let manager = try CacheManager(url: deep)
        #expect(manager.url?.path == deep.path)
        let files = try FileManager.default.contentsOfDirectory(atPath: deep.deletingLastPathComponent().path).sorted()
        #expect(files == ["store.sqlite", "store.sqlite-shm", "store.sqlite-wal", "store.sqlite.lock"])
        for file in files {
            let path = deep.deletingLastPathComponent().appendingPathComponent(file).path
            #expect(try mode(path) == 0o600, "\(file)")
        }
        #expect(try mode(folder.url.appendingPathComponent("a").path) == 0o700)
        #expect(try mode(folder.url.appendingPathComponent("a/b").path) == 0o700)
    }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func `what was written is there after closing and opening`() throws {
        let first = try CacheManager(url: url)
        try first.store().insertRow(named: "kept")
        try first.close()
        let second = try CacheManager(url: url)
        #expect(try second.store().rowCount() == 1)
        try Waiting.until { try second.store().isIdle }
    }

    // case 100
    @Test func `a closed manager says so, and closing twice is harmless`() async throws {
        let manager = try CacheManager(url: url)
        try await manager.close()
        #expect(throws: CacheError.self) { try manager.store() }
        do {
            _ = try manager.writableStore()
            Issue.record("a closed manager gave its store away")
        } catch {
            #expect(error.code == .closed)
        }
        try await manager.close()
        try { try manager.close() }()
    }

    @Test func `what began before closing says so too`() throws {
        let manager = try CacheManager(url: url)
        let store = try manager.store()
        try manager.close()
        let error = #expect(throws: CacheError.self) { try store.rowCount() }
        #expect(error?.code == .closed)
        #expect(try rowWriting(store)?.code == .closed)
    }

    private func rowWriting(_ store: Store) throws -> CacheError? {
        do throws(CacheError) {
            try store.insertRow(named: "x")
            return nil
        } catch {
            return error
        }
    }

    @Test func `no descriptor is left when the last manager has closed`() throws {
        let before = try openFiles()
        for _ in 0..<20 {
            let manager = try CacheManager(url: url)
            try manager.store().insertRow(named: UUID().uuidString)
            #expect(try manager.store().rowCount() > 0)
            try manager.store().checkpoint()
            try manager.close()
        }
        #expect(try openFiles() == before)
    }

    /// Where descriptors of this process lead in our folder.
    private func openFiles() throws -> [String] { try OpenFiles.paths { $0.hasPrefix(folder.url.path) } }

    @Test func `two spellings of a name are two files, two stores and two sets`() throws {
        let (composed, decomposed) = (folder("\u{e9}.sqlite"), folder("e\u{301}.sqlite"))
        let (a, b) = (try CacheManager(url: composed), try CacheManager(url: decomposed))
        #expect(try a.store() !== b.store())
        try a.store().insertRow(named: "only in the first")
        #expect(try b.store().rowCount() == 0)
        #expect(try folder.names.count { $0.hasSuffix(".sqlite") } == 2)
    }

    // case 305
    @Test(arguments: [
        "", ".", "..", "a/b", "../x", "/etc/x", "a\0b", String(repeating: "n", count: 181), "..\u{2F}\u{301}x",
    ])
    func `a name that cannot name a file is refused`(name: String) {
        let error = #expect(throws: CacheError.self) { try CacheManager(name: name) }
        #expect(error?.code == .invalidName)
    }

    @Test(arguments: ["emoji 🐻‍❄️", "ünïcode", "a b", "%2e%2e", "dots.in.it", "-", "a\\b", "new\nline"])
    func `any other name works`(name: String) throws {
        let manager = try CacheManager(url: folder(name + ".sqlite"))
        try manager.close()
        #expect(try folder.names.contains(name + ".sqlite"))
    }

    @Test func `a URL that is no file's is refused`() throws {
        let error = failure(try #require(URL(string: "https://example.com/store.sqlite")))
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func `a negative timeout is refused`() {
        var configuration = CacheManager.Configuration()
        configuration.busyTimeout = .seconds(-1)
        #expect(failure(url, configuration)?.code == .invalidConfiguration)
        configuration.busyTimeout = .seconds(Int64.max)
        #expect(throws: Never.self) { try CacheManager(url: url, configuration: configuration) }
    }

    // case 313
    @Test func `a path that is a folder, a link or a device is refused and left alone`() throws {
        try FileManager.default.createDirectory(at: folder("folder.sqlite"), withIntermediateDirectories: false)
        #expect(failure(folder("folder.sqlite"))?.code == .storageUnavailable)
        try Data("precious".utf8).write(to: folder("real"))
        try FileManager.default.createSymbolicLink(at: folder("link.sqlite"), withDestinationURL: folder("real"))
        #expect(failure(folder("link.sqlite"))?.code == .storageUnavailable)
        #expect(try Data(contentsOf: folder("real")) == Data("precious".utf8))
        #expect(failure(URL(fileURLWithPath: "/dev/null"))?.code == .storageUnavailable)
        #expect(try folder.names == ["folder.sqlite", "link.sqlite", "real"])
    }

    @Test func `a folder that is a file is an error that says so`() throws {
        try Data().write(to: folder("file"))
        let error = failure(folder.url.appendingPathComponent("file/store.sqlite"))
        #expect(error?.code == .storageUnavailable)
        #expect(error?.message.contains("not a folder") == true)
    }

    @Test func `without shared memory for the log the place is refused, and nothing is deleted`() throws {
        // SQLite's own layer without locks and shared memory stands in for a network volume.
        var configuration = CacheManager.Configuration()
        configuration.vfs = "unix-none"
        let error = failure(url, configuration)
        #expect(error?.code == .storageUnavailable)
        #expect(error?.message.contains("share memory") == true)
        #expect(throws: Never.self) { try CacheManager(url: url) }
    }

    @Test(arguments: [CacheManager.Durability.processCrash, .powerLoss])
    func `durability is the writer's way of waiting for the disk`(durability: CacheManager.Durability) throws {
        var configuration = CacheManager.Configuration()
        configuration.durability = durability
        let manager = try CacheManager(url: url, configuration: configuration)
        let synchronous = try manager.store().write { (connection) throws(SQLiteError) in
            try connection.pragma("synchronous")
        }
        #expect(synchronous == (durability == .powerLoss ? 2 : 1))
    }

    @Test func `a listener that comes after the closing is not kept waiting`() async throws {
        let manager = try CacheManager(url: url)
        try await manager.close()
        for await event in manager.steadyEvents { Issue.record("\(event)") }
    }

    // case 74
    @Test func `with too many files open nothing is deleted, and closing some makes it work again`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        let lines = try ChildProcess("larder-test-store", ["open-without-descriptors", url.path]).finish().lines
        #expect(lines == ["error storageUnavailable", "error storageUnavailable", "rows 1"])
        #expect(try folder.names == ["store.sqlite", "store.sqlite-shm", "store.sqlite-wal", "store.sqlite.lock"])
    }

    @Test func `in memory nothing is written, and two stores share nothing`() throws {
        let (a, b) = (try CacheManager.inMemory(), try CacheManager.inMemory())
        #expect(a.url == nil)
        try a.store().insertRow(named: "mine")
        #expect(try a.store().rowCount() == 1)
        #expect(try b.store().rowCount() == 0)
        try a.close()
        #expect(throws: CacheError.self) { try a.store() }
    }

    #if os(Linux)
    @Test func `a named store is in the caches folder`() throws {
        let caches = folder.url.appendingPathComponent("caches").path
        for environment in [["XDG_CACHE_HOME": caches], ["XDG_CACHE_HOME": "", "HOME": folder.url.path]] {
            let child = try ChildProcess("larder-test-store", ["open-named", "My App"], environment: environment)
            let expected = environment["HOME"] == nil ? caches : folder.url.path + "/.cache"
            #expect(try child.finish().lines == [expected + "/My App.sqlite"])
            #expect(FileManager.default.fileExists(atPath: expected + "/My App.sqlite"))
        }
    }
    #endif

    @Test func `the caches folder follows the XDG rules`() throws {
        #expect(try CachesFolder.path(environment: ["XDG_CACHE_HOME": "/x", "HOME": "/h"], home: "/p") == "/x")
        #expect(try CachesFolder.path(environment: ["XDG_CACHE_HOME": "", "HOME": "/h"], home: "/p") == "/h/.cache")
        #expect(try CachesFolder.path(environment: ["XDG_CACHE_HOME": "rel", "HOME": "/h"], home: "/p") == "/h/.cache")
        #expect(try CachesFolder.path(environment: [:], home: "/p") == "/p/.cache")
        // case 306
        for home in ["", "/"] {
            let error = #expect(throws: CacheError.self) { try CachesFolder.path(environment: [:], home: home) }
            #expect(error?.code == .storageUnavailable)
        }
    }

    @Test func `a SQLite that is older than ours may be is an error that touches nothing`() throws {
        var configuration = CacheManager.Configuration()
        configuration.libraryVersion = 3_036_999
        let error = #expect(throws: CacheError.self) { try CacheManager(url: url, configuration: configuration) }
        #expect(error?.code == .storageUnavailable && error?.message.contains("3.37") == true)
        #expect(throws: CacheError.self) { try CacheManager.inMemory(configuration: configuration) }
        #expect(try folder.names == [])
        configuration.libraryVersion = 3_037_000
        try CacheManager(url: url, configuration: configuration).close()
    }
}
