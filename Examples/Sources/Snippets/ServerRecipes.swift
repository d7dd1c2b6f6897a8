import Foundation
import Larder

/// Ends the cache when the other services have ended.
struct CacheService: Service {
    let manager: CacheManager

    func run() async throws {
        // It throws if another service has failed, and the store is closed all the same.
        try? await gracefulShutdown()
        try await manager.close()
    }
}

/// Stores what Hummingbird persists.
struct CacheDriver: PersistDriver {
    let cache: Larder.Cache<String, Data>

    func create(key: String, value: some Codable & Sendable, expires: Duration?) async throws {
        let data = try JSONEncoder().encode(value)
        try await cache.manager.transaction { [cache] transaction in
            guard try transaction.value(forKey: key, in: cache) == nil else { throw PersistError.duplicate }
            try transaction.setValue(data, forKey: key, in: cache, maxAge: expires.map { .duration($0) })
        }
    }

    func set(key: String, value: some Codable & Sendable, expires: Duration?) async throws {
        let data = try JSONEncoder().encode(value)
        // Without an end a value keeps the one that it has.
        let end = try await cache.metadata(forKey: key)?.expiresAt
        try await cache.setValue(
            data, forKey: key, maxAge: expires.map { .duration($0) } ?? end.map { .until($0) })
    }

    func get<Object: Codable & Sendable>(key: String, as object: Object.Type) async throws -> Object? {
        try await cache.value(forKey: key).map { try JSONDecoder().decode(object, from: $0) }
    }

    func remove(key: String) async throws { try await cache.removeValue(forKey: key) }
    func shutdown() async throws {}
    func run() async throws { try await gracefulShutdown() }
}

/// Stores what Vapor caches.
struct VaporCache: Vapor.Cache {
    let cache: Larder.Cache<String, Data>
    let eventLoop: Vapor.EventLoop

    func get<T: Decodable & Sendable>(_ key: String, as type: T.Type) -> Vapor.EventLoopFuture<T?> {
        eventLoop.makeFutureWithTask { [cache] in
            try await cache.value(forKey: key).map { try JSONDecoder().decode(type, from: $0) }
        }
    }

    func set<T: Encodable & Sendable>(
        _ key: String, to value: T?, expiresIn time: Vapor.CacheExpirationTime?
    ) -> Vapor.EventLoopFuture<Void> {
        eventLoop.makeFutureWithTask { [cache] in
            let data = try value.map { try JSONEncoder().encode($0) }
            try await cache.setValue(data, forKey: key, maxAge: time.map { .seconds(Double($0.seconds)) })
        }
    }

    func set<T: Encodable & Sendable>(_ key: String, to value: T?) -> Vapor.EventLoopFuture<Void> {
        set(key, to: value, expiresIn: nil)
    }

    func `for`(_ request: Vapor.Request) -> Self { Self(cache: cache, eventLoop: request.eventLoop) }
}

/// The snippets of the guide that connects a cache with other packages.
enum ServerRecipes {
    static func run(_ file: URL) async throws {
        let slow = Timer(label: "cache_slow_calls", dimensions: [])
        let configuration = CacheManager.Configuration(
            trace: { call in
                print(call)
                slow.recordNanoseconds(Int64(call.duration / .nanoseconds(1)))
            }, traceThreshold: .milliseconds(100))
        let manager = try await CacheManager.open(url: file, configuration: configuration)

        for info in try await manager.cacheInfo() {
            let names = [("cache", info.name)]
            Gauge(label: "cache_entries", dimensions: names).record(Double(info.count))
            Gauge(label: "cache_bytes", dimensions: names).record(Double(info.sizeOnDisk))
        }

        let cache: Larder.Cache<String, Data> = try await manager.cache(
            named: "objects", version: "1", maxAge: .days(1))
        let driver = CacheDriver(cache: cache)
        try await driver.create(key: "a", value: 1, expires: .seconds(60))
        do { try await driver.create(key: "a", value: 2, expires: nil) } catch is PersistError {}
        guard try await driver.get(key: "a", as: Int.self) == 1 else { throw PersistError() }
        let vapor = VaporCache(cache: cache, eventLoop: Vapor.EventLoop())
        try await vapor.set("b", to: "text", expiresIn: nil).task.value
        guard try await vapor.get("b", as: String.self).task.value == "text" else { throw PersistError() }
        try await driver.remove(key: "a")
        try await CacheService(manager: manager).run()
    }
}
