import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// What a verification reports and repairs, and entries that do not fit their checksum.
struct VerificationTests {
    private let sample: DamagedStore
    private let events = Told<StoreEvent>()

    init() throws { sample = try DamagedStore.sample() }

    private func open(_ place: StorePlace, _ recovery: Store.Options.Recovery = .salvage) throws -> Store {
        try place.open { [events] options in
            options.recovery = recovery
            options.report = { if !$0.isRemoval { events.add($0) } }
        }
    }

    private func changes(_ place: StorePlace, since before: FolderState) throws -> [String] {
        // Locks alone change the index of a log.
        try FolderState(place.folder.realURL).changes(since: before).filter { !$0.hasSuffix("-shm") }
    }

    private func execute(_ sql: String, _ place: StorePlace) throws {
        var other = try place.otherConnection()
        try other.execute(sql)
    }

    /// Writes a copy of the store with garbage on a page.
    private func damage(_ page: Int) throws -> StorePlace {
        var pages = sample.pages
        pages[page] = [UInt8](repeating: 0x5A, count: StorePages.size)
        return try sample.write(pages)
    }

    // MARK: Sound stores

    @Test func `a sound store has no problems, in a file and in memory, and a repair leaves it as it is`() throws {
        try withStores { store in
            let rows = try store.open(.a, inlineLimit: 100)
            let entries = (Int64(1)...50).map { EntryWrite($0, $0 % 5 == 0 ? big("\($0)") : "\($0)") }
            try rows.run(.put(entries))
            try rows.run(.remove([.integer(1), .integer(5)]))
            for isRepairing in [false, true, false] {
                let report = try store.verify(repairing: isRepairing)
                #expect(report.problems == [] && report.damagedCount == 0 && report.salvage == nil)
            }
            #expect(try rows.totals().count == 48 && rows.text(10) == big("10"))
        }
    }

