import Foundation
import Larder
import LarderTestSupport
import Testing

/// Keys that nothing of ours stores: text that is not UTF-8, and fractions, which one flipped bit makes of ours.
struct ForeignKeyTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    private func cache(_ manager: CacheManager) throws -> Cache<String, Data> {
        try manager.cache(
            named: "a", version: "1", maxAge: .days(1), options: CacheOptions(memory: .disabled, inlineLimit: .max))
    }

    private static let keys = (0..<40).map { "k\(100 + $0)" }

    /// A store of large values, one to a page of a pass, in which the key in the middle is another one now.
    private func damaged(_ key: String) throws -> (CacheManager, Cache<String, Data>) {
        let manager = try place.manager()
        let cache = try cache(manager)
        try cache.setValues(Self.keys.map { ($0, Data(count: 40_000)) })
        var intruder = try Intruder(place.url)
        try intruder.change("UPDATE entry SET key = \(key) WHERE key = 'k120'")
        return (manager, cache)
    }

    /// At the place of the key that it was, above it and below all.
    static let damages = ["CAST(x'6BF8' AS TEXT)", "CAST(x'FFFE' AS TEXT)", "CAST(x'80' AS TEXT)", "1.5", "-1e300"]

    private static let rest = keys.filter { $0 != "k120" }

    @Test(arguments: damages)
    func `every pass goes on behind it, and gives the others once`(damage: String) throws {
        let (_, cache) = try damaged(damage)
        #expect(cache.map(\.key) == Self.rest)
        #expect(Array(cache.keys) == Self.rest)
        #expect(cache.values.map(\.count) == Self.rest.map { _ in 40_000 })
        #expect(cache.disk.map(\.key) == Self.rest)
        #expect(cache.entries().map(\.key) == Self.rest)
        #expect(cache.entries(orderedBy: .key, descending: true).map(\.key) == Self.rest.reversed())
        #expect(cache.entries(orderedBy: .written).map(\.key) == Self.rest)
        #expect(Set(try cache.snapshot().keys) == Set(Self.rest))
        #expect(try cache.removeAll { _ in false } == 0)
        #expect(cache.statistics.failures >= 1)
    }

    @Test(arguments: damages)
    func `it is found and deleted by who repairs, and by whatever deletes others`(damage: String) throws {
        let (manager, cache) = try damaged(damage)
        let report = try manager.verify()
        #expect(report.problems.count == 1)
        #expect(try manager.verify(repairing: true).repaired == 1)
        #expect(try manager.verify().isHealthy)
        #expect(try cache.count == Self.rest.count)
        var intruder = try Intruder(place.url)
        try intruder.change("UPDATE entry SET key = \(damage) WHERE key = 'k130'")
        place.time.advance(by: .seconds(2 * 86_400))
        #expect(try manager.maintain().expired == Self.rest.count)
        #expect(try StoreProbe(manager).entryCount() == 0)
    }
}
