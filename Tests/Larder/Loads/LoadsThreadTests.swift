import Dispatch
import Larder
import LarderTestSupport
import Testing

/// Synchronous callers, and those who ask for many keys.
struct LoadsThreadTests {
    private struct Failure: Error, Equatable {}

    private let cache = LoadCache()
    private let gate = LoadGate()
    private let runs = Counter()

    @Test func `threads wait for one another's generation`() async throws {
        let (cache, gate) = (cache, gate)
        async let first = onThread {
            try cache.syncValue(1) { _ in
                gate.block()
                return "first"
            }
        }
        try await cache.waiting(1)
        async let second = onThread { try cache.syncValue(1) { _ in "second" } }
        try await cache.waiting(2)
        gate.open()
        #expect(try await [first, second] == ["first", "first"])
    }

    @Test func `inside a task the own closure runs, and what is stored first stays`() async throws {
        let (cache, gate) = (cache, gate)
        async let first = cache.value(1) { _ in
            try await gate.pass()
            return "first"
        }
        try await cache.waiting(1)
        // The gate is closed, so this does not wait.
        #expect(try await Task { try cache.syncValue(1) { _ in "second" } }.value == "second")
        gate.open()
        _ = try await first
        try await Waiting.until { cache.loads.isIdle }
        #expect(cache[1] == "second")
    }

    @Test func `of two results for one key the one that is stored first stays`() async throws {
        let (cache, gate, made) = (cache, gate, LoadGate())
        async let first = cache.value(1) { _ in
            try await made.pass()
            return "first"
        }
        try await cache.waiting(1)
        let second = Task(executorPreference: QueueExecutor()) {
            try cache.syncValue(1) { _ in
                gate.block()
                return "second"
            }
        }
        try await cache.waiting(2)
        made.open()
        #expect(try await first == "first")
        gate.open()
        _ = try await second.value
        #expect(cache[1] == "first")
    }

    @Test func `more tasks than the pool has threads make values in synchronous calls`() async throws {
        let (cache, gate) = (cache, gate)
        async let slow = cache.value(1) { _ in
            try await gate.pass()
            return "slow"
        }
        try await cache.waiting(1)
        try await withThrowingTaskGroup(of: String.self) { group in
            for task in 0..<64 {
                group.addTask {
                    try cache.syncValue(1) { key in try cache.syncValue(2 + task % 3) { "\($0)" } + "\(key)" }
                }
            }
            for try await value in group { #expect(value.hasSuffix("1")) }
        }
        gate.open()
        _ = try await slow
    }

    // MARK: - Many keys

    @Test func `one call makes all that is missing`() async throws {
        let (cache, runs) = (cache, runs)
        cache[2] = "two"
        let values = try await cache.values([1, 2, 3, 1, 4]) { keys in
            runs.increment()
            #expect(keys == [1, 3, 4])
            return [1: "one", 3: "three", 9: "nobody asked"]
        }
        #expect(values == [1: "one", 2: "two", 3: "three"])
        #expect(cache[4] == nil && runs.value == 1 && cache.storings.value == 1)
        let others = try cache.syncValues([4, 3, 5]) { keys in
            #expect(keys == [4, 5])
            return [4: "four", 5: "five"]
        }
        #expect(others == [3: "three", 4: "four", 5: "five"])
        #expect(try cache.syncValues([]) { _ in throw Failure() }.isEmpty)
        #expect(try await cache.values([1, 2]) { _ in throw Failure() } == [1: "one", 2: "two"])
        #expect(cache.loads.isIdle)
    }

    @Test func `keys in flight are waited for, and the rest is made at once`() async throws {
        let (cache, gate) = (cache, gate)
        async let one = cache.value(1) { _ in
            try await gate.pass()
            return "one"
        }
        try await cache.waiting(1)
        let made = LoadGate()
        async let some = cache.values([1, 2, 3]) { keys in
            #expect(keys == [2, 3])
            try await made.pass()
            return [2: "two", 3: "three"]
        }
        try await cache.waiting(2)
        async let two = cache.value(2) { _ in "mine" }
        try await cache.waiting(3)
        made.open()
        #expect(try await two == "two")
        gate.open()
        #expect(try await one == "one")
        #expect(try await some == [1: "one", 2: "two", 3: "three"])
    }

    @Test func `who waited for a key that a call for many did not make asks its own generator`() async throws {
        let (cache, gate) = (cache, gate)
        async let many = cache.values([1, 2]) { _ in
            try await gate.pass()
            return [2: "two"]
        }
        try await cache.waiting(1)
        async let one = cache.value(1) { _ in "one" }
        try await cache.waiting(2)
        gate.open()
        #expect(try await many == [2: "two"])
        #expect(try await one == "one")
    }

    // MARK: - Everything at once

    @Test func `cases 264, 265, 274: everything at once, from threads and tasks`() async throws {
        let cache = cache
        @Sendable func run(_ seed: UInt64) async throws {
            var random = Seeded(seed)
            for step in 0..<300 {
                let key = Int.random(in: 0..<8, using: &random)
                switch Int.random(in: 0..<9, using: &random) {
                case 0: cache[key] = "\(key)"
                case 1: cache[key] = nil
                case 2: if step % 16 == 0 { cache.removeAll() }
                case 3: #expect(try Self.sync(cache, key) == "\(key)")
                case 4: #expect(try await onThread { try Self.sync(cache, key) } == "\(key)")
                case 5:
                    let values = try await cache.values([key, key + 1, key + 2]) { keys in
                        await Task.yield()
                        return Dictionary(uniqueKeysWithValues: keys.map { ($0, "\($0)") })
                    }
                    #expect(values.count == 3 && values.allSatisfy { "\($0)" == $1 })
                case 6:
                    let task = Task { try await cache.value(key) { "\($0)" } }
                    if step % 2 == 0 { task.cancel() }
                    _ = await task.result
                default:
                    let value = try await cache.value(key) { key in
                        await Task.yield()
                        if key < 6 { _ = try await cache.value(key + 2) { "\($0)" } }
                        return "\(key)"
                    }
                    #expect(value == "\(key)")
                }
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for seed in 0..<8 { group.addTask { try await run(UInt64(seed)) } }
            try await group.waitForAll()
        }
        try await Waiting.until { cache.loads.isIdle }
        #expect(cache.loads.waitingCount == 0)
    }

    private static func sync(_ cache: LoadCache, _ key: Int) throws -> String {
        try cache.syncValue(key) { key in
            if key < 6 { _ = try cache.syncValue(key + 2) { "\($0)" } }
            return "\(key)"
        }
    }
}
