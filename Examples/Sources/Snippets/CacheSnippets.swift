import Foundation
import Larder

/// Generators in properties.
struct Titles {
    let load: ValueGenerator<Int, String>
    let loadIfAny: ValueGenerator<Int, String?>

    init(_ titles: Cache<Int, String>) {
        load = titles.generator { id in "title \(id)" }
        loadIfAny = titles.generator { id, old in id == 404 ? .none(for: .minutes(5)) : .value("title \(id)") }
    }
}

/// The snippets of the guides about one cache: reading, writing, iterating, observing and loading.
enum CacheSnippets {
    private struct Surprise: Error {}
    private struct Article: Codable, Sendable { var title: String }

    static func run(_ folder: URL) async throws {
        try caches(folder.appendingPathComponent("caches.sqlite"))
        try await iteration()
        try await changes()
        try await loads()
        try loadsOnOneThread()
        try performance()
    }

    private static func caches(_ file: URL) throws {
        let manager = try CacheManager(url: file)
        let article = Article(title: "On shelves")
        do {
            let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))
            articles[42] = article
            let title = articles[42]?.title
            for (id, article) in articles { print(id, article.title) }
            articles[42] = nil
            guard title == article.title, articles[42] == nil else { throw Surprise() }
        }
        let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))

        try articles.setValue(article, forKey: 42)
        let found = try articles.value(forKey: 42)
        try articles.remove(42)
        guard found?.title == article.title else { throw Surprise() }

        let shown = articles.memory[42]
        let stored = try articles.disk.value(forKey: 42)
        guard shown == nil, stored == nil else { throw Surprise() }

        let tag = Data("etag".utf8)
        try articles.setValue(article, forKey: 7, maxAge: .hours(1), extendedData: tag, pinned: true)
        let entry = try articles.entry(forKey: 7)
        guard entry?.extendedData == tag else { throw Surprise() }

        try articles.touch(7)
        try articles.setExtendedData(nil, forKey: 7)
        let metadata = try articles.metadata(forKey: 7)
        guard metadata?.isPinned == true else { throw Surprise() }

        let counts: Cache<String, Int> = try manager.cache(named: "counts", version: "1", maxAge: .unlimited)
        try counts.update("visits") { $0 = ($0 ?? 0) + 1 }

        try manager.transaction { transaction in
            try transaction.removeValue(forKey: 7, in: articles)
            try transaction.setValue(0, forKey: "visits", in: counts)
        }
        guard counts["visits"] == 0, articles[7] == nil else { throw Surprise() }

        try counts.setValues(["visits": 1, "errors": 0])
        try counts.removeValues(forKeys: ["visits", "errors"])

        articles[8] = article
        do {
            let keys = try articles.keys(tagged: "front page")
            let tagCounts = try articles.tags()
            guard keys.isEmpty, tagCounts.isEmpty else { throw Surprise() }
        }

        try articles.setValue(article, forKey: 7, tags: ["author:3", "front page"])
        try articles.removeAll(tagged: "author:3")
        try manager.removeAll(tagged: "author:3")
        guard articles[7] == nil else { throw Surprise() }

        let some = try articles.values(forKeys: [7, 42])
        let all = try articles.snapshot()
        guard some.isEmpty, all.count == 1 else { throw Surprise() }

        try counts.removeAll(prefix: "2025-")

        try articles.removeAll { $0.value.title.isEmpty }
        try articles.removeAll()
        try articles.clear()
        guard articles[8] == nil else { throw Surprise() }

        struct Size: Codable, Hashable, Sendable { var width, height: Int }
        let thumbnails: Cache<Size, Data> = try manager.cache(named: "thumbnails", version: "1", maxAge: .days(30))
        thumbnails[Size(width: 1, height: 2)] = Data([1])
        try manager.close()
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
        try queries(manager, titles)
    }

    private static func queries(_ manager: CacheManager, _ titles: Cache<Int, String>) throws {
        let largest = titles.entries(orderedBy: .size, descending: true, limit: 3).map(\.key)
        let tagged = try titles.entries(tagged: "headlines")
        let large = try titles.metadata(forKeys: [1, 2, 3]).filter { $0.value.size > 1_000 }
        guard largest.isEmpty, tagged.isEmpty, large.isEmpty else { throw Surprise() }

        let paths: Cache<String, String> = try manager.cache(named: "paths", version: "1", maxAge: .days(1))
        paths["/news/1"] = "one"
        for page in paths.entries(orderedBy: .key, prefix: "/news/") { print(page.key, page.value) }

        let moment = try titles.snapshot()
        print(moment.count)

        let isUnused = try titles.isEmpty
        let (number, bytes) = (try titles.count, try titles.sizeOnDisk)
        guard isUnused, number == 0, bytes == 0 else { throw Surprise() }
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
        do {
            let changes = titles.changes(every: .milliseconds(50))
            titles[8] = "eight"
            for await change in changes {
                if change.isReset { break }
                print(change.updated, change.removed)
                break
            }
        }
        titles[8] = nil
        for await title in titles.changes(forKey: 8) {
            print(title ?? "no title")
            if title == nil { break }
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

    private static func loads() async throws {
        let manager = try CacheManager.inMemory()
        let titles: Cache<Int, String> = try await manager.cache(named: "titles", version: "1", maxAge: .days(1))

        let title = try await titles.value(forKey: 7) { id in "title \(id)" }

        let found = try await titles.values(forKeys: [1, 2, 3]) { missing in
            Dictionary(uniqueKeysWithValues: missing.map { ($0, "title \($0)") })
        }

        let patient = GenerationPolicy(staleFor: .seconds(60))
        let listed = try await titles.values(forKeys: [4, 5], policy: patient) { ids, old in
            var made: [Int: Generated<String>] = [:]
            for id in ids { made[id] = old[id] == nil ? .value("title \(id)", tags: ["list"]) : .notModified }
            return made
        }
        guard listed.count == 2 else { throw Surprise() }

        let entry = try await titles.entry(forKey: 7) { id, old in
            if let old, old.extendedData == Data("v1".utf8) { return .notModified }
            return .value("title \(id)", maxAge: .hours(1), extendedData: Data("v1".utf8))
        }

        let headline = try await titles.value(forKey: 9) { id, _ in
            let text = "title \(id)"
            return .value(text, maxAge: text.hasSuffix("9") ? .minutes(1) : .hours(1), tags: ["headlines"])
        }

        let missing = try await titles.value(forKey: 404) { _, _ in .none(for: .minutes(5)) }

        guard title == entry.value, found.count == 3, headline == "title 9", missing == nil else { throw Surprise() }
        try await staleValues(titles)
    }

    private static func staleValues(_ titles: Cache<Int, String>) async throws {
        let policy = GenerationPolicy(staleFor: .seconds(60), staleOnError: .seconds(3600), refreshAhead: 0.8)
        let loaded = titles.generator(policy) { id in "title \(id)" }
        let one = try await loaded(1)

        let conditional = titles.generator(policy) { id, old in
            if old?.extendedData == Data("v1".utf8) { return .notModified }
            return .value("title \(id)", extendedData: Data("v1".utf8))
        }
        let current = try await conditional(7)

        let bounded = titles.generator(GenerationPolicy(softTimeout: .milliseconds(200), timeout: .seconds(10))) { id in
            "title \(id)"
        }
        let quick = try await bounded(1)
        guard quick == "title 1" else { throw Surprise() }

        let gathered = titles.batching(window: .milliseconds(2), limit: 100) { ids in
            Dictionary(uniqueKeysWithValues: ids.map { ($0, .value("title \($0)")) })
        }
        let first = try await gathered(1)
        guard first == "title 1" else { throw Surprise() }

        let revalidated = titles.generator { id, old in
            .value("title \(id)", maxAge: .hours(1), refreshAfter: .seconds(60))
        }
        let fresh = try await revalidated(6)

        let statistics = titles.statistics
        let slow = statistics.loadTimes.bound(ofShare: 0.95)
        print(statistics.loads, statistics.loadFailures, statistics.loadTimeouts, statistics.staleHits, slow ?? .zero)
        guard one == "title 1", current == "title 7", fresh == "title 6" else { throw Surprise() }
    }

    private static func loadsOnOneThread() throws {
        let manager = try CacheManager.inMemory()
        let titles: Cache<Int, String> = try manager.cache(named: "titles", version: "1", maxAge: .days(1))
        let heading = try titles.value(forKey: 8) { id in "title \(id)" }
        guard heading == "title 8" else { throw Surprise() }
    }

    private static func performance() throws {
        let manager = try CacheManager.inMemory()
        let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))
        let loaded = [42: Article(title: "On shelves")]
        try articles.setValues(loaded)
        let shown = articles.memory[42]
        guard shown != nil else { throw Surprise() }
        articles.memory.byteLimit = 256 << 20
        print(articles.statistics.memoryHits, articles.statistics.diskHits)
    }
}
