import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

struct RecoveryTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    /// A store with `rows` rows, all of them in the main file, and without a log.
    private func makeWithoutLog(rows: Int = 2000) throws {
        try make(rows: rows)
        try url.removeLog()
    }

    private func make(rows: Int) throws {
        let manager = try CacheManager(url: url)
        try manager.store().write { (connection) throws(SQLiteError) in
            for row in 0..<rows { try connection.insertRow(named: "a rather long name of row \(row)") }
        }
        try manager.store().checkpoint()
        try manager.close()
    }

    /// Overwrites everything but the mark that makes the database ours.
    private func destroy() throws {
        try url.overwrite(with: Data(repeating: 0x78, count: try url.fileSize()))
        try url.overwrite(at: 68, with: Array("Lrdr".utf8))
    }

    private func setAside() throws -> [String] {
        try folder.names.filter { $0.hasPrefix("store.sqlite.corrupt") }
    }

    /// The databases themselves among what was set aside.
    private func databasesSetAside() throws -> [String] {
        try setAside().filter { $0.wholeMatch(of: /.*corrupt-[0-9]+-[0-9a-f]{8}/) != nil }
    }

    private func configuration(_ recovery: CacheManager.Recovery) -> CacheManager.Configuration {
        var configuration = CacheManager.Configuration()
        configuration.recovery = recovery
        return configuration
    }

    /// Writes a row to a store whose files were moved away; how many rows that adds, since such a write may fail, once.
    private func insertRowAfterMove(_ store: Store) throws -> Int {
        do throws(CacheError) {
            try store.insertRow(named: "after the move")
            return 1
        } catch {
            #expect(error.code == .storageUnavailable)
            return 0
        }
    }

    @Test(arguments: [1, 10, 5000, 1_000_000])
    func `text in place of the database is set aside and never deleted`(length: Int) throws {
        let text = Data(repeating: UInt8(ascii: "x"), count: length)
        try text.write(to: url)
        let error = #expect(throws: CacheError.self) {
            try CacheManager(url: url, configuration: configuration(.fail))
        }
        #expect(error?.code == .corrupt)
        #expect(try Data(contentsOf: url) == text)

        let manager = try CacheManager(url: url)
        try manager.store().insertRow(named: "works")
        try manager.close()
        let kept = try #require(try setAside().first)
        #expect(try Data(contentsOf: folder(kept)) == text)
        // Further damage does not push out what never was ours.
        for _ in 0..<3 {
            try url.overwrite(with: Array(repeating: 120, count: 16))
            try url.removeLog()
            try CacheManager(url: url).close()
        }
        #expect(try Data(contentsOf: folder(kept)) == text)
        #expect(try setAside().filter { !$0.contains("-wal") && !$0.contains("-shm") }.count == 2)
    }

    // case 285
    @Test func `log, index and files go with the main file, and an event says so`() async throws {
        try make(rows: 10)
        let spilled = folder.url.appendingPathComponent("store.files/ab", isDirectory: true)
        try FileManager.default.createDirectory(at: spilled, withIntermediateDirectories: true)
        try Data("large".utf8).write(to: spilled.appendingPathComponent("value"))
        try FileManager.default.removeItem(at: folder("store.sqlite-wal"))
        try destroy()

        let manager = try CacheManager(url: url)
        #expect(try manager.store().rowCount() == 0)
        let main = try #require(try databasesSetAside().first)
        #expect(try setAside().contains(main + "-shm"))
        #expect(try setAside().contains(main + ".files"))
        let value = folder.url.appendingPathComponent(main + ".files/ab/value")
        #expect(try Data(contentsOf: value) == Data("large".utf8))
        #expect(try !folder.names.contains("store.files"))

        var events = manager.steadyEvents.makeAsyncIterator()
        guard case .recovered(let place) = await events.next()?.kind else {
            Issue.record("the first event is not the recovery")
            return
        }
        #expect(place.path == folder(main).path)
    }

    @Test(arguments: [50, 4096, 20_000])
    func `a truncated file is set aside at the opening or when the damage is met`(length: Int) throws {
        try makeWithoutLog()
        try url.cut(to: length)
        let manager = try CacheManager(url: url)
        #expect(try manager.store().rowCount() == 0)
        try manager.store().insertRow(named: "works")
        #expect(try manager.store().rowCount() == 1)
        #expect(try setAside().count >= 1)
    }

    @Test func `a header of zeros is damage, another mark is another's file`() throws {
        try makeWithoutLog(rows: 1)
        try url.overwrite(at: 68, with: [1, 2, 3, 4])
        let foreign = #expect(throws: CacheError.self) { try CacheManager(url: url) }
        #expect(foreign?.code == .foreignFile)
        try url.overwrite(with: Array(repeating: 0, count: 100))
        let manager = try CacheManager(url: url)
        try manager.store().insertRow(named: "works")
        #expect(try setAside().count == 1)
    }

    // case 284
    @Test func `a damaged page that a read meets later is answered by a new store, once`() throws {
        try makeWithoutLog()
        // Everything behind the schema; the opening reads only that.
        let manager = try CacheManager(url: url)
        try url.overwritePagesBehindSchema()
        let store = try manager.store()
        #expect(try store.rowCount() == 0)
        #expect(try setAside().contains { $0.hasSuffix("-wal") })
        try store.insertRow(named: "after")
        #expect(try store.rowCount() == 1)
        try manager.close()
        #expect(try CacheManager.rowCount(at: url) == 1)
        #expect(try databasesSetAside().count == 1)
    }

    @Test func `a damaged page that a write meets costs at most that write and the entries of the page`() throws {
        let sample = try SampleStore(at: url, count: 300)
        let (page, onPage) = try sample.leaf()
        let written = try #require(onPage.min { ($0.name, $0.key) < ($1.name, $1.key) })
        let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
        let cache = try SampleStore.cache(manager, written.name)
        try url.overwritePage(page)
        let value = SampleStore.value(written.name, written.key)
        // The write that meets it may fail, once.
        do { try cache.setValue(value, forKey: written.key) } catch {}
        try cache.setValue(value, forKey: written.key)
        let (missing, wrong) = try sample.check(manager)
        #expect(wrong.isEmpty)
        #expect(missing.isSubset(of: onPage.subtracting([written])))
    }

    @Test func `a damaged page under the policy to fail is an error that changes nothing`() throws {
        try makeWithoutLog()
        let manager = try CacheManager(url: url, configuration: configuration(.fail))
        try url.overwritePagesBehindSchema()
        for _ in 0..<2 {
            let error = #expect(throws: CacheError.self) { try manager.store().rowCount() }
            #expect(error?.code == .corrupt)
            #expect(error?.sqliteCode.map { $0 & 0xff } == 11)
        }
        #expect(try setAside() == [])
    }

    @Test func `missing tables are damage`() throws {
        try make(rows: 1)
        do {
            var connection = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
            try connection.execute("DROP TABLE entry")
        }
        #expect(try CacheManager.rowCount(at: url) == 1)
        #expect(try setAside().count >= 1)
    }

    @Test func `of the sets that were ours the newest is kept, and other files are not touched`() throws {
        for name in ["store.sqlite.corrupt-old", "store.sqlite.corrupt-1", "store.sqlite.corrupt"] {
            try Data(name.utf8).write(to: folder(name))
        }
        var last: [String] = []
        for _ in 0..<3 {
            try make(rows: 10)
            try FileManager.default.removeItem(at: folder("store.sqlite-wal"))
            try destroy()
            try CacheManager(url: url).close()
            let sets = try databasesSetAside()
            #expect(sets.count == 1)
            #expect(sets != last)
            last = sets
        }
        for name in ["store.sqlite.corrupt-old", "store.sqlite.corrupt-1", "store.sqlite.corrupt"] {
            #expect(try Data(contentsOf: folder(name)) == Data(name.utf8))
        }
    }

    @Test func `a file that is put in the place of an open one is not given the old one's log`() throws {
        let backup = folder("backup.sqlite")
        try CacheManager.makeStore(at: backup, rows: 7)
        try backup.removeLog()
        let manager = try CacheManager(url: url)
        let store = try manager.store()
        for row in 0..<300 { try store.insertRow(named: "old \(row)") }
        #expect(rename(backup.path, url.path) == 0)
        let count = try 7 + insertRowAfterMove(store)
        try store.insertRow(named: "new")
        #expect(try store.rowCount() == count + 1)
        try manager.close()
        #expect(try CacheManager.rowCount(at: url) == count + 1)
    }

    @Test func `a file cut to nothing beside its log is damage, and nothing is deleted`() throws {
        do {
            var manager: CacheManager? = try CacheManager(url: url)
            for row in 0..<50 { try manager?.store().insertRow(named: "\(row)") }
            manager = nil
        }
        var writer = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
        try writer.insertRow(named: "in the log")
        let log = try Data(contentsOf: folder("store.sqlite-wal"))
        try url.cut(to: 0)
        let manager = try CacheManager(url: url)
        try manager.store().insertRow(named: "works")
        let kept = try #require(try setAside().first { $0.hasSuffix("-wal") })
        #expect(try Data(contentsOf: folder(kept)) == log)
    }

    @Test func `an older set that cannot be deleted is no reason not to open`() async throws {
        for round in 0..<2 {
            try make(rows: 10)
            let files = folder.url.appendingPathComponent("store.files").path
            try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
            // A name that is no text.
            let descriptor = open(Array((files + "/").utf8).map(CChar.init) + [-1, -2, 0], O_CREAT | O_WRONLY, 0o600)
            #expect(descriptor >= 0)
            close(descriptor)
            try FileManager.default.removeItem(at: folder("store.sqlite-wal"))
            try destroy()
            let manager = try CacheManager(url: url)
            #expect(try manager.store().rowCount() == 0, "round \(round)")
        }
        #expect(try setAside().count { $0.hasSuffix(".files") } == 1)
    }

    @Test func `what a crash left beside a missing database does not get into the new one`() throws {
        try make(rows: 5)
        do {
            var connection = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
            try connection.insertRow(named: "in the log")
        }
        // A crash between the moves: the database is gone, its log is not.
        try FileManager.default.moveItem(at: url, to: folder("elsewhere"))
        let manager = try CacheManager(url: url)
        #expect(try manager.store().rowCount() == 0)
        #expect(try setAside().contains { $0.hasSuffix("-wal") })
    }

    // cases 97, 296
    @Test func `a folder deleted under a live manager loses no acknowledged write`() throws {
        let deep = folder.url.appendingPathComponent("gone/store.sqlite")
        let manager = try CacheManager(url: deep)
        try manager.store().insertRow(named: "lost with the folder")
        try FileManager.default.removeItem(at: deep.deletingLastPathComponent())
        let count = try insertRowAfterMove(manager.store())
        try manager.store().insertRow(named: "acknowledged")
        #expect(try manager.store().rowCount() == count + 1)
        try manager.close()
        #expect(try CacheManager.rowCount(at: deep) == count + 1)
    }

    @Test func `a reader that opens after the folder was deleted reads the new store`() throws {
        let deep = folder.url.appendingPathComponent("gone/store.sqlite")
        let manager = try CacheManager(url: deep)
        try FileManager.default.removeItem(at: deep.deletingLastPathComponent())
        #expect(try manager.store().rowCount() == 0)
        #expect(FileManager.default.fileExists(atPath: deep.path))
    }
}
