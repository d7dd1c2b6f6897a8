import Foundation
import Larder
import LarderTesting
import ModelLayer
import Synchronization
import Testing

struct ArticleRepositoryTests {
    private let store: TemporaryStore
    private let loads = Loads()

    init() throws { store = try TemporaryStore() }

    private func repository(version: CacheVersion = 1) async throws -> ArticleRepository {
        let loads = loads
        return ArticleRepository(try await Caches(store.reopen(), version: version)) { id in
            loads.count.withLock { $0 += 1 }
            return Article(title: "article \(id)")
        }
    }

    @Test func `an article is fetched once an hour`() async throws {
        let repository = try await repository()
        for _ in 1...3 { #expect(try await repository.article(7).title == "article 7") }
        #expect(loads.count.withLock { $0 } == 1)
        store.clock.advance(by: .seconds(3600) + .milliseconds(1))
        _ = try await repository.article(7)
        #expect(loads.count.withLock { $0 } == 2)
    }

    @Test func `readings are counted, and are there after a restart`() async throws {
        let repository = try await repository()
        _ = try await repository.article(7)
        try await withThrowingTaskGroup { group in
            for _ in 1...50 { group.addTask { try await repository.countReading(of: 7) } }
            try await group.waitForAll()
        }
        #expect(try await self.repository().readings(of: 7) == 50)
    }

    @Test func `a reading does not keep an old article, and a new one keeps its readings`() async throws {
        let repository = try await repository()
        for minutes in [59, 2] {
            _ = try await repository.article(7)
            try await repository.countReading(of: 7)
            store.clock.advance(by: .minutes(minutes))
        }
        #expect(repository.known(7)?.title == "article 7")
        _ = try await repository.article(7)
        #expect(try await repository.readings(of: 7) == 2 && loads.count.withLock { $0 } == 2)
    }

    @Test func `another version of the model purges the articles, and recent ones stay`() async throws {
        let old = try await repository()
        _ = try await old.article(7)
        try await old.noteRecent(7)
        let new = try await repository(version: 2)
        _ = try await new.article(7)
        #expect(try await new.recents() == [7] && loads.count.withLock { $0 } == 2)
        try await new.delete(7)
        #expect(try await new.recents() == [])
    }

    @Test func `a full disk is an error, and what was stored stays`() async throws {
        let manager = try store.manager()
        let repository = ArticleRepository(try await Caches(manager)) { id in Article(title: "article \(id)") }
        try await repository.noteRecent(7)
        let fault = try store.fillDisk(of: manager)
        await #expect(throws: CacheError.self) { try await repository.noteRecent(8) }
        try fault.end()
        #expect(try await repository.recents() == [7])
    }

    @Test func `a cache that fails is no article`() async {
        let fake = FakeCache<Int, String>()
        let list = TitleList(fake)
        #expect(await list.line(1) == "1: article 1")
        fake.fail(CacheError(.storageFull, "There is no room."))
        #expect(await list.line(1) == "1: not available")
    }
}

private final class Loads: Sendable {
    let count = Mutex(0)
}

/// A cache that fails when a test wants it.
private final class FakeCache<Key: Hashable & Sendable, Value: Sendable>: KeyedCache {
    private let state = Mutex<(values: [Key: Value], failure: CacheError?)>(([:], nil))

    func fail(_ failure: CacheError) { state.withLock { $0.failure = failure } }

    subscript(key: Key) -> Value? {
        get { state.withLock { $0.values[key] } }
        set { state.withLock { $0.values[key] = newValue } }
    }

    func value(forKey key: Key) throws -> Value? {
        try state.withLock { state in
            if let failure = state.failure { throw failure }
            return state.values[key]
        }
    }

    func setValue(_ value: Value?, forKey key: Key) throws { self[key] = value }
    func removeValue(forKey key: Key) throws -> Value? { state.withLock { $0.values.removeValue(forKey: key) } }
    func removeAll() throws { state.withLock { $0.values = [:] } }

    func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        if let value = try value(forKey: key) { return value }
        let value = try await generate(key)
        self[key] = value
        return value
    }
}
