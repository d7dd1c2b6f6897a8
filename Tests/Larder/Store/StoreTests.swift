import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

struct StoreTests {
    private let place: StorePlace
    private var url: URL { place.url }

    init() throws { place = try StorePlace() }

    private func logSize() throws -> Int { try place.folder("store.sqlite-wal").fileSize() }

    private let wide = String(repeating: "x", count: 3000)

    // case 290
    @Test func `a batch that fails leaves nothing, and the next one works`() throws {
        let manager = try CacheManager(url: url)
        let store = try manager.store()
        let error = #expect(throws: CacheError.self) {
            try store.write { (connection) throws(SQLiteError) in
                try connection.insertRow(named: "a")
                try connection.insertRow(named: "a")
            }
        }
        #expect(error?.sqliteCode == 2067)
        #expect(try store.rowCount() == 0)
        try store.insertRow(named: "a")
        #expect(try store.rowCount() == 1)
        #expect(store.isIdle)
    }

    @Test func `the log is copied in the background, and stays bounded beside a reader that never pauses`() throws {
        let manager = try place.manager()
        let store = try manager.store()
        var largest = 0
        for row in 0..<4000 {
            try store.insertRow(named: "\(wide) \(row)")
            #expect(try store.rowCount() == row + 1)
            place.time.advance(by: .microseconds(1))
            if row % 100 == 0 { largest = max(largest, try logSize()) }
        }
        // 4,000 rows of a page each, and as many in the index: without checkpoints more than 32 MB.
        #expect(largest < 3 * Database.checkpointPages * Connection.pageSize)
    }

    // case 282
    @Test(arguments: [false, true])
    func `a reader in use does not hold up the log of others for longer than a second, or while its app is suspended`(
        isSuspended: Bool
    ) throws {
        let manager = try place.manager()
        let store = try manager.store()
        try store.insertRow(named: "a")
        // The second read keeps its transaction open.
        for _ in 0..<2 { #expect(try store.rowCount() == 1) }
        // Another process's view of the same file.
        var other = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
        var guardian = try Connection.open(.file(url.path), .init(role: .guardian, busyMilliseconds: 0))
        try other.insertRow(named: "b")
        #expect(try other.checkpoint(guardedBy: &guardian)?.isComplete == false)
        // Time stands still for a process that is suspended.
        if isSuspended { store.enterBackground() } else { place.time.advance(by: .seconds(1)) }
        #expect(try other.checkpoint(guardedBy: &guardian)?.isComplete == true)
        if isSuspended { place.time.advance(by: .seconds(1)) }
        #expect(place.time.pendingCount == 0)
        #expect(try store.rowCount() == 2)
    }

    /// The locks on the log's index that keep others from something: SQLite's bytes 120 to 127.
    private func logLocks() throws -> [String] {
        let path = url.path + "-shm"
        let inode = try #require(try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int)
        // Foundation reads no more of it than fits a page.
        let list = try #require(try FileSystem.contents("/proc/locks"))
        return String(decoding: list, as: UTF8.self).split(separator: "\n").filter { line in
            let words = line.split(separator: " ")
            guard words.count >= 8, words[1] == "POSIX", words[5].hasSuffix(":\(inode)") else { return false }
            return (120..<128).contains(Int(words[6]) ?? -1)
        }.map(String.init)
    }

    @Test(.enabled(if: FileManager.default.isReadableFile(atPath: "/proc/locks"), "the system lists no locks"))
    func `who neither reads nor writes holds no lock that others wait for`() throws {
        let manager = try place.manager()
        let store = try manager.writableStore()
        try store.insertRow(named: "a")
        #expect(try logLocks() == [])
        // The second read of a connection keeps its transaction open. The list is made while others come and go, so it may
        // leave one out.
        try Waiting.until {
            #expect(try store.rowCount() == 1)
            return try !logLocks().isEmpty
        }
        place.time.advance(by: .seconds(1))
        #expect(try logLocks() == [])
        try store.checkpoint()
        try manager.maintain()
        #expect(try logLocks() == [])
        // Nor the one of those who open.
        #expect(try FileSystem.withLock(url.path + ".lock", waiting: 0) { true } == true)
    }

    @Test func `rows that another connection commits are seen by the next read`() throws {
        let manager = try CacheManager(url: url)
        let store = try manager.store()
        #expect(try store.rowCount() == 0)
        var other = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
        for count in 1...50 {
            try other.insertRow(named: "\(count)")
            #expect(try store.rowCount() == count)
        }
    }

    @Test func `nothing waits for its time while nobody reads`() throws {
        let manager = try place.manager()
        for row in 0..<10 { try manager.store().insertRow(named: "\(row)") }
        for _ in 0..<2 { _ = try manager.store().rowCount() }
        // What still waits for its time comes to its end.
        try Waiting.until {
            place.time.advance(by: .seconds(60))
            return place.time.pendingCount == 0
        }
        try Waiting.until { try manager.store().isIdle }
        place.time.advance(by: .seconds(86_400))
        #expect(place.time.pendingCount == 0)
    }

    @Test func `a store that could not be opened again is opened by a later call`() throws {
        let deep = place.folder.url.appendingPathComponent("gone/store.sqlite")
        let manager = try CacheManager(url: deep)
        let store = try manager.store()
        try store.insertRow(named: "a")
        // The folder goes, and a file is in its place: opening again is impossible.
        try FileManager.default.removeItem(at: deep.deletingLastPathComponent())
        try Data().write(to: deep.deletingLastPathComponent())
        for _ in 0..<2 {
            let error = #expect(throws: CacheError.self) { try store.insertRow(named: "b") }
            #expect(error?.code == .storageUnavailable)
        }
        try FileManager.default.removeItem(at: deep.deletingLastPathComponent())
        try store.insertRow(named: "b")
        #expect(try store.rowCount() == 1)
    }

    @Test func `threads that read, write and checkpoint at once get what they are owed`() throws {
        let manager = try CacheManager(url: url)
        let store = try manager.store()
        let errors = errors(ofThreads: 8) { thread in
            for row in 0..<100 {
                switch thread {
                case 0: try store.checkpoint()
                case 1..<4: try store.insertRow(named: "\(thread) \(row)")
                default: _ = try store.rowCount()
                }
            }
        }
        #expect(errors == [])
        #expect(try store.rowCount() == 300)
    }
}
