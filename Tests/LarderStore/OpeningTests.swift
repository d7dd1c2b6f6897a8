import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

struct OpeningTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    private func makeOptions(_ change: (inout Store.Options) -> Void = { _ in }) -> Store.Options {
        var options = Store.Options()
        options.busyTimeout = 60_000
        options.time = StoreClock().time
        change(&options)
        return options
    }

    private var foreignMessage: String { "\"\(place.realPath)\" is a file of another program. Name another path." }

    /// Expects an opening to be refused, and to leave all files as they are.
    ///
    /// The index of a log is no part of what is stored, and locks alone change it.
    private func expectRefusal(
        of path: String? = nil, _ code: StoreError.Code, _ message: String,
        _ change: (inout Store.Options) -> Void = { _ in }
    ) throws {
        let (location, options) = (path ?? place.path, makeOptions(change))
        // An opening may create its lock file.
        do { try FileSystem.makeFile(location + ".lock") } catch {}
        let before = try FolderState(place.folder.realURL)
        let error = #expect(throws: StoreError.self) { try Store.open(location, options) }
        #expect(error?.code == code && error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
        let changes = try FolderState(place.folder.realURL).changes(since: before)
        #expect(changes.filter { !$0.hasSuffix("-shm") } == [])
    }

    // MARK: Files of others

    enum Foreign: CaseIterable { case marked, unmarked, vacuuming, logging }

    private func makeDatabase(_ kind: Foreign) throws {
        try FileSystem.makeFile(place.path)
        var other = try place.otherConnection()
        switch kind {
        case .marked: try other.execute("CREATE TABLE t (x); PRAGMA application_id = 7")
        case .unmarked: try other.execute("CREATE TABLE t (x)")
        case .vacuuming: try other.execute("PRAGMA auto_vacuum = FULL; CREATE TABLE t (x)")
        case .logging:
            try other.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (x); PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    @Test(arguments: Foreign.allCases)
    func `a database of another program is refused and not changed`(kind: Foreign) throws {
        try makeDatabase(kind)
        if kind == .logging { try URL(fileURLWithPath: place.path).removeLog() }
        try expectRefusal(.foreignFile, foreignMessage) { $0.replacesNewerSchema = true }
    }

    @Test(arguments: [Store.Options.Recovery.salvage, .fail])
    func `a file that is no database is refused and not changed`(recovery: Store.Options.Recovery) throws {
        // SQLite takes a file of one byte for an empty one.
        for length in Array(1...101) + [511, 512, 20_000] {
            let text = String(repeating: "text ", count: length / 5 + 1).prefix(length)
            try Data(text.utf8).write(to: URL(fileURLWithPath: place.path))
            try expectRefusal(.foreignFile, foreignMessage) { $0.recovery = recovery }
        }
    }

    enum Obstacle: CaseIterable { case folder, link, linkToNothing, pipe }

    @Test(arguments: Obstacle.allCases)
    func `a path that leads to no file is refused, and what is there is not changed`(obstacle: Obstacle) throws {
        let (manager, target) = (FileManager.default, place.folder("target.sqlite").path)
        switch obstacle {
        case .folder: try manager.createDirectory(atPath: place.path, withIntermediateDirectories: false)
        case .link:
            try Store.open(target, makeOptions()).close()
            try manager.createSymbolicLink(atPath: place.path, withDestinationPath: target)
        case .linkToNothing: try manager.createSymbolicLink(atPath: place.path, withDestinationPath: target)
        case .pipe: #expect(mkfifo(place.path, 0o600) == 0)
        }
        let problem =
            switch obstacle {
            case .folder: "is a folder. Name a file."
            case .link, .linkToNothing: "is a symbolic link to \"\(target)\". Name the file itself."
            case .pipe: "is a device or a pipe. Name a file."
            }
        try expectRefusal(.storageUnavailable, "\"\(place.realPath)\" \(problem)")
    }

    @Test(arguments: ["store.sqlite", "deep/er/store.sqlite"])
    func `a path below a file is refused, and the file is not changed`(name: String) throws {
        try Data("text".utf8).write(to: place.folder("file"))
        try expectRefusal(
            of: place.folder("file/" + name).path, .storageUnavailable,
            "A part of the path is a file and no folder. Check the path. (")
    }

    // MARK: Later releases and damage

    /// Leaves a store of a later release, with an entry.
    private func makeNewer(isLogging: Bool) throws {
        let store = try place.open()
        try store.open(.a).put(1, "one")
        try store.close()
        var other = try place.otherConnection()
        if !isLogging { try other.execute("PRAGMA journal_mode = DELETE") }
        try other.execute("PRAGMA user_version = \(Schema.current + 1)")
    }

    /// Expects the file to be replaced by an empty store, and to be kept beside it.
    private func expectReplacement(_ change: (inout Store.Options) -> Void = { _ in }) throws {
        let events = Told<StoreEvent>()
        let store = try place.open { options in
            change(&options)
            options.report = { if !$0.isRemoval { events.add($0) } }
        }
        let reports = events.all.compactMap { event -> SalvageReport? in
            guard case .replaced(let report) = event else { return nil }
            return report
        }
        #expect(events.all.count == 1 && reports.map(\.path) == [place.realPath + ".damaged"])
        #expect(reports.map(\.kept) == [0] && reports.map(\.lost) == [0])
        let rows = try store.open(.a)
        #expect(try rows.text(1) == nil && rows.totals() == Totals())
        try rows.put(2, "two")
        try store.close()
        let again = try place.open()
        #expect(try again.open(.a).text(2) == "two" && again.verify().problems == [])
    }

    @Test(arguments: [true, false])
    func `a store of a later release is refused and not changed`(isLogging: Bool) throws {
        try makeNewer(isLogging: isLogging)
        try expectRefusal(
            .newerSchema, "\"\(place.realPath)\" was written by a later release. Update the program.")
    }

    @Test(arguments: [true, false])
    func `a store of a later release is kept beside a new one if it may be replaced`(isLogging: Bool) throws {
        try makeNewer(isLogging: isLogging)
        try expectReplacement { $0.replacesNewerSchema = true }
        let options = Connection.Options(role: .writer, busyMilliseconds: 10_000)
        var old = try Connection.open(.file(place.realPath + ".damaged"), options)
        #expect(try old.text("PRAGMA user_version") == "\(Schema.current + 1)")
        #expect(try old.texts("SELECT CAST(payload AS TEXT) FROM entry") == ["one"])
    }

    /// Leaves a closed store whose first page is garbage, and returns its bytes.
    private func makeGarbage() throws -> Data {
        try makeStore()
        let file = URL(fileURLWithPath: place.path)
        try file.overwritePage(1)
        return try Data(contentsOf: file)
    }

    private func makeStore() throws {
        let store = try place.open()
        try store.open(.a).put(1, "one")
        try store.close()
    }

    @Test func `a store whose first page is garbage is replaced, since its lock file is marked`() throws {
        let bytes = try makeGarbage()
        try expectRefusal(.corrupt, "The database is damaged. (SQLite: ") { $0.recovery = .fail }
        try expectReplacement()
        #expect(try Data(contentsOf: URL(fileURLWithPath: place.path + ".damaged")) == bytes)
    }

    @Test func `garbage without a marked lock file is refused and not changed`() throws {
        _ = try makeGarbage()
        try FileManager.default.removeItem(atPath: place.path + ".lock")
        try expectRefusal(.foreignFile, foreignMessage)
    }

    @Test func `an opening marks the lock file, also that of an older store`() throws {
        let lock = LockFile(path: place.path + ".lock")
        try makeStore()
        #expect(lock.isMarked)
        try URL(fileURLWithPath: lock.path).cut(to: 0)
        #expect(!lock.isMarked)
        #expect(try place.open().open(.a).text(1) == "one")
        #expect(lock.isMarked)
    }

    // MARK: Disks and folders

    /// In the program the folder of the store, or its file alone, may not be written.
    @Test(.enabled(if: SmallVolume.isAvailable, "no program may have a disk of its own"), arguments: [false, true])
    func `a disk that may not be written is an error that says so`(isFileAlone: Bool) throws {
        let (folder, path) = (place.folder.real("home").path, place.folder.real("home/store.sqlite").path)
        try Store.open(path, makeOptions()).close()
        let before = try FolderState(place.folder.realURL)
        let (mount, message) =
            isFileAlone
            ? (
                "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"",
                "\"\(path)\" may not be written. Change its permissions, or open it read-only."
            )
            : (
                "mount -t tmpfs -o ro none \"$0\"",
                "The program may not do this. Check the permissions of the file and its folder. (open \(path).lock: "
            )
        let child = try ChildProcess(
            "larder-test-rows", ["sync", path],
            through: ["unshare", "-rm", "sh", "-c", mount + " && exec \"$@\" 2>&1", isFileAlone ? path : folder])
        let (status, lines) = try child.finish()
        #expect(status != 0 && lines.contains(where: { $0.contains(message) }), "\(lines)")
        let changes = try FolderState(place.folder.realURL).changes(since: before)
        #expect(changes.filter { !$0.hasSuffix("-shm") } == [])
    }

    @Test func `file systems of other machines are known as such`() {
        // NFS, SMB, SMB2, CIFS, AFS, Coda, Ceph, 9P; then ext4, XFS, Btrfs, tmpfs, overlay, and an unknown one.
        for kind: Int64 in [
            0x6969, 0x517B, 0xFE53_4D42, 0xFF53_4D42, 0x5346_414F, 0x7375_7245, 0x00C3_6400, 0x0102_1997,
        ] {
            #expect(NetworkDisk.has(kind), "\(kind)")
        }
        for kind: Int64 in [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630, 0, -1] {
            #expect(!NetworkDisk.has(kind), "\(kind)")
        }
        #expect(!NetworkDisk.holds(place.folder("missing").path))
        #expect(throws: StoreError.self) {
            try Store.open(place.path, makeOptions { $0.isNetworkDisk = { _ in true } })
        }
    }

    @Test func `a folder may be reached through links, and each spelling of it is one store`() throws {
        let (manager, folder) = (FileManager.default, place.folder)
        try manager.createDirectory(at: folder.real("one"), withIntermediateDirectories: false)
        try manager.createSymbolicLink(atPath: folder.real("two").path, withDestinationPath: "one")
        try manager.createSymbolicLink(atPath: folder.real("three").path, withDestinationPath: folder.real("two").path)
        let options = makeOptions()
        let spellings = ["one", "two", "three", "two/../one", "one/."].map { folder.real($0).path + "/store.sqlite" }
        let large = String(repeating: "x", count: 5000)
        for (key, path) in spellings.enumerated() {
            let store = try Store.open(path, options)
            #expect(store.path == folder.real("one/store.sqlite").path)
            let rows = try store.open(.a, inlineLimit: 100)
            try rows.put(Int64(key), large)
            for older in 0...key { #expect(try rows.text(Int64(older)) == large) }
            if key % 2 == 0 { try store.close() }
        }
        for path in spellings {
            let rows = try Store.open(path, makeOptions { $0.isReadOnly = true }).open(.a)
            #expect(try rows.allRows().count == spellings.count)
        }
        // A link to nothing is no folder.
        try manager.createSymbolicLink(atPath: folder.real("four").path, withDestinationPath: "nothing")
        #expect(throws: StoreError.self) { try Store.open(folder.real("four/store.sqlite").path, options) }
        #expect(!manager.fileExists(atPath: folder.real("nothing").path))
    }

    @Test func `stores whose names differ in the ending alone share no file`() throws {
        let large = String(repeating: "x", count: 5000)
        let clock = StoreClock()
        var options = makeOptions()
        // Each file is older than an hour.
        let now = Int64(Date().timeIntervalSince1970 * 1000) + 7_200_000
        options.time = StoreTime(now: { now }, wake: clock.time.wake)
        let stores = try ["x", "x.sqlite"].map { try Store.open(place.folder($0).path, options) }
        let rows = try stores.map { try $0.open(.a, inlineLimit: 100) }
        for cache in rows { try cache.put(1, large) }
        for store in stores { #expect(try store.maintain().orphans == 0) }
        for cache in rows { #expect(try cache.text(1) == large) }
    }

    @Test func `missing folders and all files are created for their owner alone`() throws {
        let path = "deep/er/store.sqlite"
        let store = try Store.open(place.folder(path).path, makeOptions())
        try store.open(.a, inlineLimit: 1).put(1, "one")
        func permissions(_ name: String) throws -> Int? {
            let attributes = try FileManager.default.attributesOfItem(atPath: place.folder(name).path)
            return (attributes[.posixPermissions] as? NSNumber)?.intValue
        }
        for name in ["deep", "deep/er", "deep/er/store.files"] { #expect(try permissions(name) == 0o700, "\(name)") }
        for ending in ["", "-wal", "-shm", ".lock"] { #expect(try permissions(path + ending) == 0o600, "\(ending)") }
    }

    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
    func `each missing folder is on the disk before a folder in it is created`() throws {
        let (top, deep) = (place.folder.realURL.path, place.folder.real("deep").path)
        let child = try ChildProcess(
            "larder-test-rows", ["sync", deep + "/er/store.sqlite"],
            through: Strace.wrapper("-y", "-e", "trace=?mkdir,?mkdirat,fsync", log: place.folder("log")))
        #expect(try child.finish().lines == ["acknowledged"])
        let calls = try String(contentsOf: place.folder("log"), encoding: .utf8)
            .matches(of: /(mkdir|fsync)(?:at)?\((?:AT_FDCWD[^,]*, )?(?:"|\d+<)([^">]*)/)
            .map { "\($0.output.1) \($0.output.2)" }
        // The first attempt finds that a folder above is missing.
        #expect(
            calls.prefix(5) == [
                "mkdir \(deep)/er", "mkdir \(deep)", "fsync \(top)", "mkdir \(deep)/er", "fsync \(deep)",
            ])
    }

    // MARK: Many at once

    @Test func `an opening that waits in vain for another one is busy, and the next one works`() throws {
        let lock = LockFile(path: place.path + ".lock")
        let isRefused = try lock.withLock(until: Deadline(in: 60_000)) {
            try expectRefusal(.busy, "Another process is setting up \"\(place.realPath)\". Try again.") {
                $0.busyTimeout = 20
            }
            return true
        }
        #expect(isRefused == true)
        try makeStore()
    }

    @Test func `an opening that waits in vain for a transaction is busy, and the next one works`() throws {
        try FileSystem.makeFile(place.path)
        var other = try place.otherConnection()
        try other.execute("BEGIN EXCLUSIVE")
        // An opening that is not refused for the file itself marks it.
        try Data("L".utf8).write(to: place.folder("store.sqlite.lock"))
        try expectRefusal(.busy, "Another process or a long transaction holds the store. Try again. (SQLite: ") {
            $0.busyTimeout = 20
        }
        try other.execute("ROLLBACK")
        try makeStore()
    }

    @Test func `eight threads open a new file at the same moment`() throws {
        let stores = try (0..<8).map { _ in SideThread { try place.open() } }.map { try $0.value() }
        for (index, store) in stores.enumerated() { try store.open(.a).put(Int64(index), "x") }
        #expect(try stores[0].open(.a).totals().count == 8)
    }

    /// Each program counts up in an entry of its own, and reads those of the others.
    @Test func `eight processes open a new file in a new folder at the same moment`() throws {
        for round in 0..<(LongTests.areEnabled ? 40 : 4) {
            let (home, counts) = (place.folder("\(round)/home").path, place.folder("counts\(round)").path)
            #expect(FileManager.default.createFile(atPath: counts, contents: Data(count: 4096)))
            let path = home + "/store.sqlite"
            let children = try (0..<8).map {
                try ChildProcess("larder-test-rows", ["share", path, counts, "\($0)", "3"])
            }
            for child in children { #expect(try child.finish().lines == ["done"], "round \(round)") }
            let store = try Store.open(path, makeOptions())
            let rows = try store.open(.rows)
            for index in 0..<8 { #expect(try rows.text(Int64(index)) == "3", "round \(round)") }
            #expect(try store.verify().problems == [], "round \(round)")
            let names = try FileManager.default.contentsOfDirectory(atPath: home)
            #expect(!names.contains { $0.hasSuffix("damaged") || $0.hasSuffix("salvaged") }, "round \(round)")
        }
    }
}
