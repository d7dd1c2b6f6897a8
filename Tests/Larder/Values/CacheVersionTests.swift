import Foundation
import Larder
import LarderTestSupport
import Testing

struct CacheVersionTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(
        _ version: CacheVersion, named name: String = "a", in manager: CacheManager? = nil
    ) throws -> Cache<Int, String> {
        try (manager ?? self.manager).cache(
            named: name, version: version, maxAge: .unlimited, options: CacheOptions().steady)
    }

    /// Lets everything in the background come to its end.
    private func settle(_ manager: CacheManager? = nil) throws {
        try (manager ?? self.manager).maintain()
    }

    private func allRows(_ manager: CacheManager? = nil) throws -> Int {
        try StoreProbe(manager ?? self.manager).entryCount()
    }

    @Test func `another version purges that cache and no other, and the older handle shows and writes nothing`()
        throws
    {
        let (old, other) = (try cache("1"), try cache("1", named: "b"))
        try old.setValues((0..<1000).map { ($0, "old") })
        other[1] = "other"
        let new = try cache("2")
        #expect(new[1] == nil)
        #expect(try new.count == 0 && new.sizeOnDisk == 0 && new.isEmpty)
        #expect(new.map(\.key) == [])
        new[1] = "new"
        #expect(old[1] == nil && old[500] == nil)
        #expect(try old.count == 0 && old.value(forKey: 1) == nil && old.contains(1) == false)
        #expect(old.map(\.key) == [])
        expectError(.superseded) { try old.setValue("x", forKey: 1) }
        expectError(.superseded) { try old.remove(1) }
        expectError(.superseded) { try old.removeAll() }
        expectError(.superseded) { try old.update(1) { $0 = "x" } }
        expectError(.superseded) { try manager.transaction { try $0.setValue("x", forKey: 1, in: old) } }
        old[1] = "x"
        #expect(old.statistics.failures == 1)
        expectError(.superseded) { try old.removeExpired() }
        expectError(.superseded) { try old.trim(toCount: 0) }
        expectError(.superseded) { try old.trim(toSize: 0) }
        expectError(.superseded) { try old.disk.trim(toCount: 0) }
        expectError(.superseded) { try old.removeAll { _ in true } }
        expectError(.superseded) { try old.removeAll { _, _ in true } }
        expectError(.superseded) { try old.update(1) { $0 = nil } }
        expectError(.superseded) { try old.update(1) { _ in } }
        #expect(new[1] == "new")
        #expect(other[1] == "other")
        #expect(try manager.cacheInfo().map(\.version) == ["2", "1"])
        try settle()
        #expect(try allRows() == 2)
        try expectInvariants(new)
        try expectInvariants(other)
    }

    @Test func `what is known of a cache says when it was opened last and then written`() throws {
        let first = place.clock.now
        do { try cache("1").setValue("one", forKey: 1) }
        #expect(try manager.cacheInfo().map(\.openedAt) == [first])
        place.clock.set(first + 60)
        let again = try cache("1")
        #expect(try manager.cacheInfo().map(\.openedAt) == [first])
        try again.removeAll()
        #expect(try manager.cacheInfo().map(\.openedAt) == [first + 60])
    }

    @Test func `the last opening is the one that is told, though a handle lived`() throws {
        let first = try cache("1")
        place.clock.advance(by: .seconds(100))
        let second = try cache("1")
        try second.setValue("two", forKey: 2)
        #expect(try manager.cacheInfo().map(\.openedAt) == [place.clock.now])
        withExtendedLifetime((first, second)) {}
    }

    @Test func `the same version finds everything again`() throws {
        var old: Cache<Int, String>? = try cache("1")
        try old?.setValues((0..<10).map { ($0, "\($0)") })
        old = nil
        #expect(try cache("1").count == 10)
        try manager.close()
        let again = try CacheManager(url: place.url)
        try expectInvariants(try cache("1", in: again))
        #expect(try cache("1", in: again).count == 10)
    }

    @Test func `versions and names are compared as bytes`() throws {
        let composed = try cache("\u{E9}", named: "\u{E9}")
        composed[1] = "a"
        let decomposed = try cache("\u{E9}", named: "e\u{301}")
        #expect(decomposed[1] == nil)
        let bumped = try cache("e\u{301}", named: "\u{E9}")
        #expect(bumped[1] == nil)
        #expect(try manager.cacheInfo().count == 2)
    }

    @Test func `other types are refused while a handle lives, and another codec purges`() throws {
        let cache = try cache("1")
        cache[1] = "one"
        expectError(.typeMismatch) {
            let _: Cache<Int, Int> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        }
        expectError(.typeMismatch) {
            let _: Cache<String, String> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        }
        #expect(cache[1] == "one")
        let json: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .unlimited, codec: .json)
        #expect(json[1] == nil)
        expectError(.superseded) { try cache.setValue("x", forKey: 1) }
        try expectInvariants(json)
    }

    @Test func `handles of one version share everything, and each lives as long as its object`() throws {
        let first = try cache("1")
        var second: Cache<Int, String>? = try cache("1")
        second?[1] = "one"
        #expect(first[1] == "one")
        #expect(first.statistics == second?.statistics)
        second = nil
        #expect(first[1] == "one")
        let numbers = {
            let cache: Cache<Int, Int> = try manager.cache(named: "n", version: "1", maxAge: .unlimited); cache[1] = 1
        }
        try numbers()
        // Its handle is gone, so other types may have a try; what is there is theirs to decode.
        let texts: Cache<Int, String> = try manager.cache(named: "n", version: "1", maxAge: .unlimited)
        expectError(.undecodable) { try texts.value(forKey: 1) }
    }

    @Test func `what a purge left over goes on after the process's end`() throws {
        try cache("1").setValues((0..<5000).map { ($0, "old") })
        let new = try cache("2")
        new[1] = "new"
        try manager.close()
        let again = try place.manager { $0.maintenanceInterval = .seconds(60) }
        #expect(try allRows(again) == 5001)
        let cache = try cache("2", in: again)
        #expect(place.clock.pendingCount > 0)
        try settle(again)
        #expect(try allRows(again) == 1)
        #expect(cache[1] == "new")
        try expectInvariants(cache)
    }

    @Test func `clearing, removing and emptying`() throws {
        let (a, b) = (try cache("1"), try cache("1", named: "b"))
        for cache in [a, b] { try cache.setValues((0..<700).map { ($0, "v") }) }
        #expect(try manager.cacheInfo().map(\.count) == [700, 700])
        #expect(try manager.cacheInfo().map(\.sizeOnDisk) == [try a.sizeOnDisk, try b.sizeOnDisk])
        try a.removeAll()
        a[1] = "after"
        #expect(a.map(\.value) == ["after"])
        try manager.removeCache(named: "b")
        try manager.removeCache(named: "nobody")
        #expect(b[1] == nil)
        expectError(.superseded) { try b.setValue("x", forKey: 1) }
        #expect(try manager.cacheInfo().map(\.name) == ["a"])
        let c = try cache("1", named: "b")
        c[1] = "c"
        // Also those that nobody has open.
        do { try cache("1", named: "d").setValue("d", forKey: 1) }
        try manager.removeAll()
        #expect(try manager.cacheInfo().map(\.count) == [0, 0, 0])
        #expect(a[1] == nil && c[1] == nil)
        a[2] = "two"
        #expect(try a.count == 1)
        try settle()
        #expect(try allRows() == 1)
        expectError(.invalidName) { try cache("1", named: "") }
        try expectInvariants(a)
    }

    @Test func `a name is any text, and each is a cache of its own`() throws {
        let names = ["a/b", "../a", "a\0b", "a\0c", "🦊", " "]
        for (index, name) in names.enumerated() { try cache("1", named: name).setValue("\(index)", forKey: 1) }
        for (index, name) in names.enumerated() { #expect(try cache("1", named: name)[1] == "\(index)") }
        #expect(try Set(manager.cacheInfo().map(\.name)) == Set(names))
    }

    @Test func `a purge is told of, with the version of what went`() async throws {
        let events = manager.events
        for version: CacheVersion in ["1", "1", "2"] { _ = try cache(version) }
        try await manager.close()
        var seen: [CacheVersion] = []
        for await event in events {
            guard case .purged(let version) = event.kind else { continue }
            #expect(event.cacheName == "a")
            seen.append(version)
        }
        #expect(seen == ["1"])
    }

    @Test(arguments: [0, 1, 1700])
    func `clearing with progress returns when the rows are gone`(count: Int) throws {
        let cache = try cache("1")
        try cache.setValues((0..<count).map { ($0, "v") })
        let told = Told<CacheProgress>()
        try cache.clear { progress in
            told.add(progress)
            cache[1] = "from inside"
        }
        #expect(told.all.last?.completed == count)
        #expect(told.all.allSatisfy { $0.total == count })
        #expect(count > 0 || told.all.count == 1)
        #expect(try allRows() == 1)
        try expectInvariants(cache)
    }

    @Test func `another process's bump supersedes, and calls on the whole store go on`() throws {
        let old = try cache("1")
        let sliding: Cache<Int, String> = try manager.cache(
            named: "s", version: "1", maxAge: .hours(1).sinceLastAccess)
        old[1] = "one"
        sliding[1] = "one"
        #expect(old[1] == "one" && sliding[1] == "one")
        let bump = """
            UPDATE cache SET state = 1, checksum = 0;
            INSERT INTO cache (name, version, codec, age_rule, age, state, opened_at)
                SELECT name, '9', codec, 0, 0, 0, 0 FROM cache;
            INSERT INTO entry (cache, key, written_at, revision, checksum, payload)
                SELECT id, 1, 0, 1, 0, x'6161' FROM cache WHERE version = '9'
            """
        var intruder = try Intruder(place.url)
        try intruder.execute(bump)
        #expect(try sliding.count == 0)
        try manager.flush()
        #expect(try manager.cacheInfo().map(\.count) == [1, 1])
        try manager.removeAll()
        #expect(try manager.cacheInfo().map(\.count) == [0, 0])
        #expect(old[1] == nil)
        expectError(.superseded) { try old.setValue("x", forKey: 1) }
    }

    @Test(arguments: ["version = '9'", "codec = 'json'", "name = 'other'", "state = 1"])
    func `a cache that somebody altered where it stands is read no more`(change: String) throws {
        let old = try cache("1")
        old[1] = "one"
        #expect(old[1] == "one")
        var intruder = try Intruder(place.url)
        try intruder.execute("UPDATE cache SET opened_at = opened_at + 1")
        #expect(old[1] == "one")
        try intruder.execute("UPDATE cache SET \(change), checksum = 0")
        #expect(old[1] == nil)
        expectError(.superseded) { try old.setValue("x", forKey: 1) }
    }

    @Test func `a call that finds nothing to write learns of another process's bump too`() throws {
        var intruder = try Intruder(place.url)
        let calls: [@Sendable (Cache<Int, String>) throws -> Void] = [
            { try $0.removeExpired() }, { try $0.trim(toCount: 9) }, { try $0.trim(toSize: 9) },
            { try $0.removeAll(where: { _ in true }) }, { try $0.removeAll(whereMetadata: { _, _ in true }) },
            { try $0.update(1) { _ in } },
        ]
        for (index, call) in calls.enumerated() {
            let old = try cache("1", named: "\(index)")
            try call(old)
            try intruder.execute(
                """
                UPDATE cache SET state = 1, checksum = 0;
                INSERT INTO cache (name, version, codec, age_rule, age, state, opened_at)
                    VALUES ('\(index)', '9', 'cbor', 0, 0, 0, 0)
                """)
            expectError(.superseded) { try call(old) }
            #expect(old[1] == nil)
        }
    }
}
