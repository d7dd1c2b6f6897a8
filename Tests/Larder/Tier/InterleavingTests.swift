import Foundation
import Larder
import LarderTestSupport
import Testing

/// Changes that overtake a read: they are made while the read decodes the value.
struct InterleavingTests {
    private let place: TemporaryStore
    private let hook = CodecHook()

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func cache(_ values: ValuePlace = .rows) throws -> Cache<Int, Int> {
        try hook.cache(in: place.manager(for: values), values)
    }

    /// Writes the keys with the value 1, which memory then does not have.
    private func write(_ keys: ClosedRange<Int>, to cache: Cache<Int, Int>) throws {
        for key in keys { try cache.setValue(1, forKey: key, tags: ["t"]) }
        cache.memory.removeAll()
    }

    // MARK: - Reads that are overtaken

    @Test(arguments: OvertakingChange.allCases, ValuePlace.allCases)
    func `a read that a change overtakes leaves no old value in memory`(
        change: OvertakingChange, values: ValuePlace
    ) throws {
        let (cache, time) = (try cache(values), place.clock)
        try write(1...1, to: cache)
        hook.runBesideDecoding { try change.make(in: cache, time) }
        #expect([1, change.value].contains(cache[1]))
        #expect(hook.isDone)
        try expectServed(change.value, in: cache)
        try expectInvariants(cache)
    }

    enum Read: CaseIterable {
        case value, values, entry, disk, iteration

        func read(_ cache: Cache<Int, Int>) throws -> Int? {
            switch self {
            case .value: try cache.value(forKey: 1)
            case .values: try cache.values(forKeys: [1])[1]
            case .entry: try cache.entry(forKey: 1)?.value
            case .disk: try cache.disk.value(forKey: 1)
            case .iteration: cache.first { $0.key == 1 }?.value
            }
        }
    }

    @Test(arguments: OvertakingChange.allCases, Read.allCases)
    func `a read of any kind that a change overtakes leaves no old value in memory`(
        change: OvertakingChange, read: Read
    ) throws {
        let (cache, time) = (try cache(), place.clock)
        try write(1...1, to: cache)
        hook.runBesideDecoding { try change.make(in: cache, time) }
        let found = try read.read(cache)
        #expect([1, change.value].contains(found))
        #expect(hook.isDone)
        try expectServed(change.value, in: cache)
    }

    @Test(arguments: OvertakingChange.allCases)
    func `a read of several keys that a change overtakes is of one moment, and leaves no old value in memory`(
        change: OvertakingChange
    ) throws {
        let (cache, time) = (try cache(), place.clock)
        try write(1...2, to: cache)
        hook.runBesideDecoding(after: 1) { try change.make(in: cache, time) }
        #expect(try cache.values(forKeys: [1, 2]) == [1: 1, 2: 1])
        #expect(hook.isDone)
        let rest = try cache.snapshot().filter { $0.key <= 2 }
        #expect(rest[1] == change.value)
        #expect(try cache.values(forKeys: [1, 2]) == rest)
        for key in 1...2 { try expectServed(rest[key], forKey: key, in: cache) }
    }

    @Test func `an entry that is touched while a read decodes it ends by its new age`() throws {
        let (cache, time, start) = (try cache(), place.clock, place.clock.now)
        try write(1...1, to: cache)
        hook.runBesideDecoding {
            time.set(start + 1800)
            try cache.touch(1)
        }
        #expect(cache[1] == 1)
        time.set(start + 5400)
        #expect(cache[1] == 1)
        #expect(cache.memory[1] == 1)
        time.set(start + 5400.001)
        #expect(cache.memory[1] == nil)
        #expect(cache[1] == nil)
    }

    // MARK: - Reads beside a transaction

    private struct Stop: Error {}

    @Test(arguments: [false, true])
    func `reads beside an open transaction see the state before it, and leave memory to its end`(
        isThrown: Bool
    ) throws {
        let cache = try cache()
        try write(1...2, to: cache)
        do {
            try cache.manager.transaction { (step: borrowing CacheTransaction) in
                for key in 1...2 { try step.setValue(2, forKey: key, in: cache) }
                let thread = SideThread { try cache.values(forKeys: [1, 2]) }
                let found = try thread.value()
                #expect(found == [1: 1, 2: 1])
                #expect(cache[1] == 1)
                #expect(cache.memory[1] == nil)
                if isThrown { throw Stop() }
            }
        } catch is Stop {}
        let value = isThrown ? 1 : 2
        #expect(cache.memory[1] == (isThrown ? nil : 2))
        #expect(try cache.values(forKeys: [1, 2]) == [1: value, 2: value])
        for key in 1...2 { try expectServed(value, forKey: key, in: cache) }
        try expectInvariants(cache)
    }

    @Test func `a read that ends inside of a transaction of another thread leaves memory to the commit`() throws {
        let cache = try cache()
        try write(1...1, to: cache)
        let (hasWritten, hasRead, writer) = (Counter(), Counter(), Locked<SideThread<Void>?>(nil))
        hook.runBesideDecoding {
            let thread = SideThread {
                try cache.manager.transaction { (step: borrowing CacheTransaction) in
                    try step.setValue(2, forKey: 1, in: cache)
                    hasWritten.increment()
                    try Waiting.until { hasRead.value > 0 }
                }
            }
            writer.change { $0 = thread }
            try Waiting.until { hasWritten.value > 0 }
        }
        #expect(cache[1] == 1)
        #expect(cache.memory[1] == nil)
        hasRead.increment()
        try writer.value?.value()
        try expectServed(2, in: cache)
    }

    @Test func `a transaction that throws leaves the copies in memory as they were`() throws {
        let cache = try cache()
        try cache.setValues([1: 1, 2: 1])
        #expect(throws: Stop.self) {
            try cache.manager.transaction { (step: borrowing CacheTransaction) in
                try step.setValue(2, forKey: 1, in: cache)
                try step.removeValue(forKey: 2, in: cache)
                throw Stop()
            }
        }
        #expect(throws: Stop.self) {
            try cache.update(1) { value in
                value = 2
                throw Stop()
            }
        }
        #expect(cache.memory[1] == 1 && cache.memory[2] == 1)
        #expect(hook.count == 1)
        for key in 1...2 { try expectServed(1, forKey: key, in: cache) }
    }

    @Test func `a write of several keys that is cancelled leaves memory open to reads`() async throws {
        let cache = try cache()
        try write(1...2, to: cache)
        let (manager, store) = (cache.manager, StoreProbe(cache.manager))
        let task = try await onThread {
            try manager.transaction { _ in
                let task = Task { try await cache.setValues([1: 2, 2: 2]) }
                try Waiting.until { try store.waitingCount == 1 }
                task.cancel()
                return task
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(cache.memory.count == 0)
        for key in 1...2 {
            #expect(cache[key] == 1)
            #expect(cache.memory[key] == 1)
        }
    }
}
