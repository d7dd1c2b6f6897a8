package import Foundation
package import Larder
import LarderSQLite

/// A closed store of two caches, whose entries tell whether they are the ones that were written.
package struct SampleStore: Sendable {
    package let url: URL
    package let count: Int

    /// The names of the two caches.
    package static let names = ["first", "second"]

    /// Every so many entries one is large, and in a file.
    private static let largeStep = 97

    /// Creates the store at `url`, with `count` entries in each cache.
    package init(at url: URL, count: Int, closing: Bool = true) throws {
        self.url = url
        self.count = count
        let manager = try CacheManager(url: url, configuration: Self.configuration)
        for name in Self.names {
            let cache = try Self.cache(manager, name)
            try cache.setValues((0..<count).map { ($0, Self.value(name, $0)) })
        }
        for name in Self.names {
            // Older rows of other values are left on free pages and in free space.
            let cache = try Self.cache(manager, name)
            for key in stride(from: 0, to: count, by: 50) { try cache.setValue(Self.value(name, key), forKey: key) }
            try cache.removeValue(forKey: count / 2)
        }
        if closing { try manager.close() }
    }

    package static var configuration: CacheManager.Configuration {
        var configuration = CacheManager.Configuration()
        configuration.maintenanceInterval = nil
        return configuration
    }

    package static func cache(_ manager: CacheManager, _ name: String) throws -> Cache<Int, String> {
        try manager.cache(
            named: name, version: "1", maxAge: .unlimited,
            options: CacheOptions(memory: .disabled, inlineLimit: 20_000))
    }

    /// The value of a key, unlike that of any other.
    package static func value(_ name: String, _ key: Int) -> String {
        let text = "\(name) \(key) "
        return String(repeating: text, count: key % largeStep == 5 ? 40_000 / text.utf8.count : 1 + key % 40)
    }

    /// An entry of one of the caches.
    package struct Entry: Hashable, Sendable, CustomStringConvertible {
        package let name: String
        package let key: Int

        package init(name: String, key: Int) { (self.name, self.key) = (name, key) }

        package var description: String { "\(name) \(key)" }
    }

    /// What there should be.
    package var entries: Set<Entry> {
        Set(Self.names.flatMap { name in (0..<count).filter { $0 != count / 2 }.map { Entry(name: name, key: $0) } })
    }

    /// The entries that cannot be read, and those whose value is not the one that was written.
    package func check(_ manager: CacheManager) throws -> (missing: Set<Entry>, wrong: Set<Entry>) {
        var (missing, wrong): (Set<Entry>, Set<Entry>) = ([], [])
        // Twice, since damage may be met at the last entry.
        for _ in 0..<2 {
            (missing, wrong) = ([], [])
            for name in Self.names {
                let cache = try Self.cache(manager, name)
                for key in 0..<count {
                    let entry = Entry(name: name, key: key)
                    let value = cache[key]
                    if value == nil { if key != count / 2 { missing.insert(entry) } }
                    if let value, value != Self.value(name, key) || key == count / 2 { wrong.insert(entry) }
                }
            }
        }
        return (missing, wrong)
    }

    /// The entries on each page of the main file, which is whole and has no log.
    package func entriesByPage() throws -> [Int: Set<Entry>] {
        guard let main = try RawFile(path: url.path) else { return [:] }
        var reader = try RecordReader(DatabasePages(main: main, log: nil, contents: LogContents()))
        var names: [Int64: String] = [:]
        var pages: [Int: Set<Entry>] = [:]
        try reader.forEach(.tables) { (record) throws(SQLiteError) in
            if let row = GenerationRow(record, now: 0), !row.isRetired {
                names[row.generation.id] = row.generation.name
            }
        }
        try reader.forEach(.tables) { (record) throws(SQLiteError) in
            guard let entry = SalvagedEntry(record), let name = names[entry.cache], case .integer(let key) = entry.key
            else { return }
            pages[Int(record.page), default: []].insert(Entry(name: name, key: Int(key)))
        }
        return pages
    }

    /// The number of a leaf of the table of entries, and the entries on it; of a main file that is whole and has no log.
    package func leaf() throws -> (page: Int, entries: Set<Entry>) {
        guard let leaf = try entriesByPage().filter({ $0.key > 8 && $0.value.count > 3 }).min(by: { $0.key < $1.key })
        else { throw CocoaError(.fileReadCorruptFile) }
        return (leaf.key, leaf.value)
    }
}
