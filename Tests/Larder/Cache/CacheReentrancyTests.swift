import Foundation
import Larder
import LarderTestSupport
import Testing

/// Code of the user's that runs because of the store, and calls it.
struct CacheReentrancyTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache() throws -> Cache<Int, Int> {
        try manager.cache(named: "a", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
    }

    private final class Calling: Codable, Sendable {
        let number: Int
        init(_ number: Int) { self.number = number }

        static let home = Locked<Cache<Int, Int>?>(nil)
        static let failures = Locked(0)

        deinit {
            guard let cache = Self.home.value else { return }
            do {
                try cache.setValue(number, forKey: number)
                _ = try cache.value(forKey: number)
            } catch {
                Self.failures.change { $0 += 1 }
            }
        }
    }

    @Test func `a value's deinit may use the store, whatever takes the value away`() throws {
        let numbers = try cache()
        let values: Cache<Int, Calling> = try manager.cache(
            named: "values", version: "1", maxAge: .hours(1),
            options: CacheOptions(memory: MemoryLimits(countLimit: 3)).steady)
        for key in 0..<3 { values[key] = Calling(key) }
        Calling.home.change { $0 = numbers }
        defer { Calling.home.change { $0 = nil } }
        values[0] = Calling(10)
        values[1] = nil
        values[3] = Calling(3)
        values[4] = Calling(4)
        try values.setValues([5: Calling(5), 6: Calling(6)])
        try manager.transaction { try $0.setValue(Calling(7), forKey: 6, in: values) }
        try values.trim(toCount: 1)
        try values.removeAll { _ in true }
        values[8] = Calling(8)
        try values.removeAll()
        try manager.removeCache(named: "values")
        // One after another: replaced, removed, evicted, replaced in memory, trimmed, and cleared.
        #expect(Array(numbers.keys) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10])
        #expect(Calling.failures.value == 0)
    }

    @Test func `codecs, clocks, deciders and logs may call the cache`() throws {
        let inner = try cache()
        inner[0] = 0
        var configuration = CacheManager.Configuration()
        let calls = Locked(0)
        @Sendable func call() {
            calls.change { $0 += 1 }
            inner[1] = (inner[1] ?? 0) + 1
            _ = inner[2]
        }
        configuration.clock = {
            call()
            return Date(timeIntervalSince1970: 1_800_000_000)
        }
        configuration.log = { _ in call() }
        configuration.schedule = { [time = place.clock] in time.fire($0, after: $1) }
        // The same store by another manager, with closures that go back into it.
        let manager = try CacheManager(url: place.url, configuration: configuration)
        let codec = ValueCodec<Int>(
            identifier: "calling",
            encode: {
                call(); return Data("\($0)".utf8)
            },
            decode: {
                call(); return Int(String(decoding: $0, as: UTF8.self)) ?? -1
            })
        let cache: Cache<Int, Int> = try manager.cache(
            named: "b", version: "1", maxAge: .hours(1), options: CacheOptions(memory: MemoryLimits(countLimit: 2)),
            codec: codec)
        try cache.setValues([1: 1, 2: 2, 3: 3])
        for key in 1...3 { #expect(cache[key] == key) }
        #expect(
            try cache.removeAll { entry in
                call()
                cache[entry.key + 10] = entry.value
                return entry.key == 2
            } == 1)
        #expect(
            try cache.removeAll(whereMetadata: { key, _ in
                call(); return key > 10
            }) == 3)
        #expect(try cache.snapshot() == [1: 1, 3: 3])
        try cache.update(1) { $0 = 5 }
        #expect(try cache.trim(toCount: 1) == 1)
        #expect(try cache.removeExpired() == 0)
        let before = calls.value
        #expect(before > 10 && inner[1] != nil)
        try manager.close()
    }

    @Test func `a clock may ask the manager while a cache is opened`() throws {
        let home = Locked<CacheManager?>(nil)
        let (calls, time) = (Counter(), place.clock)
        let manager = try TemporaryStore(of: #fileID).manager { configuration in
            configuration.clock = {
                calls.increment()
                home.value?.handleMemoryPressure(.warning)
                return time.now
            }
        }
        home.change { $0 = manager }
        defer { home.change { $0 = nil } }
        let before = calls.value
        let thread = SideThread {
            let cache: Cache<Int, Int> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
            cache[1] = 1
            return cache[1]
        }
        #expect(try thread.value() == 1 && calls.value > before)
    }
}
