import Foundation
import LarderStore
import LarderTestSupport
import Testing

/// Damage of every kind, after which everything is done with the store.
struct DamageTests {
    enum Kind: CaseIterable {
        case garbageLeaf, zeroLeaf, otherLeaf, halfLeaf, innerPage, indexLeaf, indexInnerPage
        case cacheLeaf, usedLeaf, tagLeaf, storeLeaf
        case freeListCount, largestRoot, header, schema, cut, bit, valueFile, log
    }

    @Test(arguments: Kind.allCases)
    func `after damage no read gives a wrong value, each call ends, and nothing is lost but what was hit`(
        kind: Kind
    ) throws {
        let (sample, seed) = (try DamagedStore.sample(), Seeded().seed)
        for round in 0..<(LongTests.areEnabled ? 200 : 20) {
            var random = Seeded(seed &+ UInt64(round))
            let damage = try Damage(kind, of: sample, &random)
            let problems: [String]
            // A call that does not end is given up.
            do { problems = try SideThread { Use(of: damage).problems }.value() } catch { problems = ["\(error)"] }
            #expect(problems == [], "\(damage.description), round \(round), seed \(seed)")
        }
    }

    /// SQLite calls the disk full then.
    @Test func `the number of a page that no file can have is damage`() throws {
        var random = Seeded(351_081_844_331_771_166)
        let damage = try Damage(.halfLeaf, of: try DamagedStore.sample(), &random)
        #expect(try SideThread { Use(of: damage).problems }.value() == [], "\(damage.description)")
    }
}

/// A damaged copy of the sample.
private struct Damage: Sendable, CustomStringConvertible {
    typealias Entry = DamagedStore.Entry

    let kind: DamageTests.Kind
    let place: StorePlace
    private(set) var description = ""
    /// The entries that may be lost.
    private(set) var mayLose: Set<Entry> = []
    /// The entries that are replaced and removed later.
    let replaced, removed: Entry
    /// The way in which all entries are read first.
    let way: Int

    init(_ kind: DamageTests.Kind, of sample: DamagedStore, _ random: inout Seeded) throws {
        self.kind = kind
        replaced = Entry(cache: "a", number: Int.random(in: 0..<100, using: &random))
        removed = Entry(cache: "b", number: Int.random(in: 0..<100, using: &random))
        way = Int.random(in: 0..<4, using: &random)
        var pages = sample.pages
        let (hit, bytes) = (Self.pages(kind, sample), Self.bytes(kind))
        if !hit.isEmpty {
            let page = Self.pick(hit, &random)
            pages[page] = Self.content(kind, instead: page, sample, &random)
            (description, mayLose) = ("page \(page)", sample.leaves.contains(page) ? sample.entries(on: page) : [])
        } else if kind == .cut {
            pages.cut(to: Int.random(in: 0..<pages.count, using: &random))
            description = "to \(pages.count) pages"
        } else if kind == .bit || !bytes.isEmpty {
            let isBit = kind == .bit
            let offset = isBit ? Int.random(in: pages.bytes.indices, using: &random) : Self.pick(bytes, &random)
            let change = isBit ? Self.bit(&random) : UInt8.random(in: 1...255, using: &random)
            pages.change(offset, to: pages.bytes[offset] ^ change)
            description = "byte \(offset) by \(change)"
        }
        place = try kind == .log ? StorePlace() : sample.write(pages)
        switch kind {
        case .valueFile: try damageFile(sample, &random)
        case .log: try damageLog(&random)
        case .header, .cut: mayLose = Set(DamagedStore.entries).subtracting(sample.readable(at: place.path))
        // All entries hang on these, and a bit may be one of them.
        case .innerPage, .schema, .bit: mayLose = Set(DamagedStore.entries)
        default: break
        }
    }

    /// A Boolean value that indicates whether the file may pass for another program's, or for one that none may write.
    var mayBeRefused: Bool { [.header, .bit].contains(kind) }

    private static func bit(_ random: inout Seeded) -> UInt8 { 1 << UInt8.random(in: 0..<8, using: &random) }

    private static func pick<T>(_ items: [T], _ random: inout Seeded) -> T {
        items[Int.random(in: 0..<items.count, using: &random)]
    }

    /// Returns the pages of which one is damaged.
    private static func pages(_ kind: DamageTests.Kind, _ sample: DamagedStore) -> [Int] {
        switch kind {
        case .garbageLeaf, .zeroLeaf, .otherLeaf, .halfLeaf: sample.leaves
        case .innerPage: sample.pages.innerPages("entry")
        case .indexLeaf: ["entry_key", "entry_file", "cache_live", "cache_copy"].flatMap { sample.pages.leaves($0) }
        case .indexInnerPage: sample.pages.innerPages("entry_key")
        case .cacheLeaf: sample.pages.leaves("cache")
        case .usedLeaf: sample.pages.leaves("used")
        case .tagLeaf: sample.pages.leaves("tag")
        case .storeLeaf: sample.pages.leaves("store")
        case .schema: [1]
        default: []
        }
    }

