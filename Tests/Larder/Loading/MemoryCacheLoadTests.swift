import Foundation
import Larder
import LarderTestSupport
import Testing

/// Values that a memory cache loads if they are missing.
struct MemoryCacheLoadTests {
    private struct Failure: Error {}

    private let time = ManualClock()
    private let count = Counter()

    private func cache(maxAge: MaxAge = .unlimited) -> MemoryCache<Int, String> { .inTime(time, maxAge: maxAge) }

    /// Calls the synchronous form, which the compiler prefers in no task.
    private func onThisThread(
        _ cache: MemoryCache<Int, String>, _ generate: (Int) throws -> String
    ) throws -> String { try cache.value(forKey: 1, generate: generate) }

    @Test func `one load serves all callers, and a hit loads nothing`() async throws {
        let (cache, gate) = (cache(), LoadGate())
        let callers = (0..<20).map { _ in
            Task {
                try await cache.value(forKey: 1) { [count] key in
                    try await gate.waitInTask()
                    return "\(key) \(count.increment())"
                }
            }
        }
        try await Waiting.until { cache.waitingCallers == 20 }
        gate.open()
        for caller in callers { #expect(try await caller.value == "1 1") }
        #expect(try await cache.value(forKey: 1) { _ in "again" } == "1 1" && cache[1] == "1 1")
        #expect(count.value == 1)
        try await Waiting.until { cache.watchedKeyCount == 0 }
    }

    @Test func `of many loads those of keys that were written store nothing, in whatever order they end`() async throws
    {
        let cache = MemoryCache<Int, String>.inTime(time)
        let gates = (0..<200).map { _ in LoadGate() }
        let callers = gates.enumerated().map { key, gate in
            Task {
                try await cache.value(forKey: key) { _ in
                    try await gate.waitInTask()
                    return "loaded"
                }
            }
        }
        try await Waiting.until { cache.watchedKeyCount == 200 }
        for key in stride(from: 0, to: 200, by: 3) { cache[key] = "set" }
        for key in stride(from: 1, to: 200, by: 3) { cache[key] = nil }
        for key in (0..<200).shuffled() {
            gates[key].open()
            _ = try await callers[key].value
        }
        try await Waiting.until { cache.watchedKeyCount == 0 }
        for key in 0..<200 { #expect(cache[key] == (key % 3 == 0 ? "set" : key % 3 == 1 ? nil : "loaded"), "\(key)") }
        cache.checkInvariants()
    }

    @Test func `keys with one hash are watched apart`() throws {
        let cache = MemoryCache<CollidingKey, Int>.inTime(time)
        let keys = (0..<6).map { CollidingKey(number: $0) }
        for key in keys { cache[key] = key.number }
        let removed = cache.removeAll { key, value in
            // A write of the key itself keeps the entry, one of another key does not.
            if value == 2 { cache[key] = 20 }
            if value == 3 { cache.update(keys[4]) { $0 = 40 } }
            return value != 0
        }
        #expect(removed == 3 && cache.watchedKeyCount == 0)
        #expect(cache[keys[0]] == 0 && cache[keys[2]] == 20 && cache[keys[4]] == 40 && cache.count == 3)
    }

    @Test func `on threads one load serves all callers too`() throws {
        let (cache, gate) = (cache(), LoadGate())
        let callers = (0..<8).map { _ in
            SideThread {
                try cache.value(forKey: 1) { [count] _ in
                    try gate.wait()
                    return "\(count.increment())"
                }
            }
        }
        try Waiting.until { cache.waitingCallers == 7 }
        gate.open()
        for caller in callers { #expect(try caller.value() == "1") }
    }

    @Test func `an error reaches the callers and is not stored`() async throws {
        let cache = cache()
        #expect(throws: Failure.self) { try onThisThread(cache) { _ in throw Failure() } }
        await #expect(throws: Failure.self) { try await cache.value(forKey: 1) { _ async throws in throw Failure() } }
        #expect(cache.isEmpty)
        try await Waiting.until { cache.watchedKeyCount == 0 }
        #expect(try onThisThread(cache) { _ in "good" } == "good")
    }

    /// The writes that a load must not undo.
    enum Overtaking: CaseIterable {
        case set, remove, removeMany, removeAll, removeWhere, update, updateAbsent, setMany, removeAbsent

        func run(_ cache: MemoryCache<Int, String>) {
            switch self {
            case .set: cache[1] = "new"
            case .remove: (cache[1], cache[1]) = ("new", nil)
            case .removeMany: cache.removeValues(forKeys: [1])
            case .removeAll: cache.removeAll()
            case .removeWhere:
                cache[1] = "new"
                cache.removeAll { _, _ in true }
            case .update: cache.update(1) { $0 = "new" }
            case .updateAbsent: cache.update(1) { $0 = nil }
            case .setMany: cache.setValues([1: "new"])
            case .removeAbsent: cache.removeValue(forKey: 1)
            }
        }

        var left: String? { [.set, .update, .setMany].contains(self) ? "new" : nil }
    }

    @Test(arguments: Overtaking.allCases)
    func `a load does not undo what overtakes it, and later callers do not join it`(change: Overtaking) async throws {
        let (cache, gate) = (cache(), LoadGate())
        let first = Task {
            try await cache.value(forKey: 1) { _ in
                try await gate.waitInTask()
                return "old"
            }
        }
        try await Waiting.until { cache.watchedKeyCount == 1 }
        change.run(cache)
        #expect(cache[1] == change.left)
        let later = try await cache.value(forKey: 1) { _ async in "later" }
        #expect(later == change.left ?? "later")
        gate.open()
        #expect(try await first.value == "old")
        #expect(cache[1] == later)
        try await Waiting.until { cache.watchedKeyCount == 0 }
        cache.checkInvariants()
    }

    @Test func `expiry and eviction of other keys do not keep a load from storing`() async throws {
        let (cache, gate) = (cache(maxAge: .seconds(10)), LoadGate())
        cache[2] = "two"
        let load = Task {
            try await cache.value(forKey: 1) { _ in
                try await gate.waitInTask()
                return "one"
            }
        }
        try await Waiting.until { cache.watchedKeyCount == 1 }
        time.advance(by: .seconds(30))
        cache.trim(toCount: 0)
        gate.open()
        #expect(try await load.value == "one" && cache[1] == "one")
    }

    @Test func `a caller that is cancelled leaves, and the last one cancels the load, which stores nothing`()
        async throws
    {
        let (cache, gate, ended) = (cache(), LoadGate(), LoadGate())
        let callers = (0..<2).map { _ in
            Task {
                try await cache.value(forKey: 1) { _ in
                    while !gate.isOpen { await Task.yield() }
                    ended.open()
                    return Task.isCancelled ? "cancelled" : "not"
                }
            }
        }
        try await Waiting.until { cache.waitingCallers == 2 }
        for caller in callers {
            caller.cancel()
            await #expect(throws: CancellationError.self) { try await caller.value }
        }
        gate.open()
        try await ended.waitInTask()
        try await Waiting.until { cache.watchedKeyCount == 0 }
        #expect(cache.isEmpty)
    }

    @Test func `a load that asks for its own key is refused`() async throws {
        let cache = cache()
        let error = #expect(throws: CacheError.self) {
            try onThisThread(cache) { _ in try cache.value(forKey: 2) { _ in try cache.value(forKey: 1) { _ in "" } } }
        }
        #expect(error?.code == .recursiveGeneration && error?.message.contains("key \"1\" of a memory cache") == true)
        await #expect(throws: CacheError.self) {
            try await cache.value(forKey: 1) { _ in try await cache.value(forKey: 1) { _ async in "" } }
        }
        #expect(cache.isEmpty)
        try await Waiting.until { cache.watchedKeyCount == 0 }
    }

    @Test func `of two loads of a key what is stored first stays`() async throws {
        let (cache, gate) = (cache(), LoadGate())
        let task = Task {
            try await cache.value(forKey: 1) { _ in
                try await gate.waitInTask()
                return "task"
            }
        }
        try await Waiting.until { cache.watchedKeyCount == 1 }
        // A synchronous call waits for no asynchronous load.
        #expect(try onThisThread(cache) { _ in "thread" } == "thread")
        gate.open()
        #expect(try await task.value == "task" && cache[1] == "thread")
    }

    // MARK: Generators

    @Test func `a generator loads what is missing, and serves stale values while one refresh runs`() async throws {
        let cache = cache(maxAge: .seconds(10))
        let generator = cache.generator(.init(staleFor: .seconds(60))) { [count] _ in "\(count.increment())" }
        #expect(try await generator(1) == "1")
        #expect(try await generator(1) == "1")
        time.advance(by: .seconds(30))
        #expect(cache[1] == nil && cache.count == 1)
        #expect(try await generator(1) == "1")
        try await Waiting.until { cache[1] == "2" }
        time.advance(by: .seconds(200))
        #expect(cache.isEmpty)
        #expect(try await generator(1) == "3")
    }

    @Test func `a stale value is served on an error, as long as the policy says`() async throws {
        let (cache, fails) = (cache(maxAge: .seconds(10)), LoadGate())
        let generator = cache.generator(.init(staleOnError: .seconds(60))) { _ in
            if fails.isOpen { throw Failure() }
            return "good"
        }
        #expect(try await generator(1) == "good")
        fails.open()
        time.advance(by: .seconds(70))
        #expect(try await generator(1) == "good")
        time.mislead(by: .milliseconds(1))
        await #expect(throws: Failure.self) { try await generator(1) }
        #expect(cache.isEmpty)
    }

    @Test func `a value is refreshed ahead of its end, also one with an age of its own`() async throws {
        let cache = cache(maxAge: .seconds(100))
        let generator = cache.generator(.init(refreshAhead: 0.5)) { key in "new \(key)" }
        cache[1] = "old"
        cache.setValue("old", forKey: 2, maxAge: .seconds(10))
        time.advance(by: .seconds(4))
        #expect(try await [generator(1), generator(2)] == ["old", "old"])
        #expect(cache[1] == "old" && cache[2] == "old")
        time.advance(by: .seconds(1))
        #expect(try await [generator(1), generator(2)] == ["old", "old"])
        try await Waiting.until { cache[2] == "new 2" }
        #expect(cache[1] == "old")
        time.advance(by: .seconds(45))
        #expect(try await generator(1) == "old")
        try await Waiting.until { cache[1] == "new 1" }
    }

    @Test(arguments: [
        GenerationPolicy(staleFor: .seconds(-1)), .init(staleOnError: .seconds(-1)), .init(refreshAhead: -0.1),
        .init(refreshAhead: .share(.nan)),
    ])
    func `a policy that makes no sense is refused`(policy: GenerationPolicy) async throws {
        let error = await #expect(throws: CacheError.self) { try await cache().generator(policy) { _ in "" }(1) }
        #expect(error?.code == .invalidConfiguration)
    }
}
