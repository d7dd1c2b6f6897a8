import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Synchronization
import Testing

struct StoreTests {
    let folder: TemporaryFolder
    let url: URL
    let time = ManualTime()

    init() throws {
        folder = try TemporaryFolder()
        url = folder("store.sqlite")
    }

    private func logSize() throws -> Int {
        try (FileManager.default.attributesOfItem(atPath: url.path + "-wal")[.size] as? Int) ?? 0
    }

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
        let manager = try CacheManager(url: url, configuration: time.configuration)
        let store = try manager.store()
        var largest = 0
        for row in 0..<4000 {
            try store.insertRow(named: "\(wide) \(row)")
            #expect(try store.rowCount() == row + 1)
            time.advance(by: .microseconds(1))
            if row % 100 == 0 { largest = max(largest, try logSize()) }
        }
        // 4,000 rows of a page each, and as many in the index: without checkpoints more than 32 MB.
        #expect(largest < 3 * Database.checkpointPages * Connection.pageSize)
    }

    @Test func `a reader in use does not hold up the log of others for longer than a second`() throws {
        let manager = try CacheManager(url: url, configuration: time.configuration)
        let store = try manager.store()
        try store.insertRow(named: "a")
        // The second read keeps its transaction open.
        for _ in 0..<2 { #expect(try store.rowCount() == 1) }
        // Another process's view of the same file.
        var other = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
        var guardian = try Connection.open(.file(url.path), .init(role: .guardian, busyMilliseconds: 0))
        try other.insertRow(named: "b")
        #expect(try other.checkpoint(guardedBy: &guardian)?.isComplete == false)
        time.advance(by: .seconds(1))
        #expect(try other.checkpoint(guardedBy: &guardian)?.isComplete == true)
        #expect(time.pendingCount == 0)
        #expect(try store.rowCount() == 2)
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
        let manager = try CacheManager(url: url, configuration: time.configuration)
        for row in 0..<10 { try manager.store().insertRow(named: "\(row)") }
        #expect(time.pendingCount == 0)
        for _ in 0..<2 { _ = try manager.store().rowCount() }
        #expect(time.pendingCount == 1)
        time.advance(by: .seconds(1))
        #expect(time.pendingCount == 0)
        #expect(try manager.store().isIdle)
    }

    @Test func `a store that could not be opened again is opened by a later call`() throws {
        let deep = folder.url.appendingPathComponent("gone/store.sqlite")
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

    @Test func `a log that another process holds is not copied again and again`() throws {
        let manager = try CacheManager(url: url, configuration: time.configuration)
        let store = try manager.store()
        try store.insertRow(named: "first")
        var other = try Connection.open(.file(url.path), .init(role: .reader, busyMilliseconds: 0))
        try other.holdSnapshot()
        var checkpoints = 0
        for row in 0..<2000 {
            try store.insertRow(named: "\(wide) \(row)")
            checkpoints += time.pendingCount
            time.advance(by: .microseconds(1))
        }
        #expect((1...30).contains(checkpoints))
        try other.releaseSnapshot()
        #expect(try store.checkpoint()?.isComplete == true)
    }

    @Test func `a close leaves a short log, and one without writes leaves the files as they are`() throws {
        let manager = try CacheManager(url: url)
        try manager.store().write { (connection) throws(SQLiteError) in
            for row in 0..<500 { try connection.insertRow(named: "\(wide) \(row)") }
        }
        #expect(try logSize() > 500 * 4096)
        try manager.close()
        #expect(try logSize() < 3 * 4096 + 100)
        let before = try folder.contents()["store.sqlite"]
        #expect(try CacheManager.rowCount(at: url) == 500)
        #expect(try folder.contents()["store.sqlite"] == before)
    }

    @Test func `threads that read, write and checkpoint at once get what they are owed`() throws {
        let manager = try CacheManager(url: url)
        let store = try manager.store()
        let failures = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            do {
                for row in 0..<100 {
                    switch thread {
                    case 0: try store.checkpoint()
                    case 1..<4: try store.insertRow(named: "\(thread) \(row)")
                    default: _ = try store.rowCount()
                    }
                }
            } catch {
                failures.withLock { $0.append("\(error)") }
            }
        }
        #expect(failures.withLock { $0 } == [])
        #expect(try store.rowCount() == 300)
    }
}