    /// Returns the bytes of the header of which one is damaged.
    private static func bytes(_ kind: DamageTests.Kind) -> [Int] {
        switch kind {
        case .freeListCount: Array(36..<40)
        case .largestRoot: Array(52..<56)
        // The others tell of a later schema or another program.
        case .header: Array(0..<60) + Array(64..<68) + Array(72..<100)
        default: []
        }
    }

    /// Returns what is on a page after damage.
    private static func content(
        _ kind: DamageTests.Kind, instead page: Int, _ sample: DamagedStore, _ random: inout Seeded
    ) -> [UInt8] {
        let (old, isSo, half) = (sample.pages[page], Bool.random(using: &random), StorePages.size / 2)
        let isZero = ![.garbageLeaf, .schema].contains(kind) && (kind == .zeroLeaf || Bool.random(using: &random))
        let new = old.map { _ in isZero ? 0 : UInt8.random(in: 0...255, using: &random) }
        switch kind {
        case .otherLeaf: return sample.pages[pick(sample.leaves.filter { $0 != page }, &random)]
        case .halfLeaf: return Array(isSo ? old.prefix(half) + new.suffix(half) : new.prefix(half) + old.suffix(half))
        // The header of the file stays in half of the rounds.
        case .schema where isSo: return Array(old.prefix(100) + new.dropFirst(100))
        default: return new
        }
    }

    private mutating func damageFile(_ sample: DamagedStore, _ random: inout Seeded) throws {
        let name = Self.pick(sample.valueFiles.keys.sorted(), &random)
        let (url, way) = (place.file(name), Int.random(in: 0..<3, using: &random))
        let offset = Int.random(in: 0..<8000, using: &random)
        switch way {
        case 0: try url.overwrite(at: offset, with: Data([0]))
        case 1: try url.cut(to: offset)
        default: try FileManager.default.removeItem(at: url)
        }
        description = "\(name), \(["changed at \(offset)", "cut to \(offset)", "removed"][way])"
        if let entry = sample.valueFiles[name] { mayLose = [entry] }
    }

    private mutating func damageLog(_ random: inout Seeded) throws {
        try place.folder.restore(Self.killed.get())
        let url = place.folder("store.sqlite-wal")
        var bytes = [UInt8](try Data(contentsOf: url))
        let offset = Int.random(in: bytes.indices, using: &random)
        bytes[offset] ^= Self.bit(&random)
        try Data(bytes).write(to: url)
        // The log ends before the damage, and the files of older rows may be gone.
        (description, mayLose) = ("byte \(offset)", Set(DamagedStore.entries))
    }

    /// What a process has left that was killed after it had replaced some entries, a commit each.
    private static let killed: Result<[String: Data?], any Error> = Result {
        let place = try DamagedStore.sample().write()
        let store = try place.open()
        let rows = try DamagedStore.open(store)[0]
        for entry in DamagedStore.entries {
            guard let payload = Damage.later(entry) else { continue }
            try rows.run(.put([EntryWrite(key: entry.key, payload: payload, writtenAt: 2000)]))
        }
        var files = try place.folder.contents()
        for ending in ["-shm", ".ballast"] { files.removeValue(forKey: "store.sqlite" + ending) }
        try store.close()
        return files
    }

    /// Returns the payload that replaces an entry's in the log; nil if it is not replaced.
    static func later(_ entry: Entry) -> Data? {
        guard entry.cache == "a", entry.number < 20 else { return nil }
        return Data(String(repeating: "later \(entry.number + 1000) ", count: entry.number == 8 ? 900 : 9).utf8)
    }
}

/// What is done with a damaged store, and what is wrong with what comes of it.
private final class Use {
    private let damage: Damage
    /// The payloads that the entries of each cache may have.
    private var payloads: [String: [StoredKey: [Data]]] = [:]
    private(set) var problems: [String] = []

    init(of damage: Damage) {
        self.damage = damage
        for entry in DamagedStore.entries {
            let later = damage.kind == .log ? Damage.later(entry) : nil
            payloads[entry.cache, default: [:]][entry.key] = [entry.payload] + (later.map { [$0] } ?? [])
        }
        do {
            use(try damage.place.open())
        } catch {
            if !damage.mayBeRefused || !(error is StoreError) { problems.append("\(error)") }
        }
    }

