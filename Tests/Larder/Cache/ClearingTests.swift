import Foundation
import Larder
import LarderTestSupport
import Testing

/// Caches that are cleared, and written again.
struct ClearingTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    @Test func `a clear of a few entries leaves nothing, and a write after it works`() throws {
        let manager = try place.manager()
        let cache: Cache<Int, Data> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        for key in 0..<20 { cache[key] = Data(count: 100) }
        #expect(try cache.value(forKey: 20) == nil)
        #expect(try cache.count == 20 && cache.sizeOnDisk == 2000)
        #expect(try cache.removeAll() == 20)
        #expect(try cache.count == 0 && cache.sizeOnDisk == 0 && cache.isEmpty)
        try cache.setValue(Data([1]), forKey: 3)
        #expect(try cache.count == 1 && cache.sizeOnDisk == 1)
        #expect(cache[3] == Data([1]))
        try expectInvariants(cache)
    }

    @Test func `retired rows are deleted in the end, though another process is in the way at first`() async throws {
        let told = Told<CacheError.Code>()
        let manager = try place.manager { configuration in
            configuration.busyTimeout = .zero
            configuration.maintenanceInterval = .seconds(60)
            configuration.log = { if let code = $0.error?.code { told.add(code) } }
        }
        let cache: Cache<Int, Int> = try await manager.cache(named: "a", version: "1", maxAge: .unlimited)
        try await cache.setValues((0..<1200).map { ($0, $0) })
        var intruder = try Intruder(place.url)
        try await cache.removeAll()
        try intruder.execute("BEGIN IMMEDIATE")
        // Until an attempt has failed.
        try await Waiting.until {
            place.clock.advance(by: .milliseconds(500))
            return !told.all.isEmpty
        }
        #expect(told.all.first == .busy)
        try intruder.execute("ROLLBACK")
        try await expectNoRows(manager)
        // The store is at rest, and begins again.
        try await cache.setValues((0..<10).map { ($0, $0) })
        try await cache.removeAll()
        try await expectNoRows(manager)
    }

    /// Moves the time until no rows are left.
    private func expectNoRows(_ manager: CacheManager) async throws {
        let store = StoreProbe(manager)
        try await Waiting.until {
            place.clock.advance(by: .seconds(1))
            return try store.entryCount() == 0
        }
    }

    @Test func `a thousand clears among readers and writers fail no call`() throws {
        let manager = try place.manager()
        let cache: Cache<Int, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(clearsOnMemoryPressure: false))
        let (isDone, wrong) = (Locked(false), Counter())
        defer { isDone.change { $0 = true } }
        let threads = (0..<3).map { number in
            SideThread<Void> {
                var round = 0
                while !isDone.value {
                    round += 1
                    let key = round % 20
                    if number == 0 { try cache.setValue(key, forKey: key) }
                    if number == 1, let value = try cache.value(forKey: key), value != key { wrong.increment() }
                    if number == 2 {
                        for (key, value) in cache where key != value { wrong.increment() }
                        try cache.remove(key)
                    }
                }
            }
        }
        for _ in 0..<1000 { try cache.removeAll() }
        isDone.change { $0 = true }
        for thread in threads { try thread.value() }
        #expect(wrong.value == 0 && cache.statistics.failures == 0)
        try manager.maintain()
        try expectInvariants(cache)
    }
}
