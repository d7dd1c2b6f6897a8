import Foundation
import Larder
import LarderTestSupport
import Testing

/// Caches of a manager that only reads, that was closed, or whose folder went.
struct CacheAccessTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(_ version: CacheVersion, in manager: CacheManager? = nil) throws -> Cache<Int, String> {
        try (manager ?? self.manager).cache(named: "a", version: version, maxAge: .unlimited)
    }

    @Test func `a reader of another version in the same process takes nothing from the writer`() throws {
        let writer = try cache("1")
        writer[1] = "one"
        let reading = try place.manager { $0.access = .readOnly }
        let other = try cache("2", in: reading)
        #expect(other[1] == nil)
        #expect(try cache("1", in: reading)[1] == "one")
        expectError(.readOnly) { try other.setValue("x", forKey: 1) }
        #expect(writer[1] == "one")
        try manager.removeAll()
        #expect(writer[1] == nil)
        writer[1] = "two"
        #expect(try cache("1")[1] == "two")
        try expectInvariants(writer)
    }

    @Test func `a read-only manager shows what is there and changes nothing`() throws {
        let cache = try cache("1")
        try cache.setValues((0..<5).map { ($0, "\($0)") })
        try manager.close()
        let reading = try place.manager { $0.access = .readOnly }
        let before = try place.folder.contents()
        let handle: Cache<Int, String> = try reading.cache(
            named: "a", version: "1", maxAge: .hours(1).sinceLastAccess)
        #expect(handle[1] == "1")
        #expect(try handle.count == 5 && handle.snapshot().count == 5)
        place.clock.set(place.clock.now + 1800)
        #expect(handle[1] == "1")
        // The age is the one that the file has.
        place.clock.set(place.clock.now + 1801)
        #expect(try handle.count == 5)
        #expect(handle.map(\.key) == [0, 1, 2, 3, 4])
        #expect(try !handle.isEmpty)
        expectError(.readOnly) { try handle.removeAll() }
        expectError(.readOnly) { try handle.removeExpired() }
        expectError(.readOnly) { try handle.trim(toCount: 0) }
        expectError(.readOnly) { try handle.update(1) { $0 = nil } }
        expectError(.readOnly) { try handle.removeAll { _ in true } }
        expectError(.readOnly) { try reading.removeCache(named: "a") }
        expectError(.readOnly) { try reading.removeAll() }
        expectError(.readOnly) { try reading.transaction { _ in } }
        expectError(.readOnly) { try reading.flush() }
        #expect(try reading.cacheInfo().map(\.name) == ["a"])
        try reading.close()
        #expect(try place.folder.contents() == before)
    }

    @Test func `after closing every call says so, hits in memory too`() throws {
        let cache = try cache("1")
        cache[1] = "one"
        #expect(cache[1] == "one")
        try manager.close()
        try manager.close()
        #expect(cache[1] == nil)
        cache[2] = "two"
        #expect(cache.map(\.key) == [])
        #expect(cache.statistics.failures == 3)
        expectError(.closed) { try cache.value(forKey: 1) }
        expectError(.closed) { try cache.entry(forKey: 1) }
        expectError(.closed) { try cache.contains(1) }
        expectError(.closed) { try cache.count }
        expectError(.closed) { try cache.values(forKeys: [1]) }
        expectError(.closed) { try cache.snapshot() }
        expectError(.closed) { try cache.setValue("x", forKey: 1) }
        expectError(.closed) { try cache.setValues([1: "x"]) }
        expectError(.closed) { try cache.removeValue(forKey: 1) }
        expectError(.closed) { try cache.update(1) { $0 = "x" } }
        expectError(.closed) { try cache.removeAll() }
        expectError(.closed) { try cache.trim(toCount: 1) }
        expectError(.closed) { try manager.cacheInfo() }
        expectError(.closed) { try manager.transaction { _ in } }
        expectError(.closed) { try self.cache("1") }
    }

    @Test func `a folder deleted under a live manager loses no acknowledged write`() throws {
        let cache = try cache("1")
        cache[1] = "lost with the folder"
        #expect(cache[1] != nil)
        try FileManager.default.removeItem(at: place.folder.realURL)
        // The write that finds the files deleted may fail, and the next one does not.
        do throws(CacheError) {
            try cache.setValue("two", forKey: 2)
        } catch {
            #expect(error.code == .storageUnavailable)
        }
        try cache.setValue("two", forKey: 2)
        #expect(try cache.value(forKey: 2) == "two")
        #expect(cache.map(\.key) == [2])
        #expect(try cache.value(forKey: 1) == nil)
        try expectInvariants(cache)
        try manager.close()
        let again = try CacheManager(url: place.url)
        #expect(try self.cache("1", in: again)[2] == "two")
    }
}
