import Foundation
import Larder

/// The snippets of the guides about the memory cache, and about testing without a store.
enum MemorySnippets {
    private struct Surprise: Error {}

    static func run(_ file: URL, _ data: Data) async throws {
        try memory(data)
        try await loading()
        try saving(file)
        await following()
        let fake = FakeCache<Int, String>()
        guard try await Articles(store: fake).article(7) == "article 7", fake[7] != nil else { throw Surprise() }
        let articles = Articles(store: MemoryCache())
        let text = try await articles.article(7)
        let full = CacheError(.storageFull, "The disk is full.")
        guard text == "article 7", full.code == .storageFull else { throw Surprise() }
    }

    private static func memory(_ data: Data) throws {
        let images = MemoryCache<String, Data>(countLimit: 1000, costLimit: 64 << 20)
        images.setValue(data, forKey: "logo", cost: data.count)
        let logo = images["logo"]
        images.countLimit = 100
        images.trim(toCost: 32 << 20)
        print(images.statistics.hits, images.statistics.misses)
        images.pressureResponse = .all
        images.handleMemoryPressure(.warning)
        let counts = MemoryCache<String, Int>()
        counts.update("visits") { $0 = ($0 ?? 0) + 1 }
        for (key, image) in images { print(key, image.count) }
        let oldest = images.orderedKeys.first
        let (page, url) = (data, "https://example.org")
        let pages = MemoryCache<String, Data>(byteLimit: 32 << 20)
        pages.setValue(page, forKey: url, cost: page.count)
        print(pages.totalBytes)
        let (token, expiresIn) = ("secret", 60.0)
        let sessions = MemoryCache<String, String>(maxAge: .minutes(10).sinceLastAccess)
        sessions.setValue(token, forKey: "token", maxAge: .seconds(expiresIn))
        let files = MemoryCache<String, FileHandle>(
            countLimit: 20, onRemoval: { path, file, cause in try? file.close() })
        files["null"] = .nullDevice
        files.removeAll()
        guard logo == data, sessions["token"] == token, oldest == nil, counts["visits"] == 1 else { throw Surprise() }
    }

    private struct API {
        func user(_ id: Int) async throws -> String { "user \(id)" }
    }

    private static func loading() async throws {
        let (users, api, id) = (MemoryCache<Int, String>(maxAge: .minutes(1)), API(), 7)
        let user = try await users.value(forKey: id) { id in try await api.user(id) }
        let profile = users.generator(.init(staleFor: .seconds(60))) { id in try await api.user(id) }
        guard try await profile(id) == user else { throw Surprise() }
    }

    private static func saving(_ file: URL) throws {
        let sessions = try MemoryCache<String, String>(restoring: file, countLimit: 1_000)
        let autosave = sessions.autosave(to: file, every: .seconds(10))
        try autosave.saveNow()  // before the program ends
        try sessions.save(to: file)
        let added = try sessions.load(from: file)
        guard added == 0 else { throw Surprise() }
    }

    private static func show(_ items: Any?...) {}

    private static func following() async {
        let prices = MemoryCache<String, Double>()
        let task = Task {
            for await batch in prices.changes(every: .milliseconds(200)) { show(batch.updated, batch.removed) }
            for await price in prices.changes(forKey: "AAPL") { show(price) }
        }
        task.cancel()
    }
}

struct Articles<Store: KeyedCache<Int, String>> {
    let store: Store

    func article(_ id: Int) async throws -> String {
        try await store.value(forKey: id) { id in "article \(id)" }
    }
}

final class FakeCache<Key: Hashable & Sendable, Value: Sendable>: KeyedCache, @unchecked Sendable {
    private let lock = NSLock()
    private var values: [Key: Value] = [:]
    private var failure: (any Error)?

    func fail(_ error: any Error) { lock.withLock { failure = error } }

    subscript(key: Key) -> Value? {
        get { lock.withLock { values[key] } }
        set { lock.withLock { values[key] = newValue } }
    }

    func value(forKey key: Key) throws -> Value? {
        if let failure = lock.withLock({ failure }) { throw failure }
        return self[key]
    }
    func setValue(_ value: Value?, forKey key: Key) throws { self[key] = value }
    func removeValue(forKey key: Key) throws -> Value? { lock.withLock { values.removeValue(forKey: key) } }
    func removeAll() throws { lock.withLock { values = [:] } }
    func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        if let value = try value(forKey: key) { return value }
        let value = try await generate(key)
        self[key] = value
        return value
    }
}
