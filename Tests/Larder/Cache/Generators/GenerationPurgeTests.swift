import Foundation
import Larder
import LarderTestSupport
import Testing

/// Generations whose sub-cache goes while they run, and what they count.
struct GenerationPurgeTests {
    private let place: StorePlace
    private let manager: CacheManager

    init() throws { (place, manager) = try StorePlace.opened() }

    private func cache(_ version: CacheVersion = "1", maxAge: MaxAge = .seconds(10)) throws -> Cache<Int, Int> {
        try manager.cache(named: "a", version: version, maxAge: maxAge, options: CacheOptions().steady)
    }

    enum End: CaseIterable { case version, removal }

    private func end(_ cause: End) throws {
        switch cause {
        case .version: #expect(try cache("2").isEmpty)
        case .removal: try manager.removeCache(named: "a")
        }
    }

    @Test(arguments: End.allCases)
    func `who waits for a value of a sub-cache that goes gets it, and nobody else`(cause: End) throws {
        let cache = try cache()
        let made = try cache.value(forKey: 1) { key in
            try end(cause)
            return key + 5
        }
        #expect(made == 6)
        expectError(.superseded) { try cache.value(forKey: 1) { _ in 7 } }
        #expect(try self.cache("2")[1] == nil)
    }

    @Test(arguments: End.allCases)
    func `the same in the asynchronous form`(cause: End) async throws {
        let cache = try cache()
        let made = try await cache.value(forKey: 1) { key async throws in
            try end(cause)
            return key + 5
        }
        #expect(made == 6)
        #expect(try self.cache("2")[1] == nil)
    }
}
