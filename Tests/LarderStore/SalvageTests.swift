import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Damage that an open store meets, and what is carried into the new file.
struct SalvageTests {
    private let sample: DamagedStore
    private let events = Told<StoreEvent>()

    init() throws { sample = try DamagedStore.sample() }

    private func open(_ place: StorePlace, busyTimeout: Int64 = 60_000) throws -> Store {
        try place.open(busyTimeout: busyTimeout) { [events] options in
            options.report = { if !$0.isRemoval { events.add($0) } }
        }
    }

    /// A leaf of the table of entries.
    enum Leaf: CaseIterable { case first, middle, last }

    /// Writes a copy of the store with garbage in a leaf, and returns the entries that were on it.
    private func damage(_ leaf: Leaf) throws -> (place: StorePlace, lost: Set<DamagedStore.Entry>) {
        let leaves = sample.leaves
        let page = leaf == .first ? leaves[0] : leaf == .middle ? leaves[leaves.count / 2] : leaves[leaves.count - 1]
        var pages = sample.pages
        pages[page] = [UInt8](repeating: 0x5A, count: StorePages.size)
        return (try sample.write(pages), sample.entries(on: page))
    }

    private func bytes(_ place: StorePlace, _ ending: String = "") throws -> Data {
        try Data(contentsOf: place.folder("store.sqlite" + ending))
    }

    private func cache(of entry: DamagedStore.Entry, _ caches: [CacheRows]) throws -> CacheRows {
        try #require(caches.first { $0.declaration.name == entry.cache })
    }

    // MARK: One store

