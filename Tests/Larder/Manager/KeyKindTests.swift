import Foundation
import Larder
import LarderTestSupport
import Testing

/// A cache that is opened with keys of another kind than it has.
struct KeyKindTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private struct ID: RawRepresentable, Codable, Hashable, Sendable {
        let rawValue: Int
    }

    private enum Word: String, Codable { case one, two }

    private struct Pair: Codable, Hashable, Sendable {
        var (a, b) = (1, 2)
    }

    private func open<Key: Codable & Hashable & Sendable>(
        _ manager: CacheManager, _ key: Key.Type, version: CacheVersion = "1"
    ) throws(CacheError) -> Cache<Key, Int> {
        try manager.cache(named: "a", version: version, maxAge: .unlimited)
    }

    /// Opens the cache as programs that run one after the other do.
    private func openAnew<Key: Codable & Hashable & Sendable>(_ key: Key.Type) throws {
        let manager = try place.manager()
        let cache = try open(manager, key)
        _ = cache.statistics
        try manager.close()
    }

    @Test func `another kind of keys under the same version is a mismatch, and nothing is changed`() throws {
        let manager = try place.manager()
        try open(manager, Int.self).setValue(7, forKey: 1)
        try manager.close()
        for _ in 0..<2 {
            expectError(.typeMismatch) { try openAnew(String.self) }
            expectError(.typeMismatch) { try openAnew(UUID.self) }
            expectError(.typeMismatch) { try openAnew(Pair.self) }
        }
        let message = #expect(throws: CacheError.self) { try openAnew(Word.self) }?.message
        #expect(
            message == "The store could not open the cache \"a\". It has integers as keys, and was opened with texts."
                + " Use keys of the kind that it has, or open it under another version.")
        #expect(try open(place.manager(), Int.self).value(forKey: 1) == 7)
        let reader = try place.manager { $0.access = .readOnly }
        expectError(.typeMismatch) { _ = try open(reader, String.self) }
        #expect(try open(reader, Int.self)[1] == 7)
    }

    @Test func `types of one kind open the same cache, and another version any`() throws {
        let manager = try place.manager()
        try open(manager, Int.self).setValue(7, forKey: 1)
        try manager.close()
        try openAnew(Int8.self)
        try openAnew(UInt64.self)
        try openAnew(ID.self)
        let words = try place.manager()
        try open(words, String.self, version: "2").setValue(8, forKey: "one")
        try words.close()
        let other = try place.manager()
        #expect(try open(other, Word.self, version: "2").value(forKey: .one) == 8)
        try other.close()
        // An emptied cache keeps its kind.
        let last = try place.manager()
        try open(last, Word.self, version: "2").removeAll()
        try last.close()
        expectError(.typeMismatch) { _ = try open(place.manager(), Int.self, version: "2") }
    }

    @Test func `a migration refuses another kind too, and changes nothing`() throws {
        let manager = try place.manager()
        try open(manager, Int.self).setValue(7, forKey: 1)
        try manager.close()
        for migration in [
            CacheMigration<String, Int>.keeping("1"), .from("1", as: Int.self) { (value: Int) in value },
        ] {
            expectError(.typeMismatch) {
                let other = try place.manager()
                let _: Cache<String, Int> = try other.cache(
                    named: "a", version: "2", maxAge: .unlimited, migrations: [migration])
            }
        }
        #expect(try open(place.manager(), Int.self).value(forKey: 1) == 7)
    }

    /// A type that was a number once, and is a text now.
    private struct Mixed: Codable, Hashable, Sendable {
        let text: String

        init(_ text: String) { self.text = text }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            do { text = "\(try container.decode(Int.self))" } catch { text = try container.decode(String.self) }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
    }

    @Test func `a type that reads several kinds opens any`() throws {
        let manager = try place.manager()
        try open(manager, String.self).setValue(7, forKey: "one")
        try manager.close()
        let other = try place.manager()
        #expect(try open(other, Mixed.self).value(forKey: Mixed("one")) == 7)
        try other.close()
        #expect(try open(place.manager(), String.self).value(forKey: "one") == 7)
    }

    @Test func `caches in memory refuse another kind too, once no handle is live`() throws {
        let manager = try CacheManager.inMemory()
        do { try open(manager, Pair.self).setValue(1, forKey: Pair()) }
        expectError(.typeMismatch) { _ = try open(manager, String.self) }
        #expect(try open(manager, Pair.self).value(forKey: Pair()) == 1)
    }
}
