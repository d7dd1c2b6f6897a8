import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// The store has a folder of its own, which can be renamed.
struct MovedFilesTests {
    enum Move: CaseIterable { case deletion, mainDeletion, renaming, replacement, mainReplacement }

    private let folder: TemporaryFolder
    private let clock = StoreClock()

    init() throws { folder = try TemporaryFolder() }

    private var path: String { folder("home/store.sqlite").path }
    private static let endings = ["", "-wal", "-shm"]

    /// Opens a store that is expected to find no damage.
    private func open(_ name: String = "home") throws -> Store {
        var options = Store.Options()
        options.busyTimeout = 60_000
        options.time = clock.time
        options.report = { if !$0.isRemoval { Issue.record("\($0)") } }
        return try Store.open(folder(name + "/store.sqlite").path, options)
    }

    /// Deletes the files, renames their folder, or moves them there and puts those of another store in their place.
    private func move(_ move: Move, to name: String = "moved") throws {
        let manager = FileManager.default
        switch move {
        case .deletion: for ending in Self.endings { try manager.removeItem(atPath: path + ending) }
        case .mainDeletion: try manager.removeItem(atPath: path)
        case .renaming: try manager.moveItem(at: folder("home"), to: folder(name))
        case .replacement, .mainReplacement:
            let other = try open("other")
            try other.open(.a).run(.put([EntryWrite(1, "another"), EntryWrite(2, "more")]))
            try other.close()
            try manager.createDirectory(at: folder(name), withIntermediateDirectories: false)
            let endings = move == .replacement ? Self.endings : [""]
            for file in endings.map({ "/store.sqlite" + $0 }) {
                try manager.moveItem(at: folder("home" + file), to: folder(name + file))
                try manager.moveItem(at: folder("other" + file), to: folder("home" + file))
            }
        }
    }

    private func expectMoved(_ call: () throws -> Void) {
        let error = #expect(throws: StoreError.self) { try call() }
        #expect(error?.code == .storageUnavailable && error?.message.hasPrefix("The file was moved or") == true)
    }

