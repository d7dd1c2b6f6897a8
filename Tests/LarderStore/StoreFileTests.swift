import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

struct StoreFileTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    @Test func `entries are there again after the store was closed`() throws {
        let store = try place.open()
        try store.open(.a).put(1, "one")
        try store.close()
        let again = try place.open()
        #expect(try again.open(.a).text(1) == "one")
        #expect(try again.open(.a).totals() == Totals(count: 1, size: 3))
    }

    @Test func `a file that was busy when it was opened again after a move is used later`() throws {
        let (store, other) = (try place.open(busyTimeout: 200), try StorePlace())
        let (rows, missing) = (try store.open(.a), try store.open(.named("missing")))
        try rows.put(1, "one")
        let replacement = try other.open()
        try replacement.open(.a).put(1, "another")
        try replacement.close()
        for ending in ["", "-wal", "-shm"] {
            let (path, moved) = (place.path + ending, place.folder("moved" + ending).path)
            try FileManager.default.moveItem(atPath: path, toPath: moved)
            try FileManager.default.moveItem(atPath: other.path + ending, toPath: path)
        }
        var writing = try place.otherConnection()
        try writing.execute("BEGIN IMMEDIATE")
        for code in [StoreError.Code.storageUnavailable, .busy] {
            let error = #expect(throws: StoreError.self) { try rows.put(2, "two") }
            #expect(error?.code == code)
        }
        try writing.execute("ROLLBACK")
        #expect(try rows.text(1) == "another" && rows.text(2) == nil)
        // It is declared in the other file too.
        try missing.put(1, "x")
        #expect(try missing.text(1) == "x")
    }

    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
    func `for power loss a value file and its folder are on the disk before the row is committed`() throws {
        let child = try ChildProcess(
            "larder-test-rows", ["sync", place.path],
            through: Strace.wrapper("-y", "-e", "trace=fsync,fdatasync", log: place.folder("log")))
        #expect(try child.finish().lines == ["acknowledged"])
        let files = place.folder.real("store.files").path
        let synced = try String(contentsOf: place.folder("log"), encoding: .utf8)
            .matches(of: /f(?:data)?sync\(\d+<([^>]*)>/).map { String($0.output.1) }
        let file = try #require(synced.firstIndex { $0.hasPrefix(files + "/") })
        #expect(synced.dropFirst(file + 1).first == files)
        #expect(synced.dropFirst(file + 2).first?.hasSuffix("store.sqlite-wal") == true, "\(synced)")
    }
}
