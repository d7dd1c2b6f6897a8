import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Payloads above 100 bytes are files here.
struct ValueFilesTests {
    private struct Injected: Error {}

    private let place: StorePlace

    init() throws { place = try StorePlace() }

    private func open(
        _ durability: Store.Options.Durability = .processCrash, busyTimeout: Int64 = 60_000
    ) throws -> (Store, CacheRows) {
        var options = Store.Options()
        (options.durability, options.busyTimeout) = (durability, busyTimeout)
        let store = try Store.open(place.path, options)
        return (store, try store.open(.a, inlineLimit: 100))
    }

    private func expect(_ code: StoreError.Code, _ call: () throws -> Void) {
        let error = #expect(throws: StoreError.self) { try call() }
        #expect(error?.code == code)
    }

    /// Expects the folder of a closed store to have exactly the files that rows name.
    private func expectNamedFiles(_ count: Int, _ comment: Comment = "") throws {
        let names = try place.fileNames()
        #expect(try names == place.namedFiles() && names.count == count, comment)
    }

    // MARK: Files and rows

    @Test func `a payload above the limit is a file, and one of exactly the limit is in its row`() throws {
        let (store, rows) = try open()
        let noLimit = try store.open(.rows, inlineLimit: 0)
        let memory = try Store.inMemory().open(.a, inlineLimit: 0)
        for (cache, size, isFile) in [
            (rows, 100, false), (rows, 101, true), (rows, 99, false), (noLimit, 0, false), (noLimit, 1, true),
            (memory, 9000, false),
        ] {
            let payload = Data(repeating: 7, count: size)
            try cache.run(.put([EntryWrite(key: .integer(1), payload: payload, writtenAt: 0)]))
            let row = try #require(try cache.row(.integer(1)))
            #expect(row.payload == payload && row.header.payloadSize == Int64(size))
            #expect((row.header.file != nil) == isFile, "\(size)")
            #expect(try cache.totals() == Totals(count: 1, size: Int64(size)))
        }
        try store.close()
        try expectNamedFiles(1)
    }

