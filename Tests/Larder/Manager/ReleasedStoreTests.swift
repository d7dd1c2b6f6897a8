import Foundation
import Larder
import LarderTestSupport
import Testing

/// The stores that releases have written, one in `Tests/Stores` for each release: any 1.x reads those of all before it.
///
/// `make release-store` writes that of this version, when a release is made. It never changes later.
struct ReleasedStoreTests {
    /// A value of many types.
    private struct Sample: Codable, Hashable {
        enum Kind: Codable, Hashable { case plain, named(String), pair(first: Int, second: Double?) }
        var text: String
        var numbers: [Int64]
        var share: Double
        var date: Date
        var url: URL
        var data: Data
        var id: UUID
        var kinds: [String: Kind]
        var missing: String?
    }

    private static let moment = Date(timeIntervalSince1970: 1_764_547_200)

    private static func sample(_ number: Int) throws -> Sample {
        Sample(
            text: "übung \(number)", numbers: [.min, 0, Int64(number), .max], share: 0.1 * Double(number),
            date: moment.addingTimeInterval(Double(number) + 0.25),
            url: try #require(URL(string: "https://example.org/\(number)?a=b")), data: Data([0, 255, UInt8(number)]),
            id: try #require(UUID(uuidString: "00000000-0000-0000-0000-0000000000\(number + 10)")),
            kinds: ["a": .plain, "b": .named("n"), "c": .pair(first: number, second: nil)], missing: nil)
    }

    private struct Caches {
        let samples: Cache<Int, Sample>
        let texts: Cache<String, String>
        let files: Cache<UUID, Data>

        init(_ manager: CacheManager) throws {
            samples = try manager.cache(named: "samples", version: "1", maxAge: .unlimited)
            texts = try manager.cache(named: "texts", version: "b", maxAge: .hours(1).sinceLastAccess)
            files = try manager.cache(
                named: "files", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 100))
        }
    }

    private static func key(_ number: Int) throws -> UUID {
        try #require(UUID(uuidString: "00000000-0000-0000-0000-00000000000\(number)"))
    }

    private func fill(_ caches: Caches) throws {
        for number in 0..<20 {
            try caches.samples.setValue(
                Self.sample(number), forKey: number, cost: number,
                extendedData: number == 5 ? Data([1, 2, 3]) : nil, tags: number % 2 == 0 ? ["even", "all"] : ["all"],
                pinned: number == 7)
        }
        try caches.samples.setValue(Self.sample(20), forKey: 20, maxAge: .minutes(10))
        for key in ["", "a", "é", "long " + String(repeating: "k", count: 1000)] {
            try caches.texts.setValue("text of \(key)", forKey: key)
        }
        for number in 0..<5 {
            try caches.files.setValue(
                Data(repeating: UInt8(number), count: 90 * (number + 1)), forKey: Self.key(number))
        }
    }

    private func expectAll(_ manager: CacheManager) throws {
        let caches = try Caches(manager)
        for number in 0...20 {
            let entry = try #require(try caches.samples.entry(forKey: number))
            #expect(try entry.value == Self.sample(number))
            #expect(entry.extendedData == (number == 5 ? Data([1, 2, 3]) : nil))
            #expect(entry.metadata.isPinned == (number == 7))
            if number < 20 { #expect(entry.metadata.cost == number && entry.metadata.expiresAt == nil) }
        }
        #expect(try caches.samples.entry(forKey: 20)?.metadata.expiresAt == Self.moment.addingTimeInterval(600))
        #expect(try caches.samples.count(tagged: "even") == 10 && caches.samples.count(tagged: "all") == 20)
        #expect(try caches.texts.count == 4)
        for (key, value) in caches.texts { #expect(value == "text of \(key)") }
        for number in 0..<5 {
            let value = try caches.files.value(forKey: Self.key(number))
            #expect(value == Data(repeating: UInt8(number), count: 90 * (number + 1)))
            #expect(try caches.files.metadata(forKey: Self.key(number))?.isFile == (number > 0))
        }
        #expect(try manager.verify(repairing: false).problems.isEmpty)
    }

    private static var stores: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Stores")
    }

    @Test func `this version reads what it has written`() throws {
        let store = try TemporaryStore()
        store.clock.set(Self.moment)
        var manager = try store.manager()
        try fill(Caches(manager))
        try manager.close()
        if ProcessInfo.processInfo.environment["LARDER_RELEASE_STORE"] == "1" {
            let folder = Self.stores.appendingPathComponent(CacheManager.libraryVersion)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            for name in ["store.sqlite", "store.files"] {
                try FileManager.default.copyItem(
                    at: store.folder(name), to: folder.appendingPathComponent(name))
            }
        }
        manager = try store.manager()
        try expectAll(manager)
    }

    /// The folders of releases; those of steps of the schema have a number.
    private static var releases: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: stores.path).filter {
                $0.first?.isNumber == true && $0.contains(".")
            }.sorted()
        }
    }

    @Test func `there is a store of the first release`() throws { #expect(try Self.releases.first == "1.0.0") }

    @Test func `the store of each release is read, written and kept`() throws {
        for version in try Self.releases { try expectStore(of: version) }
    }

    private func expectStore(of version: String) throws {
        let store = try TemporaryStore()
        store.clock.set(Self.moment)
        for name in ["store.sqlite", "store.files"] {
            try FileManager.default.copyItem(
                at: Self.stores.appendingPathComponent(version).appendingPathComponent(name), to: store.folder(name))
        }
        let readOnly = try store.manager { $0.access = .readOnly }
        try expectAll(readOnly)
        try readOnly.close()
        let manager = try store.manager()
        try expectAll(manager)
        try Caches(manager).texts.setValue("new", forKey: "b")
        try manager.close()
        #expect(try Caches(store.manager()).texts.value(forKey: "b") == "new")
    }
}