    @Test func `a verification and a repair of a sound store change no file`() throws {
        let place = try sample.write()
        let store = try open(place)
        let (caches, before) = (try DamagedStore.open(store), try FolderState(place.folder.realURL))
        for isRepairing in [false, true] { #expect(try store.verify(repairing: isRepairing).problems == []) }
        #expect(try changes(place, since: before) == [] && events.all.isEmpty)
        let found = try DamagedStore.check(caches)
        #expect(found.missing.isEmpty && found.wrong.isEmpty)
    }

    @Test func `a verification finds no problem while threads replace, remove and clear entries with files`() throws {
        let place = try StorePlace()
        let store = try open(place)
        let rows = try store.open(.a, inlineLimit: 100)
        let (isDone, loops) = (Locked(false), Counter())
        defer { isDone.change { $0 = true } }
        let writers = (0..<2).map { number in
            SideThread<Void> {
                while !isDone.value {
                    let loop = loops.increment()
                    for key in Int64(0)..<10 { try rows.put(key, big("\(number) \(loop)")) }
                    try rows.run(loop % 7 == 0 ? .clear : .remove([.integer(Int64(loop % 10))]))
                }
            }
        }
        for round in 0..<(LongTests.areEnabled ? 200 : 20) {
            let last = loops.value
            try Waiting.until { loops.value > last || writers.contains { $0.result != nil } }
            let report = try store.verify()
            #expect(report.problems == [] && report.damagedCount == 0, "round \(round)")
        }
        isDone.change { $0 = true }
        for writer in writers { try writer.value() }
    }

    // MARK: Damage

    enum Damage: CaseIterable {
        case leaf, indexLeaf, accesses, freeListCount
        case payload, attributes, changedFile, shortFile, missingFile

        var isOfFile: Bool { [.leaf, .indexLeaf, .accesses, .freeListCount].contains(self) }
        var isOfValueFile: Bool { [.changedFile, .shortFile, .missingFile].contains(self) }
    }

    /// Writes a damaged copy of the store, and returns the entries that are lost by the damage.
    private func make(_ damage: Damage) throws -> (place: StorePlace, lost: Set<DamagedStore.Entry>) {
        let leaf = sample.leaves[2]
        switch damage {
        case .leaf: return (try self.damage(leaf), sample.entries(on: leaf))
        case .indexLeaf: return (try self.damage(sample.pages.leaves("entry_key")[1]), [])
        case .accesses: return (try self.damage(sample.pages.leaves("used")[0]), [])
        case .freeListCount:
            var pages = sample.pages
            pages.change(39, to: pages.bytes[39] ^ 1)
            return (try sample.write(pages), [])
        default: break
        }
        let place = try sample.write()
        let entry = DamagedStore.Entry(cache: "a", number: damage.isOfValueFile ? 57 : 30)
        let file = sample.valueFiles.first { $0.value.cache == "a" && $0.value.number == 57 }
        let url = place.file(try #require(file).key)
        switch damage {
        case .changedFile: try url.overwrite(at: 8000, with: Data([0]))
        case .shortFile: try url.cut(to: 8000)
        case .missingFile: try FileManager.default.removeItem(at: url)
        default:
            let change = damage == .payload ? "payload = x'00'" : "expires_at = 7"
            try execute("UPDATE entry SET \(change) WHERE key LIKE 'a/1030/%'", place)
        }
        return (place, [entry])
    }

    /// The sentence about a damaged entry.
    private func sentence(_ entry: DamagedStore.Entry, _ damage: Damage) throws -> String {
        var reason = "it does not fit its checksum"
        if damage.isOfValueFile {
            let file = try #require(sample.valueFiles.first { $0.value == entry }).key
            reason = "its file \"\(file)\" is missing or damaged"
        }
        let key = "\(entry.cache)/\(entry.number + 1000)/" + String(repeating: "k", count: 40)
        return "The entry of \"\(key)\" in the cache \"\(entry.cache)\" cannot be read: \(reason)."
    }

    @Test(arguments: Damage.allCases)
    func `damage is reported in a sentence and changes no file, and after a repair nothing is left of it`(
        damage: Damage
    ) throws {
        let (place, lost) = try make(damage)
        let store = try open(place)
        let (caches, memory) = (try DamagedStore.open(store), MemoryProbe())
        caches[0].attach(memory)
        let before = try FolderState(place.folder.realURL)
        let reports = try (0..<2).map { _ in try store.verify() }
        #expect(try changes(place, since: before) == [] && events.all.isEmpty)
        let repair = try store.verify(repairing: true)
        for report in reports + [repair] {
            #expect(report.problems == repair.problems && !report.problems.isEmpty)
            #expect(report.damagedCount == (damage.isOfFile ? 0 : 1))
        }
        if damage.isOfFile {
            for problem in repair.problems {
                #expect(problem.hasPrefix("The database is damaged: ") && problem.hasSuffix("."), "\(problem)")
            }
            let salvage = try #require(repair.salvage)
            #expect(salvage.kept == DamagedStore.entries.count - lost.count && salvage.lost == lost.count)
            #expect(events.salvages == [salvage] && memory.removed.isEmpty)
        } else {
            #expect(try repair.problems == lost.map { try sentence($0, damage) } && repair.salvage == nil)
            #expect(memory.removed.map(\.key) == lost.map(\.key) && memory.removed.map(\.cause) == [.damaged])
        }
        #expect(reports.allSatisfy { $0.salvage == nil })
        let last = try store.verify()
        #expect(last.problems == [] && last.damagedCount == 0)
        let found = try DamagedStore.check(caches)
        #expect(found.missing == lost && found.wrong.isEmpty)
    }

    @Test func `of many damaged entries all are counted and repaired, and the first hundred are reported`() throws {
        let place = try sample.write()
        try execute("UPDATE entry SET payload = x'00' WHERE payload IS NOT NULL", place)
        let store = try open(place)
        let count = DamagedStore.entries.count - sample.valueFiles.count
        for isRepairing in [false, true] {
            let report = try store.verify(repairing: isRepairing)
            #expect(report.damagedCount == count && Set(report.problems).count == 100 && report.problems.count == 100)
        }
        #expect(try store.verify().problems == [])
        let found = try DamagedStore.check(DamagedStore.open(store))
        #expect(found.missing.count == count && found.wrong.isEmpty)
    }

    /// All entries hang on that page.
    @Test func `damage of the first page that comes while the store is open is reported and repaired`() throws {
        let place = try sample.write()
        let store = try open(place)
        let caches = try DamagedStore.open(store)
        // Open to the end: the locks of the process go with the first descriptor of the file that is closed.
        let main = try FileHandle(forWritingTo: URL(fileURLWithPath: place.path))
        defer { withExtendedLifetime(main) {} }
        try main.write(contentsOf: Data(repeating: 0x5A, count: StorePages.size))
        #expect(try store.verify().problems.count == 1 && events.all.isEmpty)
        #expect(try store.verify(repairing: true).salvage?.kept == 0)
        #expect(try DamagedStore.check(caches).missing == Set(DamagedStore.entries))
        try caches[0].put(1, "x")
        #expect(try caches[0].text(1) == "x" && store.verify().problems == [] && events.salvages.count == 1)
    }

    @Test func `a store that is to fail at damage is salvaged by a repair, and goes on`() throws {
        let (place, lost) = try make(.leaf)
        let store = try open(place, .fail)
        let (caches, hit) = (try DamagedStore.open(store), try #require(lost.first))
        let rows = try #require(caches.first { $0.declaration.name == hit.cache })
        #expect(throws: StoreError.self) { try rows.row(hit.key) }
        #expect(try !store.verify().problems.isEmpty && events.all.isEmpty)
        #expect(try store.verify(repairing: true).salvage?.lost == lost.count)
        let found = try DamagedStore.check(caches)
        #expect(found.missing == lost && found.wrong.isEmpty && events.salvages.count == 1)
        #expect(try store.verify().problems == [])
    }

    @Test(arguments: [false, true])
    func `a store that is opened read-only is verified, and refuses a repair`(isDamaged: Bool) throws {
        let place = try isDamaged ? make(.leaf).place : sample.write()
        let before = try FolderState(place.folder.realURL)
        let store = try place.open { $0.isReadOnly = true }
        #expect(try store.verify().problems.isEmpty == !isDamaged)
        let error = #expect(throws: StoreError.self) { try store.verify(repairing: true) }
        #expect(error?.code == .readOnly)
        try store.close()
        #expect(try FolderState(place.folder.realURL).changes(since: before) == [])
    }

    // MARK: Damaged entries

    enum Way: CaseIterable { case row, rows, page, list }

    private func read(_ way: Way, _ rows: CacheRows) throws -> [StoredRow] {
        let keys = [1, 2, 3].map { StoredKey.integer($0) }
        switch way {
        case .row: return try keys.compactMap { try rows.row($0) }
        case .rows: return try rows.rows(keys)
        case .page: return try rows.rows().rows
        case .list: return try rows.rows(rows.list(.written), 0..<3).rows
        }
    }

    @Test(arguments: Way.allCases)
    func `an entry that does not fit its checksum is a miss, is reported, and is deleted in the background`(
        way: Way
    ) throws {
        let place = try StorePlace()
        let store = try open(place)
        let (rows, memory) = (try store.open(.a), MemoryProbe())
        rows.attach(memory)
        for key in Int64(1)...3 { try rows.put(key, "\(key)") }
        try execute("UPDATE entry SET payload = x'00' WHERE key = 2", place)
        #expect(try read(way, rows).map(\.header.key) == [.integer(1), .integer(3)])
        #expect(events.damagedKeys == [.integer(2)] && events.all.count == 1)
        try rows.finishRemovals()
        // Memory hears of a removal after the writer has let the next request in.
        try Waiting.until { memory.removed.count == 2 }
        #expect(memory.removed.map(\.key) == [.integer(2), .integer(-1)])
        #expect(memory.removed.map(\.cause) == [.damaged, .undecodable])
        #expect(try rows.totals() == Totals(count: 2, size: 2) && rows.keys().rows == [.integer(1), .integer(3)])
        #expect(try store.verify().problems == [])
    }

    @Test func `a damaged entry that is replaced before it is deleted stays`() throws {
        let place = try StorePlace()
        let store = try open(place)
        let rows = try store.open(.a)
        try rows.put(1, "one")
        try execute("UPDATE entry SET payload = x'00'", place)
        try store.transaction { state in
            #expect(try rows.text(1) == nil)
            try Waiting.until { store.waitingCount == 1 }
            _ = try state.perform(.put([EntryWrite(1, "new")]), on: rows)
        }
        try rows.finishRemovals()
        #expect(try rows.text(1) == "new" && events.damagedKeys == [.integer(1)])
    }

    @Test func `a deletion in the background concerns that very row, and none that came later`() throws {
        let place = try StorePlace()
        let rows = try open(place).open(.a)
        for key in Int64(1)...5 { try rows.put(key, "old") }
        let old = try rows.headers().rows
        try rows.put(2, "new")
        try rows.run(.change(.integer(3), .pin(true)))
        try rows.run(.remove([.integer(4), .integer(5)]))
        try rows.put(4, "again")
        for header in old { rows.removeLater(header) }
        try rows.finishRemovals()
        let texts = try (Int64(1)...5).map { try rows.text($0) }
        #expect(texts == [nil, "new", "old", "again", nil])
        let cleared = try rows.headers().rows
        try rows.run(.clear)
        for key in Int64(2)...4 { try rows.put(key, "x") }
        for header in cleared { rows.removeLater(header) }
        try rows.finishRemovals()
        #expect(try rows.totals().count == 3)
    }
}
