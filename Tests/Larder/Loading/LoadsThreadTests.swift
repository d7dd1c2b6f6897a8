import Foundation
import Larder
import LarderTestSupport
import Testing

/// Loads of threads and of tasks side by side, and calls for many keys that share loads with others.
struct LoadsThreadTests {
    private let bench: Workbench
    private let begun = LoadGate()
    private let gate = LoadGate()

    init() throws { bench = try Workbench() }

    // MARK: - Threads

    @Test func `a thread runs its own closure while a task loads the key, and the first result stays`() async throws {
        let cache = try bench.numbers()
        async let first = LoadForm.valueInTask.load("first", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        // The gate is closed, so a thread that joined would wait.
        #expect(try await onThread { try cache.value(forKey: 1) { _ in "second" } } == "second")
        #expect(cache[1] == "second")
        gate.open()
        #expect(try await first == "first")
        #expect(cache[1] == "second" && cache.statistics.writes == 1)
        try expectInvariants(cache)
    }

    @Test func `a thread whose result comes second gets its own value, and the first one stays`() async throws {
        let cache = try bench.numbers()
        let (ownBegun, ownGate) = (LoadGate(), LoadGate())
        async let first = LoadForm.valueInTask.load("first", in: cache, begun: begun, gate: gate)
        async let second = LoadForm.value.load("second", in: cache, begun: ownBegun, gate: ownGate)
        defer {
            gate.open()
            ownGate.open()
        }
        try await begun.waitInTask()
        try await ownBegun.waitInTask()
        gate.open()
        #expect(try await first == "first")
        #expect(cache[1] == "first")
        ownGate.open()
        #expect(try await second == "second")
        #expect(cache[1] == "first" && cache.statistics.writes == 1)
        try expectInvariants(cache)
    }

    @Test func `inside a load a thread runs its own closure while another thread loads the key`() async throws {
        let cache = try bench.numbers()
        async let one = LoadForm.value.load("one", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        let inner = try await onThread {
            try cache.value(forKey: 2) { _ in try cache.value(forKey: 1) { _ in "inner" } }
        }
        #expect(inner == "inner" && cache[1] == "inner")
        gate.open()
        #expect(try await one == "one")
        #expect(cache[1] == "inner")
    }

    @Test func `two threads whose closures ask for each other's keys come to an end`() async throws {
        let cache = try bench.numbers()
        let running = Counter()
        @Sendable func load(_ key: Int, askingFor other: Int) throws -> String {
            try cache.value(forKey: key) { _ in
                running.increment()
                try Waiting.until { running.value == 2 }
                return try cache.value(forKey: other) { _ in "inner" } + ", outer"
            }
        }
        let threads = [SideThread { try load(1, askingFor: 2) }, SideThread { try load(2, askingFor: 1) }]
        let values = try await onThread { try threads.map { try $0.value() } }
        for value in values { #expect(value.hasSuffix(", outer")) }
        #expect(!cache.isGenerating)
        try expectInvariants(cache)
    }

    @Test func `more tasks than the pool has threads load values in synchronous calls`() async throws {
        let cache = try bench.numbers()
        async let slow = LoadForm.valueInTask.load("slow", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        @Sendable func load(_ task: Int) throws -> String {
            try cache.value(forKey: 1) { key in try cache.value(forKey: 2 + task % 3) { "\($0)" } + "\(key)" }
        }
        try await withThrowingTaskGroup(of: String.self) { group in
            for task in 0..<64 { group.addTask { try load(task) } }
            for try await value in group { #expect(value.hasSuffix("1")) }
        }
        gate.open()
        #expect(try await slow == "slow")
    }

    // MARK: - Many keys

    @Test(arguments: [false, true])
    func `a call for many keys loads and stores its own before it waits for the load of another thread`(
        isOnThread: Bool
    ) async throws {
        let cache = try bench.numbers()
        let asked = Told<[Int]>()
        let generate: @Sendable ([Int]) throws -> [Int: String] = { keys in
            asked.add(keys)
            return Dictionary(uniqueKeysWithValues: keys.map { ($0, "many") })
        }
        async let one = LoadForm.value.load("one", in: cache, begun: begun, gate: gate)
        let many = Task { () async throws -> [Int: String] in
            try await begun.waitInTask()
            if isOnThread { return try await onThread { try cache.values(forKeys: [1, 2, 3], generate: generate) } }
            return try await cache.values(forKeys: [1, 2, 3], generate: generate)
        }
        defer { gate.open() }
        try await Waiting.until { cache.waitingCallers == 1 && cache[3] == "many" }
        #expect(try await cache.snapshot() == [2: "many", 3: "many"])
        #expect(asked.all == [[2, 3]])
        gate.open()
        #expect(try await one == "one")
        #expect(try await many.value == [1: "one", 2: "many", 3: "many"])
        #expect(cache.statistics.writes == 3)
    }

    @Test func `callers join the load of one of many keys`() async throws {
        let cache = try bench.numbers()
        let (begun, gate) = (begun, gate)
        async let many = cache.values(forKeys: [1, 2]) { keys in
            begun.open()
            try await gate.waitInTask()
            return Dictionary(uniqueKeysWithValues: keys.map { ($0, "many") })
        }
        defer { gate.open() }
        try await begun.waitInTask()
        async let two = cache.value(forKey: 2) { _ in "two" }
        async let more = cache.values(forKeys: [2, 3, 1]) { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, "more") })
        }
        // The last one has loaded 3, and waits for the others.
        try await Waiting.until { cache.waitingCallers == 3 && cache[3] == "more" }
        gate.open()
        #expect(try await many == [1: "many", 2: "many"])
        #expect(try await two == "many")
        #expect(try await more == [1: "many", 2: "many", 3: "more"])
    }

    @Test func `of a load that a removal has overtaken at one key, later calls take the other keys alone`() async throws
    {
        let cache = try bench.numbers()
        let (begun, gate) = (begun, gate)
        async let old = cache.values(forKeys: [1, 2]) { keys in
            begun.open()
            try await gate.waitInTask()
            return Dictionary(uniqueKeysWithValues: keys.map { ($0, "old") })
        }
        defer { gate.open() }
        try await begun.waitInTask()
        try await cache.remove(2)
        async let new = cache.values(forKeys: [1, 2]) { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, "new") })
        }
        try await Waiting.until { cache.waitingCallers == 2 && cache[2] == "new" }
        gate.open()
        #expect(try await old == [1: "old", 2: "old"])
        #expect(try await new == [1: "old", 2: "new"])
        #expect(try await cache.snapshot() == [1: "old", 2: "new"])
    }

    @Test func `a caller that waits for a key for which a call for many loads nothing runs its own closure`()
        async throws
    {
        let cache = try bench.numbers()
        let (begun, gate) = (begun, gate)
        async let many = cache.values(forKeys: [1, 2]) { _ in
            begun.open()
            try await gate.waitInTask()
            return [2: "two"]
        }
        defer { gate.open() }
        try await begun.waitInTask()
        async let one = cache.value(forKey: 1) { _ in "one" }
        try await Waiting.until { cache.waitingCallers == 2 }
        gate.open()
        #expect(try await many == [2: "two"])
        #expect(try await one == "one")
        #expect(cache[1] == "one")
    }

    @Test func `a call for many keys that is cancelled leaves the loads that it has joined`() async throws {
        let cache = try bench.numbers()
        async let one = LoadForm.valueInTask.load("one", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        let many = Task { try await cache.values(forKeys: [1, 2]) { _ in [2: "two"] } }
        try await Waiting.until { cache.waitingCallers == 2 && cache[2] == "two" }
        many.cancel()
        await #expect(throws: CancellationError.self) { try await many.value }
        #expect(cache.waitingCallers == 1 && cache[2] == "two")
        gate.open()
        #expect(try await one == "one")
    }
}
