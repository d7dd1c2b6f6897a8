import Foundation
import Larder

/// The snippets of the guide about moving from another cache.
enum ComingFromSnippets {
    private final class NSImage {}
    private struct Picture { let isStale = false }
    private struct Article: Codable, Sendable { var title: String }
    private struct Profile: Codable, Sendable { var name: String }

    static func run(_ data: Data) throws {
        memory(data)
        let manager = try CacheManager.inMemory()
        let profiles: Cache<String, Profile> = try manager.cache(named: "profiles", version: "1", maxAge: .unlimited)
        let profile = Profile(name: "Ada")
        do {
            // After
            profiles["profile"] = profile
            let stored = profiles["profile"]
            _ = stored
        }
        try disk(manager, Article(title: "On shelves"))
    }

    private typealias User = Profile

    private static func disk(_ manager: CacheManager, _ article: Article) throws {
        let user = User(name: "Ada")
        do {
            // After
            let users: Cache<String, User> = try manager.cache(
                named: "users", version: "1", maxAge: .hours(1),
                options: CacheOptions(memory: MemoryLimits(countLimit: 100)))
            try users.setValue(user, forKey: "7", maxAge: .minutes(1))
            let found = try users.value(forKey: "7")
            _ = found
        }
        // After
        let articles: Cache<String, Article> = try manager.cache(named: "articles", version: "1", maxAge: .hours(1))
        articles["7"] = article
        try articles.trim(toCount: 100)

        // After
        articles["7"] = article
        for (key, article) in articles { print(key, article.title) }
    }

    private static func memory(_ data: Data) {
        let (image, size) = (NSImage(), 1)
        do {
            // After
            let images = MemoryCache<String, Boxed<NSImage>>(
                countLimit: 100, onRemoval: { key, image, cause in print(key, "has left:", cause) })
            images.setValue(Boxed(image), forKey: "logo", cost: size)
            let logo = images["logo"]?.value
            _ = logo
        }
        do {
            let (page, url) = (data, URL(fileURLWithPath: "/"))
            // After
            let pages = MemoryCache<URL, Data>(countLimit: 100, costLimit: 1 << 20)
            pages.setValue(page, forKey: url, cost: page.count)
            let recent = pages.orderedKeys.last
            _ = recent
        }
        typealias User = Picture
        let user = User()
        // After
        let cache = MemoryCache<String, User>()
        let eviction = cache.evict(every: .seconds(60)) { key, user in user.isStale }
        cache["7"] = user
        eviction.cancel()
    }
}

struct Boxed<Object>: @unchecked Sendable {
    let value: Object
    init(_ value: Object) { self.value = value }
}
