import Foundation
import Larder
import LarderTestSupport
import Testing

/// Every other kind of change that a stream has to tell of, and what it holds while nobody reads it.
struct ObservedKindsTests {
    private let bench: Workbench

    init() throws {
        bench = try Workbench()
    }

    private func batch(
        _ cache: Cache<Int, String>, _ body: () async throws -> Void
    ) async throws -> CacheChanges<Int, String>? {
        var stream = cache.changes().makeAsyncIterator()
        try await body()
        bench.time.advance(by: .milliseconds(100))
        return await stream.next()
    }

    private func filled(_ maxAge: MaxAge = .minutes(1)) async throws -> Cache<Int, String> {
        let cache = try bench.numbers(maxAge)
        try await cache.setValues((1...4).map { ($0, "\($0)") })
        return cache
    }

    private func change(updated: [Int: String] = [:], removed: Set<Int> = []) -> CacheChanges<Int, String> {
        CacheChanges(updated: updated, removed: removed, isReset: false)
    }

    @Test func `what the asynchronous forms change is told of as what the others do`() async throws {
        let cache = try await filled()
        let changes = try await batch(cache) {
            try await cache.setValue("new", forKey: 9)
            try await cache.setValues([8: "eight"])
            try await cache.remove(1)
            _ = try await cache.removeValue(forKey: 2)
            try await cache.removeValues(forKeys: [3, 77])
        }
        #expect(changes == change(updated: [8: "eight", 9: "new"], removed: [1, 2, 3]))
        #expect(try await batch(cache) { try await cache.removeAll() }?.isReset == true)
        try await cache.setValue("x", forKey: 1)
        #expect(try await batch(cache) { try await cache.clear() }?.isReset == true)
    }

    @Test func `other extended data alone are no change, since a batch tells of values`() async throws {
        let cache = try await filled()
        let changes = try await batch(cache) {
            try await cache.setExtendedData(Data([1]), forKey: 1)
            try await cache.setValue("new", forKey: 9)
        }
        #expect(changes == change(updated: [9: "new"]))
        #expect(try await cache.extendedData(forKey: 1) == Data([1]))
    }

    @Test func `loaded values are reported, whichever form loads them`() async throws {
        let cache = try await filled()
        bench.time.set(bench.time.now + 61)
        let changes = try await batch(cache) {
            _ = try await cache.values(forKeys: [1, 10, 11]) { [10: "\($0.count)", 1: "again"] }
            _ = try await cache.value(forKey: 12) { _ in "twelve" }
            _ = try await cache.entry(forKey: 13) { _, _ in .value("thirteen") }
            _ = try await cache.value(forKey: 14) { _, _ in .value("fourteen") }
            // The age of an entry restarts, which is no change of its value.
            _ = try await cache.entry(forKey: 2) { _, _ in .notModified }
            // What is left of an entry without a value is removed.
            _ = try await cache.value(forKey: 3) { _, _ in .none(for: .hours(1)) }
            let value = cache.generator { "loaded \($0)" }
            _ = try await value(15)
        }
        let updated = [1: "again", 10: "3", 12: "twelve", 13: "thirteen", 14: "fourteen", 15: "loaded 15"]
        #expect(changes == change(updated: updated, removed: [3]))
    }

    @Test func `what a decider, an age or a limit takes away is removed`() async throws {
        let cache = try await filled()
        let decided = try await batch(cache) {
            let task = cache.evict(every: .milliseconds(50)) { $0.key == 2 }
            bench.time.advance(by: .milliseconds(50))
            task.cancel()
        }
        #expect(decided == change(removed: [2]))
        bench.time.set(bench.time.now + 61)
        cache[5] = "five"
        #expect(try await batch(cache) { try await cache.removeExpired() } == change(removed: [1, 3, 4]))
        #expect(try await batch(cache) { try await cache.trim(toSize: 0) } == change(removed: [5]))
    }

    /// A key whose decoding does something once.
    private struct HookedKey: Codable, Hashable, Sendable {
        let number: Int
        static let hook = Locked<(@Sendable () -> Void)?>(nil)

        init(_ number: Int) { self.number = number }

        init(from decoder: any Decoder) throws {
            number = try decoder.singleValueContainer().decode(Int.self)
            Self.hook.change { $0.take() }?()
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(number)
        }
    }

