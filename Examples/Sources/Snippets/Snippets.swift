import Foundation
import Larder

/// The snippets of README and of the guides.
///
/// A test of the house rules compares them line by line. `make examples` runs this program.
@main
struct Snippets {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-snippets-\(UUID())")
        try await opening(folder)
        try await MemorySnippets.run(folder.appendingPathComponent("snapshot"), Data([1, 2, 3]))
        try MigrationSnippets.run(folder)
        try codecs()
        try largeValues(folder, Data(repeating: 1, count: 100_000))
        try limits(folder.appendingPathComponent("limited.sqlite"))
        try caches(folder)
        try ages()
        try await loads()
        try await iteration()
        try await changes()
        try readme(folder)
        print("snippets: done")
        try FileManager.default.removeItem(at: folder)
    }

    private static func opening(_ folder: URL) async throws {
        let manager = try CacheManager(url: folder.appendingPathComponent("app.sqlite"))
        let listening = Task {
            for await event in manager.events {
                print(event.message)
            }
        }
        let report = try await manager.verify(repairing: true)
        if let original = report.setAside {
            print("\(report.lost) entries were lost; the original is \(original.path)")
        }
        try await manager.close()
        await listening.value
    }

    private static func largeValues(_ folder: URL, _ photo: Data) throws {
        let manager = try CacheManager(url: folder.appendingPathComponent("photos.sqlite"))
        let options = CacheOptions(
            disk: DiskLimits(countLimit: 10_000, sizeLimit: 512 << 20),
            inlineLimit: 16 << 10,
            fileName: { key in "\(key).jpg" })
        let photos: Cache<String, Data> = try manager.cache(
            named: "photos", version: "1", maxAge: .days(30), options: options)
        photos["cat"] = photo
        let file = try photos.fileURL(forKey: "cat")
        guard photos["cat"] == photo, file?.pathExtension == "jpg" else { throw Surprise() }
        let download = folder.appendingPathComponent("download")
        try photo.write(to: download)
        try photos.setValue(contentsOf: download, forKey: "dog", tags: ["album:7"])
        guard photos["dog"] == photo else { throw Surprise() }
        try manager.close()
    }

    private static func limits(_ file: URL) throws {
        let configuration = CacheManager.Configuration(sizeLimit: 2 << 30, freeSpaceFloor: 64 << 20)
        let manager = try CacheManager(url: file, configuration: configuration)
        let options = CacheOptions(
            memory: MemoryLimits(byteLimit: 8 << 20),
            disk: DiskLimits(countLimit: 10_000, sizeLimit: 512 << 20))
        let pages: Cache<String, Data> = try manager.cache(
            named: "pages", version: "1", maxAge: .days(30), options: options)

        pages.memory.byteLimit = 16 << 20
        try pages.disk.setLimits(DiskLimits(countLimit: 100_000))

        let report = try manager.maintain()
        print(report.expired, report.trimmed, report.freedBytes)
        guard pages.disk.limits.countLimit == 100_000 else { throw Surprise() }
        try manager.close()
    }

    private static func codecs() throws {
        let bytes = try CBOREncoder().encode(["a": [1, 2, 3]])
        let back = try CBORDecoder().decode([String: [Int]].self, from: bytes)
        let codec = ValueCodec<String>(
            identifier: "utf8", encode: { Data($0.utf8) }, decode: { String(decoding: $0, as: UTF8.self) }
        ).then(DataTransform(identifier: "flip", apply: { Data($0.map { ~$0 }) }, undo: { Data($0.map { ~$0 }) }))
        guard back == ["a": [1, 2, 3]], codec.identifier == "utf8+flip" else { throw Surprise() }
    }

    private struct Article: Codable, Sendable { var title: String }

    /// The first screen of README.
    ///
    /// Its store has a name, so it is in the folder for caches, and is deleted again.
    private static func readme(_ folder: URL) throws {
        setenv("XDG_CACHE_HOME", folder.path, 1)
        let manager = try CacheManager(name: "MyApp")
        let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))

        articles[42] = Article(title: "On shelves")  // write: memory and disk
        let title = articles[42]?.title  // read: nil if missing or expired
        for (id, article) in articles { print(id, article.title) }  // loop: in the order of keys
        guard title == "On shelves" else { throw Surprise() }
        try manager.close()
    }

    private static func caches(_ folder: URL) throws {
        let manager = try CacheManager(url: folder.appendingPathComponent("caches.sqlite"))
        let article = Article(title: "On shelves")

        let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))
        articles[42] = article
        let title = articles[42]?.title
        for (id, article) in articles { print(id, article.title) }
        articles[42] = nil
        guard title == article.title, articles[42] == nil else { throw Surprise() }

        let shown = articles.memory[42]
        let stored = try articles.disk.value(forKey: 42)
        guard shown == nil, stored == nil else { throw Surprise() }

        let tag = Data("etag".utf8)
        try articles.setValue(article, forKey: 7, maxAge: .hours(1), extendedData: tag, pinned: true)
        let entry = try articles.entry(forKey: 7)
        guard entry?.extendedData == tag else { throw Surprise() }

        do throws(CacheError) {
            try articles.setValue(article, forKey: 7)
        } catch {
            print(error.code, error.message)
        }

        let counts: Cache<String, Int> = try manager.cache(named: "counts", version: "1", maxAge: .unlimited)
        try counts.update("visits") { $0 = ($0 ?? 0) + 1 }
        try manager.transaction { transaction in
            try transaction.removeValue(forKey: 7, in: articles)
            try transaction.setValue(0, forKey: "visits", in: counts)
        }
        guard counts["visits"] == 0, articles[7] == nil else { throw Surprise() }

        try articles.setValue(article, forKey: 7, tags: ["author:3", "front page"])
        try articles.removeAll(tagged: "author:3")
        try manager.removeAll(tagged: "author:3")

        articles[1] = article
        try articles.removeAll { $0.value.title.isEmpty }
        try articles.removeAll()
        try articles.clear()
        guard articles[1] == nil else { throw Surprise() }
        try manager.close()
    }

    private static func ages() throws {
        let manager = try CacheManager.inMemory()
        let sessions: Cache<String, String> = try manager.cache(
            named: "sessions", version: "1", maxAge: .minutes(10).sinceLastAccess)
        sessions["ada"] = "token"
        try sessions.setValue("token", forKey: "bob", maxAge: .hours(1))
        try sessions.touch("ada")
        guard try sessions.count == 2 else { throw Surprise() }
    }

    private static func iteration() async throws {
        let manager = try CacheManager.inMemory()
        let titles: Cache<Int, String> = try await manager.cache(named: "titles", version: "1", maxAge: .days(1))
        for (id, title) in titles where title.hasPrefix("A") {
            titles[id] = nil
        }
        let recent = titles.entries(orderedBy: .accessed, descending: true, limit: 10).map(\.key)
        for try await (id, title) in titles.async {
            print(id, title)
        }
        guard recent.isEmpty else { throw Surprise() }
    }

    private static func loads() async throws {
        let manager = try CacheManager.inMemory()
        let titles: Cache<Int, String> = try await manager.cache(named: "titles", version: "1", maxAge: .days(1))

        let title = try await titles.value(forKey: 7) { id in "title \(id)" }

        let found = try await titles.values(forKeys: [1, 2, 3]) { missing in
            Dictionary(uniqueKeysWithValues: missing.map { ($0, "title \($0)") })
        }

        let entry = try await titles.entry(forKey: 7) { id, old in
            if let old, old.extendedData == Data("v1".utf8) { return .notModified }
            return .value("title \(id)", maxAge: .hours(1), extendedData: Data("v1".utf8))
        }

        let headline = try await titles.value(forKey: 9) { id, _ in
            let text = "title \(id)"
            return .value(text, maxAge: text.hasSuffix("9") ? .minutes(1) : .hours(1), tags: ["headlines"])
        }

        let missing = try await titles.value(forKey: 404) { _, _ in .none(for: .minutes(5)) }

        let policy = GenerationPolicy(staleFor: .seconds(60), staleOnError: .seconds(3600), refreshAhead: 0.8)
        let loaded = titles.generator(policy) { id in "title \(id)" }
        let one = try await loaded(1)

        let conditional = titles.generator(policy) { id, old in
            if old?.extendedData == Data("v1".utf8) { return .notModified }
            return .value("title \(id)", extendedData: Data("v1".utf8))
        }
        let current = try await conditional(7)

        guard title == entry.value, one == "title 1", found.count == 3 else { throw Surprise() }
        guard headline == "title 9", missing == nil, current == title else { throw Surprise() }
    }

    struct Preferences {
        @Cached<String, String> var theme: String

        init(in settings: Cache<String, String>) {
            _theme = Cached(wrappedValue: "light", "theme", in: settings)
        }
    }

    private static func changes() async throws {
        let manager = try CacheManager.inMemory()
        let titles: Cache<Int, String> = try await manager.cache(named: "titles", version: "1", maxAge: .days(1))

        let changes = titles.changes(every: .milliseconds(50))
        titles[8] = "eight"
        for await change in changes {
            if change.isReset { break }
            print(change.updated, change.removed)
            break
        }

        let task = titles.evict(
            every: .seconds(600), whereMetadata: { id, metadata in id < 0 || metadata.size > 1_000_000 })
        task.cancel()

        let settings: Cache<String, String> = try await manager.cache(
            named: "settings", version: "1", maxAge: .unlimited)
        let preferences = Preferences(in: settings)
        preferences.theme = "dark"
        preferences.$theme.reset()
        guard preferences.theme == "light" else { throw Surprise() }
    }

    /// A snippet that does not do what the text says.
    private struct Surprise: Error {}

    /// Compiled, not run: it would open a store in the user's caches directory.
    static func named() throws {
        let manager = try CacheManager(name: "MyApp")
        print(manager)
    }
}
