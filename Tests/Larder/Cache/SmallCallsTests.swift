import Foundation
import Larder
import LarderTestSupport
import Testing

/// Calls that say in a word what others say in more.
struct SmallCallsTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    @Test func `keys, values and memory are counted, and hits added up`() throws {
        let version = ["1", "2"].joined(separator: ".")
        let cache: Cache<Int, String> = try manager.cache(
            named: "a", version: CacheVersion(version), maxAge: .seconds(100), options: CacheOptions().steady)
        #expect(cache.version == "1.2")
        for key in [3, 1, 2] { cache[key] = "\(key)" }
        #expect(try cache.keys.count == 3 && cache.values.count == 3)
        #expect(cache.memory.keys == [3, 1, 2])
        #expect(cache[3] == "3")
        #expect(cache.memory.keys == [1, 2, 3])
        cache.memory.trim(toCount: 2)
        #expect(cache.memory.keys == [2, 3])
        #expect(cache[1] == "1" && cache[4] == nil)
        #expect(cache.statistics.hits == 2 && cache.statistics.memoryHits == 1)
        place.clock.advance(by: .seconds(101))
        #expect(cache.memory.keys == [])
        #expect(try cache.keys.count == 0 && cache.values.count == 0)
    }

    @Test func `entries and bytes are counted without blocking, and types may be arguments`() async throws {
        func opened() throws -> Cache<Int, String> {
            try manager.cache(of: Int.self, String.self, named: "c", version: "1", maxAge: .seconds(100))
        }
        let cache = try opened()
        let same = try await manager.cache(of: Int.self, String.self, named: "c", version: "1", maxAge: .seconds(100))
        #expect(try await cache.count() == 0)
        #expect(try await cache.isEmpty())
        for key in 1...3 { try await same.setValue("text", forKey: key) }
        #expect(try await cache.count() == 3)
        #expect(try await !cache.isEmpty())
        let size: Int64 = try cache.sizeOnDisk
        #expect(try await cache.sizeOnDisk() == size && size > 0)
    }

    @Test func `memory returns an expired value if it may`() throws {
        let cache: Cache<Int, String> = try manager.cache(named: "d", version: "1", maxAge: .seconds(100))
        cache[1] = "old"
        #expect(cache.memory.value(forKey: 1, allowingExpired: true) == "old")
        place.clock.advance(by: .seconds(101))
        #expect(cache.memory[1] == nil && cache.memory.value(forKey: 1, allowingExpired: false) == nil)
        #expect(cache.memory.value(forKey: 1, allowingExpired: true) == "old")
        // Another process may have changed it.
        let other: Cache<Int, String> = try place.manager().cache(named: "d", version: "1", maxAge: .seconds(100))
        try other.setValue("new", forKey: 1)
        #expect(cache.memory.value(forKey: 1, allowingExpired: true) == nil)
        try cache.remove(1)
        #expect(cache.memory.value(forKey: 1, allowingExpired: true) == nil)
    }

    @Test func `a duration may be said in minutes, hours and days`() {
        #expect(Duration.minutes(2) == .seconds(120) && Duration.minutes(0.5) == .seconds(30))
        #expect(Duration.hours(1) == .minutes(60) && Duration.hours(0.5) == .minutes(30))
        #expect(Duration.days(1) == .hours(24) && Duration.days(0.5) == .hours(12))
    }

    @Test func `an age may be said in weeks and in milliseconds`() {
        #expect(MaxAge.weeks(2) == .days(14))
        #expect(MaxAge.milliseconds(1500) == .seconds(1.5))
        #expect(MaxAge.milliseconds(-1) == .seconds(0))
    }

    @Test func `a version of a string is the custom version of it`() {
        let text = "3"
        #expect(CacheVersion(text) == .custom("3"))
        #expect(CacheVersion("3") == "3")
    }

    @Test func `a message of the log says what happened`() throws {
        let told = Told<String>()
        let manager = try place.manager { $0.log = { told.add($0.message) } }
        for version in ["1", "2"] {
            let _: Cache<Int, Int> = try manager.cache(
                named: "b", version: CacheVersion(version), maxAge: .unlimited)
        }
        #expect(told.all.contains { $0.contains("purged") })
    }
}
