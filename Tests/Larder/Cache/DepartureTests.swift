import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What `explain` knows of keys that have left.
struct DepartureTests {
    private let bench: Workbench

    init() throws { bench = try Workbench() }

    private func causes(_ cache: Cache<Int, String>, _ key: Int) async throws -> [Departure.Cause] {
        try await cache.explain(key).history.map(\.cause)
    }

    @Test func `each way of leaving has its cause, its moment and its sentence`() async throws {
        let cache = try bench.numbers(.minutes(1))
        for key in 1...6 { try await cache.setValue("\(key)", forKey: key, tags: key == 3 ? ["red"] : []) }
        bench.time.advance(by: .seconds(1))
        try await cache.remove(1)
        _ = try await cache.removeValue(forKey: 2)
        try await cache.removeAll(tagged: "red")
        try await cache.removeAll { $0.key == 4 }
        for key in [1, 2, 4] { #expect(try await causes(cache, key) == [.removed]) }
        #expect(try await causes(cache, 3) == [.removedByTag])
        let presence = try await cache.explain(3)
        #expect(presence.kind == .absent && presence.history[0].at == bench.time.now)
        #expect(presence.description.contains("A call has removed the entries with one of its tags."))
        bench.time.advance(by: .seconds(60))
        try await cache.removeExpired()
        #expect(try await causes(cache, 5) == [.expired])
        #expect(try await cache.explain(5).description.contains("A longer age would have kept it."))
        // A key that never was there has no history, and one that is back has it.
        #expect(try await causes(cache, 99) == [])
        #expect(try await cache.explain(99).description.contains("It was never set"))
        cache[1] = "again"
        let again = try await cache.explain(1)
        #expect(again.kind == .inMemory && again.history.map(\.cause) == [.removed])
        cache[1] = nil
        try await cache.removeAll()
        #expect(try await causes(cache, 1) == [.removedWithAll, .removed, .removed])
        #expect(try await causes(cache, 99) == [.removedWithAll])
    }

    @Test func `an eviction names its limit`() async throws {
        let cache = try bench.numbers(.hours(1), CacheOptions(disk: DiskLimits(countLimit: 2)))
        for key in 1...3 {
            cache[key] = "\(key)"
            bench.time.advance(by: .seconds(1))
        }
        try await cache.manager.maintain()
        let presence = try await cache.explain(1)
        #expect(presence.history.map(\.cause) == [.evicted(.count)])
        #expect(presence.description.contains("A higher `countLimit` would have kept it longer; it is 2."))
        let small = try bench.words(.hours(1), CacheOptions(disk: DiskLimits(sizeLimit: 3)))
        for key in ["a", "b", "c", "d", "e"] {
            small[key] = 1
            bench.time.advance(by: .seconds(1))
        }
        try await small.manager.maintain()
        #expect(try await small.explain("a").history.map(\.cause) == [.evicted(.size)])
    }

    @Test func `what another manager has removed or replaced is noticed where memory had a copy`() async throws {
        let store = try TemporaryStore()
        func open() throws -> Cache<Int, String> {
            try store.manager().cache(named: "numbers", version: "1", maxAge: .hours(1))
        }
        let (mine, other) = (try open(), try open())
        for key in 1...3 { mine[key] = "mine" }
        other[1] = nil
        other[2] = "other"
        #expect(mine[1] == nil && mine[2] == "other" && mine[3] == "mine")
        #expect(try await causes(mine, 1) == [.changedElsewhere])
        #expect(try await causes(mine, 2) == [.changedElsewhere])
        #expect(try await causes(mine, 3) == [])
        #expect(try await causes(other, 1) == [.removed])
    }

    @Test func `so many are remembered as the option says, the latest first`() async throws {
        let few = try bench.numbers(.hours(1), CacheOptions(remembersRemovals: 3))
        for round in 0..<2 {
            for key in 1...3 {
                few[key] = "\(round)"
                few[key] = nil
            }
        }
        for key in 1...3 { #expect(try await causes(few, key) == [.removed]) }
        few[4] = "four"
        few[4] = nil
        #expect(try await causes(few, 1) == [])
        #expect(try await causes(few, 4) == [.removed])
        let none = try bench.words(.hours(1), CacheOptions(remembersRemovals: 0))
        none["a"] = 1
        none["a"] = nil
        #expect(try await none.explain("a").history == [])
        let error = #expect(throws: CacheError.self) {
            let _: Cache<Int, Int> = try bench.manager.cache(
                named: "x", version: "1", maxAge: .hours(1), options: CacheOptions(remembersRemovals: -1))
        }
        #expect(error?.code == .invalidConfiguration)
    }
}
