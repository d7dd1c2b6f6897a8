import Foundation
import Larder
import LarderTestSupport
import Testing

/// Writes of several keys, and several writes in one commit, as memory shows them.
struct CommitOrderTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func cache() throws -> Cache<Int, Int> { try CodecHook().cache(in: place.manager()) }

    // MARK: - Several requests in one commit

    /// Requests that share a commit, in this order.
    enum Batch: CaseIterable {
        case clear, setRemoveSet, setRemove, attributes, several, clearThenTouch

        func requests(to cache: Cache<Int, Int>) -> [@Sendable () throws -> Void] {
            func set(_ key: Int, _ value: Int) -> @Sendable () throws -> Void {
                { try cache.setValue(value, forKey: key) }
            }
            let removeAll: @Sendable () throws -> Void = { _ = try cache.removeAll() }
            let touch: @Sendable () throws -> Void = { _ = try cache.touch(1, maxAge: .seconds(10)) }
            let remove: @Sendable () throws -> Void = { try cache.remove(1) }
            let data: @Sendable () throws -> Void = { try cache.setExtendedData(Data([1]), forKey: 1) }
            let setTwo: @Sendable () throws -> Void = { try cache.setValues([1: 1, 2: 1]) }
            let removeTwo: @Sendable () throws -> Void = { try cache.removeValues(forKeys: [0, 2]) }
            return switch self {
            case .clear: [set(1, 1), removeAll, set(2, 2)]
            case .setRemoveSet: [set(1, 1), remove, set(1, 3)]
            case .setRemove: [set(1, 1), remove]
            case .attributes: [set(1, 4), touch, data]
            case .several: [setTwo, set(1, 5), removeTwo]
            case .clearThenTouch: [set(1, 1), removeAll, touch, set(0, 6)]
            }
        }

        /// The values afterwards; key 0 had the value 0.
        var values: [Int: Int] {
            switch self {
            case .clear: [2: 2]
            case .setRemoveSet: [0: 0, 1: 3]
            case .setRemove: [0: 0]
            case .attributes: [0: 0, 1: 4]
            case .several: [1: 5]
            case .clearThenTouch: [0: 6]
            }
        }
    }

    /// Lets requests wait behind a transaction, in their order, so that they share a commit.
    private func run(_ requests: [@Sendable () throws -> Void], in manager: CacheManager) throws {
        let store = StoreProbe(manager)
        let threads = try manager.transaction { (_: borrowing CacheTransaction) -> [SideThread<Void>] in
            var threads: [SideThread<Void>] = []
            for request in requests {
                threads.append(SideThread(request))
                let count = threads.count
                try Waiting.until { try store.waitingCount == count }
            }
            return threads
        }
        for thread in threads { try thread.value() }
    }

    @Test(arguments: Batch.allCases)
    func `memory takes in the requests of one commit in their order`(batch: Batch) throws {
        let cache = try cache()
        cache[0] = 0
        let store = StoreProbe(cache.manager)
        let commits = try store.commitCount()
        try run(batch.requests(to: cache), in: cache.manager)
        #expect(try store.commitCount() == commits + 1)
        for key in 0...2 { try expectServed(batch.values[key], forKey: key, in: cache) }
        #expect(try cache.snapshot() == batch.values)
        if batch == .attributes {
            place.clock.set(place.clock.now + 10.001)
            #expect(cache.memory[1] == nil && cache[1] == nil)
        }
        try expectInvariants(cache)
    }

    // MARK: - Several keys in one step

    enum Writer: CaseIterable { case transaction, setValues, otherStore }

    /// Writes several keys in one step.
    private func write(
        _ values: [(Int, Int)], to cache: Cache<Int, Int>, _ other: Cache<Int, Int>, _ writer: Writer
    ) throws {
        switch writer {
        case .transaction:
            try cache.manager.transaction { (step: borrowing CacheTransaction) in
                for (key, value) in values { try step.setValue(value, forKey: key, in: cache) }
            }
        case .setValues: try cache.setValues(values)
        case .otherStore: try other.setValues(values)
        }
    }

    @Test(arguments: Writer.allCases)
    func `keys that are written together are read together, while memory is filled and emptied`(
        writer: Writer
    ) throws {
        let (cache, other, keys) = (try cache(), try cache(), [1, 2, 3])
        try cache.setValues(keys.map { ($0, 0) })
        let thread = SideThread {
            for number in 1...300 { try write(keys.map { ($0, number) }, to: cache, other, writer) }
        }
        var (reads, torn, last) = (0, 0, 0)
        repeat {
            let found = try cache.values(forKeys: keys)
            let numbers = Set(found.values)
            if found.count != keys.count || numbers.count != 1 || last > numbers.min() ?? -1 { torn += 1 }
            last = numbers.max() ?? last
            // Single reads fill memory key by key.
            _ = cache[keys[reads % 3]]
            reads += 1
            if reads % 5 == 0 { cache.memory.removeAll() }
        } while thread.result == nil
        try thread.value()
        #expect(torn == 0, "of \(reads)")
        #expect(try cache.values(forKeys: keys) == [1: 300, 2: 300, 3: 300])
        try expectInvariants(cache)
    }
}
