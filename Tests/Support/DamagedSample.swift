package import Foundation
package import Larder

/// A closed store of one cache, of which one page with entries was overwritten.
///
/// Each value tells its key.
package struct DamagedSample: Sendable {
    package static let keys = 0..<200

    /// The keys whose entries are on other pages.
    package let kept: [Int]
    /// The place of the page in the file.
    private let start: Int

    private static let pageSize = 4096
    private static let garbage = Data(repeating: 0x5A, count: pageSize)

    /// The file has no page with the value in the middle.
    private struct NoPage: Error {}

    /// Creates the store at `url`, and damages it.
    package init(at url: URL) throws {
        let manager = try CacheManager(url: url, configuration: .patient)
        try Self.cache(manager).setValues(Self.keys.map { ($0, Self.value($0)) })
        // The log is empty afterwards, so it does not hide the damage.
        try manager.close()
        let bytes = try Data(contentsOf: url)
        guard let mark = bytes.firstRange(of: Data(Self.mark(Self.keys.count / 2).utf8)) else { throw NoPage() }
        let start = mark.lowerBound / Self.pageSize * Self.pageSize
        let page = bytes[start..<start + Self.pageSize]
        self.start = start
        kept = Self.keys.filter { page.firstRange(of: Data(Self.mark($0).utf8)) == nil }
        try url.overwrite(at: start, with: Self.garbage)
    }

    /// Opens the cache of the store.
    package static func cache(_ manager: CacheManager) throws -> Cache<Int, String> {
        try manager.cache(
            named: "sample", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled))
    }

    private static func mark(_ key: Int) -> String { "value of \(key + 1000) " }

    package static func value(_ key: Int) -> String { mark(key) + String(repeating: "x", count: 400) }

    /// Reads all entries, and returns the keys of those that are missing and of those with another value.
    package static func check(_ cache: Cache<Int, String>) throws -> (missing: Set<Int>, wrong: Set<Int>) {
        var (missing, wrong): (Set<Int>, Set<Int>) = ([], [])
        for key in keys {
            let found = try cache.value(forKey: key)
            if found == nil { missing.insert(key) } else if found != value(key) { wrong.insert(key) }
        }
        return (missing, wrong)
    }

    /// Returns whether a file has the damaged page, which no process of this store may have open.
    package func isDamaged(_ url: URL) throws -> Bool {
        let bytes = try Data(contentsOf: url)
        return bytes.count >= start + Self.pageSize && bytes[start..<start + Self.pageSize] == Self.garbage
    }
}
