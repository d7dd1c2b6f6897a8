import Foundation
import Larder
import LarderRedisTLS

/// What the guides *Share between machines*, *Operate a shared cache* and *Run nodes* show.
enum Guide {
    struct Article: Codable, Sendable { var title: String }

    static func share(_ manager: CacheManager, _ api: some API) async throws {
        let tier = RedisTier(url: "redis://127.0.0.1:6379", prefix: "app")
        let articles: Cache<Int, Article> = try await manager.cache(named: "articles", version: "3", maxAge: .days(7))
        let shared = try await articles.shared(through: tier)

        let article = try await shared.value(forKey: 7) { id in try await api.article(id) }
        try await shared.setValue(article, forKey: 7, tags: ["author:3"])
        try await shared.removeAll(tagged: "author:3")

        await shared.close()
    }

    static func connect() -> [RedisTier] {
        let tier = RedisTier(url: "rediss://cache.example.com:6379", prefix: "app", security: .tls())

        let sentinels = RedisSentinels(["redis://10.0.0.1:26379", "redis://10.0.0.2:26379"], master: "cache")
        let found = RedisTier(prefix: "app", address: sentinels.address)
        return [tier, found]
    }

    static func end(
        _ shared: SharedCache<Int, Article>, _ manager: CacheManager, _ tier: RedisTier
    ) async throws {
        await shared.close()
        try await manager.close()
        tier.close()
    }

    static func test(_ first: Cache<Int, Article>, _ second: Cache<Int, Article>) async throws {
        let tier = MemorySharedTier()
        let one = try await first.shared(through: tier)
        let other = try await second.shared(through: MemorySharedTier(joining: tier))
        tier.isAvailable = false
        try await one.removeValue(forKey: 7)
        tier.isAvailable = true

        _ = other
    }

    protocol API: Sendable { func article(_ id: Int) async throws -> Article }
}
