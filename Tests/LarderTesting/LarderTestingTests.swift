import Foundation
import Larder
import LarderTesting
import Testing
import XCTest

/// What a program's tests use, as they use it: over the public face alone.
struct LarderTestingTests {
    private let store: TemporaryStore
    private let manager: CacheManager
    private let titles: Cache<Int, String>

    init() throws {
        store = try TemporaryStore()
        manager = try store.manager { $0.busyTimeout = .milliseconds(20) }
        titles = try Self.open(manager)
        try titles.setValues([1: "one", 2: "two"])
    }

    private static func open(
        _ manager: CacheManager, _ options: CacheOptions = CacheOptions(onFullDisk: .fail)
    ) throws -> Cache<Int, String> {
        try manager.cache(named: "titles", version: "1", maxAge: .hours(1), options: options)
    }

    private func code(_ body: () throws -> Void) -> CacheError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    // MARK: Time

    @Test func `an entry is served for its hour, and not a millisecond longer`() {
        store.clock.advance(by: .seconds(3600))
        #expect(titles[1] == "one")
        store.clock.advance(by: .milliseconds(1))
        #expect(titles[1] == nil)
    }

    @Test func `the clock moves evictions, streams and maintenance`() async throws {
        let task = titles.evict(every: .seconds(600)) { $0.key == 1 }
        var changes = titles.changes(every: .seconds(10)).makeAsyncIterator()
        store.clock.advance(by: .seconds(600))
        while try await titles.contains(1) { await Task.yield() }
        store.clock.advance(by: .seconds(10))
        #expect(await changes.next()?.removed == [1])
        task.cancel()

        let other = try TemporaryStore()
        let upkept = try Self.open(other.manager { $0.maintenanceInterval = .seconds(60) })
        upkept[1] = "one"
        other.clock.advance(by: .seconds(3600))
        other.clock.advance(by: .seconds(3600))
        while try upkept.sizeOnDisk > 0 {
            other.clock.advance(by: .seconds(60))
            await Task.yield()
        }
    }

    @Test func `a memory cache and a store in memory are on the clock too`() async throws {
        let clock = ManualClock(Date(timeIntervalSince1970: 1_000_000))
        let cache: MemoryCache<Int, String> = clock.memoryCache(maxAge: .minutes(1))
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("larder-autosave-\(UUID())")
        let saves = await cache.autosave(to: file, every: .seconds(30))
        cache[1] = "one"
        clock.advance(by: .seconds(30))
        while !FileManager.default.fileExists(atPath: file.path) { await Task.yield() }
        saves.cancel()
        try FileManager.default.removeItem(at: file)
        clock.advance(by: .seconds(31))
        #expect(cache[1] == nil)
        let memory = try Self.open(CacheManager.inMemory(configuration: clock.configuration))
        memory[1] = "one"
        clock.set(clock.now.addingTimeInterval(3601))
        #expect(memory[1] == nil && clock.now.timeIntervalSince1970 == 1_003_662)
    }

    // MARK: Stores

    @Test func `a store that is opened again has what was written, and another manager sees it too`() throws {
        let other = try Self.open(store.manager())
        other[3] = "three"
        #expect(titles[3] == "three")
        let reopened = try Self.open(store.reopen())
        #expect(reopened.memory.count == 0 && reopened[1] == "one" && reopened[3] == "three")
        #expect(code { _ = try titles.value(forKey: 1) } == .closed)
    }

    @Test func `the folder of a store goes with it`() throws {
        var temporary: TemporaryStore? = try TemporaryStore()
        let folder = try #require(temporary?.url.deletingLastPathComponent().path)
        try temporary?.manager().close()
        #expect(FileManager.default.fileExists(atPath: folder))
        temporary = nil
        #expect(!FileManager.default.fileExists(atPath: folder))
    }

    // MARK: Faults

    @Test func `on a full disk writes fail, reads and removals go on, and then all is as before`() throws {
        let fault = try store.fillDisk(of: manager)
        for key in 1...3 {
            for value in ["short", String(repeating: "long", count: 100_000)] {
                #expect(code { try titles.setValue(value, forKey: key) } == .storageFull)
            }
        }
        #expect(titles[1] == "one")
        titles[2] = "lost"
        #expect(titles[2] == "two" && titles.statistics.failures == 1)
        try titles.remove(2)
        #expect(titles[2] == nil)
        // Others have room.
        try Self.open(store.manager()).setValue("four", forKey: 4)
        try fault.end()
        try fault.end()
        try titles.setValue("new", forKey: 1)
        #expect(try titles.snapshot() == [1: "new", 4: "four"])
        #expect(try manager.verify().isHealthy)
    }

    @Test func `on a full disk a cache that evicts does so`() throws {
        let evicting = try Self.open(manager, CacheOptions(onFullDisk: .evict))
        let fault = try store.fillDisk(of: manager)
        #expect(code { try evicting.setValue("new", forKey: 3) } == .storageFull)
        try fault.end()
        #expect(try evicting.count < 2)
    }

    @Test func `a fault ends when it is released`() throws {
        do { _ = try store.fillDisk(of: manager) }
        try titles.setValue("new", forKey: 1)
        do { _ = try store.lockWriters() }
        try titles.setValue("newer", forKey: 1)
        #expect(titles[1] == "newer")
    }

    @Test func `a store whose lock another one has is busy, and can be read`() throws {
        let fault = try store.lockWriters()
        #expect(code { try titles.setValue("new", forKey: 1) } == .busy)
        #expect(try titles.disk.value(forKey: 1) == "one")
        try fault.end()
        try titles.setValue("new", forKey: 1)
    }

    @Test func `a store that was taken away cannot be read, and is back afterwards`() throws {
        #expect(titles[1] == "one")
        let fault = try store.takeAway()
        #expect(code { _ = try titles.value(forKey: 1) } == .storageUnavailable)
        #expect(code { try titles.setValue("new", forKey: 1) } == .storageUnavailable)
        #expect(code { _ = try store.manager() } == .storageUnavailable)
        try fault.end()
        #expect(try titles.value(forKey: 1) == "one")
        try titles.setValue("new", forKey: 1)
        #expect(try manager.verify().isHealthy)
    }

    @Test func `a damaged entry is missing, and reported`() async throws {
        #expect(titles[1] == "one")
        try store.damage(1, in: titles)
        #expect(try await titles.value(forKey: 1) == nil)
        #expect(titles[2] == "two")
        let event = await manager.events.first { $0.kind == .corruptEntry }
        #expect(event?.key == "1" && event?.cacheName == "titles")
        #expect(code { try store.damage(77, in: titles) } == .storageUnavailable)
    }

    @Test func `a store of a later release is refused`() throws {
        try manager.close()
        try store.makeNewer()
        #expect(code { _ = try store.manager() } == .newerSchema)
        #expect(try store.manager { $0.newerSchema = .recreate }.cacheInfo().isEmpty)
    }
}

/// The same in the older framework.
final class LarderTestingXCTests: XCTestCase {
    func testExpiryAndFullDisk() throws {
        let store = try TemporaryStore()
        let manager = try store.manager()
        let cache: Cache<String, Int> = try manager.cache(
            named: "numbers", version: "1", maxAge: .hours(1), options: CacheOptions(onFullDisk: .fail))
        cache["a"] = 1
        let fault = try store.fillDisk(of: manager)
        XCTAssertThrowsError(try cache.setValue(2, forKey: "a")) { error in
            XCTAssertEqual((error as? CacheError)?.code, .storageFull)
        }
        try fault.end()
        store.clock.advance(by: .seconds(3601))
        XCTAssertNil(cache["a"])
    }
}
