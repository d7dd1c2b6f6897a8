import Foundation
import Larder

/// An article, as the app shows it.
package struct Article: Codable, Hashable, Sendable {
    package var title: String
    package var readings = 0

    package init(title: String) { self.title = title }
}

/// Loads articles; a server in the app, and whatever a test wants.
package typealias Fetch = @Sendable (Int) async throws -> Article

/// All caches of the app, opened in one place.
package struct Caches: Sendable {
    package let manager: CacheManager
    package let articles: Cache<Int, Article>
    package let favourites: Cache<String, [Int]>

    /// The version is that of the model: raise it if `Article` changes.
    package init(_ manager: CacheManager, version: CacheVersion = 1) async throws {
        self.manager = manager
        articles = try await manager.cache(named: "articles", version: version, maxAge: .hours(1))
        favourites = try await manager.cache(named: "favourites", version: 1, maxAge: .unlimited)
    }
}

/// What the app asks for articles.
package struct ArticleRepository: Sendable {
    private let caches: Caches
    private let fetch: Fetch

    package init(_ caches: Caches, fetch: @escaping Fetch) { (self.caches, self.fetch) = (caches, fetch) }

    /// The article, from the cache if it is younger than an hour.
    package func article(_ id: Int) async throws -> Article {
        try await caches.articles.value(forKey: id, generate: fetch)
    }

    /// Counts a reading, whoever else counts at the same time.
    package func countReading(of id: Int) async throws {
        try await caches.articles.update(id) { $0?.readings += 1 }
    }

    /// Removes an article and what points to it, both or none.
    package func delete(_ id: Int) async throws {
        let caches = caches
        try await caches.manager.transaction { transaction in
            try transaction.removeValue(forKey: id, in: caches.articles)
            var all = try transaction.value(forKey: "all", in: caches.favourites) ?? []
            all.removeAll { $0 == id }
            try transaction.setValue(all, forKey: "all", in: caches.favourites)
        }
    }

    package func addFavourite(_ id: Int) async throws {
        try await caches.favourites.update("all") { $0 = ($0 ?? []).filter { $0 != id } + [id] }
    }

    package var favourites: [Int] { caches.favourites["all"] ?? [] }
}

/// A list of titles over any cache: a real one in the app, and a fake in its test.
package struct TitleList<Titles: KeyedCache<Int, String>> {
    private let titles: Titles

    package init(_ titles: Titles) { self.titles = titles }

    package func line(_ id: Int) async -> String {
        do {
            return "\(id): \(try await titles.value(forKey: id) { id in "article \(id)" })"
        } catch {
            return "\(id): not available"
        }
    }
}
