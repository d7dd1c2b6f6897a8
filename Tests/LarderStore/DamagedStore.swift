import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// A closed store whose payloads tell their keys, of which tests damage copies.
///
/// All rows are in the main file. Besides the entries there are rows of retired incarnations, tags, accesses, own ends,
/// limits, counters, value files and empty pages.
struct DamagedStore: Sendable {
    struct Entry: Hashable, Sendable, CustomStringConvertible {
        let cache: String
        let number: Int

        var key: StoredKey { .text("\(cache)/\(number + 1000)/" + String(repeating: "k", count: 40)) }

        /// A text that no other entry has; of every 25 one is a file, and one needs more than a page.
        var payload: Data {
            let text = "\(cache) \(number + 1000) "
            let size = number % 25 == 7 ? 9000 : number % 25 == 15 ? 6000 : 7 * (1 + number * 13 % 90)
            return Data(String(repeating: text, count: size / text.utf8.count).utf8)
        }

        var write: EntryWrite {
            var meta = RowMeta()
            if number % 5 == 0 { meta.tags = number % 2 == 0 ? ["five", "ten"] : ["five"] }
            if number % 8 == 3 { meta.extendedData = Data([UInt8(number)]) }
            meta.isPinned = number % 9 == 2
            let end = number % 6 == 1 ? Int64(5_000_000 + number) : nil
            return EntryWrite(key: key, payload: payload, writtenAt: 1000, expiresAt: end, meta: meta)
        }

        /// What a retired incarnation has under the key.
        fileprivate var retired: EntryWrite {
            let payload = Data(String(repeating: "retired ", count: 50).utf8)
            return EntryWrite(key: key, payload: payload, writtenAt: 1000)
        }

        var description: String { "\(cache) \(number)" }
    }

