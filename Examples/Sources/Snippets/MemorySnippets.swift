import Foundation
import Larder

/// The snippets of the guides about the memory cache, and about moving from another one.
enum MemorySnippets {
    private struct Surprise: Error {}

    static func run(_ file: URL, _ data: Data) async throws {
        try memory(data)
        try await loading()
        try saving(file)
        await following()
        comingFrom(data)
        let fake = FakeCache<Int, String>()
        guard try await Articles(store: fake).article(7) == "article 7", fake[7] != nil else { throw Surprise() }
        guard try await Articles(store: MemoryCache()).article(7) == "article 7" else { throw Surprise() }
    }

    private static func memory(_ data: Data) throws {
        let images = MemoryCache<String, Data>(countLimit: 1000, costLimit: 64 << 20)
        images.setValue(data, forKey: "logo", cost: data.count)
        let logo = images["logo"]
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
        guard logo == data, sessions["token"] == token else { throw Surprise() }
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

    private final class NSImage {}
    private struct User {
        let isStale = false
    }

    private static func comingFrom(_ data: Data) {
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
            let found = pages.value(forKey: url)
            pages.removeValue(forKey: url)
            let recent = pages.orderedKeys.last
            _ = (found, recent)
        }
        do {
            let user = User()
            // After
            let cache = MemoryCache<String, User>()
            let eviction = cache.evict(every: .seconds(60)) { key, user in user.isStale }
            cache["7"] = user
            eviction.cancel()
        }
    }
}

struct Boxed<Object>: @unchecked Sendable {
    let value: Object
    init(_ value: Object) { self.value = value }
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