    @Test func `after each kind of change the folder has exactly the files that rows name`() throws {
        func put(_ key: Int64, _ text: String) -> Change { .put([EntryWrite(key, text)]) }
        let three = [EntryWrite(1, big("a")), EntryWrite(2, big("b")), EntryWrite(1, big("c"))]
        let changes: [(Change, Int, String?)] = [
            (.put(three), 2, big("c")), (put(1, big("d")), 2, big("d")), (put(1, "small"), 1, "small"),
            (put(1, big("e")), 2, big("e")), (.change(.integer(1), .extendedData(Data([1]))), 2, big("e")),
            (.change(.integer(1), .touch(at: 5, ownAge: nil)), 2, big("e")), (.take(.integer(1)), 1, nil),
            (put(1, big("f")), 2, big("f")), (.remove([.integer(2), .integer(3)]), 1, big("f")),
        ]
        for (step, (change, files, text)) in changes.enumerated() {
            let (store, rows) = try open()
            let taken = try rows.run(change).taken
            if case .take = change.work { #expect(taken?.payload == Data(big("e").utf8)) }
            #expect(try rows.text(1) == text, "step \(step)")
            try store.close()
            try expectNamedFiles(files, "step \(step)")
        }
        let (store, rows) = try open()
        try rows.run(.clear)
        #expect(try rows.text(1) == nil)
        try store.close()
        // Upkeep may have begun to reclaim the retired row.
        try Waiting.until { try place.fileNames() == place.namedFiles() }
    }

    @Test func `a file that a link in place of a value file names is not touched by a removal`() throws {
        let (store, rows) = try open()
        try rows.put(1, big("a"))
        let name = try #require(try rows.header(.integer(1))?.file)
        let (foreign, moment) = (place.folder("foreign"), Date(timeIntervalSince1970: 1_000_000))
        try Data("mine".utf8).write(to: foreign)
        try FileManager.default.setAttributes([.modificationDate: moment], ofItemAtPath: foreign.path)
        try FileManager.default.removeItem(at: place.file(name))
        try FileManager.default.createSymbolicLink(at: place.file(name), withDestinationURL: foreign)
        _ = try rows.run(.take(.integer(1)))
        try store.close()
        let attributes = try FileManager.default.attributesOfItem(atPath: foreign.path)
        #expect(attributes[.modificationDate] as? Date == moment)
        #expect(try Data(contentsOf: foreign) == Data("mine".utf8))
    }

    @Test func `a file has a name that is readable, harmless and short`() throws {
        let (_, rows) = try open()
        func name(_ key: StoredKey, _ label: String? = nil) throws -> String {
            let entry = EntryWrite(
                key: key, payload: Data(count: 101), writtenAt: 0, label: label)
            try rows.run(.put([entry]))
            #expect(try rows.row(key)?.payload == Data(count: 101))
            return try #require(try rows.header(key)?.file)
        }
        #expect(try name(.text("a/b..\u{202E}c")).hasPrefix("a_b.._c-"))
        #expect(try name(.integer(-5)).hasPrefix("_5-"))
        let photo = try name(.integer(1), "photo.jpg")
        #expect(photo.hasPrefix("photo-") && photo.hasSuffix(".jpg"))
        let attributes = try FileManager.default.attributesOfItem(atPath: place.file(photo).path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        let harmful = "/\\:\n\u{1B}\u{202E}".unicodeScalars
        for label in ["", ".", "..", "x.", "-rf", "../.hidden/-x", "a\\b:c\n\u{1B}[31m.\u{202E}gpj"] {
            let found = try name(.blob(Data([1])), label)
            #expect(!found.hasPrefix(".") && !found.hasPrefix("-"))
            #expect(!found.unicodeScalars.contains(where: { harmful.contains($0) }))
        }
        for long in [String(repeating: "é", count: 300), String(repeating: "😀", count: 300)] {
            #expect(try name(.text(long)).utf8.count <= 255)
            #expect(try name(.integer(2), long + "." + long).utf8.count <= 255)
        }
    }

    // MARK: Overwriting

    @Test(arguments: [Store.Options.Durability.processCrash, .powerLoss])
    func `a replaced file is overwritten for a later payload`(durability: Store.Options.Durability) throws {
        let (_, rows) = try open(durability)
        var (names, identities) = ([String](), [FileIdentity]())
        for size in [200, 200, 200, 900, 101] {
            let text = String(repeating: "\(names.count)", count: size)
            try rows.put(1, text)
            #expect(try rows.text(1) == text)
            names.append(try rows.file(1))
            identities.append(try #require(try FileSystem.status(place.file(rows.file(1)).path)).identity)
        }
        let (first, second) = (identities[0], identities[1])
        #expect(first != second && identities == [first, second, first, second, first])
        #expect(Set(names).count == 5)
    }

    @Test func `a file that was handed out or has another name is never overwritten`() throws {
        let (_, rows) = try open()
        let other = try place.open().open(.a, inlineLimit: 100)
        try rows.put(2, "small")
        #expect(try rows.filePath(.integer(2)) == nil && rows.filePath(.integer(3)) == nil)
        for replacing in [rows, other] {
            try rows.put(1, big("a"))
            let url = URL(fileURLWithPath: try #require(try rows.filePath(.integer(1))?.path))
            let handle = try FileHandle(forReadingFrom: url)
            for text in ["b", "c", "d"] { try replacing.put(1, big(text)) }
            #expect(try handle.readToEnd() == Data(big("a").utf8))
            #expect(!FileManager.default.fileExists(atPath: url.path))
            try handle.close()
        }
        let copy = place.folder("copy")
        try FileManager.default.linkItem(at: place.file(rows.file(1)), to: copy)
        for text in ["e", "f", "g"] { try rows.put(1, big(text)) }
        #expect(try Data(contentsOf: copy) == Data(big("d").utf8))
    }

    @Test func `of deleted files 32 are kept to be overwritten, and none above 16 MB`() throws {
        let (store, rows) = try open()
        try rows.put(0, String(repeating: "x", count: (16 << 20) + 1))
        try rows.run(.remove([.integer(0)]))
        #expect(try place.fileNames() == [])
        try rows.run(.put((1...40).map { EntryWrite($0, big("a")) }))
        try rows.run(.remove((1...40).map { StoredKey.integer($0) }))
        #expect(try place.fileNames().count == 32)
        try store.close()
        try expectNamedFiles(0)
    }

    // MARK: Puts that write no row

    @Test func `a put that writes no row leaves no file`() throws {
        let (store, rows) = try open(busyTimeout: 20)
        try rows.put(1, big("a"))
        #expect(try rows.run(.put([EntryWrite(1, big("b"))], if: When { false })).rows.isEmpty)
        expect(.reentrant) { try store.transaction { _ in try rows.put(2, big("c")) } }
        var other = try place.otherConnection()
        try other.execute("BEGIN IMMEDIATE")
        expect(.busy) { try rows.put(2, big("c")) }
        try other.execute("ROLLBACK")
        let old = try store.open(.rows, inlineLimit: 100)
        _ = try store.open(CacheDeclaration(name: "rows", version: "2", codec: "data", ageRule: .unlimited))
        expect(.superseded) { try old.put(2, big("c")) }
        try store.close()
        try expectNamedFiles(1)
        expect(.closed) { try rows.put(2, big("c")) }
        try expectNamedFiles(1, "after the close")
    }

    @Test func `a body that throws leaves no file and the old entry, and a put that it skips leaves no file`() throws {
        let (store, rows) = try open()
        try rows.put(1, big("a"))
        #expect(throws: Injected.self) {
            try store.transaction { state in
                _ = try state.perform(.put([EntryWrite(1, big("b")), EntryWrite(2, big("c"))]), on: rows)
                #expect(try state.row(.integer(1), of: .a)?.payload == Data(big("b").utf8))
                throw Injected()
            }
        }
        #expect(try rows.text(1) == big("a") && rows.text(2) == nil)
        try store.transaction { _ = try $0.perform(.put([EntryWrite(1, big("b"))], if: When { false }), on: rows) }
        #expect(try rows.text(1) == big("a"))
        try store.close()
        try expectNamedFiles(1)
    }

    @Test(arguments: [false, true])
    func `a put whose file is deleted while it waits fails, and writes no row`(withFolder: Bool) throws {
        let (store, rows) = try open()
        let put = try store.transaction { _ -> SideThread<Void> in
            let put = SideThread { try rows.put(1, big("a")) }
            try Waiting.until { store.waitingCount == 1 }
            let name = try #require(try place.fileNames().first)
            try FileManager.default.removeItem(at: withFolder ? place.folder("store.files") : place.file(name))
            return put
        }
        expect(.storageUnavailable) { try put.value() }
        #expect(try rows.text(1) == nil && rows.totals() == Totals())
        try rows.put(1, big("b"))
        #expect(try rows.text(1) == big("b"))
    }

    // MARK: Damage and other hands

    enum Damage: CaseIterable { case changed, shorter, linked, folder, deleted }

    @Test(arguments: Damage.allCases)
    func `a damaged file is a miss in every read, and other entries are served`(damage: Damage) throws {
        let (store, rows) = try open()
        try rows.run(.put((1...3).map { EntryWrite($0, big("\($0)")) }))
        let (name, copy) = (try rows.file(2), place.folder("copy"))
        let file = place.file(name)
        switch damage {
        case .changed: try file.overwrite(at: 7, with: Data([0]))
        case .shorter: try file.cut(to: 150)
        case .linked:
            try FileManager.default.moveItem(at: file, to: copy)
            try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: copy.path)
        case .folder:
            try FileManager.default.removeItem(at: file)
            try FileManager.default.createDirectory(atPath: file.path, withIntermediateDirectories: false)
        case .deleted: try FileManager.default.removeItem(at: file)
        }
        let (keys, list) = ([1, 2, 3].map { StoredKey.integer($0) }, try rows.list(.written))
        for found in try [rows.rows(keys), rows.rows().rows, rows.rows(list, 0..<3).rows] {
            #expect(found.map(\.header.key) == [.integer(1), .integer(3)])
            #expect(found.map(\.payload) == [Data(big("1").utf8), Data(big("3").utf8)])
        }
        #expect(try rows.text(1) == big("1") && rows.text(2) == nil && rows.text(3) == big("3"))
        // The damaged one is deleted first. A folder cannot be.
        try rows.run(.remove([.integer(2), .integer(1), .integer(3)]))
        try rows.put(2, big("new"))
        #expect(try rows.text(2) == big("new"))
        if damage == .linked { #expect(try Data(contentsOf: copy) == Data(big("2").utf8)) }
        try store.close()
        #expect(try place.fileNames() == place.namedFiles().union(damage == .folder ? [name] : []))
    }

    @Test func `through a symbolic link in place of the folder files are read, and none is written or deleted`() throws
    {
        let (first, written) = try open()
        for (key, text) in [(1, big("a")), (2, "small")] { try written.put(Int64(key), text) }
        try first.close()
        let (path, elsewhere) = (place.folder("store.files").path, place.folder("elsewhere").path)
        try FileManager.default.moveItem(atPath: path, toPath: elsewhere)
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: elsewhere)
        let names = try FileManager.default.contentsOfDirectory(atPath: elsewhere)
        let (store, rows) = try open()
        expect(.storageUnavailable) { try rows.put(3, big("b")) }
        #expect(try rows.text(1) == big("a"))
        try rows.run(.remove([.integer(1)]))
        #expect(try rows.text(1) == nil && rows.text(2) == "small" && rows.text(3) == nil)
        try store.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere) == names && names.count == 1)
    }