    static let declarations: [CacheDeclaration] = [.a, .named("b"), .named("c")]
    static let inlineLimit = 8000
    static let entries = declarations.flatMap { cache in
        (0..<(cache.name == "c" ? 10 : 100)).map { Entry(cache: cache.name, number: $0) }
    }
    private static let entriesByKey = Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0) })

    /// The files, without those that an opening creates.
    let files: [String: Data?]
    let pages: StorePages
    /// The entries by the ids of their rows.
    let ids: [Int64: Entry]
    /// The entries by the names of their value files.
    let valueFiles: [String: Entry]
    /// The leaves of the table that have entries, in the order of ids.
    let leaves: [Int]

    private static let made: Result<DamagedStore, any Error> = Result { try DamagedStore() }

    /// Returns the store, which is created once for all tests.
    static func sample() throws -> DamagedStore { try made.get() }

    private init() throws {
        let (place, clock) = (try StorePlace(), StoreClock())
        let store = try place.open(clock)
        for declaration in [CacheDeclaration.named("b", version: "0"), .a] {
            let rows = try store.open(declaration)
            let retired = Self.entries.filter { $0.cache == declaration.name && $0.number < 20 }.map(\.retired)
            try rows.run(.put(retired))
            if declaration == .a { try rows.run(.clear) }
        }
        let caches = try Self.open(store)
        // These leave empty pages.
        let removed = Int64(1)...30
        for rows in caches {
            try rows.run(.put(Self.entries(of: rows).map(\.write)))
            if rows === caches[0] { try rows.run(.put(removed.map { EntryWrite($0, big("gone")) })) }
        }
        try caches[0].run(.remove(removed.map(StoredKey.integer)))
        try caches[0].setLimits(Limits(count: 5000, size: 50_000_000))
        try store.setLimits(StoreLimits(size: 100_000_000))
        var (ids, valueFiles): ([Int64: Entry], [String: Entry]) = ([:], [:])
        for rows in caches {
            for header in try rows.headers(limit: 1000).rows.reversed() {
                guard let entry = Self.entriesByKey[header.key] else { continue }
                ids[header.id] = entry
                if let file = header.file { valueFiles[file] = entry }
                if entry.number % 3 == 0 { rows.noteAccess(to: header.summary, at: clock.now) }
            }
        }
        do {
            var other = try place.otherConnection()
            try other.execute("INSERT INTO activity VALUES ('a', 1, 2, 3)")
        }
        try store.close()
        let pages = try StorePages(of: place)
        // Otherwise damage of the main file could be hidden.
        try #require(try place.folder("store.sqlite-wal").fileSize() == 0)
        var files = try place.folder.contents()
        for ending in ["-wal", "-shm", ".ballast"] { files.removeValue(forKey: "store.sqlite" + ending) }
        (self.files, self.pages, self.ids, self.valueFiles) = (files, pages, ids, valueFiles)
        leaves = pages.leaves("entry").filter { page in pages.rowIDs(page).contains { ids[$0] != nil } }
            .sorted { (pages.rowIDs($0).first ?? 0) < (pages.rowIDs($1).first ?? 0) }
        try #require(ids.count == Self.entries.count && valueFiles.count == 9)
        try #require(leaves.count > 15 && pages.leaves("entry_key").count > 2)
        try #require(!pages.innerPages("entry").isEmpty && !pages.innerPages("entry_key").isEmpty)
    }

    /// Returns the entries on a leaf; of a copy of the store, if its pages are given.
    func entries(on leaf: Int, of copy: StorePages? = nil) -> Set<Entry> {
        Set((copy ?? pages).rowIDs(leaf).compactMap { ids[$0] })
    }

    /// Writes a copy of the files, with other pages in the main file if some are given.
    func write(_ pages: StorePages? = nil) throws -> StorePlace {
        let place = try StorePlace()
        var files = files
        if let pages { files.updateValue(Data(pages.bytes), forKey: "store.sqlite") }
        try place.folder.restore(files)
        return place
    }

    /// Returns the entries whose rows SQLite reads in a damaged main file as they were written.
    func readable(at path: String) -> Set<Entry> {
        var found: Set<Entry> = []
        do {
            var connection = try Connection.open(
                .immutableFile(URL(fileURLWithPath: path).real.path),
                .init(role: .reader, busyMilliseconds: 0, readsCutFiles: true))
            for (id, entry) in ids {
                do {
                    let bytes = try connection.with(.payloadOrFile) { row throws(SQLiteError) in
                        try row.bind(id, at: 1)
                        return try row.step() ? row.bytes(0) : []
                    }
                    let isFile = valueFiles[String(decoding: bytes, as: UTF8.self)] == entry
                    if isFile || Data(bytes) == entry.payload { found.insert(entry) }
                } catch {}
            }
        } catch {}
        return found
    }

    // MARK: Reading a store

    /// Opens the caches of a store.
    static func open(_ store: Store) throws -> [CacheRows] {
        try declarations.map { try store.open($0, inlineLimit: inlineLimit, accessGrain: 0) }
    }

    /// Returns the entries of a cache.
    static func entries(of rows: CacheRows) -> [Entry] { entries.filter { $0.cache == rows.declaration.name } }

    /// Reads all entries, and returns those that are missing and those with another payload.
    static func check(_ caches: [CacheRows]) throws -> (missing: Set<Entry>, wrong: Set<Entry>) {
        var (missing, wrong): (Set<Entry>, Set<Entry>) = ([], [])
        for rows in caches {
            for entry in entries(of: rows) {
                let payload = try rows.row(entry.key)?.payload
                if payload == nil { missing.insert(entry) } else if payload != entry.payload { wrong.insert(entry) }
            }
        }
        return (missing, wrong)
    }
}

/// The pages of a main file that has no log, the first of which is number 1.
struct StorePages: Sendable {
    static let size = 4096

    private(set) var bytes: [UInt8]
    /// The first pages of tables and indexes.
    private let roots: [String: Int]

    var count: Int { bytes.count / Self.size }

    /// Reads the pages of a closed store.
    init(of place: StorePlace) throws {
        var other = try place.otherConnection()
        let rows = try other.texts("SELECT name || ' ' || rootpage FROM sqlite_schema WHERE rootpage > 0")
        _ = consume other
        let numbers = rows.map { row -> (String, Int) in
            let words = row.split(separator: " ")
            return (String(words.first ?? ""), Int(words.last ?? "") ?? 0)
        }
        roots = Dictionary(uniqueKeysWithValues: numbers)
        bytes = [UInt8](try Data(contentsOf: place.folder("store.sqlite")))
    }

    /// The bytes of a page.
    subscript(page: Int) -> [UInt8] {
        get { Array(bytes[(page - 1) * Self.size..<page * Self.size]) }
        set { bytes.replaceSubrange((page - 1) * Self.size..<page * Self.size, with: newValue) }
    }

