import Foundation
import Larder
import LarderTestSupport
import Testing

/// What was used last, wherever and by whomever: by that limits and trims go.
struct UseOrderTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func cache(
        _ manager: CacheManager, _ name: String = "a", _ maxAge: MaxAge = .unlimited,
        _ options: CacheOptions = CacheOptions()
    ) throws -> Cache<Int, Data> {
        try manager.cache(named: name, version: "1", maxAge: maxAge, options: options.steady)
    }

    private static var value: Data { Data(count: 100) }

    @Test func `of several keys of which one is absent none is over that memory saw used`() throws {
        let manager = try place.manager()
        for (name, maxAge, own) in [
            ("sliding", MaxAge.seconds(5).sinceLastAccess, nil), ("own", .unlimited, MaxAge.seconds(5).sinceLastAccess),
        ] {
            let cache = try cache(manager, name, maxAge, CacheOptions(inlineLimit: name == "own" ? 0 : 1000))
            for key in [1, 3] { try cache.setValue(Self.value, forKey: key, maxAge: own) }
            for _ in 0..<3 {
                place.clock.advance(by: .seconds(4))
                #expect(cache[1] != nil && cache[3] != nil)
            }
            place.clock.advance(by: .seconds(4))
            #expect(try cache.values(forKeys: [1, 3, 9]).keys.sorted() == [1, 3])
            #expect(cache.statistics.expirations == 0)
        }
    }

    @Test func `an entry whose extended data was just set stays, and another goes for it`() throws {
        let manager = try place.manager()
        let cache = try cache(manager, "a", .unlimited, CacheOptions(disk: DiskLimits(sizeLimit: 1000)))
        for key in 0..<10 { cache[key] = Self.value }
        place.clock.advance(by: .milliseconds(1))
        try cache.setExtendedData(Data(count: 200), forKey: 0)
        #expect(cache[0] != nil && cache[9] != nil && cache[1] == nil)
        #expect(try cache.extendedData(forKey: 0)?.count == 200)
    }

    @Test func `an access that extended data follow moves a sliding end for later openings too`() throws {
        do {
            let manager = try place.manager()
            let cache = try cache(
                manager, "a", .seconds(3600).sinceLastAccess, CacheOptions(memory: .disabled))
            cache[1] = Self.value
            place.clock.advance(by: .seconds(3000))
            #expect(cache[1] != nil)
            place.clock.advance(by: .seconds(1))
            try cache.setExtendedData(Data([1]), forKey: 1)
            try manager.close()
        }
        place.clock.advance(by: .seconds(3000))
        #expect(try cache(place.manager(), "a", .seconds(3600).sinceLastAccess)[1] != nil)
    }

    @Test func `what is written again after memory was emptied was used last`() throws {
        let cache = try cache(place.manager(), "a", .unlimited, CacheOptions(disk: DiskLimits(countLimit: 5)))
        for key in 0..<5 { cache[key] = Self.value }
        #expect(cache[0] != nil)
        cache.memory.removeAll()
        cache[0] = Self.value
        cache[9] = Self.value
        #expect(Array(cache.keys) == [0, 2, 3, 4, 9])
    }
}
