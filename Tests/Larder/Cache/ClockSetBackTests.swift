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

    @Test func `the last opening is the one that is told, though a handle lived`() throws {
        let first = try cache()
        place.time.set(place.time.now + 100)
        let second = try cache()
        #expect(try manager.cacheInfo().map(\.openedAt) == [place.time.now])
        withExtendedLifetime((first, second)) {}
    }
}
