import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Damage of chosen bytes, after which it is known what has to be there.
struct PreciseDamageTests {
    private typealias Entry = DamagedStore.Entry

    private let sample: DamagedStore
    private let events = Told<StoreEvent>()

    init() throws { sample = try DamagedStore.sample() }

    private func open(
        _ place: StorePlace, _ clock: StoreClock = StoreClock(), _ recovery: Store.Options.Recovery = .salvage
    ) throws -> Store {
        try place.open(clock) { [events] options in
            options.recovery = recovery
            options.report = { if !$0.isRemoval { events.add($0) } }
        }
    }

    /// Expects all entries but some, and a store without a fault.
    private func expectAll(
        in store: Store, but missing: Set<DamagedStore.Entry> = [], location: SourceLocation = #_sourceLocation
    ) throws {
        var caches: [CacheRows] = []
        _ = try failures { caches = try DamagedStore.open(store) }
        let found = try DamagedStore.check(caches)
        #expect(found.missing == missing && found.wrong.isEmpty, "\(found.missing)", sourceLocation: location)
        #expect(try store.verify().problems == [], sourceLocation: location)
    }

    // MARK: The header

    @Test(arguments: [18, 19])
    func `a wrong bit in the bytes that name the journal is damage, and costs no entry`(place offset: Int) throws {
        for bit in 0..<8 {
            var pages = sample.pages
            pages.change(offset, to: pages.bytes[offset] ^ 1 << UInt8(bit))
            let place = try sample.write(pages)
            let error = #expect(throws: StoreError.self, "bit \(bit)") { try open(place, StoreClock(), .fail) }
            #expect(error?.code == .corrupt, "bit \(bit)")
            let store = try open(place)
            try expectAll(in: store)
            #expect(events.salvages.last?.kept == DamagedStore.entries.count && events.salvages.count == bit + 1)
            try store.close()
        }
    }

    @Test func `a file that lacks its last page keeps what is on the others`() throws {
        for count in 1...3 {
            var pages = sample.pages
            pages.cut(to: pages.count - count)
            let place = try sample.write(pages)
            let readable = sample.readable(at: place.path)
            try #require(readable.count > DamagedStore.entries.count / 2)
            defer { withExtendedLifetime(place) {} }
            let store = try open(place)
            var caches: [CacheRows] = []
            _ = try failures { caches = try DamagedStore.open(store) }
            let found = try DamagedStore.check(caches)
            #expect(found.wrong.isEmpty && found.missing.isDisjoint(with: readable), "\(count) pages")
            #expect(try store.verify().problems == [])
        }
    }

    // MARK: The map of the pages

    @Test func `a wrong number in the map of the pages does not make each upkeep fail`() throws {
        // Five bytes for each page from the third on: the kind, and the page that leads to it.
        let map = StorePages.size
        for page in (sample.pages.count - 6)...sample.pages.count {
            var pages = sample.pages
            let entry = map + 5 * (page - 3)
            pages.change(entry + 1, to: pages.bytes[entry + 1] ^ 0x40)
            pages.change(entry + 4, to: pages.bytes[entry + 4] ^ 0x01)
            let place = try sample.write(pages)
            defer { withExtendedLifetime(place) {} }
            let store = try open(place)
            _ = try failures { try store.maintain() }
            try store.maintain()
            try expectAll(in: store)
        }
        // Not each of them is on the way of a page that is moved.
        #expect(!events.salvages.isEmpty)
    }

    @Test func `a row with too low an id at the end of the table leaves upkeep an end`() throws {
        let clock = StoreClock()
        clock.advance(4_000_000_000_000)
        var pages = sample.pages
        let isChanged = pages.lowerLastID(of: sample.leaves[sample.leaves.count - 1])
        try #require(isChanged)
        let place = try sample.write(pages)
        // A file that no row names makes upkeep look at all rows.
        try Data([1]).write(to: place.file("unnamed"))
        let store = try open(place, clock)
        _ = try failures { try store.maintain() }
        _ = try failures { _ = try store.verify(repairing: true) }
        #expect(try store.verify().problems == [])
    }

    // MARK: Indexes

    enum Use: CaseIterable { case read, readMany, readPage, readFile, put, remove, take, touch, removePrefix }

