import Foundation
import Larder
import LarderTestSupport
import Testing

/// Rows with numbers that cannot be added up or negated, which another program has written.
struct CacheNonsenseTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    /// What is done to the rows of key 2; no checksum protects these columns.
    private static let nonsense = [
        "UPDATE entry SET revision = 9223372036854775807 WHERE key = 2",
        "UPDATE entry SET revision = -9223372036854775808 WHERE key = 2",
        """
        INSERT OR REPLACE INTO used (id, accessed_at)
            SELECT id, 9223372036854775807 FROM entry WHERE key = 2
        """,
    ]

    private static let sizes = [
        "UPDATE entry SET size = 9223372036854775807 WHERE key = 2",
        "UPDATE entry SET size = -9223372036854775808 WHERE key = 2",
    ]

    /// Where values are, and whether extended data is stored with them.
    enum Kind: CaseIterable {
        case row, rowExtended, file, fileExtended

        var inlineLimit: Int { self == .row || self == .rowExtended ? 1000 : 0 }
        var extended: Data? { self == .rowExtended || self == .fileExtended ? Data([1, 2, 3]) : nil }
    }

    private func cache(_ manager: CacheManager, _ name: String, _ kind: Kind) throws -> Cache<Int, String> {
        try manager.cache(
            named: name, version: "1", maxAge: .days(1), options: CacheOptions(inlineLimit: kind.inlineLimit).steady)
    }

    /// The call that meets the row first, each in a cache of its own.
    private enum Call: String, CaseIterable {
        case get, entry, entryAllowingExpired, many, iteration, disk, keys, values, snapshot
        case byKey, byWriting, byAccess, bySize, bySizeDescending
        case count, metadata, contains, extended, size, fileURL
        case set, setMany, update, transaction, setExtended, touch, remove, take, removeMany, load
        case removeWhere, removeWhereMetadata, expired, clear, flush
        case trimToCount, trimToSize, countLimit, sizeLimit

        /// A Boolean value that indicates whether the call may remove other entries than that of key 2.
        var isTrim: Bool { [.trimToCount, .trimToSize, .countLimit, .sizeLimit].contains(self) }
    }

    /// Makes a call, and returns the keys whose values it has read, if it reads all.
    private func make(_ call: Call, _ cache: Cache<Int, String>) throws -> [Int]? {
        switch call {
        case .get: return (1...3).filter { cache[$0] != nil }
        case .many: return try cache.values(forKeys: 1...3).keys.sorted()
        case .iteration: return cache.map(\.key)
        case .disk: return cache.disk.map(\.key)
        case .values: return cache.values.compactMap { $0.last.flatMap { Int(String($0)) } }
        case .snapshot: return try cache.snapshot().keys.sorted()
        case .byKey: return cache.entries().map(\.key)
        case .byWriting: return cache.entries(orderedBy: .written).map(\.key).sorted()
        case .byAccess: return cache.entries(orderedBy: .accessed).map(\.key).sorted()
        case .bySize: return cache.entries(orderedBy: .size).map(\.key).sorted()
        case .bySizeDescending: return cache.entries(orderedBy: .size, descending: true).map(\.key).sorted()
        case .entry: _ = try cache.entry(forKey: 2)
        case .entryAllowingExpired: _ = try cache.entry(forKey: 2, allowingExpired: true)
        case .keys: _ = Array(cache.keys)
        case .count: _ = (try cache.count, try cache.isEmpty)
        case .metadata: _ = try cache.metadata(forKey: 2)
        case .contains: _ = try cache.contains(2)
        case .extended: _ = try cache.extendedData(forKey: 2)
        case .size: _ = try cache.sizeOnDisk
        case .fileURL: _ = try cache.fileURL(forKey: 2)
        default: try change(call, cache)
        }
        return nil
    }

    private func change(_ call: Call, _ cache: Cache<Int, String>) throws {
        switch call {
        case .set: try cache.setValue("value 2", forKey: 2)
        case .setMany: try cache.setValues([(2, "value 2"), (4, "value 4")])
        case .update: try cache.update(2) { $0 = ($0 ?? "none") + "!" }
        case .transaction:
            try cache.manager.transaction { transaction in
                _ = try transaction.value(forKey: 2, in: cache)
                try transaction.setValue("value 2", forKey: 2, in: cache)
            }
        case .setExtended: for count in 1...3 { try cache.setExtendedData(Data(count: count), forKey: 2) }
        case .touch: try cache.touch(2)
        case .remove: try cache.remove(2)
        case .take: try cache.removeValue(forKey: 2)
        case .removeMany: try cache.removeValues(forKeys: [2, 4])
        case .load: _ = try cache.value(forKey: 2) { _ in "value 2" }
        case .removeWhere: try cache.removeAll { $0.key == 2 }
        case .removeWhereMetadata: try cache.removeAll { key, metadata in key == 2 && metadata.size != 1 }
        case .expired: try cache.removeExpired()
        case .clear:
            try cache.removeAll()
            for key in [1, 3] { try cache.setValue("value \(key)", forKey: key) }
        case .flush: try cache.manager.flush()
        case .trimToCount: try cache.trim(toCount: 2)
        case .trimToSize: try cache.trim(toSize: 30)
        case .countLimit: try cache.disk.setLimits(DiskLimits(countLimit: 2))
        case .sizeLimit: try cache.disk.setLimits(DiskLimits(sizeLimit: 30))
        default: Issue.record("\(call) is no change.")
        }
    }

    @Test(arguments: nonsense, Kind.allCases)
    func `whatever call meets the row first, it ends, and other entries are served`(change: String, kind: Kind) throws {
        try expectHarmless(change, kind)
    }

    @Test(arguments: sizes, Kind.allCases)
    func `whatever call meets a row of absurd size first, it ends, and other entries are served`(
        change: String, kind: Kind
    ) throws {
        try expectHarmless(change, kind)
    }

    private func expectHarmless(_ change: String, _ kind: Kind) throws {
        let manager = try place.manager()
        let caches = try Call.allCases.map { call in
            let cache = try cache(manager, call.rawValue, kind)
            for key in 1...3 { try cache.setValue("value \(key)", forKey: key, extendedData: kind.extended) }
            cache.memory.removeAll()
            return (call, cache)
        }
        var shell = try Intruder(place.url)
        try shell.execute(change)
        for (call, cache) in caches {
            if let found = try make(call, cache) { #expect(found.filter { $0 != 2 } == [1, 3], "\(call)") }
            #expect(cache[3] == "value 3", "\(call)")
            if !call.isTrim { #expect(cache[1] == "value 1", "\(call)") }
            try cache.setValue("again", forKey: 2)
            #expect(cache[2] == "again", "\(call)")
            // What memory has is compared with the row.
            try shell.execute("UPDATE cache SET opened_at = opened_at + 1")
            #expect(cache[2] == "again", "\(call)")
            let listed = cache.map(\.key)
            #expect(try cache.count == listed.count && cache.sizeOnDisk > 0, "\(call)")
        }
        try manager.flush()
        try manager.maintain()
        #expect(try manager.verify().problems == [])
        #expect(try StoreProbe(manager).fileProblems(isSwept: true) == [])
        try manager.close()
    }
}
