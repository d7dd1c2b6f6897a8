import Foundation
import Larder
import LarderRedis
import LarderTestSupport
import LarderTesting

/// A node on a real server: a store, a cache in it, and the cache shared.
final class RedisNode: Sendable {
    let store: TemporaryStore
    let tier: RedisTier
    let manager: CacheManager
    let cache: Cache<String, String>
    let shared: SharedCache<String, String>

    /// Nothing here is to fail because the machine is slow.
    static let options = SharedOptions(
        leaseAge: .seconds(60), loadWaitLimit: .seconds(120), catchUpLimit: .seconds(120), waits: true)

    convenience init(
        _ url: String, on store: TemporaryStore? = nil, timeout: Duration = .seconds(120), streamLimit: Int = 10_000,
        options: SharedOptions = RedisNode.options, security: RedisSecurity? = nil
    ) async throws {
        let tier = RedisTier(
            url: url, prefix: "test", timeout: timeout, streamLimit: streamLimit, security: security)
        try await self.init(tier, on: store, options)
    }

    /// A node that asks sentinels for its server.
    convenience init(from source: RedisSentinels) async throws {
        let tier = RedisTier(
            prefix: "test", address: source.address, credentials: { RedisCredentials(password: "secret") },
            timeout: .seconds(120))
        try await self.init(tier)
    }

    init(
        _ tier: RedisTier, on store: TemporaryStore? = nil, _ options: SharedOptions = RedisNode.options
    ) async throws {
        self.store = try store ?? TemporaryStore()
        self.tier = tier
        manager = try self.store.manager()
        cache = try await manager.cache(named: "texts", version: "1", maxAge: .days(1))
        shared = try await cache.shared(through: tier, options: options)
    }

    func get(_ key: String) async throws -> String? { try await shared.value(forKey: key) }

    /// The name that a part of the cache has on the server.
    static func name(_ part: String) -> String { "test:{texts/1/cbor}:\(part)" }

    /// Waits until the tier is there and was told everything.
    func settle() async throws {
        try await Waiting.until { self.shared.hasCaughtUp }
    }
}

extension RealServer {
    /// The value that a node gets from the server.
    func value(_ key: String) async throws -> String? {
        let (tier, space) = (try await node(), SharedSpace("texts/1/cbor"))
        guard case .entry(let entry) = try await tier.fetch(Data("t\(key)".utf8), in: space, lease: nil) else {
            return nil
        }
        return try CBORDecoder().decode(String.self, from: entry.payload)
    }
}
