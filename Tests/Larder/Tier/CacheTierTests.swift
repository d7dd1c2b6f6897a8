import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

struct CacheTierTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(
        _ options: CacheOptions = .init(), age: MaxAge = .hours(1), in manager: CacheManager? = nil
    ) throws -> Cache<Int, Data> {
        try (manager ?? self.manager).cache(named: "a", version: "1", maxAge: age, options: options.steady)
    }

    @Test func `a value found on disk enters memory with its real cost and age`() async throws {
        let options = CacheOptions(memory: MemoryLimits(costLimit: 100))
        let cache = try cache(options)
        cache[1] = Data(count: 60)
        place.clock.set(place.clock.now + 1800)
        // The latest open sets the limits, so memory is emptied.
        for options in [CacheOptions(memory: .disabled), options] { _ = try self.cache(options) }
        #expect(cache[1] != nil)
        #expect(cache.statistics.diskHits == 1)
        #expect(try await cache.value(forKey: 1) != nil)
        #expect(cache.statistics.memoryHits == 1)
        // The limit that was lowered has evicted one.
        #expect(cache.statistics.memoryEvictions == 1)
        // 60 and 60 do not go together, so the first has to leave.
        cache[2] = Data(count: 60)
        #expect(cache.statistics.memoryEvictions == 2)
        place.clock.set(place.clock.now + 1800.001)
        #expect(cache[1] == nil)
        #expect(cache[2] != nil)
        try expectInvariants(cache)
    }

    /// A value that does something when it goes.
    private final class Ending: Sendable {
        let number: Int
        private let body: @Sendable () -> Void

        init(_ number: Int, _ body: @escaping @Sendable () -> Void = {}) {
            self.number = number
            self.body = body
        }

        deinit { body() }
    }

    @Test func `a value written while memory gives everything back takes the old one's place`() throws {
        let codec = ValueCodec<Ending>(
            identifier: "ending", encode: { Data([UInt8($0.number)]) }, decode: { Ending(Int($0[$0.startIndex])) })
        let cache: Cache<Int, Ending> = try manager.cache(
            named: "endings", version: "1", maxAge: .hours(1), options: CacheOptions().steady, codec: codec)
        let writes = Counter()
        // The first that goes, with others behind it in the next slices.
        cache[0] = Ending(1) {
            guard writes.increment() == 1 else { return }
            cache[2999] = Ending(2)
            cache.memory.countLimit = 5000
        }
        try cache.setValues((1..<3000).map { ($0, Ending(1)) })
        cache.memory.countLimit = 0
        #expect(writes.value == 1)
        #expect(cache.memory.count > 0)
        #expect(cache[2999]?.number == 2)
        #expect(try cache.removeValue(forKey: 2999)?.number == 2)
        cache.memory.countLimit = 0
    }

    @Test func `a pass over memory hears of writes after the last handle but its own is gone`() throws {
        var opened: Cache<Int, Data>? = try cache()
        for key in 0..<4 { opened?[key] = Data([0]) }
        let pass = try #require(opened?.memory.makeIterator())
        opened = nil
        let cache = try cache()
        #expect(cache.memory.count == 4)
        cache[1] = Data([1])
        cache[2] = nil
        let shown = Dictionary(uniqueKeysWithValues: IteratorSequence(pass).map { ($0.key, $0.value) })
        #expect(shown == [0: Data([0]), 1: Data([1]), 3: Data([0])])
    }

    @Test(arguments: [0, 1000])
    func `a cost that was given is the value's too when it comes back from disk`(inlineLimit: Int) throws {
        let cache = try cache(CacheOptions(memory: MemoryLimits(costLimit: 100), inlineLimit: inlineLimit))
        try cache.setValue(Data(count: 10), forKey: 1, cost: 60)
        try cache.setValue(Data(count: 10), forKey: 2, cost: 101)
        try cache.setValue(Data(count: 200), forKey: 3, cost: -5)
        #expect(cache.memory.totalCost == 60)
        cache.memory.removeAll()
        for key in 1...2 { #expect(cache[key] == Data(count: 10)) }
        #expect(cache.memory.totalCost == 60)
        #expect(cache.memory.map(\.key) == [1])
        #expect(try cache.values(forKeys: [2, 3]).count == 2)
        #expect(cache.memory.map(\.key) == [1, 3] && cache.memory.totalCost == 60)
        try cache.setExtendedData(Data([1]), forKey: 1)
        #expect(cache[1] != nil)
        #expect(cache.memory.totalCost == 60)
        // Written anew without one, it costs its size.
        try cache.setValue(Data(count: 20), forKey: 1)
        cache.memory.removeAll()
        #expect(cache[1] == Data(count: 20))
        #expect(cache.memory.totalCost == 20)
        try expectInvariants(cache)
    }

    @Test func `a value too large for memory is served from disk each time and evicts nothing`() throws {
        let cache = try cache(CacheOptions(memory: MemoryLimits(costLimit: 100)))
        for key in 0..<10 { cache[key] = Data(count: 10) }
        cache[10] = Data(count: 101)
        for _ in 0..<3 { #expect(cache[10]?.count == 101) }
        #expect(cache.statistics.diskHits == 3)
        for key in 0..<10 { #expect(cache[key] != nil) }
        #expect(cache.statistics.diskHits == 3 && cache.statistics.memoryEvictions == 0)
        // Grown beyond the limit: the old copy is not served.
        cache[3] = Data(count: 200)
        #expect(cache[3]?.count == 200)
        try expectInvariants(cache)
    }

    @Test func `a set that throws changes neither tier`() throws {
        var configuration = place.clock.configuration
        configuration.busyTimeout = .zero
        let url = place.folder("other.sqlite")
        let manager = try CacheManager(url: url, configuration: configuration)
        let cache = try cache(in: manager)
        cache[1] = Data([1])
        #expect(cache[1] == Data([1]))
        var intruder = try Intruder(url)
        try intruder.execute("BEGIN IMMEDIATE")
        expectError(.busy) { try cache.setValue(Data([2]), forKey: 1) }
        expectError(.busy) { try cache.setValues([1: Data([2]), 2: Data([2])]) }
        expectError(.busy) { try cache.remove(1) }
        expectError(.busy) { try cache.update(1) { $0 = nil } }
        expectError(.busy) { try cache.removeAll() }
        expectError(.busy) { try manager.transaction { try $0.setValue(nil, forKey: 1, in: cache) } }
        cache[1] = Data([3])
        #expect(cache.statistics.failures == 1)
        // Reads go on while somebody writes, from either tier.
        #expect(cache[1] == Data([1]))
        #expect(try cache.entry(forKey: 1)?.value == Data([1]))
        #expect(try cache.count == 1)
        #expect(cache.map(\.key) == [1])
        try intruder.execute("ROLLBACK")
        cache[1] = Data([4])
        #expect(cache[1] == Data([4]))
        try expectInvariants(cache)
    }

    @Test(arguments: [0, 1, 2])
    func `readers that promote never bring back what was removed, replaced or cleared`(kind: Int) async throws {
        let cache = try cache(CacheOptions(memory: MemoryLimits(countLimit: 2)))
        let isDone = Locked(false)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    while !isDone.value {
                        for key in 0..<4 { _ = cache[key] }
                        await Task.yield()
                    }
                }
            }
            group.addTask {
                for round in 0..<200 {
                    let (old, new) = (Data([UInt8(round & 255), 0]), Data([UInt8(round & 255), 1]))
                    for key in 0..<4 { cache[key] = old }
                    switch kind {
                    case 0:
                        cache[1] = nil
                        #expect(cache[1] == nil)
                    case 1:
                        cache[1] = new
                        #expect(cache[1] == new)
                    default:
                        do { try cache.removeAll() } catch { Issue.record(error) }
                        #expect(cache[1] == nil && cache[2] == nil)
                    }
                }
                isDone.change { $0 = true }
            }
        }
        try expectInvariants(cache)
    }

    @Test func `a trim follows the real order of use on disk`() throws {
        let cache = try cache(CacheOptions(memory: .disabled))
        for key in 0..<10 { cache[key] = Data([UInt8(key)]) }
        // Used through one call after another, in this order.
        let uses: [() throws -> Void] = [
            { _ = cache[1] }, { _ = try cache.entry(forKey: 3) }, { _ = try cache.values(forKeys: [0]) },
            { _ = try cache.value(forKey: 8) }, { _ = try cache.entry(forKey: 2) }, { _ = cache[1] },
            { _ = try cache.contains(4) },
        ]
        for use in uses {
            place.clock.set(place.clock.now + 0.001)
            try use()
        }
        #expect(try cache.trim(toCount: 5) == 5)
        #expect(cache.map(\.key) == [0, 1, 2, 3, 8])
        #expect(try cache.trim(toCount: 3) == 2)
        #expect(cache.map(\.key) == [1, 2, 8])
        cache[0] = Data([0])
        #expect(try cache.trim(toCount: 2) == 2)
        #expect(cache.map(\.key) == [0, 1])
        #expect(cache.statistics.evictions == 9)
        try expectInvariants(cache)
    }

    @Test func `trims by size, of nothing, of everything, of what is over first, never of what is pinned`() throws {
        let cache = try cache()
        for key in 0..<10 { try cache.setValue(Data(count: 100), forKey: key, pinned: key == 0) }
        #expect(try cache.trim(toSize: .max) == 0 && cache.trim(toCount: .max) == 0)
        #expect(try cache.trim(toSize: 1000) == 0)
        try cache.setValue(Data(count: 100), forKey: 9, maxAge: .seconds(1))
        place.clock.advance(by: .seconds(2))
        #expect(try cache.trim(toSize: 900) == 1)
        #expect(cache.map(\.key) == Array(0..<9))
        #expect(try cache.trim(toSize: 301) == 6)
        #expect(cache.map(\.key) == [0, 7, 8])
        #expect(cache.statistics.sizeEvictions == 6 && cache.statistics.expirations == 1)
        #expect(try cache.trim(toCount: -5) == 2)
        #expect(cache.map(\.key) == [0])
        #expect(try cache.trim(toSize: .min) == 0)
        try cache.removeAll()
        #expect(try cache.isEmpty)
        try expectInvariants(cache)
    }

    @Test func `a total beyond thirty-two bits is exact, and trims go by it`() throws {
        let cache = try cache()
        for key in 1...3 { cache[key] = Data([1]) }
        var shell = try Intruder(place.url)
        try shell.execute("UPDATE entry SET size = 1000000000")
        #expect(try cache.sizeOnDisk == 3_000_000_000)
        #expect(try cache.trim(toSize: 3_000_000_000) == 0)
        #expect(try cache.trim(toSize: 2_999_999_999) == 1)
        #expect(try cache.sizeOnDisk == 2_000_000_000)
    }

    @Test(arguments: [false, true])
    func `extended data lies beside the value`(isOnDiskAlone: Bool) throws {
        let cache = try cache(isOnDiskAlone ? CacheOptions(memory: .disabled) : .init())
        try cache.setValue(Data(count: 10), forKey: 1, extendedData: Data([1, 2, 3]))
        #expect(cache[1] != nil && cache[1] != nil)
        #expect(try cache.extendedData(forKey: 1) == Data([1, 2, 3]))
        #expect(try cache.entry(forKey: 1)?.extendedData == Data([1, 2, 3]))
        #expect(try cache.sizeOnDisk == 13)
        #expect(try cache.metadata(forKey: 1)?.size == 13)
        let written = try cache.metadata(forKey: 1)?.writtenAt
        place.clock.advance(by: .seconds(5))
        try cache.setExtendedData(Data(), forKey: 1)
        #expect(try cache.extendedData(forKey: 1) == Data())
        #expect(try cache.metadata(forKey: 1)?.writtenAt == written)
        #expect(cache[1] == Data(count: 10))
        try cache.setExtendedData(nil, forKey: 1)
        #expect(try cache.extendedData(forKey: 1) == nil && cache.sizeOnDisk == 10)
        try cache.setExtendedData(Data([5]), forKey: 1)
        cache[1] = Data(count: 4)
        #expect(try cache.extendedData(forKey: 1) == nil)
        #expect(try cache.entry(forKey: 2) == nil && cache.extendedData(forKey: 2) == nil)
        try cache.setExtendedData(Data([5]), forKey: 2)
        #expect(try cache.count == 1)
        try expectInvariants(cache)
    }

    @Test func `what another connection changes is seen, by every read`() throws {
        let cache = try cache()
        for key in 1...4 { cache[key] = Data([UInt8(key)]) }
        for key in 1...4 { #expect(cache[key] == Data([UInt8(key)])) }
        var shell = try Intruder(place.url)
        let other = try self.cache(in: place.manager())
        other[1] = Data([42])
        #expect(cache[1] == Data([42]))
        #expect(try cache.values(forKeys: [1, 2]) == [1: Data([42]), 2: Data([2])])
        try shell.execute("DELETE FROM entry WHERE key = 2")
        #expect(cache[2] == nil)
        #expect(try cache.count == 3 && cache.sizeOnDisk == 3 && !cache.contains(2))
        #expect(cache.map(\.key) == [1, 3, 4])
        other[3] = Data([42, 42])
        #expect(cache[3] == Data([42, 42]))
        #expect(try cache.sizeOnDisk == 4)
        try shell.execute("DELETE FROM entry")
        #expect(try cache.isEmpty)
        for key in 1...4 { #expect(cache[key] == nil) }
        cache[1] = Data([1])
        #expect(cache[1] == Data([1]))
        try expectInvariants(cache)
    }

    @Test func `another process with memory of its own sees each replacement`() throws {
        let cache = try cache()
        let other = try self.cache(in: place.manager())
        cache[1] = Data([0])
        for number in UInt8(1)..<100 {
            other[1] = Data([number])
            #expect(cache[1] == Data([number]))
            #expect(cache[1] == Data([number]))
            if number % 7 == 0 { cache[1] = Data([0]) }
        }
        try expectInvariants(cache)
    }
}