    @Test(arguments: Use.allCases)
    func `an index that leads to the row of another key costs neither of them`(use: Use) throws {
        let index = sample.pages.leaves("entry_key") + sample.pages.innerPages("entry_key")
        // One whose payload is in its row, and one whose payload is in a file.
        for number in [20, 57] {
            let (entry, other) = (Entry(cache: "b", number: number), Entry(cache: "b", number: number + 1))
            var pages = sample.pages
            try lead(entry, to: other, index, &pages)
            let place = try sample.write(pages)
            defer { withExtendedLifetime(place) {} }
            let store = try open(place)
            var caches: [CacheRows] = []
            _ = try failures { caches = try DamagedStore.open(store) }
            let rows = caches[1]
            var removed: Set<Entry> = []
            switch use {
            case .read: #expect(try rows.row(entry.key)?.payload == entry.payload)
            case .readMany: #expect(try rows.rows([entry.key, other.key]).count == 2)
            case .readPage: #expect(try rows.rows().rows.count == 100)
            case .readFile:
                let path = try rows.filePath(entry.key)?.path
                let bytes = try path.map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
                #expect(bytes == (number % 25 == 7 ? entry.payload : nil))
            case .put:
                _ = try failures { try rows.run(.put([entry.write])) }
            case .remove:
                _ = try failures { try rows.run(.remove([entry.key])) }
                removed = [entry]
            case .take:
                _ = try failures { try rows.run(.take(entry.key)) }
                removed = [entry]
            case .touch:
                _ = try failures { try rows.run(.change(entry.key, .pin(true))) }
            case .removePrefix:
                _ = try failures { _ = try rows.removeAll(prefix: "b/\(number + 1000)/") }
                removed = [entry]
            }
            for rows in caches { _ = try failures { try rows.finishRemovals() } }
            _ = try failures { try store.maintain() }
            _ = try failures { _ = try store.verify(repairing: true) }
            for rows in caches { try rows.run(.remove([.integer(-1)])) }
            try expectAll(in: store, but: removed)
        }
    }

    /// Changes the index so that the key of one entry leads to the row of another one.
    private func lead(
        _ entry: DamagedStore.Entry, to other: DamagedStore.Entry, _ index: [Int], _ pages: inout StorePages
    ) throws {
        guard case .text(let key) = entry.key else { return }
        let id = try #require(sample.ids.first { $0.value == entry }?.key)
        let otherID = try #require(sample.ids.first { $0.value == other }?.key)
        try #require((128..<32_768).contains(id) && (128..<32_768).contains(otherID))
        for leaf in index {
            // The id comes right behind the key, in two bytes.
            let range = (leaf - 1) * StorePages.size..<leaf * StorePages.size
            guard let place = Data(pages.bytes).range(of: Data(key.utf8), in: range)?.upperBound else { continue }
            try #require(Int64(pages.bytes[place]) << 8 | Int64(pages.bytes[place + 1]) == id)
            pages.change(place, to: UInt8(otherID >> 8))
            pages.change(place + 1, to: UInt8(otherID & 0xFF))
            return
        }
        Issue.record("no page of the index has the key")
    }

    @Test func `upkeep deletes no file of a row whose name an index lacks`() throws {
        let clock = StoreClock()
        clock.advance(4_000_000_000_000)
        // Those that have no end of their own.
        for (name, entry) in sample.valueFiles where entry.write.expiresAt == nil {
            var pages = sample.pages
            var isChanged = false
            for page in pages.leaves("entry_file") + pages.innerPages("entry_file") {
                let range = (page - 1) * StorePages.size..<page * StorePages.size
                guard let place = Data(pages.bytes).range(of: Data(name.utf8), in: range) else { continue }
                pages.change(place.lowerBound, to: pages.bytes[place.lowerBound] ^ 1)
                isChanged = true
            }
            try #require(isChanged)
            let place = try sample.write(pages)
            let store = try open(place, clock)
            _ = try failures { try store.maintain() }
            try store.maintain()
            #expect(FileManager.default.fileExists(atPath: place.file(name).path))
            #expect(try store.verify().problems == [])
        }
    }

    // MARK: Repairs

    @Test func `one repair mends the database and its value files`() throws {
        let leaf = sample.leaves[1]
        let others = sample.valueFiles.filter { !sample.entries(on: leaf).contains($0.value) }
        let name = try #require(others.keys.min())
        var pages = sample.pages
        pages[leaf] = [UInt8](repeating: 0x5A, count: StorePages.size)
        let place = try sample.write(pages)
        try FileManager.default.removeItem(at: place.file(name))
        let store = try place.open { $0.recovery = .fail }
        let report = try store.verify(repairing: true)
        #expect(report.salvage != nil && report.damagedCount >= 1)
        #expect(report.problems.contains { $0.contains(name) })
        #expect(try store.verify().problems == [])
    }
}