    @Test func `a key that is set again right after its eviction is not removed`() async throws {
        let cache: Cache<HookedKey, String> = try await bench.manager.cache(
            named: "hooked", version: "1", maxAge: .unlimited, options: CacheOptions().steady)
        for number in 1...2 { cache[HookedKey(number)] = "old" }
        var stream = cache.changes().makeAsyncIterator()
        // The stream learns of an eviction after the commit, and decodes its key first.
        HookedKey.hook.change { $0 = { cache[HookedKey(1)] = "new" } }
        #expect(try await cache.trim(toCount: 1) == 1)
        #expect(HookedKey.hook.value == nil)
        bench.time.advance(by: .milliseconds(100))
        let changes = await stream.next()
        #expect(changes?.updated == [HookedKey(1): "new"] && changes?.removed == [])
    }

    @Test func `the limit of the whole store is told of too`() async throws {
        var configuration = bench.time.configuration
        configuration.sizeLimit = 1000
        let manager = try CacheManager(url: bench.folder("limited.sqlite"), configuration: configuration)
        let cache: Cache<Int, Data> = try await manager.cache(named: "a", version: "1", maxAge: .unlimited)
        for key in 1...4 { try await cache.setValue(Data(count: 200), forKey: key) }
        var stream = cache.changes().makeAsyncIterator()
        try await cache.setValue(Data(count: 700), forKey: 5)
        bench.time.advance(by: .milliseconds(100))
        let changes = await stream.next()
        #expect(changes?.updated == [5: Data(count: 700)])
        #expect(changes?.removed == [1, 2, 3])
        #expect(Array(cache.keys) == [4, 5])
    }

    @Test func `a cache that is removed is a reset, and the end`() async throws {
        let cache = try await filled()
        var stream = cache.changes().makeAsyncIterator()
        try await bench.manager.removeCache(named: "numbers")
        #expect(await stream.next()?.isReset == true)
        #expect(await stream.next() == nil)
    }

    @Test func `a store that is lost with its folder is a reset`() async throws {
        let cache = try await filled()
        let changes = try await batch(cache) {
            try FileManager.default.removeItem(at: bench.folder.realURL)
            // The write that finds the files deleted may fail, and the next one does not.
            do {
                try await cache.setValue("new", forKey: 9)
            } catch let error as CacheError {
                #expect(error.code == .storageUnavailable)
            }
            try await cache.setValue("new", forKey: 9)
        }
        #expect(changes?.isReset == true)
        #expect(Array(cache.keys) == [9])
    }

    @Test func `a stream that nobody reads holds keys and no values`() async throws {
        let cache: Cache<Int, Tracked> = try await bench.manager.cache(
            named: "tracked", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled))
        var stream = cache.changes().makeAsyncIterator()
        for round in 1...3 { try await cache.setValues((0..<3000).map { ($0, Tracked($0 * round)) }) }
        #expect(Tracked.living.change { $0 } == 0)
        bench.time.advance(by: .milliseconds(100))
        let first = await stream.next()
        #expect(first?.updated.count == 3000 && first?.removed == [])
        #expect(first?.updated[7]?.number == 21)
        // More keys than it keeps: it says so, and follows what comes then.
        for start in stride(from: 10_000, to: 40_000, by: 3000) {
            try await cache.setValues((start..<(start + 3000)).map { ($0, Tracked($0)) })
        }
        bench.time.advance(by: .milliseconds(100))
        let second = await stream.next()
        #expect(second?.isReset == true && second?.updated.isEmpty == true && second?.removed == [])
        try await cache.remove(7)
        bench.time.advance(by: .milliseconds(100))
        #expect(await stream.next()?.removed == [7])
    }
}

/// A value of which is known how many there are; of this one suite.
private final class Tracked: Codable, Sendable {
    static let living = Locked(0)

    let number: Int

    init(_ number: Int) {
        self.number = number
        Self.living.change { $0 += 1 }
    }

    init(from decoder: any Decoder) throws {
        number = try decoder.singleValueContainer().decode(Int.self)
        Self.living.change { $0 += 1 }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }

    deinit { Self.living.change { $0 -= 1 } }
}
