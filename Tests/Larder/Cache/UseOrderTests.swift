import Foundation
import Larder
import LarderTestSupport
import Testing

/// What was used last, wherever and by whomever: by that limits and trims go.
struct UseOrderTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    private func cache(
        _ manager: CacheManager, _ name: String = "a", _ maxAge: MaxAge = .unlimited,
        _ options: CacheOptions = CacheOptions()
    ) throws -> Cache<Int, Data> {
        try manager.cache(named: name, version: "1", maxAge: maxAge, options: options.steady)
    }

    private static var value: Data { Data(count: 100) }

    // case 126
    @Test(arguments: [MaxAge.unlimited, .days(1), .days(1).sinceLastAccess], [true, false])
    func `a use in memory of one sub-cache comes after the writes of another that were before it`(
        maxAge: MaxAge, isMany: Bool
    ) throws {
        let manager = try place.manager { $0.sizeLimit = 10_000 }
        let (used, other) = (try cache(manager, "used", maxAge), try cache(manager, "other"))
        used[1] = Self.value
        used[2] = Self.value
        for number in 0..<300 {
            other[number] = Self.value
            place.time.set(place.time.now + 0.001)
            if isMany { #expect(try used.values(forKeys: [1]).count == 1) } else { #expect(used[1] != nil) }
        }
        #expect(used[1] != nil && used.statistics.memoryHits >= 300)
        #expect(used[2] == nil, "which nobody used")
    }

    @Test func `a use in memory comes before the writes of another sub-cache that were after it`() throws {
        let manager = try place.manager { $0.sizeLimit = 10_000 }
        let (used, other) = (try cache(manager, "used"), try cache(manager, "other"))
        used[1] = Self.value
        for _ in 0..<100 { #expect(used[1] != nil) }
        place.time.set(place.time.now + 0.001)
        for number in 0..<300 { other[number] = Self.value }
        #expect(used[1] == nil && other[299] != nil)
    }

    @Test func `what a process only reads has been used later than what another wrote before`() async throws {
        let first = try place.manager()
        try await cache(first).setValues((1...10).map { ($0, Self.value) })
        _ = try cache(first)[1]
        try await first.close()
        // Opened before the writes, it has no number of its own from after them but the clock's.
        let reader = try place.manager()
        let read = try cache(reader)
        #expect(read[1] != nil)
        var intruder = try Intruder(place.url)
        let moment = SystemClock.now()
        try intruder.change("UPDATE entry SET used = \((moment - 1_704_067_200_000) << 21) WHERE key > 1")
        // The system's clock goes on by itself.
        while SystemClock.coarseNow() <= moment { await Task.yield() }
        #expect(read[1] != nil)
        try await reader.flush()
        #expect(try await read.trim(toCount: 1) == 9)
        #expect(Array(read.keys) == [1])
    }

    @Test func `of several keys of which one is absent none is over that memory saw used`() throws {
        let manager = try place.manager()
        for (name, maxAge, own) in [
            ("sliding", MaxAge.seconds(5).sinceLastAccess, nil), ("own", .unlimited, MaxAge.seconds(5).sinceLastAccess),
        ] {
            let cache = try cache(manager, name, maxAge, CacheOptions(inlineLimit: name == "own" ? 0 : 1000))
            for key in [1, 3] { try cache.setValue(Self.value, forKey: key, maxAge: own) }
            for _ in 0..<3 {
                place.time.advance(by: .seconds(4))
                #expect(cache[1] != nil && cache[3] != nil)
            }
            place.time.advance(by: .seconds(4))
            #expect(try cache.values(forKeys: [1, 3, 9]).keys.sorted() == [1, 3])
            #expect(cache.statistics.expirations == 0)
        }
    }

    @Test func `an entry whose extended data was just set stays, and another goes for it`() throws {
        let manager = try place.manager()
        let cache = try cache(manager, "a", .unlimited, CacheOptions(disk: DiskLimits(sizeLimit: 1000)))
        for key in 0..<10 { cache[key] = Self.value }
        try cache.setExtendedData(Data(count: 200), forKey: 0)
        try manager.maintain()
        #expect(cache[0] != nil && cache[9] != nil && cache[1] == nil)
        #expect(try cache.extendedData(forKey: 0)?.count == 200)
    }

    @Test func `a key that does not decode makes nobody forget what was used`() throws {
        let manager = try place.manager()
        let cache = try cache(manager, "a", .seconds(5).sinceLastAccess)
        for key in 1...3 { cache[key] = Self.value }
        var intruder = try Intruder(place.url)
        try intruder.change("UPDATE entry SET key = 1.5 WHERE key = 2")
        #expect(cache[1] != nil && cache[3] != nil)
        place.time.advance(by: .seconds(4))
        #expect(cache[1] != nil && cache[3] != nil && cache.statistics.memoryHits > 0)
        // Which copy in memory is that of the row, nobody can tell.
        #expect(cache.map(\.key) == [1, 3])
        place.time.advance(by: .seconds(3))
        #expect(cache[1] != nil && cache[3] != nil)
        #expect(cache.statistics.expirations == 0)
    }
}
