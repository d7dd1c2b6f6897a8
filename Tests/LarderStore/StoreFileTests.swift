import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

struct StoreFileTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    private func code(of path: String) -> StoreError.Code? {
        #expect(throws: StoreError.self) { try Store.open(path) }?.code
    }

    @Test func `entries are there again after the store was closed`() throws {
        let store = try place.open()
        try store.open(.a).put(1, "one")
        try store.close()
        let again = try place.open()
        #expect(try again.open(.a).text(1) == "one")
        #expect(try again.open(.a).totals() == Totals(count: 1, size: 3))
    }

    @Test func `missing folders are created, for their owner alone`() throws {
        let path = place.folder("deep/er/store.sqlite").path
        try Store.open(path).close()
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        let folder = try FileManager.default.attributesOfItem(atPath: place.folder("deep/er").path)
        #expect((folder[.posixPermissions] as? NSNumber)?.intValue == 0o700)
    }

    @Test func `a file that is not a store is refused and not changed`() throws {
        let folder = place.folder("folder").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        #expect(code(of: folder) == .storageUnavailable)
        let link = place.folder("link").path
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: place.path)
        #expect(code(of: link) == .storageUnavailable)

        try FileSystem.makeFile(place.path)
        var foreign = try place.otherConnection()
        try foreign.execute("CREATE TABLE t (x); PRAGMA application_id = 7")
        #expect(code(of: place.path) == .foreignFile)
        try foreign.execute("PRAGMA application_id = 0")
        #expect(code(of: place.path) == .foreignFile)
        #expect(try foreign.texts("SELECT name FROM sqlite_schema") == ["t"])
    }

    @Test func `a store of a later release is refused`() throws {
        try place.open().close()
        var other = try place.otherConnection()
        try other.execute("PRAGMA user_version = 2")
        #expect(code(of: place.path) == .newerSchema)
    }

    @Test func `eight threads open a new file at the same moment`() throws {
        let stores = try (0..<8).map { _ in SideThread { try place.open() } }.map { try $0.value() }
        for (index, store) in stores.enumerated() { try store.open(.a).put(Int64(index), "x") }
        #expect(try stores[0].open(.a).totals().count == 8)
    }

    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
    func `for power loss a value file and its folder are on the disk before the row is committed`() throws {
        let child = try ChildProcess(
            "larder-test-rows", ["sync", place.path],
            through: Strace.wrapper("-y", "-e", "trace=fsync,fdatasync", log: place.folder("log")))
        #expect(try child.finish().lines == ["acknowledged"])
        let files = place.folder("store.files").path
        let synced = try String(contentsOf: place.folder("log"), encoding: .utf8)
            .matches(of: /f(?:data)?sync\(\d+<([^>]*)>/).map { String($0.output.1) }
        let file = try #require(synced.firstIndex { $0.hasPrefix(files + "/") })
        #expect(synced.dropFirst(file + 1).first == files)
        #expect(synced.dropFirst(file + 2).first?.hasSuffix("store.sqlite-wal") == true, "\(synced)")
    }
}