    @Test(arguments: Leaf.allCases, [false, true])
    func `damage that a call meets is salvaged once, and an event reports what was kept and lost`(
        leaf: Leaf, isMetByWrite: Bool
    ) throws {
        let (place, lost) = try damage(leaf)
        let (damaged, entry) = (try bytes(place), try #require(lost.first))
        let store = try open(place)
        var (caches, missing): ([CacheRows], Set<DamagedStore.Entry>) = ([], lost)
        // The first look of a writer meets the last leaf.
        let failed = try failures { caches = try DamagedStore.open(store) }
        #expect(failed <= 1)
        if isMetByWrite {
            let rows = try cache(of: entry, caches)
            let failed = try failures { try rows.run(.put([entry.write])) }
            #expect(failed <= 1)
            missing.remove(entry)
        }
        var found = try DamagedStore.check(caches)
        #expect(found.missing == missing && found.wrong.isEmpty)
        let report = try #require(events.salvages.first)
        #expect(report.kept == DamagedStore.entries.count - lost.count && report.lost == lost.count)
        #expect(try report.path == place.realPath + ".damaged" && bytes(place, ".damaged") == damaged)
        #expect(try store.verify().problems == [])
        try store.close()
        found = try DamagedStore.check(DamagedStore.open(open(place)))
        #expect(found.missing == missing && found.wrong.isEmpty && events.all.count == 1)
    }

    @Test(arguments: [false, true])
    func `a count that meets damage is that of the new file`(isAtMoment: Bool) throws {
        let (place, lost) = try damage(.middle)
        for rows in try DamagedStore.open(open(place)) {
            let kept = DamagedStore.entries(of: rows).filter { !lost.contains($0) }.count
            let count = try isAtMoment ? rows.count(at: 1_000_000) : rows.totals().count
            #expect(count == Int64(kept))
        }
        #expect(events.salvages.count == 1)
    }

    /// What a store has in its tables, each row with its id in front.
    private func tables(_ place: StorePlace, isLiveAlone: Bool = false) throws -> [[String]] {
        var other = try place.otherConnection()
        let live = "IN (SELECT id FROM cache WHERE state = 0)"
        let queries = [
            ("entry", "cache key revision written_at expires_at checksum file size meta", "cache \(live)"),
            ("used", "accessed_at", "(SELECT cache FROM entry WHERE entry.id = used.id) \(live)"),
            ("cache", "name version codec age_rule age count_limit size_limit state", "state = 0"),
            ("store", "size_limit free_space_floor", "true"),
        ]
        var found: [[String]] = []
        for (table, columns, condition) in queries {
            let values = columns.split(separator: " ").map { "quote(\($0))" }.joined(separator: " || ' ' || ")
            let rest = isLiveAlone ? "WHERE \(condition)" : ""
            found.append(try other.texts("SELECT id || ' ' || \(values) FROM \(table) \(rest) ORDER BY id"))
        }
        found.append(try other.texts("SELECT entry || ' ' || tag || revision FROM tag ORDER BY entry, tag"))
        found.append(try other.texts("SELECT cache || ' ' || day || counter || value FROM activity"))
        return found
    }

    @Test func `entries keep attributes, tags, ends and accesses, caches their limits, and no retired row comes back`()
        throws
    {
        let (place, lost) = try damage(.middle)
        let lostIDs = Set(sample.ids.filter { lost.contains($0.value) }.map { "\($0.key)" })
        let expected = try tables(sample.write(), isLiveAlone: true).map { rows in
            rows.filter { row in !lostIDs.contains(String(row.prefix { $0 != " " })) }
        }
        #expect(expected.allSatisfy { !$0.isEmpty })
        let store = try open(place)
        #expect(try DamagedStore.check(DamagedStore.open(store)).missing == lost)
        try store.close()
        for (rows, wanted) in zip(try tables(place), expected) { #expect(rows == wanted) }
        let tagged = DamagedStore.entries.filter { !lost.contains($0) && $0.number % 5 == 0 }
        #expect(try open(place).removeAll(tagged: "five") == tagged.count)
    }

    @Test func `a second exchange replaces the file that the first one has kept`() throws {
        let (place, first) = try damage(.middle)
        var lost = first
        for count in 1...2 {
            let damaged = try bytes(place)
            let store = try open(place)
            let found = try DamagedStore.check(DamagedStore.open(store))
            #expect(found.missing == lost && found.wrong.isEmpty && events.salvages.count == count)
            try store.close()
            #expect(try bytes(place, ".damaged") == damaged)
            var pages = try StorePages(of: place)
            let leaf = pages.leaves("entry")[1]
            lost.formUnion(sample.entries(on: leaf, of: pages))
            pages[leaf] = [UInt8](repeating: 0, count: StorePages.size)
            try Data(pages.bytes).write(to: place.folder("store.sqlite"))
        }
    }

    /// When the file is salvaged, its table has two rows of such an entry.
    @Test func `an entry that was written while a damaged index hid an older one stays after the salvage`() throws {
        var pages = sample.pages
        let leaves = pages.leaves("entry_key")
        pages[leaves[1]] = pages[leaves[0]]
        let place = try sample.write(pages)
        let store = try open(place)
        let caches = try DamagedStore.open(store)
        let hidden = try DamagedStore.check(caches).missing
        try #require(!hidden.isEmpty && events.all.isEmpty)
        for entry in hidden {
            let write = EntryWrite(key: entry.key, payload: Data("later".utf8), writtenAt: 2000)
            try cache(of: entry, caches).run(.put([write]))
        }
        #expect(try store.verify(repairing: true).salvage != nil)
        for entry in hidden {
            let payload = try cache(of: entry, caches).row(entry.key)?.payload
            #expect(payload == Data("later".utf8), "\(entry)")
        }
        #expect(try DamagedStore.check(caches).missing.isEmpty && store.verify().problems == [])
    }

    // MARK: Several stores

    enum Call: CaseIterable { case row, page, list, count, write, body, maintenance }

    private func make(_ call: Call, _ rows: CacheRows, _ store: Store) throws {
        switch call {
        case .row: _ = try rows.row(.integer(1))
        case .page: _ = try rows.rows()
        case .list: _ = try rows.list(.written)
        case .count: _ = try rows.totals()
        case .write: try rows.put(1, "x")
        case .body: try store.transaction { _ in }
        case .maintenance: try store.maintain()
        }
    }

    @Test(arguments: Call.allCases)
    func `another store on the path goes on with the new file, and fails once at most before`(call: Call) throws {
        let (place, lost) = try damage(.middle)
        let (store, other) = (try open(place), try open(place))
        let (caches, others) = (try DamagedStore.open(store), try DamagedStore.open(other))
        let first = try #require(DamagedStore.entries.first)
        #expect(try others[0].row(first.key)?.payload == first.payload)
        #expect(try DamagedStore.check(caches).missing == lost)
        let failed = try failures { try make(call, others[0], other) }
        #expect(failed <= ([Call.write, .body, .maintenance].contains(call) ? 1 : 0))
        let found = try DamagedStore.check(others)
        #expect(found.missing == lost && found.wrong.isEmpty)
        try others[0].put(2, "of the other")
        try caches[0].put(3, "of the first")
        #expect(try caches[0].text(2) == "of the other" && others[0].text(3) == "of the first")
        #expect(events.salvages.count == 1)
    }

    /// Puts an entry that is on the damaged page and five others, and returns how often one of the puts failed at most.
    private func put(_ hit: DamagedStore.Entry, _ number: Int, _ caches: [CacheRows]) throws -> Int {
        var most = try failures { try cache(of: hit, caches).run(.put([hit.write])) }
        for step in 1...5 {
            let failed = try failures { try caches[0].put(Int64(number * 10 + step), "\(number)") }
            most = max(most, failed)
        }
        return most
    }

    @Test(arguments: [1, 4])
    func `four threads that meet damage at once salvage once, and no acknowledged write is lost`(count: Int) throws {
        for round in 0..<(LongTests.areEnabled ? 200 : 20) {
            let (events, ready) = (Told<StoreEvent>(), Counter())
            let (place, lost) = try damage(.middle)
            let hit = try #require(lost.first)
            let stores = try (0..<count).map { _ in
                try place.open { options in options.report = { if !$0.isRemoval { events.add($0) } } }
            }
            let threads = (0..<4).map { number -> SideThread<Int> in
                let store = stores[number % count]
                return SideThread { () throws -> Int in
                    let caches = try DamagedStore.open(store)
                    ready.increment()
                    try Waiting.until { ready.value == 4 }
                    // Two threads meet the damage by a write.
                    let payload = try number < 2 ? nil : cache(of: hit, caches).row(hit.key)?.payload
                    #expect(payload == nil || payload == hit.payload)
                    return try put(hit, number, caches)
                }
            }
            for thread in threads { #expect(try thread.value() <= 1, "round \(round)") }
            for store in stores {
                let caches = try DamagedStore.open(store)
                let found = try DamagedStore.check(caches)
                #expect(found.missing == lost.subtracting([hit]) && found.wrong.isEmpty, "round \(round)")
                for number in 0..<4 {
                    for step in 1...5 { #expect(try caches[0].text(Int64(number * 10 + step)) == "\(number)") }
                }
            }
            #expect(events.salvages.count == 1 && events.all.count == 1, "round \(round)")
            for store in stores { try store.close() }
        }
    }

    @Test func `a salvage that waits in vain for another writer is tried again, and other entries are read before`()
        throws
    {
        let (place, lost) = try damage(.middle)
        let caches = try DamagedStore.open(open(place, busyTimeout: 20))
        let (hit, first) = (try #require(lost.first), try #require(DamagedStore.entries.first))
        let rows = try cache(of: hit, caches)
        var other = try place.otherConnection()
        try other.execute("BEGIN IMMEDIATE")
        for _ in 0..<3 {
            let error = #expect(throws: StoreError.self) { try rows.row(hit.key) }
            #expect(error?.code == .busy)
            #expect(try caches[0].row(first.key)?.payload == first.payload)
        }
        try other.execute("ROLLBACK")
        let found = try DamagedStore.check(caches)
        #expect(found.missing == lost && found.wrong.isEmpty && events.salvages.count == 1)
    }

    @Test func `a cache that was opened after a salvage had failed is declared again after a move`() throws {
        let (place, lost) = try damage(.middle)
        let store = try open(place, busyTimeout: 20)
        let hit = try #require(lost.first)
        let rows = try cache(of: hit, DamagedStore.open(store))
        var other = try place.otherConnection()
        try other.execute("BEGIN IMMEDIATE")
        #expect(throws: StoreError.self) { try rows.row(hit.key) }
        try other.execute("ROLLBACK")
        let later = try store.open(.named("later"))
        for ending in ["", "-wal", "-shm"] { try FileManager.default.removeItem(atPath: place.path + ending) }
        let failed = try failures { try later.put(1, "x") }
        #expect(try failed == 1 && later.text(1) == "x")
    }

    // MARK: Without a salvage

    @Test func `a store that is to fail throws for what it cannot read, and changes no file`() throws {
        var pages = sample.pages
        pages[1] = Array(pages[1].prefix(100)) + [UInt8](repeating: 0x5A, count: StorePages.size - 100)
        let unreadable = try sample.write(pages)
        let refusal = #expect(throws: StoreError.self) { try unreadable.open { $0.recovery = .fail } }
        #expect(try refusal?.code == .corrupt && bytes(unreadable) == Data(pages.bytes))
        let (place, lost) = try damage(.middle)
        let before = try place.folder.contents()
        let store = try place.open { $0.recovery = .fail }
        let caches = try DamagedStore.open(store)
        for entry in DamagedStore.entries {
            let rows = try cache(of: entry, caches)
            guard lost.contains(entry) else {
                #expect(try rows.row(entry.key)?.payload == entry.payload)
                continue
            }
            let error = #expect(throws: StoreError.self) { try rows.row(entry.key) }
            let failure = #expect(throws: StoreError.self) { try rows.run(.remove([entry.key])) }
            #expect(error?.code == .corrupt && failure?.code == .corrupt)
        }
        try store.close()
        let after = try place.folder.contents()
        #expect(before.filter { after[$0.key] != $0.value }.keys.sorted() == [])
        for folder in [place.folder, unreadable.folder] {
            #expect(try !folder.names.contains { $0.hasSuffix("damaged") || $0.hasSuffix("salvaged") })
        }
    }
}
