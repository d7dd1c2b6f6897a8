import Foundation
import Larder
import LarderTestSupport
import Testing

/// What other managers of the file commit, as streams report it.
struct ForeignCommitsTests {
    private let place: TemporaryStore
    private let manager: CacheManager
    private let cache: Cache<Int, String>
    private let other: Cache<Int, String>

    init() throws {
        (place, manager) = try TemporaryStore.opened()
        cache = try Self.numbers(manager)
        other = try Self.numbers(try place.manager())
    }

    private static func numbers(_ manager: CacheManager) throws -> Cache<Int, String> {
        try manager.cache(named: "numbers", version: "1", maxAge: .unlimited, options: CacheOptions().steady)
    }

    /// Lets a look come, and the interval that it may have begun.
    private func endIntervals() { for _ in 0..<2 { place.clock.advance(by: .milliseconds(100)) } }

    /// A stream that has listed the rows, because its first batch was requested.
    private func begun() async throws -> AsyncStream<CacheChanges<Int, String>>.Iterator {
        var changes = cache.changes().makeAsyncIterator()
        try await cache.setValue("first", forKey: -1)
        #expect(await changes.next() == CacheChanges(updated: [-1: "first"], removed: [], isReset: false))
        return changes
    }

    @Test func `what another manager has changed is listed, and what follows it is reported as ever`() async throws {
        for key in 1...3 { try await cache.setValue("old", forKey: key) }
        try await other.setValue("on disk alone", forKey: 4)
        var changes = try await begun()
        try await other.setValue("a", forKey: 1)
        try await other.removeValue(forKey: 2)
        try await other.setValue("b", forKey: 5)
        try await other.removeValue(forKey: 4)
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [1: "a", 5: "b"], removed: [2, 4], isReset: false))
        for round in 0..<3 {
            endIntervals()
            // Had another batch been sent, it would come first.
            try await cache.setValue("\(round)", forKey: 3)
            endIntervals()
            #expect(await changes.next() == CacheChanges(updated: [3: "\(round)"], removed: [], isReset: false))
        }
        try await other.removeAll()
        endIntervals()
        let all = CacheChanges<Int, String>(updated: [:], removed: [-1, 1, 3, 5], isReset: false)
        #expect(await changes.next() == all)
    }

    @Test func `a read that finds the change of another manager first hides it from no stream`() async throws {
        try await cache.setValue("old", forKey: 1)
        var changes = try await begun()
        try await other.setValue("new", forKey: 1)
        #expect(try await cache.value(forKey: 1) == "new")
        endIntervals()
        #expect(await changes.next()?.updated[1] == "new")
    }

    @Test func `a key that is removed here, set elsewhere and removed there is reported to the end`() async throws {
        try await cache.setValue("old", forKey: 1)
        var changes = try await begun()
        try await cache.remove(1)
        try await other.setValue("new", forKey: 1)
        endIntervals()
        #expect(await changes.next()?.updated[1] == "new")
        try await other.removeValue(forKey: 1)
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [:], removed: [1], isReset: false))
    }

    @Test func `after a reset what others have changed is listed again`() async throws {
        var changes = try await begun()
        try await cache.clear()
        endIntervals()
        #expect(await changes.next()?.isReset == true)
        try await cache.setValue("second", forKey: -2)
        endIntervals()
        #expect(await changes.next()?.updated == [-2: "second"])
        try await other.setValue("a", forKey: 1)
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [1: "a"], removed: [], isReset: false))
    }

    @Test func `a commit before the first request is a reset, and what follows is listed`() async throws {
        for key in 1...3 { try await cache.setValue("old", forKey: key) }
        var changes = cache.changes().makeAsyncIterator()
        try await other.setValue("a", forKey: 1)
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [:], removed: [], isReset: true))
        try await cache.setValue("own", forKey: 2)
        endIntervals()
        #expect(await changes.next()?.updated == [2: "own"])
        try await other.setValue("c", forKey: 4)
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [4: "c"], removed: [], isReset: false))
    }

    @Test func `a commit of another manager to another cache changes nothing here`() async throws {
        let words: Cache<Int, String> = try await place.manager().cache(
            named: "words", version: "1", maxAge: .unlimited)
        var changes = try await begun()
        try await words.setValue("a", forKey: 1)
        endIntervals()
        try await other.setValue("b", forKey: 2)
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [2: "b"], removed: [], isReset: false))
    }

    @Test func `of more than ten thousand entries nothing is listed after a commit of another manager`() async throws {
        try await other.setValues((1...PendingChanges<Int>.capacity).map { ($0, "\($0)") })
        var changes = try await begun()
        try await other.setValue("a", forKey: 1)
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [:], removed: [], isReset: true))
        // One less is listed.
        try await cache.remove(-1)
        endIntervals()
        #expect(await changes.next()?.removed == [-1])
        try await other.setValue("c", forKey: 1)
        endIntervals()
        let batch = await changes.next()
        #expect(batch?.updated == [1: "c"] && batch?.isReset == false)
    }

    @Test func `what the manager itself commits anywhere in the file is no reset`() async throws {
        var changes = cache.changes().makeAsyncIterator()
        for version in 1..<4 {
            let words: Cache<String, Int> = try await manager.cache(
                named: "words", version: .custom("\(version)"), maxAge: .hours(1))
            try await words.setValues(["a": 1, "b": 2])
            endIntervals()
            try await words.removeAll()
            _ = try await cache.value(forKey: 1)
            try await manager.flush()
            endIntervals()
            // Pages are given back, and the log begins again.
            try await words.setValues((1...2_000).map { ("\($0)", $0) })
            try await manager.maintain()
            try await words.removeAll()
            #expect(try await manager.maintain().freedBytes > 0)
            try await words.clear()
            endIntervals()
        }
        try await cache.setValue("last", forKey: 3)
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [3: "last"], removed: [], isReset: false))
    }

    @Test func `a stream of a key has what another manager has set`() async throws {
        try await cache.setValue("a", forKey: 1)
        var values = cache.changes(forKey: 1).makeAsyncIterator()
        #expect(await values.next() == "a")
        try await other.setValue("b", forKey: 1)
        endIntervals()
        #expect(await values.next() == "b")
        try await other.removeValue(forKey: 1)
        endIntervals()
        #expect(await values.next() == .some(nil))
    }

    @Test func `an interval that is longer is the time between two looks`() async throws {
        let slow = cache.changes(every: .seconds(10))
        #expect(place.clock.pendingCount == 1)
        try await other.setValue("a", forKey: 1)
        place.clock.advance(by: .seconds(9))
        #expect(place.clock.pendingCount == 1)
        place.clock.advance(by: .seconds(1))
        // The look has found the commit, and no interval was running.
        #expect(place.clock.pendingCount == 1)
        var batches = slow.makeAsyncIterator()
        #expect(await batches.next()?.isReset == true)
        var quick = cache.changes(every: .zero).makeAsyncIterator()
        try await other.setValue("b", forKey: 1)
        place.clock.advance(by: .milliseconds(100))
        #expect(await quick.next()?.isReset == true)
    }

    @Test func `fifty observed caches share one look, and each learns of a commit`() async throws {
        let caches = try (0..<50).map { number -> Cache<Int, String> in
            try manager.cache(
                named: "\(number)", version: "1", maxAge: .unlimited, options: CacheOptions().steady)
        }
        let streams = caches.map { $0.changes() }
        for _ in 0..<3 {
            // Transactions that the reads of an opening leave have ended.
            endIntervals()
            #expect(place.clock.pendingCount == 1)
        }
        try await other.setValue("a", forKey: 1)
        endIntervals()
        for stream in streams {
            var changes = stream.makeAsyncIterator()
            #expect(await changes.next()?.isReset == true)
        }
    }

    @Test func `a cache that is observed later is not told of a commit before that`() async throws {
        let first = cache.changes()
        try await other.setValue("a", forKey: 1)
        let words: Cache<Int, String> = try await manager.cache(named: "words", version: "1", maxAge: .unlimited)
        var changes = words.changes().makeAsyncIterator()
        endIntervals()
        try await words.setValue("b", forKey: 2)
        endIntervals()
        #expect(await changes.next()?.updated == [2: "b"])
        var others = first.makeAsyncIterator()
        #expect(await others.next()?.isReset == true)
    }

    @Test func `no stream, no look`() async throws {
        var streams = Optional([cache.changes(), cache.changes(every: .seconds(1))])
        var key = Optional(cache.changes(forKey: 1))
        #expect(place.clock.pendingCount == 1 && streams?.count == 2)
        streams = nil
        #expect(place.clock.pendingCount == 1 && key != nil)
        key = nil
        #expect(place.clock.pendingCount == 0)
        var last = cache.changes().makeAsyncIterator()
        #expect(place.clock.pendingCount == 1)
        try await manager.close()
        #expect(place.clock.pendingCount == 0)
        #expect(await last.next() == nil)
    }

    @Test func `a store in memory is not looked at`() throws {
        let alone = try CacheManager.inMemory(configuration: place.clock.configuration)
        let stream = try Self.numbers(alone).changes()
        #expect(place.clock.pendingCount == 0)
        withExtendedLifetime(stream) {}
    }

    @Test func `a suspended store is not looked at, and what was missed is a reset`() async throws {
        var changes = cache.changes().makeAsyncIterator()
        try await manager.suspend()
        #expect(place.clock.pendingCount == 0)
        endIntervals()
        #expect(place.clock.pendingCount == 0)
        try await other.setValue("a", forKey: 1)
        manager.resume()
        endIntervals()
        #expect(await changes.next()?.isReset == true)
        #expect(try await cache.value(forKey: 1) == "a")
        try await cache.setValue("b", forKey: 1)
        endIntervals()
        #expect(await changes.next()?.updated == [1: "b"])
        try await other.setValue("c", forKey: 1)
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [1: "c"], removed: [], isReset: false))
        try await manager.suspend()
        try await other.setValue("d", forKey: 2)
        manager.resume()
        endIntervals()
        #expect(await changes.next() == CacheChanges(updated: [2: "d"], removed: [], isReset: false))
    }
}
