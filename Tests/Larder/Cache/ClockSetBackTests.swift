import Foundation
import Larder
import LarderTestSupport
import Testing

/// A clock that is set back while entries are in memory.
struct ClockSetBackTests {
    private let place: StorePlace
    private let manager: CacheManager

    init() throws { (place, manager) = try StorePlace.opened() }

    private func cache() throws -> Cache<Int, Int> {
        try manager.cache(named: "a", version: "1", maxAge: .seconds(10), options: CacheOptions().steady)
    }

    enum Meeting: CaseIterable { case maintain, removeExpired, diskPass, contains, opening }

    // case 146, 149
    @Test(arguments: Meeting.allCases)
    func `what meets the entry on disk first corrects its copy in memory too`(meeting: Meeting) throws {
        let cache = try cache()
        cache[7] = 7
        #expect(cache[7] == 7)
        place.time.set(place.time.now - 500)
        switch meeting {
        case .maintain: try manager.maintain()
        case .removeExpired: #expect(try cache.removeExpired() == 0)
        case .diskPass: #expect(Array(cache.disk).count == 1)
        case .contains: #expect(try cache.contains(7))
        case .opening: #expect(try self.cache().isEmpty == false)
        }
        place.time.set(place.time.now + 10)
        #expect(cache[7] == 7)
        place.time.set(place.time.now + 0.002)
        #expect(try cache.contains(7) == false && cache.count == 0)
        #expect(cache[7] == nil)
        #expect(Array(cache.memory).isEmpty)
    }

    @Test func `memory hears of every time that the clock was set back`() throws {
        let cache = try cache()
        cache[1] = 0
        place.time.set(place.time.now - 1)
        #expect(Array(cache).count == 1)
        cache[2] = 1
        place.time.set(place.time.now - 9)
        #expect(Array(cache).count == 2)
        place.time.set(place.time.now + 10)
        #expect(cache[1] == 0 && cache[2] == 1)
        place.time.set(place.time.now + 0.001)
        #expect(Array(cache.memory).isEmpty && Array(cache.disk).isEmpty)
        #expect(try cache[2] == nil && !cache.contains(2) && cache.count == 0)
    }

    @Test func `what was met while memory held nothing is no news to it later`() throws {
        let cache = try cache()
        cache.memory.countLimit = 0
        cache[1] = 1
        place.time.set(place.time.now - 5)
        #expect(cache[1] == 1)
        place.time.set(place.time.now + 3600)
        cache.memory.countLimit = 100
        cache[2] = 2
        #expect(cache[3] == nil)
        #expect(cache[2] == 2 && cache.memory.contains(2))
        place.time.set(place.time.now + 10)
        #expect(cache[2] == 2)
    }

    @Test(arguments: [false, true])
    func `an age that began anew is not begun anew by the next time`(isInMemory: Bool) throws {
        let cache = try cache()
        cache[1] = 1
        place.time.set(place.time.now - 9)
        let corrected = place.time.now
        for change in [0.0, 8, -2] {
            place.time.set(place.time.now + change)
            #expect(cache[1] == 1)
            if !isInMemory { cache.memory.removeAll() }
        }
        place.time.set(corrected + 10)
        #expect(cache[1] == 1)
        place.time.set(corrected + 10.001)
        #expect(cache[1] == nil)
    }

    @Test func `the order of writes is that of the moments that count, and the order of use stays`() throws {
        let cache = try cache()
        for key in [2, 1] { cache[key] = key }
        #expect(cache[2] == 2)
        place.time.set(place.time.now - 5)
        #expect(Array(cache).count == 2)
        place.time.set(place.time.now + 1)
        cache[3] = 3
        #expect(cache.entries(orderedBy: .written).map(\.key).last == 3)
        for _ in 0..<3 {
            place.time.set(place.time.now - 1)
            #expect(Array(cache).count == 3)
            try manager.flush()
            #expect(cache.entries(orderedBy: .accessed).map(\.key) == [1, 2, 3])
        }
    }

    @Test func `the last opening is the one that is told, though a handle lived`() throws {
        let first = try cache()
        place.time.set(place.time.now + 100)
        let second = try cache()
        #expect(try manager.cacheInfo().map(\.openedAt) == [place.time.now])
        withExtendedLifetime((first, second)) {}
    }
}