    /// Changes a byte of the file.
    mutating func change(_ place: Int, to byte: UInt8) { bytes[place] = byte }

    /// Changes the id of the last row on a leaf to 1, and returns false if it has not two bytes.
    mutating func lowerLastID(of leaf: Int) -> Bool {
        guard let cell = cells(leaf).last else { return false }
        var place = (leaf - 1) * Self.size + cell
        _ = number(at: &place)
        guard bytes[place] >= 0x80, bytes[place + 1] < 0x80 else { return false }
        (bytes[place], bytes[place + 1]) = (0x80, 1)
        return true
    }

    /// Leaves the first pages alone.
    mutating func cut(to count: Int) { bytes.removeLast(bytes.count - count * Self.size) }

    /// Returns the pages of a table or an index that have rows alone.
    func leaves(_ name: String) -> [Int] { tree(name).filter { [10, 13].contains(kind($0)) } }

    /// Returns the pages of a table or an index that lead to others.
    func innerPages(_ name: String) -> [Int] { tree(name).filter { [2, 5].contains(kind($0)) } }

    /// Returns the ids of the rows on a leaf of a table.
    func rowIDs(_ leaf: Int) -> [Int64] {
        cells(leaf).map { cell in
            var place = (leaf - 1) * Self.size + cell
            // The length of the row comes first.
            _ = number(at: &place)
            return number(at: &place)
        }
    }

    private func kind(_ page: Int) -> UInt8 { bytes[(page - 1) * Self.size] }

    private func tree(_ name: String) -> [Int] {
        var (found, rest): ([Int], [Int]) = ([], roots[name].map { [$0] } ?? [])
        while let page = rest.popLast() {
            found.append(page)
            guard [2, 5].contains(kind(page)) else { continue }
            rest += [number(page, at: 8, size: 4)] + cells(page).map { number(page, at: $0, size: 4) }
        }
        return found.sorted()
    }

    /// Returns the places of the cells of a page.
    private func cells(_ page: Int) -> [Int] {
        let start = [2, 5].contains(kind(page)) ? 12 : 8
        return (0..<number(page, at: 3, size: 2)).map { number(page, at: start + 2 * $0, size: 2) }
    }

    private func number(_ page: Int, at offset: Int, size: Int) -> Int {
        let start = (page - 1) * Self.size + offset
        return bytes[start..<start + size].reduce(0) { $0 << 8 | Int($1) }
    }

    /// Returns a number of one to nine bytes, and moves behind it.
    private func number(at place: inout Int) -> Int64 {
        var value: Int64 = 0
        for count in 1...9 {
            let byte = Int64(bytes[place])
            place += 1
            if count == 9 { return value << 8 | byte }
            value = value << 7 | byte & 0x7F
            if byte < 0x80 { break }
        }
        return value
    }
}

extension SQL {
    fileprivate static let payloadOrFile = SQL("SELECT coalesce(payload, CAST(file AS BLOB)) FROM entry WHERE id = ?1")
}

extension CacheRows {
    /// Waits until all entries are deleted that were to be deleted in the background before this call.
    func finishRemovals() throws {
        try put(-1, "last")
        removeLater(try #require(try header(.integer(-1))))
        try Waiting.until { try header(.integer(-1)) == nil }
        // A reader can see a commit before memory hears of it, a writer cannot.
        try run(.remove([]))
    }
}

extension Told<StoreEvent> {
    /// The exchanges of damaged files.
    var salvages: [SalvageReport] {
        all.compactMap { event in
            guard case .replaced(let report) = event else { return nil }
            return report
        }
    }

    /// The keys of the entries that did not fit their checksum.
    var damagedKeys: [StoredKey] {
        all.compactMap { event in
            guard case .damagedEntry(_, let key) = event else { return nil }
            return key
        }
    }
}

/// Runs a call again while it fails for damage or for another file at the path, and returns the number of failures.
///
/// The third failure is thrown.
func failures(of call: () throws -> Void) throws -> Int {
    var count = 0
    while true {
        do {
            try call()
            return count
        } catch let error as StoreError {
            count += 1
            guard count < 3, [.corrupt, .storageUnavailable].contains(error.code) else { throw error }
        }
    }
}
