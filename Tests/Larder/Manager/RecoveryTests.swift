import Foundation
import Larder
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Damaged stores, and stores of a later release, as a manager reports them.
struct RecoveryTests {
    private static let keys = 0..<2000

    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func cache(_ manager: CacheManager) throws -> Cache<Int, String> {
        try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled, inlineLimit: 1000))
    }

    /// A value that names its key, and is a file for every hundredth key.
    private static func value(_ key: Int) -> String {
        "value \(key);" + String(repeating: "x", count: key % 100 == 7 ? 2000 : 80)
    }

    /// Leaves a closed store, without a log.
    private func fill() throws {
        let manager = try place.manager()
        try cache(manager).setValues(Self.keys.map { ($0, Self.value($0)) })
        try manager.close()
        try place.url.removeLog()
    }

    /// Overwrites a page of entries, and returns a range of keys that has all of them.
    private func damagePage() throws -> ClosedRange<Int> {
        let bytes = try Data(contentsOf: place.url)
        let pageCount = bytes.count / 4096
        for page in pageCount / 2..<pageCount {
            let content = bytes[page * 4096..<(page + 1) * 4096]
            let text = String(decoding: content, as: UTF8.self)
            let keys = Set(text.matches(of: /value ([0-9]+);/).compactMap { Int($0.output.1) })
            // A leaf of a table begins with 13.
            guard content.first == 13, keys.count > 3, let first = keys.min(), let last = keys.max() else { continue }
            try place.url.overwritePage(page + 1)
            // The first or the last entry may have its value in a file.
            return first - 1...last + 1
        }
        throw CocoaError(.fileReadCorruptFile)
    }

    /// Returns the keys without a value; the values of the others have to be right.
    private func missingKeys(_ cache: Cache<Int, String>) throws -> Set<Int> {
        var missing: Set<Int> = []
        // Twice: the last read may find the damage.
        for _ in 0..<2 {
            missing = []
            for key in Self.keys {
                let value = try cache.value(forKey: key)
                if value == nil { missing.insert(key) }
                #expect(value == nil || value == Self.value(key))
            }
        }
        return missing
    }

    /// Expects the next event to report a damaged file next to the store, and how many entries were kept and lost.
    private func expectEvent(_ event: CacheEvent?, kept: Int, lost: Int) throws {
        let event = try #require(event)
        guard case .recovered(let url) = event.kind else {
            Issue.record("\(event)")
            return
        }
        #expect(url.path == place.folder("store.sqlite.damaged").path)
        #expect(event.message.contains("\(kept) entries were carried over, \(lost) were lost"), "\(event.message)")
        #expect(FileManager.default.fileExists(atPath: url.path))
    }

    @Test func `a damaged page that a read meets costs its entries, and an event reports how many`() async throws {
        try fill()
        let onPage = try damagePage()
        let manager = try place.manager()
        var events = manager.steadyEvents.makeAsyncIterator()
        let cache = try cache(manager)
        let missing = try missingKeys(cache)
        #expect(!missing.isEmpty && missing.allSatisfy { onPage.contains($0) })
        try expectEvent(await events.next(), kept: Self.keys.count - missing.count, lost: missing.count)
        try expectSound(manager)
    }

    private func expectSound(_ manager: CacheManager) throws {
        #expect(try manager.verify().problems == [])
        #expect(try StoreProbe(manager).fileProblems() == [])
        try expectInvariants(cache(manager))
    }

    @Test func `a store that is to fail at damage throws for what it cannot read, until a repair`() throws {
        try fill()
        let onPage = try damagePage()
        let manager = try place.manager { $0.recovery = .fail }
        let cache = try cache(manager)
        var unreadable: Set<Int> = []
        for key in Self.keys {
            do throws(CacheError) {
                let value = try cache.value(forKey: key)
                #expect(value == Self.value(key))
            } catch {
                #expect(error.code == .corrupt)
                unreadable.insert(key)
            }
        }
        #expect(!unreadable.isEmpty && unreadable.allSatisfy { onPage.contains($0) })
        #expect(try !manager.verify().isHealthy)
        #expect(try !place.folder.names.contains { $0.hasSuffix("damaged") })
        let report = try manager.verify(repairing: true)
        #expect(report.lost == unreadable.count && report.setAside?.lastPathComponent == "store.sqlite.damaged")
        // The handle that was open before goes on.
        #expect(try missingKeys(cache) == unreadable)
        try expectSound(manager)
    }

    private func reportDamage(_ manager: CacheManager) {
        let error = #expect(throws: StoreError.self) {
            try manager.store.transaction { _ in
                throw SQLiteError(code: .corrupt, message: "database disk image is malformed")
            }
        }
        #expect(error?.code == .corrupt)
    }

    @Test func `damage that is reported and is not there costs no entry`() async throws {
        try fill()
        let manager = try place.manager()
        var events = manager.steadyEvents.makeAsyncIterator()
        let cache = try cache(manager)
        reportDamage(manager)
        #expect(try missingKeys(cache) == [])
        try await cache.setValue("later", forKey: -1)
        try expectEvent(await events.next(), kept: Self.keys.count, lost: 0)
        #expect(try missingKeys(cache) == [])
        #expect(try await cache.value(forKey: -1) == "later")
        try expectSound(manager)
    }

    @Test func `a store of a later release is refused, or replaced if the configuration says so`() async throws {
        try fill()
        do {
            var shell = try Intruder(place.url)
            try shell.execute("PRAGMA user_version = 99")
        }
        for access in [CacheManager.Access.readWrite, .readOnly] {
            expectError(.newerSchema) { try place.manager { $0.access = access } }
        }
        #expect(try !place.folder.names.contains { $0.hasSuffix("damaged") })
        let manager = try place.manager { $0.newerSchema = .recreate }
        var events = manager.steadyEvents.makeAsyncIterator()
        try expectEvent(await events.next(), kept: 0, lost: 0)
        let cache = try cache(manager)
        #expect(try cache.isEmpty)
        try await cache.setValue("new", forKey: 1)
        #expect(try await cache.value(forKey: 1) == "new")
    }
}
