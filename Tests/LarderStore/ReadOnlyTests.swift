import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Payloads above 100 bytes are files here.
struct ReadOnlyTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    private func openReadOnly(
        _ clock: StoreClock = StoreClock(), report: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) throws -> Store {
        try place.open(clock) { options in
            options.isReadOnly = true
            options.report = report
        }
    }

    /// Leaves a closed store with a small and a large entry, and with one that has expired and one that is retired.
    private func fill() throws {
        let store = try place.open()
        try store.open(.a, inlineLimit: 100).run(.put([EntryWrite(1, "one"), EntryWrite(2, big("2"))]))
        try store.open(.named("expiring", .sinceWrite(1000))).put(1, "expired")
        let cleared = try store.open(.named("cleared"))
        try cleared.put(1, "retired")
        try cleared.run(.clear)
        try store.close()
    }

    /// Expects that nothing in the folder changes while `body` runs.
    private func expectUnchanged(_ comment: Comment = "", _ body: () throws -> Void) throws {
        let before = try FolderState(place.folder.realURL)
        try body()
        #expect(try FolderState(place.folder.realURL).changes(since: before) == [], comment)
    }

    // MARK: What is read

    @Test func `a closed store is read in every way, and no file is changed or created`() throws {
        try fill()
        try expectUnchanged {
            let store = try openReadOnly()
            let rows = try store.open(.a)
            // So often that the connections of the readers are used too.
            for _ in 0..<12 { #expect(try rows.text(1) == "one" && rows.text(2) == big("2")) }
            let keys: [StoredKey] = [.integer(1), .integer(2)]
            #expect(try rows.rows(keys).count == 2 && rows.keys().rows == keys && rows.rows().rows.count == 2)
            #expect(try rows.header(.integer(2))?.payloadSize == 200 && rows.list(.size).count == 2)
            #expect(try rows.totals() == Totals(count: 2, size: 203) && rows.count(at: 0) == 2)
            #expect(try store.verify().problems == [])
            try store.close()
        }
    }

    @Test func `a main file alone is read, and nothing is created beside it`() throws {
        try fill()
        for name in try place.folder.names where name != "store.sqlite" {
            try FileManager.default.removeItem(at: place.folder(name))
        }
        let events = Counter()
        try expectUnchanged {
            let store = try openReadOnly { _ in events.increment() }
            let rows = try store.open(.a)
            for _ in 0..<12 { #expect(try rows.text(1) == "one") }
            // It has no file, and cannot be deleted.
            #expect(try rows.text(2) == nil && rows.totals().count == 2)
            try store.close()
        }
        #expect(events.value == 1)
    }

    @Test func `each commit of another store is seen, and no file is created`() throws {
        let rows = try place.open().open(.a)
        try rows.put(1, "first")
        let names = try place.folder.names
        let reading = try openReadOnly().open(.a)
        for round in 0..<50 {
            try rows.put(1, "\(round)")
            #expect(try reading.text(1) == "\(round)" && reading.rows([.integer(1)]).count == 1)
            for _ in 0..<(round % 20) { #expect(try reading.text(1) == "\(round)") }
            try rows.run(.clear)
            #expect(try reading.text(1) == nil && reading.keys().rows == [] && reading.totals() == Totals())
        }
        #expect(try place.folder.names == names)
    }

    /// Returns the entries of the model at one moment.
    private func entries(_ store: Store) throws -> [Int64: String] {
        var entries: [Int64: String] = [:]
        for row in try store.open(.rows).rows((0..<RowsModel.keys).map { StoredKey.integer($0) }) {
            if case .integer(let key) = row.header.key { entries[key] = String(decoding: row.payload, as: UTF8.self) }
        }
        return entries
    }

    /// The changes are a function of the seed, so the states that a read may find are known.
    ///
    /// The files are looked at only while no store of this process has them open: that would end its locks.
    @Test(arguments: [false, true])
    func `what a process writes is read, and what it leaves when it is killed`(staysOpen: Bool) throws {
        var random = Seeded()
        var (done, model, standing) = (0, RowsModel(seed: random.seed), Store?.none)
        func read() throws -> [Int64: String] {
            if let standing { return try entries(standing) }
            let store = try openReadOnly()
            if staysOpen { standing = store }
            let found = try entries(store)
            if !staysOpen { try store.close() }
            return found
        }
        for round in 0..<(LongTests.areEnabled ? 200 : 20) {
            let comment: Comment = "round \(round), seed \(random.seed)"
            let child = try ChildProcess("larder-test-rows", ["change", "\(random.seed)", "\(done)", place.path])
            let first = try child.number()
            let during = try read()
            let last = try child.kill(after: .random(in: 1...20, using: &random))
            var after: [Int64: String] = [:]
            if staysOpen { after = try read() } else { try expectUnchanged(comment) { after = try read() } }
            model.advance(to: first)
            // One change more may be committed than was acknowledged.
            while model.entries != during && model.count <= last { model.advance(to: model.count + 1) }
            #expect(model.entries == during, comment)
            model.advance(to: last)
            if model.entries != after { model.advance(to: last + 1) }
            #expect(model.entries == after, comment)
            done = model.count
        }
        #expect(done > 20)
    }

    @Test func `what a process leaves that is killed before its first commit can be read`() throws {
        try fill()
        let before = try entries(openReadOnly())
        var head = Data(count: 32)
        for (place, byte) in zip(0..., [0x37, 0x7F, 0x06, 0x82, 0x00, 0x2D, 0xE2, 0x18, 0, 0, 0x10]) {
            head[place] = UInt8(byte)
        }
        try head.write(to: URL(fileURLWithPath: place.path + "-wal"))
        try Data(count: 32_768).write(to: URL(fileURLWithPath: place.path + "-shm"))
        try expectUnchanged("a head") {
            let found = try entries(openReadOnly())
            #expect(found == before)
        }
    }

    @Test func `a cache of another version is superseded, and nothing is purged`() throws {
        try fill()
        let store = try openReadOnly()
        for declaration in [CacheDeclaration.named("a", version: "2"), .named("missing")] {
            let rows = try store.open(declaration)
            #expect(try rows.isSuperseded() && rows.text(1) == nil && rows.keys().rows == [])
            #expect(try rows.totals() == Totals())
        }
        #expect(try store.open(.a).text(1) == "one")
        try store.close()
        #expect(try place.open().open(.a).text(1) == "one")
    }

    @Test(arguments: [false, true])
    func `a file without a log is read again 250 ms after another store has written`(isClosed: Bool) throws {
        try fill()
        // The moment of the write is another one, however fast it follows.
        let past = Date(timeIntervalSince1970: 1000)
        try FileManager.default.setAttributes([.modificationDate: past], ofItemAtPath: place.path)
        let clock = StoreClock()
        let reading = try openReadOnly(clock).open(.a)
        for _ in 0..<12 { #expect(try reading.text(1) == "one") }
        let store = try place.open()
        try store.open(.a).put(1, "two")
        if isClosed { try store.close() }
        #expect(try ["one", "two"].contains(reading.text(1) ?? ""))
        clock.advance(250)
        #expect(try reading.text(1) == "two" && reading.rows([.integer(1)]).first?.payload == Data("two".utf8))
        for round in 0..<(isClosed ? 0 : 20) {
            try store.open(.a).put(1, "\(round)")
            #expect(try reading.text(1) == "\(round)")
        }
    }

    // MARK: What is refused

    enum Writing: CaseIterable {
        case put, largePut, remove, take, change, clear, body, largeBody
        case maintenance, limits, storeLimits, trim, erase, repair
    }

    private func write(_ writing: Writing, _ rows: CacheRows, _ store: Store) throws {
        func put(_ text: String) -> Change { .put([EntryWrite(1, text)]) }
        switch writing {
        case .put: try rows.run(put("x"))
        case .largePut: try rows.run(put(big("x")))
        case .remove: try rows.run(.remove([.integer(1)]))
        case .take: try rows.run(.take(.integer(1)))
        case .change: try rows.run(.change(.integer(1), .pin(true)))
        case .clear: try rows.run(.clear)
        case .body: try store.transaction { _ = try $0.perform(put("x"), on: rows) }
        case .largeBody: try store.transaction { _ = try $0.perform(put(big("x")), on: rows) }
        case .maintenance: try store.maintain()
        case .limits: try rows.setLimits(Limits(count: 1))
        case .storeLimits: try store.setLimits(StoreLimits(size: 1))
        case .trim: try rows.trim(to: Limits(count: 1))
        case .erase: try rows.erase()
        case .repair: _ = try store.verify(repairing: true)
        }
    }

    @Test(arguments: Writing.allCases)
    func `a change is refused, and no file is changed or created`(writing: Writing) throws {
        try fill()
        let store = try openReadOnly()
        let rows = try store.open(.a, inlineLimit: 100)
        #expect(try rows.text(1) == "one")
        try expectUnchanged {
            let error = #expect(throws: StoreError.self) { try write(writing, rows, store) }
            #expect(error?.code == .readOnly && error?.message.hasPrefix("The store was opened read-only") == true)
        }
        #expect(try rows.text(1) == "one" && rows.totals().count == 2)
    }

    @Test func `a change of a task is refused, and no file is changed or created`() async throws {
        try fill()
        let store = try openReadOnly()
        let rows = try store.open(.a, inlineLimit: 100)
        let before = try FolderState(place.folder.realURL)
        for text in ["x", big("x")] {
            let error = await #expect(throws: StoreError.self) { try await rows.put(1, text) }
            #expect(error?.code == .readOnly)
        }
        let error = await #expect(throws: StoreError.self) {
            try await store.transaction { _ = try $0.perform(.clear, on: rows) }
        }
        #expect(error?.code == .readOnly)
        #expect(try FolderState(place.folder.realURL).changes(since: before) == [])
    }

    enum Refused: CaseIterable { case missing, folder, database, text, newer, logAlone }

    /// Runs SQL over a connection that leaves the log.
    private func execute(_ sql: String) throws {
        var other = try place.otherConnection()
        try other.execute(sql)
    }

    @Test func `a file on the disk of another machine is read only if no process writes it`() throws {
        try fill()
        let network: (inout Store.Options) -> Void = {
            $0.isReadOnly = true
            $0.isNetworkDisk = { _ in true }
        }
        #expect(try place.open(StoreClock(), network).open(.a).totals().count > 0)
        let writer = try place.open()
        try writer.open(.a).put(100, "x")
        let error = #expect(throws: StoreError.self) { try place.open(StoreClock(), network) }
        #expect(error?.message == "\"\(place.realPath)\" is on a network. Use a local disk.")
    }

    @Test(arguments: Refused.allCases)
    func `a file that cannot be read is refused, and no file is changed or created`(refused: Refused) throws {
        var (code, message) = (StoreError.Code.foreignFile, "is a file of another program. Name another path.")
        switch refused {
        case .missing, .folder:
            (code, message) = (.storageUnavailable, "is no file. A store that is opened read-only has to exist.")
            guard refused == .folder else { break }
            try FileManager.default.createDirectory(atPath: place.path, withIntermediateDirectories: false)
        case .database:
            try FileSystem.makeFile(place.path)
            try execute("CREATE TABLE t (x)")
        case .text: try Data("text".utf8).write(to: place.folder("store.sqlite"))
        case .newer:
            (code, message) = (.newerSchema, "was written by a later release. Update the program.")
            try fill()
            try execute("PRAGMA user_version = \(Schema.current + 1)")
        case .logAlone:
            (code, message) = (.storageUnavailable, "has a log without an index. Open it once for writing.")
            try fill()
            try execute("UPDATE cache SET opened_at = 1")
            try FileManager.default.removeItem(atPath: place.path + "-shm")
        }
        try expectUnchanged {
            let error = #expect(throws: StoreError.self) { try openReadOnly() }
            #expect(error?.code == code && error?.message == "\"\(place.realPath)\" " + message)
        }
        guard refused == .logAlone else { return }
        try place.open().close()
        #expect(try openReadOnly().open(.a).text(1) == "one")
    }
}

extension ChildProcess {
    /// Returns the number that the program prints next.
    fileprivate func number() throws -> Int {
        let line = try #require(self.line())
        return try #require(Int(line))
    }
}

/// What is below a folder: the kind, the rights, the moment of change and the bytes of each file.
struct FolderState {
    private struct Item: Equatable {
        let attributes: [String]
        /// Nil for what is no regular file.
        let bytes: Data?
    }

    private var items: [String: Item] = [:]

    init(_ folder: URL) throws {
        let manager = FileManager.default
        for name in try [""] + manager.subpathsOfDirectory(atPath: folder.path) {
            let path = name.isEmpty ? folder.path : folder.path + "/" + name
            let found = try manager.attributesOfItem(atPath: path)
            let moment = try #require(found[.modificationDate] as? Date).timeIntervalSinceReferenceDate
            let isFile = (found[.type] as? FileAttributeType) == .typeRegular
            items[name] = Item(
                attributes: ["\(found[.type] ?? "")", "\(found[.posixPermissions] ?? "")", "\(moment)"],
                bytes: try isFile ? Data(contentsOf: URL(fileURLWithPath: path)) : nil)
        }
    }

    /// Returns the names of what was created, deleted or changed since an earlier state.
    func changes(since earlier: FolderState) -> [String] {
        Set(items.keys).union(earlier.items.keys).filter { items[$0] != earlier.items[$0] }.sorted()
    }
}