    private func use(_ store: Store) {
        guard let caches = attempt("open", { try DamagedStore.open(store) }) else { return }
        for rows in caches { readMany(rows) }
        _ = read(caches)
        change(caches, store)
        _ = attempt("repair") { try store.verify(repairing: true) }
        let found = read(caches)
        let lost = DamagedStore.entries.filter { entry in
            let isKept = entry.cache != "c" && entry != damage.removed && !damage.mayLose.contains(entry)
            return isKept && found[entry.cache]?.contains(entry.key) != true
        }
        if !lost.isEmpty { problems.append("lost: \(lost)") }
        let isThere = found["a"]?.contains(damage.replaced.key) == true
        if damage.kind != .bit && !isThere { problems.append("lost: what was written") }
        _ = attempt("finish") { try caches[2].finishRemovals() }
        verify(store)
        for rows in caches {
            let counted = attempt("count") { try rows.totals().count } ?? -1
            let count = found[rows.declaration.name]?.count ?? 0
            if counted != Int64(count) { problems.append("\(counted) of \(count) entries are counted") }
            put(Data("last".utf8), .integer(2), rows)
        }
        _ = attempt("close") { try store.close() }
        guard let again = attempt("open again", { try damage.place.open() }) else { return }
        verify(again)
    }

    /// Makes a call, and again after damage or an exchange of the file.
    private func attempt<R>(_ what: String, _ call: () throws -> R) -> R? {
        var result: R?
        do { _ = try failures { result = try call() } } catch { problems.append("\(what): \(error)") }
        return result
    }

    private func verify(_ store: Store) {
        guard let report = attempt("verify", { try store.verify() }), !report.problems.isEmpty else { return }
        problems.append("after the repair: \(report.problems.prefix(3))")
    }

    // MARK: Reading

    private func check(_ found: [StoredRow], _ rows: CacheRows) {
        let allowed = payloads[rows.declaration.name] ?? [:]
        for row in found where allowed[row.header.key]?.contains(row.payload) != true {
            problems.append("wrong: \(row.header.key) in \(rows.declaration.name), \(row.payload.count) bytes")
        }
    }

    private func keys(_ rows: CacheRows) -> [StoredKey] {
        DamagedStore.entries(of: rows).map(\.key) + [.integer(1), .integer(2)]
    }

    /// Reads each entry, and returns the keys of those that are there, by the names of the caches.
    private func read(_ caches: [CacheRows]) -> [String: Set<StoredKey>] {
        var found: [String: Set<StoredKey>] = [:]
        for rows in caches {
            for key in keys(rows) {
                guard let row = attempt("row", { try rows.row(key) }) ?? nil else { continue }
                check([row], rows)
                found[rows.declaration.name, default: []].insert(key)
            }
        }
        return found
    }

    /// Reads the entries of a cache, many at a time.
    private func readMany(_ rows: CacheRows) {
        switch damage.way {
        case 0: check(attempt("rows") { try rows.rows(keys(rows)) } ?? [], rows)
        case 1:
            var (next, count): (PagePosition?, Int) = (nil, 0)
            repeat {
                let page = attempt("page") { try rows.rows(after: next, limit: 32) }
                check(page?.rows ?? [], rows)
                _ = attempt("keys") { try rows.keys(after: next, limit: 32) }
                (next, count) = (page?.next, count + 1)
            } while next != nil && count < 100
            if next != nil { problems.append("the pages do not end") }
        case 2:
            for order in [RowOrder.written, .accessed, .size] {
                guard let list = attempt("list", { try rows.list(order) }) else { continue }
                check(attempt("listed rows") { try rows.rows(list, 0..<list.count).rows } ?? [], rows)
            }
        default: _ = attempt("count") { try (rows.totals(), rows.count(at: 1_000_000)) }
        }
    }

    /// Puts an entry, and reads it.
    private func put(_ payload: Data, _ key: StoredKey, _ rows: CacheRows) {
        let entry = EntryWrite(key: key, payload: payload, writtenAt: 2000)
        guard attempt("put", { try rows.run(.put([entry])) }) != nil else { return }
        payloads[rows.declaration.name, default: [:]][key] = [payload]
        let row = attempt("read back") { try rows.row(key) } ?? nil
        if row?.payload != payload { problems.append("the entry that was written is not there") }
    }

    private func change(_ caches: [CacheRows], _ store: Store) {
        put(Data("again".utf8), damage.replaced.key, caches[0])
        put(Data(repeating: 7, count: 9000), .integer(1), caches[0])
        _ = attempt("remove") { try caches[1].run(.remove([damage.removed.key])) }
        // An index with a wrong bit can hide an entry.
        if damage.kind != .bit { payloads["b"]?[damage.removed.key] = [] }
        _ = attempt("clear") { try caches[2].run(.clear) }
        payloads["c"] = [:]
        _ = attempt("maintain") { try store.maintain() }
    }
}
