import Foundation
import Larder

/// An article, as the app shows it.
public struct Article: Codable, Hashable, Sendable {
    /// The title.
    public var title: String

    /// Creates an article.
    public init(title: String) { self.title = title }
}

/// Loads articles; a server in the app, and whatever a test wants.
public typealias Fetch = @Sendable (Int) async throws -> Article

/// All caches of the app, opened in one place.
public struct Caches: Sendable {
    /// The store.
    public let manager: CacheManager
    /// The articles of the server.
    public let articles: Cache<Int, Article>
    /// How often each was read, which no server knows: so it is no part of what expires.
    public let readings: Cache<Int, Int>
    /// The articles that were read last, the newest last.
    public let recents: Cache<String, [Int]>

    /// The version is that of the model: raise it if old articles no longer decode, or mean something else.
    public init(_ manager: CacheManager, version: CacheVersion = 1) async throws {
        self.manager = manager
        // The first view finds what the last run has used in memory. Old articles stay for a week, for the train.
        articles = try await manager.cache(
            named: "articles", version: version, maxAge: .hours(1),
            options: CacheOptions(
                disk: DiskLimits(sizeLimit: 200 << 20), keepsExpired: .days(7), warms: .entries(100)))
        readings = try await manager.cache(
            named: "readings", version: 1, maxAge: .unlimited,
            options: CacheOptions(disk: DiskLimits(countLimit: 100_000)))
        recents = try await manager.cache(named: "recents", version: 1, maxAge: .unlimited)
    }
}

/// What the app asks for articles.
public struct ArticleRepository: Sendable {
    private let caches: Caches
    private let fetch: Fetch

    /// Creates a repository over caches.
    public init(_ caches: Caches, fetch: @escaping Fetch) { (self.caches, self.fetch) = (caches, fetch) }

    /// The article, from the cache if it is younger than an hour.
    public func article(_ id: Int) async throws -> Article {
        try await caches.articles.value(forKey: id, generate: fetch)
    }

    /// The article that memory has, be it expired; for a view, which cannot wait.
    public func known(_ id: Int) -> Article? { caches.articles.memory.value(forKey: id, allowingExpired: true) }

    /// Counts a reading, also if other tasks count at the same time.
    public func countReading(of id: Int) async throws {
        try await caches.readings.update(id) { $0 = ($0 ?? 0) + 1 }
    }

    /// How often an article was read.
    public func readings(of id: Int) async throws -> Int { try await caches.readings.value(forKey: id) ?? 0 }

    /// Removes an article and what points to it, both or none.
    public func delete(_ id: Int) async throws {
        let caches = caches
        try await caches.manager.transaction { transaction in
            try transaction.removeValue(forKey: id, in: caches.articles)
            try transaction.removeValue(forKey: id, in: caches.readings)
            var all = try transaction.value(forKey: "all", in: caches.recents) ?? []
            all.removeAll { $0 == id }
            try transaction.setValue(all, forKey: "all", in: caches.recents)
        }
    }

    /// Notes that an article was read.
    public func noteRecent(_ id: Int) async throws {
        try await caches.recents.update("all") { $0 = ($0 ?? []).filter { $0 != id } + [id] }
    }

    /// The articles that were read last.
    public func recents() async throws -> [Int] { try await caches.recents.value(forKey: "all") ?? [] }
}

/// A list of titles over any cache: a real one in the app, and a fake in its test.
public struct TitleList<Titles: KeyedCache<Int, String>> {
    private let titles: Titles

    /// Creates a list over a cache.
    public init(_ titles: Titles) { self.titles = titles }

    /// The line of an article.
    public func line(_ id: Int) async -> String {
        do {
            return "\(id): \(try await titles.value(forKey: id) { id in "article \(id)" })"
        } catch {
            return "\(id): not available"
        }
    }
}
