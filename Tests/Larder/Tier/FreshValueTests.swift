import Foundation
import Larder
import LarderTestSupport
import Testing

/// Values that are written while a sweep is on its way to their keys.
struct FreshValueTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    enum Sweep: CaseIterable { case removeExpired, inTask, maintenance, trimToCount, trimToSize, diskLimit }

    @Test(arguments: Sweep.allCases, LongTests.areEnabled ? [Int.max, 0] : [Int.max])
    func `what is written anew after the first slice of a sweep stays`(sweep: Sweep, inlineLimit: Int) async throws {
        let begun = Locked<(@Sendable () throws -> Void)?>(nil)
        // It holds the cache, and the cache's manager holds this.
        defer { begun.change { $0 = nil } }
        let isDone = Counter()
        let manager = try place.manager { configuration in
            configuration.log = { message in
                guard message.text.contains("has expired"), isDone.increment() == 1 else { return }
                do { try begun.value?() } catch { Issue.record(error) }
            }
        }
        let cache: Cache<Int, String> = try await manager.cache(
            named: "a", version: "1", maxAge: .seconds(10), options: CacheOptions(inlineLimit: inlineLimit).steady)
        let (count, fresh) = (1400, [600, 611, 612, 700, 1399])
        try await cache.setValues((0..<count).map { ($0, "old") })
        place.clock.set(place.clock.now + 11)
        // Of the same page in another slice, and of pages behind it: by one write each, and by one of two.
        begun.change { begun in
            begun = {
                for key in fresh.dropLast(2) { try cache.setValue("fresh", forKey: key) }
                try cache.setValues(fresh.suffix(2).map { ($0, "fresh") })
            }
        }
        switch sweep {
        case .removeExpired: #expect(try onThisThread { try cache.removeExpired() } == count - fresh.count)
        case .inTask: #expect(try await cache.removeExpired() == count - fresh.count)
        case .maintenance: #expect(try await manager.maintain().expired == count - fresh.count)
        case .trimToCount: #expect(try await cache.trim(toCount: fresh.count) == count - fresh.count)
        case .trimToSize: #expect(try await cache.trim(toSize: Int64(6 * fresh.count)) == count - fresh.count)
        case .diskLimit: try await cache.disk.setLimits(DiskLimits(countLimit: fresh.count))
        }
        #expect(isDone.value > 256)
        #expect(Array(cache.keys) == fresh)
        #expect(cache.memory.map(\.key).sorted() == fresh)
        for key in fresh { #expect(cache[key] == "fresh") }
        #expect(try await cache.removeExpired() == 0)
        try expectInvariants(cache)
        try await manager.maintain()
        #expect(try StoreProbe(manager).fileProblems(isSwept: true).isEmpty)
    }

    private func onThisThread<R>(_ body: () throws -> R) rethrows -> R { try body() }
}
