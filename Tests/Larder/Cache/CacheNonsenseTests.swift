import Foundation
import Larder
import LarderTestSupport
import Testing

/// Numbers that anybody may have written into a row, beyond what can be added up or counted on.
struct CacheNonsenseTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    /// What is written over the row of key 2, and whether its value is served still.
    static let nonsense: [(change: String, isServed: Bool)] = [
        ("age_rule = -2", true), ("age_rule = -1", true), ("age_rule = 5000000000", true),
        ("age_rule = -9223372036854775808, age = 9223372036854775807", true),
        ("size = -9223372036854775808", false), ("size = 9223372036854775807", false),
        ("revision = 9223372036854775807", true), ("revision = 9223372036854775806", true),
        ("revision = 9223372036854775807, used = 9223372036854775807", true),
        ("revision = 9223372036854775807, written_at = 9000000000000000", true),
        ("revision = -9223372036854775808", true),
    ]

    /// Where values are, and whether something is beside them.
    enum Kind: CaseIterable {
        case inline, inlineExtended, spilled, spilledExtended

        var isSpilled: Bool { self == .spilled || self == .spilledExtended }
        var extended: Data? { self == .inlineExtended || self == .spilledExtended ? Data([1, 2, 3]) : nil }
    }

    private func cache(_ manager: CacheManager, _ name: String, _ kind: Kind) throws -> Cache<Int, String> {
        try manager.cache(
            named: name, version: "1", maxAge: .days(1),
            options: CacheOptions(inlineLimit: kind.isSpilled ? 0 : 1000).steady)
    }

    private func fill(_ cache: Cache<Int, String>, _ kind: Kind) throws {
        for key in 1...3 { try cache.setValue("value \(key)", forKey: key, extendedData: kind.extended) }
    }

    /// What meets the row first; each in a sub-cache of its own.
    private enum Operation: String, CaseIterable {
        case get, entry, entryAllowingExpired, many, iteration, disk, keys, values, snapshot
        case byKey, byWriting, byUse, bySize, byWritingDown, byUseDown, bySizeDown
        case count, metadata, contains, extended, size, fileURL
        case set, setMany, update, transaction, setExtended, remove, take, removeMany, generate
        case removeWhere, removeWhereMetadata, expired, flush
        case trimToCount, trimToSize, countLimit, sizeLimit

        /// Whether others may go too.
        var isTrim: Bool { [.trimToCount, .trimToSize, .countLimit, .sizeLimit].contains(self) }
    }

    /// Does it; the keys that it says are served, if it reads all values.
    private func perform(_ operation: Operation, _ cache: Cache<Int, String>) throws -> [Int]? {
        switch operation {
        case .get: return (1...3).filter { cache[$0] != nil }
        case .entry: _ = try cache.entry(forKey: 2)
        case .entryAllowingExpired: _ = try cache.entry(forKey: 2, allowingExpired: true)
        case .many: return try cache.values(forKeys: 1...3).keys.sorted()
        case .iteration: return cache.map(\.key)
        case .disk: return cache.disk.map(\.key)
        case .keys: _ = Array(cache.keys)
        case .values: return cache.values.compactMap { $0.last.flatMap { Int(String($0)) } }
        case .snapshot: return try cache.snapshot().keys.sorted()
        case .byKey: return cache.entries().map(\.key)
        case .byWriting: return cache.entries(orderedBy: .written).map(\.key).sorted()
        case .byUse: return cache.entries(orderedBy: .accessed).map(\.key).sorted()
        case .bySize: return cache.entries(orderedBy: .size).map(\.key).sorted()
        case .byWritingDown: return cache.entries(orderedBy: .written, descending: true).map(\.key).sorted()
        case .byUseDown: return cache.entries(orderedBy: .accessed, descending: true).map(\.key).sorted()
        case .bySizeDown: return cache.entries(orderedBy: .size, descending: true).map(\.key).sorted()
        case .count: _ = (try cache.count, try cache.isEmpty)
        case .metadata: _ = try cache.metadata(forKey: 2)
        case .contains: _ = try cache.contains(2)
        case .extended: _ = try cache.extendedData(forKey: 2)
        case .size: _ = try cache.sizeOnDisk
        case .fileURL: _ = try cache.fileURL(forKey: 2)
        case .set: try cache.setValue("value 2", forKey: 2)
        case .setMany: try cache.setValues([(2, "value 2"), (4, "value 4")])
        case .update: try cache.update(2) { $0 = ($0 ?? "none") + "!" }
        case .transaction:
            try cache.manager.transaction { transaction in
                _ = try transaction.value(forKey: 2, in: cache)
                try transaction.setValue("value 2", forKey: 2, in: cache)
            }
        case .setExtended: for count in 1...3 { try cache.setExtendedData(Data(count: count), forKey: 2) }
        case .remove: try cache.remove(2)
        case .take: _ = try cache.removeValue(forKey: 2)
        case .removeMany: try cache.removeValues(forKeys: [2, 4])
        case .generate: _ = try cache.value(forKey: 2) { _ in "value 2" }
        case .removeWhere: try cache.removeAll { $0.key == 2 }
        case .removeWhereMetadata: try cache.removeAll { key, metadata in key == 2 && metadata.size != 1 }
        case .expired: try cache.removeExpired()
        case .flush: try cache.manager.flush()
        case .trimToCount: try cache.trim(toCount: 2)
        case .trimToSize: try cache.trim(toSize: 30)
        case .countLimit: try cache.disk.setLimits(DiskLimits(countLimit: 2))
        case .sizeLimit: try cache.disk.setLimits(DiskLimits(sizeLimit: 30))
        }
        return nil
    }

    // case 289
    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: nonsense, Kind.allCases)
    func `whatever meets the row first, it harms no other`(row: (change: String, isServed: Bool), kind: Kind) throws {
        for isRead in kind == .inline ? [false, true] : [false] {
            let place = try StorePlace()
            let manager = try place.manager()
            for operation in Operation.allCases {
                let cache = try cache(manager, operation.rawValue, kind)
                try fill(cache, kind)
                // What memory holds is looked up again when somebody else has written.
                if isRead {
                    for key in 1...3 { #expect(cache[key] == "value \(key)") }
                } else {
                    cache.memory.removeAll()
                }
            }
            var shell = try Intruder(place.url)
            try shell.change("UPDATE entry SET \(row.change) WHERE key = 2")
            for operation in Operation.allCases {
                let cache = try cache(manager, operation.rawValue, kind)
                do {
                    let found = try perform(operation, cache)
                    if let found { #expect(found.filter { $0 != 2 } == [1, 3], "\(operation)") }
                } catch let error as CacheError where error.code == .undecodable {
                    // The first who meets it learns of it.
                }
                #expect(cache[3] == "value 3", "\(operation)")
                if !operation.isTrim { #expect(cache[1] == "value 1", "\(operation)") }
                try cache.setValue("again", forKey: 2)
                #expect(cache[2] == "again", "\(operation)")
                try shell.change("UPDATE cache SET opened_at = opened_at + 1")
                #expect(cache[2] == "again", "\(operation)")
                _ = (try cache.sizeOnDisk, try cache.count)
            }
            try manager.flush()
            try manager.maintain()
            #expect(try manager.verify().problems == [])
            try manager.close()
        }
    }

    // case 289
    @Test(arguments: nonsense, Kind.allCases)
    func `a check finds the row, and repairs it`(row: (change: String, isServed: Bool), kind: Kind) throws {
        let manager = try place.manager()
        let cache = try cache(manager, "a", kind)
        try fill(cache, kind)
        var shell = try Intruder(place.url)
        try shell.change("UPDATE entry SET \(row.change) WHERE key = 2")
        #expect(try manager.verify().isHealthy == row.isServed)
        #expect(try manager.verify(repairing: true).repaired == (row.isServed ? 0 : 1))
        #expect(try manager.verify().isHealthy)
        try manager.maintain()
        #expect(cache.map(\.key) == (row.isServed ? [1, 2, 3] : [1, 3]))
        try expectInvariants(cache)
    }
}