    @Test func `a row that names a file outside the folder is a miss, and the file stays as it is`() throws {
        let (_, rows) = try open()
        var other = try place.otherConnection()
        let (outside, bytes) = (place.folder("x"), Data(big("a").utf8))
        try bytes.write(to: outside)
        let changes = [Change.remove([.integer(1)]), .put([EntryWrite(1, "b")]), .take(.integer(1))]
        for change in changes {
            for name in ["../x", outside.path] {
                try rows.put(1, big("a"))
                try other.execute("UPDATE entry SET file = '\(name)'")
                #expect(try rows.text(1) == nil && rows.filePath(.integer(1)) == nil && rows.rows().rows.isEmpty)
                try rows.run(change)
                #expect(try Data(contentsOf: outside) == bytes)
            }
        }
    }

    @Test func `after the database was moved and another file is in its place no file is deleted`() throws {
        let (store, rows) = try open()
        try rows.run(.put((1...3).map { EntryWrite($0, big("\($0)")) }))
        let names = try place.fileNames()
        for suffix in ["", "-wal", "-shm"] {
            try FileManager.default.moveItem(atPath: place.path + suffix, toPath: place.folder("moved" + suffix).path)
        }
        try FileSystem.makeFile(place.path)
        for change in [Change.remove([.integer(1)]), .put([EntryWrite(2, big("b"))]), .clear] {
            // The store may refuse the change.
            do { try rows.run(change) } catch {}
        }
        try store.close()
        #expect(try names.count == 3 && names.isSubset(of: place.fileNames()))
        let contents = try names.map { try String(contentsOf: place.file($0), encoding: .utf8) }
        #expect(Set(contents) == [big("1"), big("2"), big("3")])
    }
}
