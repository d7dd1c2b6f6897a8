import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport

/// The rows that the store has removed, and why.
final class Removals: TierDelegate {
    let causes = Locked<[StoredKey: String]>([:])

    func rowsAreRemoved() {}
    func rowsWereRemoved(_ rows: [RemovedRow]) {
        causes.change { causes in
            for row in rows {
                if case .evicted = row.cause { causes[row.key] = "evicted" } else { causes[row.key] = "\(row.cause)" }
            }
        }
    }
    func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool) {}
    func takeAccesses(at now: Int64) -> [Access] { [] }
    func overtakeLoads(_ loads: Overtaken) {}
    func takeActivity() -> [Int64: Int64] { [:] }
}

/// A cache, and the entries that it must have.
final class KnownCache {
    let removals = Removals()
    var rows: CacheRows
    /// The byte that an acknowledged entry repeats.
    private var bytes: [Int64: UInt8] = [:]
    private(set) var next: Int64 = 0
    /// Entries that no eviction may remove.
    var kept: [Int64] = []
    private let size: Int

    init(_ rows: CacheRows) {
        self.rows = rows
        size = ["large": 20_000, "wide": 2100][rows.declaration.name] ?? 900
    }

    /// The keys of the entries that must be there, the oldest first.
    var keys: [Int64] {
        let removed = removals.causes.value
        return bytes.keys.filter { removed[.integer($0)] == nil }.sorted()
    }

    func oldest(_ count: Int64) -> [Int64] { Array(keys.prefix(Int(count))) }

    private func value(_ key: Int64, _ byte: UInt8) -> Data {
        let head = Data("\(key) ".utf8)
        return head + Data(repeating: byte, count: size - head.count)
    }

    func entry(_ key: Int64, _ byte: UInt8 = 1, at now: Int64, pinned: Bool = false, end: Int64? = nil) -> EntryWrite {
        var meta = RowMeta()
        meta.isPinned = pinned
        return EntryWrite(key: .integer(key), payload: value(key, byte), writtenAt: now, expiresAt: end, meta: meta)
    }

    func newKeys(_ count: Int64) -> [Int64] {
        defer { next += count }
        return Array(next..<next + count)
    }

    /// Notes entries that were acknowledged.
    func note(_ keys: [Int64], _ byte: UInt8 = 1) { for key in keys { bytes[key] = byte } }

    /// Puts entries in one request.
    func put(_ entries: [EntryWrite], _ keys: [Int64], _ byte: UInt8 = 1) -> String {
        let result = outcome { _ = try rows.run(.put(entries)) }
        if result == done { note(keys, byte) }
        return result
    }

    /// Runs a removal, and forgets the entries.
    func forget(_ keys: [Int64], _ removal: (Change) throws -> Void) -> String {
        let result = outcome { try removal(.remove(keys.map { StoredKey.integer($0) })) }
        if result == done { for key in keys { bytes[key] = nil } }
        return result
    }

    /// Returns what is wrong with the entries that are there.
    func problems() throws -> [String] {
        var (found, last): ([Int64: Data], PagePosition?) = ([:], nil)
        repeat {
            let page = try rows.rows(after: last)
            for row in page.rows { if case .integer(let key) = row.header.key { found[key] = row.payload } }
            last = page.next
        } while last != nil
        let (name, expected, count) = (rows.declaration.name, keys, try rows.totals().count)
        var problems = count == found.count ? [] : ["\(name) counts \(count) of \(found.count) entries"]
        for key in expected where found[key] != value(key, bytes[key] ?? 0) {
            problems.append("\(key) of \(name) is \(found[key] == nil ? "missing" : "wrong")")
        }
        return problems + Set(found.keys).subtracting(expected).map { "\($0) of \(name) is there" }
    }
}
