import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Opening as seen by several processes, and by one that is not allowed to.
struct OpeningProcessesTests {
    let folder: TemporaryFolder
    let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = folder("store.sqlite")
    }

    /// Lets `count` processes of 16 threads open the store at the same moment, each thread writing one row.
    private func openTogether(processes count: Int) throws {
        let children = try (0..<count).map { _ in
            try ChildProcess("larder-test-store", ["open-together", url.path])
        }
        for child in children { #expect(child.line() == "ready") }
        for child in children { try child.goOn() }
        for child in children {
            let lines = try child.finish().lines
            #expect(lines == Array(repeating: "done", count: 16))
        }
        #expect(try CacheManager.rowCount(at: url) == 16 * count)
    }

    private func setAside() throws -> Int {
        try folder.names.count { $0.wholeMatch(of: /store.sqlite.corrupt-(other-)?[0-9]+-[0-9a-f]{8}/) != nil }
    }

    // case 273
    @Test func `eight processes of sixteen threads open a new file at the same moment`() throws {
        for _ in 0..<3 {
            try openTogether(processes: 8)
            #expect(try setAside() == 0)
            for name in try folder.names { try FileManager.default.removeItem(at: folder(name)) }
        }
    }

    @Test func `processes that find the same damage set it aside once, and lose none of what they write`() throws {
        try Data(repeating: UInt8(ascii: "x"), count: 20_000).write(to: url)
        try openTogether(processes: 4)
        #expect(try setAside() == 1)
    }

    @Test func `a store that another process replaced is noticed by the next read and the next write`() throws {
        let reader = try CacheManager(url: url)
        try reader.store().insertRow(named: "old")
        try reader.store().checkpoint()
        #expect(try reader.store().rowCount() == 1)
        // The other process finds the header damaged; ours goes on with what it has in memory.
        for ending in ["-wal"] { try FileManager.default.removeItem(at: folder("store.sqlite" + ending)) }
        let handle = try FileHandle(forUpdating: url)
        try handle.write(contentsOf: Data("no database here".utf8))
        try handle.close()

        let child = try ChildProcess("larder-test-store", ["insert", url.path, "0", "3"])
        #expect(try child.finish().lines == ["opened", "0", "1", "2"])
        #expect(try setAside() == 1)
        // A write to a store whose files were moved away may fail, once.
        var count = 3
        do throws(CacheError) {
            try reader.store().insertRow(named: "ours, at once")
            count += 1
        } catch {
            #expect(error.code == .storageUnavailable)
        }
        try reader.store().insertRow(named: "ours, into the new one")
        count += 1
        // The old row may be lost with the first page.
        let found = try reader.store().rowCount()
        #expect(found == count || found == count + 1)
        #expect(try setAside() == 1)
    }

    @Test func `a process that only reads is rung out of a store that another one put aside`() throws {
        try CacheManager.makeStore(at: url, rows: 2000)
        for ending in ["-wal", "-shm"] { try FileManager.default.removeItem(at: folder("store.sqlite" + ending)) }
        let time = ManualTime()
        let reader = try CacheManager(url: url, configuration: time.configuration)
        #expect(try reader.store().rowCount() == 2000)
        // Everything behind the schema; what our reader needs of it is in its cache.
        let size = try #require(try FileManager.default.attributesOfItem(atPath: url.path)[.size] as? Int)
        let handle = try FileHandle(forUpdating: url)
        try handle.seek(toOffset: 4 * 4096)
        try handle.write(contentsOf: Data(repeating: 0x5A, count: size - 4 * 4096))
        try handle.close()

        let child = try ChildProcess("larder-test-store", ["insert", url.path, "0", "3"])
        #expect(try child.finish().lines == ["opened", "0", "1", "2"])
        #expect(try setAside() == 1)
        #expect(try reader.store().rowCount() == 3)
        #expect(try setAside() == 1)
    }

    @Test func `where the damage forbids the ringing, a reader finds out a second later`() throws {
        try CacheManager.makeStore(at: url, rows: 20)
        let time = ManualTime()
        let reader = try CacheManager(url: url, configuration: time.configuration)
        #expect(try reader.store().rowCount() == 20)
        let handle = try FileHandle(forUpdating: url)
        try handle.write(contentsOf: Data("no database here".utf8))
        try handle.close()
        for ending in ["-wal"] { try FileManager.default.removeItem(at: folder("store.sqlite" + ending)) }

        let child = try ChildProcess("larder-test-store", ["insert", url.path, "0", "3"])
        #expect(try child.finish().lines == ["opened", "0", "1", "2"])
        time.advance(by: .seconds(1))
        // The old rows may be lost with the first page.
        let found = try reader.store().rowCount()
        #expect(found == 3 || found == 23)
        #expect(try setAside() == 1)
    }

    @Test func `while another process writes, opening works and writing waits within its bound`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        let child = try ChildProcess("larder-test-store", ["lock", url.path, "IMMEDIATE"])
        #expect(child.line() == "locked")
        var configuration = CacheManager.Configuration()
        configuration.busyTimeout = .milliseconds(50)
        let manager = try CacheManager(url: url, configuration: configuration)
        #expect(try manager.store().rowCount() == 1)
        let error = #expect(throws: CacheError.self) { try manager.store().insertRow(named: "second") }
        #expect(error?.code == .busy)
        try child.finish()
        try manager.store().insertRow(named: "second")
        #expect(try manager.store().rowCount() == 2)
    }

    // case 286
    @Test func `a file that another process has for itself is busy, and nothing is deleted`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        let child = try ChildProcess("larder-test-store", ["lock", url.path, "EXCLUSIVE"])
        #expect(child.line() == "locked")
        var configuration = CacheManager.Configuration()
        configuration.busyTimeout = .milliseconds(50)
        let error = #expect(throws: CacheError.self) { try CacheManager(url: url, configuration: configuration) }
        #expect(error?.code == .busy)
        try child.finish()
        #expect(try CacheManager.rowCount(at: url) == 1)
        #expect(try setAside() == 0)
    }

    @Test func `who sets a store up for too long is not waited for`() throws {
        var configuration = CacheManager.Configuration()
        configuration.busyTimeout = .milliseconds(20)
        let result = try FileSystem.withLock(url.path + ".lock", waiting: 0) {
            Result { try CacheManager(url: url, configuration: configuration) }
        }
        let error = #expect(throws: CacheError.self) { try result?.get() }
        #expect(error?.code == .busy)
        #expect(try CacheManager.rowCount(at: url) == 0)
    }

    /// A folder and files of the user nobody, whom the programs become.
    private func giveToNobody(folderMode: Int) throws {
        let nobody: [FileAttributeKey: Any] = [.ownerAccountID: 65534, .groupOwnerAccountID: 65534]
        for name in try folder.names {
            try FileManager.default.setAttributes(nobody, ofItemAtPath: folder(name).path)
        }
        try FileManager.default.setAttributes(nobody, ofItemAtPath: folder.url.path)
        try FileManager.default.setAttributes([.posixPermissions: folderMode], ofItemAtPath: folder.url.path)
    }

    @Test(.enabled(if: getuid() == 0, "needs another user to be"))
    func `a folder that may not be written is an error that deletes nothing`() throws {
        try giveToNobody(folderMode: 0o500)
        let new = try ChildProcess("larder-test-store", ["open-as-nobody", url.path]).finish().lines
        #expect(new == ["error storageUnavailable"])
        #expect(try folder.names == [])
    }

    @Test(.enabled(if: getuid() == 0, "needs another user to be"), arguments: [true, false])
    func `a store in a folder that may not be written can be read`(hasLog: Bool) throws {
        try CacheManager.makeStore(at: url, rows: 1)
        if !hasLog {
            for ending in ["-wal", "-shm", ".lock"] {
                try FileManager.default.removeItem(at: folder("store.sqlite" + ending))
            }
        }
        try giveToNobody(folderMode: 0o500)
        let before = try folder.contents()
        let lines = try ChildProcess("larder-test-store", ["open-as-nobody", url.path, "read-only"]).finish().lines
        #expect(lines == ["opened 1"])
        #expect(try folder.contents() == before)
    }

    @Test(.enabled(if: getuid() == 0, "needs another user to be"))
    func `a file that may not be read is an error that deletes nothing`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        try giveToNobody(folderMode: 0o700)
        try FileManager.default.setAttributes([.posixPermissions: 0o000], ofItemAtPath: url.path)
        let before = try folder.contents()
        let lines = try ChildProcess("larder-test-store", ["open-as-nobody", url.path]).finish().lines
        #expect(lines == ["error storageUnavailable"])
        var after = try folder.contents()
        after["store.sqlite.lock"] = before["store.sqlite.lock"]
        #expect(after == before)
    }

    @Test(.enabled(if: getuid() == 0, "needs another user to be"))
    func `a file that may not be written is refused at once, not opened for reading`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        try giveToNobody(folderMode: 0o700)
        try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: url.path)
        let lines = try ChildProcess("larder-test-store", ["open-as-nobody", url.path]).finish().lines
        #expect(lines == ["error storageUnavailable"])
    }

    @Test(.enabled(if: getuid() == 0, "needs another user to be"))
    func `an older damaged store that may not be deleted is no reason not to open`() throws {
        try Data("no database here, once ours".utf8).write(to: url)
        let old = folder.url.appendingPathComponent("store.sqlite.corrupt-1000000000000-00000000.files")
        try FileManager.default.createDirectory(at: old, withIntermediateDirectories: true)
        try Data().write(to: old.appendingPathComponent("value"))
        try CacheManager.makeStore(at: folder("ours.sqlite"), rows: 1)
        var bytes = try Data(contentsOf: folder("ours.sqlite"))
        // Our mark, and nothing that can be read behind it.
        bytes.replaceSubrange(100..<bytes.count, with: Data(repeating: 0x5A, count: bytes.count - 100))
        try bytes.write(to: url)
        try giveToNobody(folderMode: 0o700)
        try FileManager.default.setAttributes(
            [.ownerAccountID: 0, .groupOwnerAccountID: 0, .posixPermissions: 0o755], ofItemAtPath: old.path)
        let lines = try ChildProcess("larder-test-store", ["open-as-nobody", url.path]).finish().lines
        #expect(lines == ["opened 0"])
        #expect(FileManager.default.fileExists(atPath: old.appendingPathComponent("value").path))
        #expect(try setAside() == 1)
    }
}
