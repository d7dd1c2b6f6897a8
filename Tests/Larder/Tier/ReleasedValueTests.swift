import Foundation
import Larder
import LarderTestSupport
import Testing

/// Values whose end calls the store: it must come while no lock is held.
struct ReleasedValueTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    /// A value that calls the store at its end, if it was given a way to.
    final class Ending: Sendable {
        let number: Int
        private let callback: Callback?

        init(_ number: Int, _ callback: Callback? = nil) { (self.number, self.callback) = (number, callback) }

        deinit { callback?.run(number) }
    }

    /// What values do at their end.
    final class Callback: Sendable {
        private let caches = Locked<(numbers: Cache<Int, Int>, values: Cache<Int, Ending>)?>(nil)
        let ended = Told<Int>()
        let failures = Told<String>()

        func open(_ numbers: Cache<Int, Int>, _ values: Cache<Int, Ending>) {
            caches.change { $0 = (numbers, values) }
        }

        /// Lets go of the caches, which may be the end of further values.
        func close() {
            let caches = caches.value
            self.caches.change { $0 = nil }
            withExtendedLifetime(caches) {}
        }

        func run(_ number: Int) {
            ended.add(number)
            guard let (numbers, values) = caches.value else { return }
            do {
                // Under the lock of memory the first would never return; under the writer's the second would throw.
                _ = values.memory.count
                try numbers.setValue(number, forKey: number)
            } catch {
                failures.add("\(error)")
            }
        }
    }

    private struct Stop: Error {}

    /// How a value goes: that of key 1, which has the number 1, or one with the number 5 that a call is given.
    enum Way: CaseIterable {
        case set, setValues, update, transaction, tooCostly
        case remove, removeValue, removeValues, removeInTransaction, removeAll, clear, removeAllOfManager
        case tag, trim, limit, predicate, removeCache
        case memoryIsEmptied, memoryIsLimited, memoryIsFull, readFillsMemory
        case attributesAfterOtherStore, attributesOfOtherStore
        case memoryIsOff, memoryIsOffInTransaction, transactionThrows, replacedInTransaction

        /// The number of the value that goes.
        var number: Int {
            switch self {
            case .memoryIsOff, .memoryIsOffInTransaction, .transactionThrows, .replacedInTransaction: 5
            default: 1
            }
        }
    }

    /// Opens a cache of values, of which those that are decoded call nothing.
    private func endings(
        named name: String = "endings", in manager: CacheManager? = nil
    ) throws -> Cache<Int, Ending> {
        let codec = ValueCodec<Ending>(
            identifier: "ending", encode: { Data([UInt8($0.number)]) }, decode: { Ending(Int($0[$0.startIndex])) })
        return try (manager ?? self.manager).cache(
            named: name, version: "1", maxAge: .hours(1), options: CacheOptions().steady, codec: codec)
    }

    private func numbers(in manager: CacheManager? = nil) throws -> Cache<Int, Int> {
        try (manager ?? self.manager).cache(
            named: "numbers", version: "1", maxAge: .unlimited, options: CacheOptions().steady)
    }

    private func replace(in values: Cache<Int, Ending>, _ way: Way) throws {
        switch way {
        case .set: try values.setValue(Ending(2), forKey: 1)
        case .setValues: try values.setValues([1: Ending(2), 2: Ending(2)])
        case .update: try values.update(1) { $0 = Ending(2) }
        case .transaction: try manager.transaction { try $0.setValue(Ending(2), forKey: 1, in: values) }
        case .tooCostly:
            values.memory.costLimit = 10
            try values.setValue(Ending(2), forKey: 1, cost: 11)
        default: break
        }
    }

    private func remove(from values: Cache<Int, Ending>, _ way: Way) throws {
        switch way {
        case .remove: try values.remove(1)
        case .removeValue: _ = try values.removeValue(forKey: 1)
        case .removeValues: try values.removeValues(forKeys: [1, 2])
        case .removeInTransaction: try manager.transaction { try $0.removeValue(forKey: 1, in: values) }
        case .removeAll: try values.removeAll()
        case .clear: try values.clear()
        case .removeAllOfManager: try manager.removeAll()
        case .tag: try values.removeAll(tagged: "t")
        case .trim: try values.trim(toCount: 0)
        case .limit:
            try values.disk.setLimits(DiskLimits(countLimit: 1))
            try values.setValue(Ending(2), forKey: 2)
        case .predicate: try values.removeAll { entry in entry.key == 1 }
        case .removeCache:
            try manager.removeCache(named: values.name)
            values.memory.removeAll()
        default: break
        }
    }

    private func dropFromMemory(of values: Cache<Int, Ending>, _ way: Way) throws {
        switch way {
        case .memoryIsEmptied: values.memory.removeAll()
        case .memoryIsLimited: values.memory.countLimit = 0
        case .memoryIsFull:
            values.memory.countLimit = 1
            try values.setValue(Ending(2), forKey: 2)
        case .readFillsMemory:
            try values.setValue(Ending(2), forKey: 2)
            _ = values[1]
            values.memory.countLimit = 1
            #expect(values[2]?.number == 2)
        case .attributesAfterOtherStore:
            let other = try numbers(in: place.manager())
            other[9] = 9
            try values.touch(1)
        case .attributesOfOtherStore:
            let other = try endings(in: place.manager())
            try other.setPinned(true, forKey: 1)
            #expect(values[1]?.number == 1)
        default: break
        }
    }

    /// Writes a value that memory does not keep, under key 5.
    private func add(_ callback: Callback, to values: Cache<Int, Ending>, _ way: Way) throws {
        switch way {
        case .memoryIsOff:
            values.memory.countLimit = 0
            try values.setValue(Ending(5, callback), forKey: 5)
        case .memoryIsOffInTransaction:
            values.memory.countLimit = 0
            try manager.transaction { try $0.setValue(Ending(5, callback), forKey: 5, in: values) }
        case .transactionThrows:
            do {
                try manager.transaction { (step: borrowing CacheTransaction) in
                    try step.setValue(Ending(5, callback), forKey: 5, in: values)
                    throw Stop()
                }
            } catch is Stop {}
            // What the transaction has left may go with the next one.
            try values.setValue(Ending(2), forKey: 2)
        case .replacedInTransaction:
            try manager.transaction { (step: borrowing CacheTransaction) in
                try step.setValue(Ending(5, callback), forKey: 5, in: values)
                try step.setValue(Ending(2), forKey: 5, in: values)
            }
        default: break
        }
    }

    @Test(arguments: Way.allCases)
    func `the end of a value finds no lock held, however the value goes`(way: Way) throws {
        let (numbers, values, callback) = (try numbers(), try endings(), Callback())
        callback.open(numbers, values)
        defer { callback.close() }
        try values.setValue(Ending(1, callback), forKey: 1, tags: ["t"])
        #expect(callback.ended.all == [])
        let thread = SideThread {
            try replace(in: values, way)
            try remove(from: values, way)
            try dropFromMemory(of: values, way)
            try add(callback, to: values, way)
        }
        try thread.value()
        #expect(callback.ended.all.contains(way.number))
        #expect(callback.failures.all == [])
        #expect(numbers[way.number] == way.number)
    }

    @Test func `the values of a cache end outside of all locks when its last handle goes`() throws {
        let callback = Callback()
        let numbers = try numbers()
        callback.open(numbers, try endings())
        defer { callback.close() }
        let thread = SideThread {
            var opened: Cache<Int, Ending>? = try endings(named: "others")
            for key in 1...100 { opened?[key] = Ending(key, callback) }
            opened = nil
        }
        try thread.value()
        #expect(callback.ended.all.sorted() == Array(1...100))
        #expect(callback.failures.all == [])
        #expect(try numbers.count == 100)
    }
}