    private func files(_ name: String) throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder(name + "/store.files").path))
    }

    // MARK: Protection

    @Test func `each file that is opened is protected, and each copy`() throws {
        let seen = Locked<[String]>([])
        var options = Store.Options()
        options.time = clock.time
        options.protect = { paths throws(StoreError) in seen.change { $0 += paths } }
        let store = try Store.open(path, options)
        let parts = ["store.sqlite", "store.sqlite-shm", "store.sqlite.lock", "store.files", "store.sqlite-wal"]
        func protected() -> [String] {
            defer { seen.change { $0 = [] } }
            return seen.value.map { URL(fileURLWithPath: $0).lastPathComponent }
        }
        #expect(protected() == parts)
        let rows = try store.open(.a, inlineLimit: 100)
        let source = folder("source")
        try Data(count: 200).write(to: source)
        let copied = try rows.copy(source.path, for: .integer(1), label: nil, isPlain: true)
        let file = try #require(copied.file)
        #expect(protected().count == 1)
        try rows.run(.put([EntryWrite(key: .integer(1), file: file, writtenAt: 0, expiresAt: nil, meta: RowMeta())]))
        try move(.renaming)
        expectMoved { try rows.run(.put([EntryWrite(1, "late")])) }
        try rows.run(.put([EntryWrite(1, "again")]))
        #expect(protected() == parts)
    }

    // MARK: Writes

    @Test(arguments: Move.allCases)
    func `after a move one write fails, and the next one finds the opened caches with their limits`(move: Move) throws {
        _ = try open().open(.named("unopened"))
        let store = try open()
        let (rows, limited) = (try store.open(.a), try store.open(.named("limited", .sinceWrite(5000))))
        try limited.setLimits(Limits(count: 2))
        limited.keepExpired(700)
        try limited.run(.remove([]))
        try store.setLimits(StoreLimits(size: 1_000_000))
        try rows.put(1, "one")
        try self.move(move)
        expectMoved { try rows.put(3, "three") }
        try rows.put(3, "three")
        let (other, total): (String?, Int64) =
            [.replacement, .mainReplacement].contains(move) ? ("another", 3) : (nil, 1)
        #expect(try rows.text(3) == "three" && rows.text(1) == other && rows.totals().count == total)
        try limited.run(.put((1...9).map { EntryWrite($0, "x", at: clock.now) }))
        #expect(try limited.totals().count == 2 && store.verify().problems == [])
        var connection = try Connection.open(
            .file(URL(fileURLWithPath: path).real.path), .init(role: .writer, busyMilliseconds: 10_000))
        let columns = ["name", "version", "codec", "age_rule", "age", "coalesce(count_limit, '-')", "keeps_expired"]
        let text = columns.joined(separator: " || ' ' || ")
        #expect(
            try connection.texts("SELECT \(text) FROM cache WHERE state = 0 ORDER BY name") == [
                "a 1 data 0 0 - 0", "limited 1 data 1 5000 2 700",
            ])
        #expect(try connection.texts("SELECT size_limit FROM store") == ["1000000"])
    }

    @Test func `one write fails though a body had thrown before the move`() throws {
        let store = try open()
        let rows = try store.open(.a)
        try rows.put(1, "one")
        #expect(throws: CancellationError.self) { try store.transaction { _ -> Void in throw CancellationError() } }
        try move(.deletion)
        expectMoved { try rows.put(2, "two") }
        try rows.put(2, "two")
        #expect(try rows.text(1) == nil && rows.text(2) == "two")
    }

    @Test func `two stores lose their file, and meet in the next one`() throws {
        let (store, other) = (try open(), try open())
        let (rows, otherRows) = (try store.open(.a), try other.open(.a))
        try rows.put(1, "one")
        try move(.renaming)
        for (cache, key) in [(rows, Int64(2)), (otherRows, Int64(3))] {
            expectMoved { try cache.put(key, "x") }
            try cache.put(key, "x")
        }
        for cache in [rows, otherRows] { #expect(try cache.keys().rows == [.integer(2), .integer(3)]) }
    }

    @Test func `while the path cannot be opened writes fail, and afterwards one more at most`() throws {
        let rows = try open().open(.a)
        try rows.put(1, "one")
        try move(.deletion)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        for _ in 0..<5 {
            let error = #expect(throws: StoreError.self) { try rows.put(2, "two") }
            #expect(error?.code == .storageUnavailable)
        }
        try FileManager.default.removeItem(atPath: path)
        do { try rows.put(2, "two") } catch let error as StoreError { #expect(error.code == .storageUnavailable) }
        try rows.put(2, "two")
        #expect(try rows.text(1) == nil && rows.text(2) == "two")
    }

    @Test func `a body during which the folder is renamed fails, and the next one does not`() throws {
        let store = try open()
        let rows = try store.open(.a)
        expectMoved {
            try store.transaction { state in
                _ = try state.perform(.put([EntryWrite(1, "one")]), on: rows)
                try move(.renaming)
            }
        }
        try store.transaction { _ = try $0.perform(.put([EntryWrite(2, "two")]), on: rows) }
        #expect(try rows.text(1) == nil && rows.text(2) == "two")
    }

    @Test func `a write or a body of a task fails once after a move`() async throws {
        let store = try open()
        let rows = try store.open(.a, inlineLimit: 100)
        try await rows.put(1, "one")
        for (round, text) in ["small", big("large")].enumerated() {
            try move(.renaming, to: "\(round)")
            let error = await #expect(throws: StoreError.self) { try await rows.put(2, text) }
            #expect(error?.code == .storageUnavailable)
            try await rows.put(2, text)
            #expect(try rows.text(1) == nil && rows.text(2) == text)
        }
        try move(.renaming)
        let put = Change.put([EntryWrite(3, "three")])
        let body: @Sendable (WriterState) throws -> Void = { _ = try $0.perform(put, on: rows) }
        let error = await #expect(throws: StoreError.self) { try await store.transaction(body) }
        #expect(error?.code == .storageUnavailable)
        try await store.transaction(body)
        #expect(try rows.text(2) == nil && rows.text(3) == "three")
    }

    // MARK: What is left

    @Test(arguments: [Move.renaming, .replacement])
    func `the moved file has all that was acknowledged, and no value file is deleted`(move: Move) throws {
        let store = try open()
        let rows = try store.open(.a, inlineLimit: 100)
        try rows.run(.put((1...9).map { EntryWrite($0, $0 > 7 ? big("\($0)") : "\($0)") }))
        let names = try files("home")
        try self.move(move)
        expectMoved { try rows.run(.remove([.integer(1), .integer(9)])) }
        for change in [Change.remove([.integer(8)]), .put([EntryWrite(8, "x")]), .clear] {
            try rows.run(change)
        }
        try store.maintain()
        try store.close()
        let (old, new) = (folder("home/store.files"), folder("moved/store.files"))
        if move == .replacement { try FileManager.default.moveItem(at: old, to: new) }
        #expect(try names.count == 2 && names.isSubset(of: files("moved")))
        let moved = try open("moved")
        let movedRows = try moved.open(.a)
        for key in Int64(2)...8 { #expect(try movedRows.text(key) == (key > 7 ? big("\(key)") : "\(key)")) }
        #expect(try moved.verify().problems == [])
    }

    @Test func `a large entry that is replaced after its folder was renamed is not lost`() throws {
        let rows = try open().open(.a, inlineLimit: 100)
        try rows.put(1, big("x"))
        try move(.renaming)
        expectMoved { try rows.put(1, big("y")) }
        try rows.put(1, big("z"))
        let text = try open("moved").open(.a).text(1)
        #expect(text == big("x") || text == big("y"))
        #expect(try rows.text(1) == big("z"))
    }

    @Test func `upkeep fails once after a move, and deletes no file`() throws {
        let store = try open()
        let rows = try store.open(.named("expiring", .sinceWrite(1000)), inlineLimit: 100)
        try rows.run(.put((1...3).map { EntryWrite($0, big("\($0)")) }))
        let names = try files("home")
        try move(.replacement)
        expectMoved { try store.maintain() }
        #expect(try store.maintain().orphans == 0 && rows.keys().rows == [])
        try store.close()
        #expect(try names.count == 3 && files("home") == names)
    }

    @Test func `the next file does not share the log of a deleted main file`() throws {
        let rows = try open().open(.a)
        try rows.put(1, "one")
        let old = try Self.endings.map { try FileSystem.status(path + $0)?.identity }
        try move(.mainDeletion)
        expectMoved { try rows.put(2, "two") }
        try rows.put(2, "two")
        let new = try Self.endings.map { try FileSystem.status(path + $0)?.identity }
        for (old, new) in zip(old, new) { #expect(old != nil && new != nil && old != new) }
    }

    @Test func `nothing acknowledged is lost while four threads write and the folder is renamed`() throws {
        let store = try open()
        let rows = try store.open(.a)
        let (isDone, acknowledged, count) = (Locked(false), Told<Int64>(), Counter())
        defer { isDone.change { $0 = true } }
        let threads = (0..<4).map { thread in
            SideThread<Void> {
                var (key, failures) = (Int64(thread) << 32, 0)
                while !isDone.value {
                    key += 1
                    do {
                        try rows.put(key, "x")
                        acknowledged.add(key)
                        count.increment()
                        failures = 0
                    } catch let error as StoreError where error.code == .storageUnavailable && failures < 1000 {
                        failures += 1
                    }
                }
            }
        }
        for round in 0..<(LongTests.areEnabled ? 200 : 20) {
            let goal = count.value + 20
            try Waiting.until { count.value > goal || threads.contains { $0.result != nil } }
            try move(.renaming, to: "\(round)")
        }
        isDone.change { $0 = true }
        for thread in threads { try thread.value() }
        try store.close()
        var lost = Set(acknowledged.all)
        for name in try folder.names {
            let moved = try open(name)
            #expect(try moved.verify().problems == [], "\(name)")
            for case .integer(let key) in try moved.open(.a).keys(limit: .max).rows { lost.remove(key) }
        }
        #expect(lost == [])
    }

    // MARK: Reads

    enum Reading: CaseIterable { case row, header, rows, keys, page, list, totals, count }

    /// Returns the number of entries that a read finds.
    private func count(_ reading: Reading, _ rows: CacheRows) throws -> Int {
        let keys: [StoredKey] = [.integer(1), .integer(2)]
        switch reading {
        case .row: return try keys.filter { try rows.row($0) != nil }.count
        case .header: return try keys.filter { try rows.header($0) != nil }.count
        case .rows: return try rows.rows(keys).count
        case .keys: return try rows.keys().rows.count
        case .page: return try rows.rows().rows.count
        case .list: return try rows.list(.written).count
        case .totals: return try Int(rows.totals().count)
        case .count: return try Int(rows.count(at: clock.now))
        }
    }

    @Test(arguments: Reading.allCases, [Move.deletion, .renaming, .replacement])
    func `250 ms after a move a read finds what is at the path`(reading: Reading, move: Move) throws {
        let rows = try open().open(.a)
        try rows.put(1, "one")
        // So often that a connection of the readers holds a transaction.
        for _ in 0..<20 { #expect(try count(reading, rows) == 1) }
        try self.move(move)
        let expected = move == .replacement ? 2 : 0
        #expect(try [1, expected].contains(count(reading, rows)))
        clock.advance(250)
        for _ in 0..<20 { #expect(try count(reading, rows) == expected) }
        try rows.put(9, "works")
        #expect(try rows.text(9) == "works" && rows.totals().count == Int64(expected + 1))
    }

    @Test(arguments: Reading.allCases)
    func `after a write that failed a read finds what is at the path`(reading: Reading) throws {
        let rows = try open().open(.a)
        try rows.put(1, "one")
        try move(.replacement)
        expectMoved { try rows.put(3, "three") }
        #expect(try count(reading, rows) == 2)
    }

    @Test func `a connection that is opened for a read finds another file than the writer's at once`() throws {
        let rows = try open().open(.a)
        try rows.put(1, "one")
        try move(.replacement)
        #expect(try rows.keys().rows == [.integer(1), .integer(2)] && rows.text(1) == "another")
    }
}
