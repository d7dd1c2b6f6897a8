import Foundation
import Larder
import LarderTestSupport
import Testing

struct CacheAgeTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(
        _ age: MaxAge, named name: String = "a", _ options: CacheOptions = .init()
    ) throws -> Cache<Int, String> {
        try manager.cache(named: name, version: "1", maxAge: age, options: options)
    }

    private static let noMemory = CacheOptions(memory: .disabled).steady

    /// Everything that can be asked about key 1 says that it is there, or not.
    private func expect(_ isThere: Bool, in cache: Cache<Int, String>, at place: SourceLocation = #_sourceLocation)
        throws
    {
        #expect(try cache.contains(1) == isThere, sourceLocation: place)
        #expect(try (cache.metadata(forKey: 1) != nil) == isThere, sourceLocation: place)
        #expect(try cache.count == (isThere ? 1 : 0), sourceLocation: place)
        #expect(try cache.isEmpty != isThere, sourceLocation: place)
        #expect(cache.map(\.key) == (isThere ? [1] : []), sourceLocation: place)
        #expect(try cache.snapshot().keys.contains(1) == isThere, sourceLocation: place)
        #expect(try cache.values(forKeys: [1]).keys.contains(1) == isThere, sourceLocation: place)
        #expect(try (cache.entry(forKey: 1) != nil) == isThere, sourceLocation: place)
        #expect(try (cache.extendedData(forKey: 1) != nil) == isThere, sourceLocation: place)
        #expect((cache[1] != nil) == isThere, sourceLocation: place)
    }

    @Test(arguments: [false, true])
    func `metadata tells of the last use, and asking for it is none`(isOnDiskAlone: Bool) throws {
        let cache = try cache(.hours(1), isOnDiskAlone ? Self.noMemory : CacheOptions().steady)
        cache[1] = "one"
        let written = place.clock.now
        place.clock.set(place.clock.now + 60)
        #expect(try cache.metadata(forKey: 1)?.accessedAt == written)
        #expect(cache[1] == "one")
        let used = place.clock.now
        try manager.flush()
        place.clock.set(place.clock.now + 60)
        let metadata = try #require(try cache.metadata(forKey: 1))
        #expect(metadata.writtenAt == written && metadata.accessedAt == used && metadata.size == 4)
    }

    @Test(
        arguments: [
            (MaxAge.seconds(1.5), 1500), (.minutes(2), 120_000), (.hours(1), 3_600_000), (.days(7), 604_800_000),
            (.timeInterval(0.001), 1), (.duration(.milliseconds(17)), 17),
        ], [false, true])
    func `precisely the maximum age is served, a millisecond more is not, whoever asks`(
        _ age: (MaxAge, Int), isOnDiskAlone: Bool
    ) throws {
        let cache = try cache(age.0, isOnDiskAlone ? Self.noMemory : .init())
        try cache.setValue("one", forKey: 1, extendedData: Data([1]))
        place.clock.advance(by: .milliseconds(age.1 - 1))
        try expect(true, in: cache)
        place.clock.advance(by: .milliseconds(1))
        try expect(true, in: cache)
        place.clock.advance(by: .milliseconds(1))
        try expect(false, in: cache)
        #expect(try cache.removeExpired() == 1)
        try expectInvariants(cache)
    }

    @Test func `a sweep takes what is over and nothing else`() throws {
        let (day, hour) = (try cache(.days(1), named: "day"), try cache(.hours(1), named: "hour"))
        day[1] = "a"
        hour[1] = "a"
        place.clock.advance(by: .seconds(2 * 3600))
        #expect(try day.removeExpired() == 0)
        hour[2] = "b"
        #expect(try hour.removeExpired() == 1)
        #expect(hour.map(\.key) == [2])
        place.clock.advance(by: .seconds(23 * 3600))
        #expect(day[1] == nil && hour[2] == nil)
        #expect(try day.removeExpired() == 1)
        #expect(day.statistics.expirations == 1)
        try expectInvariants(day)
        try expectInvariants(hour)
    }

    @Test(arguments: [false, true], [MaxAge?.none, .seconds(10).sinceLastAccess])
    func `a sliding age runs from the last read, also where that is not written down yet`(
        isOnDiskAlone: Bool, own: MaxAge?
    ) throws {
        let cache = try cache(
            own == nil ? .seconds(10).sinceLastAccess : .hours(1), isOnDiskAlone ? Self.noMemory : .init())
        try cache.setValue("one", forKey: 1, maxAge: own, extendedData: Data([1]))
        for _ in 0..<5 {
            // In time that does not wake the one who writes it down.
            place.clock.set(place.clock.now + 8)
            #expect(try cache.contains(1))
            #expect(try cache.count == 1)
            #expect(try !cache.isEmpty)
            #expect(cache[1] == "one")
        }
        place.clock.set(place.clock.now + 8)
        #expect(cache.map(\.key) == [1])
        #expect(try cache.removeExpired() == 0)
        #expect(try cache.removeValue(forKey: 1) == "one")
        try cache.setValue("one", forKey: 1, maxAge: own, extendedData: Data([1]))
        place.clock.set(place.clock.now + 10)
        try expect(true, in: cache)
        place.clock.set(place.clock.now + 10.001)
        try expect(false, in: cache)
        try expectInvariants(cache)
    }

    @Test func `a test of presence, a listing and metadata do not restart a sliding age`() throws {
        let cache = try cache(.seconds(10).sinceLastAccess)
        cache[1] = "one"
        place.clock.set(place.clock.now + 8)
        #expect(try cache.contains(1) && cache.metadata(forKey: 1) != nil && cache.snapshot().count == 1)
        #expect(cache.map(\.value) == ["one"])
        place.clock.set(place.clock.now + 3)
        #expect(cache[1] == nil)
    }

    @Test(arguments: [
        MaxAge.seconds(-1), .seconds(0), .duration(.seconds(-5)), .seconds(-.infinity), .until(.distantPast),
    ])
    func `with an age of nothing everything is over at once`(age: MaxAge) throws {
        let cache = try cache(age)
        try cache.setValue("one", forKey: 1, extendedData: Data([1]))
        try expect(false, in: cache)
        #expect(try cache.removeExpired() == 1)
        try expectInvariants(cache)
    }

    @Test(arguments: [
        MaxAge.seconds(.infinity), .days(.greatestFiniteMagnitude), .until(.distantFuture), .unlimited,
        .duration(.seconds(Int64.max)),
    ])
    func `an age beyond measure never ends`(age: MaxAge) throws {
        let cache = try cache(age)
        cache[1] = "one"
        place.clock.advance(by: .seconds(86_400 * 365 * 100))
        #expect(cache[1] == "one")
        #expect(try cache.removeExpired() == 0)
        try expectInvariants(cache)
    }

    @Test func `an age of not-a-number is refused where it is used`() throws {
        expectError(.invalidConfiguration) { try self.cache(.seconds(.nan)) }
        expectError(.invalidConfiguration) { try self.cache(.until(Date(timeIntervalSince1970: .nan))) }
        let cache = try cache(.days(1))
        expectError(.invalidConfiguration) { try cache.setValue("one", forKey: 1, maxAge: .hours(.nan)) }
        try expectInvariants(cache)
    }

    @Test func `until a moment means that moment, also for what is written later`() throws {
        let end = place.clock.now + 10
        let cache = try cache(.until(end))
        cache[1] = "one"
        place.clock.set(end)
        #expect(cache[1] == "one")
        place.clock.set(end + 0.001)
        #expect(cache[1] == nil)
        cache[2] = "late"
        #expect(cache[2] == nil)
        #expect(try cache.count == 0)
        #expect(try cache.removeExpired() == 2)
    }

    @Test(arguments: [false, true])
    func `an entry's own age wins, shorter or longer`(isOnDiskAlone: Bool) throws {
        let cache = try cache(.minutes(1), isOnDiskAlone ? Self.noMemory : .init())
        try cache.setValue("short", forKey: 1, maxAge: .seconds(1))
        try cache.setValue("long", forKey: 2, maxAge: .hours(1))
        try cache.setValue("ever", forKey: 3, maxAge: .unlimited)
        cache[4] = "plain"
        place.clock.advance(by: .milliseconds(1001))
        #expect(cache.map(\.key) == [2, 3, 4])
        #expect(cache[1] == nil)
        place.clock.advance(by: .seconds(60))
        #expect(cache.map(\.key) == [2, 3])
        #expect(try cache.count == 2)
        #expect(cache[4] == nil)
        place.clock.advance(by: .seconds(3600))
        #expect(cache.map(\.value) == ["ever"])
        #expect(try cache.removeExpired() == 3)
        try expectInvariants(cache)
    }

    @Test(arguments: [false, true], [false, true])
    func `a write in the future counts as one of now, and its age ends once the clock has caught up`(
        isOnDiskAlone: Bool, isReopened: Bool
    ) throws {
        var cache = try cache(.seconds(100), isOnDiskAlone ? Self.noMemory : .init())
        cache[1] = "one"
        let written = place.clock.now
        place.clock.set(written - 5000)
        let manager = try isReopened ? reopened() : manager
        if isReopened { cache = try manager.cache(named: "a", version: "1", maxAge: .seconds(100)) }
        #expect(cache[1] == "one")
        #expect(try cache.count == 1)
        place.clock.set(written + 100.001)
        #expect(cache[1] == nil)
        #expect(try cache.metadata(forKey: 1) == nil)
        #expect(cache.map(\.key) == [])
        #expect(try cache.removeExpired() == 1)
        withExtendedLifetime(manager) {}
    }

    @Test(arguments: [false, true])
    func `a use in the future counts as one of now, and its age ends once the clock has caught up`(
        isOnDiskAlone: Bool
    ) throws {
        let cache = try cache(.seconds(100).sinceLastAccess, isOnDiskAlone ? Self.noMemory : .init())
        try cache.setValue("one", forKey: 1, extendedData: Data([1]))
        let written = place.clock.now
        // The clock goes ahead for a while, and back again.
        place.clock.set(written + 90)
        #expect(cache[1] == "one")
        try manager.flush()
        place.clock.set(written)
        #expect(try cache.contains(1))
        place.clock.set(written + 100)
        #expect(try cache.contains(1))
        #expect(try cache.count == 1 && !cache.isEmpty)
        place.clock.set(written + 190.001)
        try expect(false, in: cache)
        #expect(try cache.removeExpired() == 1)
    }

    private func reopened() throws -> CacheManager {
        try manager.close()
        return try place.manager()
    }

    @Test func `moments after 2038 and before 1970 are moments`() throws {
        for second in [-86_400.0 * 365, 4_102_444_800] {
            place.clock.set(Date(timeIntervalSince1970: second))
            let cache = try cache(.hours(1), named: "\(second)")
            cache[1] = "one"
            #expect(try cache.metadata(forKey: 1)?.writtenAt == place.clock.now)
            place.clock.set(place.clock.now + 3600)
            #expect(cache[1] == "one")
            place.clock.set(place.clock.now + 0.001)
            #expect(cache[1] == nil)
        }
    }

    @Test func `what is over can be had as such until a sweep meets it`() throws {
        let cache = try cache(.seconds(1))
        try cache.setValue("one", forKey: 1, extendedData: Data([7]))
        place.clock.advance(by: .seconds(5))
        #expect(try cache.entry(forKey: 1) == nil)
        let entry = try #require(try cache.entry(forKey: 1, allowingExpired: true))
        #expect(entry.isExpired && entry.value == "one" && entry.extendedData == Data([7]))
        #expect(try cache.removeExpired() == 1)
        #expect(try cache.entry(forKey: 1, allowingExpired: true) == nil)
    }

    @Test func `a fresh value is never deleted in place of the one that was over`() async throws {
        let cache = try cache(.seconds(1))
        for round in 0..<50 {
            cache[1] = "old"
            place.clock.advance(by: .seconds(5))
            async let swept = cache.removeExpired()
            cache[1] = "fresh \(round)"
            #expect(try await swept <= 1)
            #expect(cache[1] == "fresh \(round)")
        }
        try expectInvariants(cache)
    }

    @Test func `extended data, a pin and a repeated open leave the age alone`() throws {
        let cache = try cache(.seconds(10))
        try cache.setValue("one", forKey: 1, pinned: true)
        place.clock.advance(by: .seconds(6))
        try cache.setExtendedData(Data([1]), forKey: 1)
        withExtendedLifetime(try self.cache(.seconds(10))) {}
        place.clock.advance(by: .seconds(4))
        #expect(cache[1] == "one")
        place.clock.advance(by: .milliseconds(1))
        #expect(cache[1] == nil)
        try cache.setExtendedData(Data([2]), forKey: 1)
        #expect(cache[1] == nil)
        #expect(try cache.removeExpired() == 1)
    }
}
