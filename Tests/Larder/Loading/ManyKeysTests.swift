import Foundation
import Larder
import LarderTestSupport
import Testing

/// Calls that load many keys as a policy says.
struct ManyKeysTests {
    private let bench: Workbench
    private let calls = Locked<[[Int]]>([])
    private let begun = LoadGate()
    private let gate = LoadGate()

    init() throws { bench = try Workbench() }

    private typealias Old = [Int: CacheEntry<Int, String>]
    private typealias Load = @Sendable ([Int], Old) async throws -> [Int: Generated<String>]

    /// A closure that notes its keys, and returns what another one has.
    private func load(
        waits: Bool = false, _ made: @escaping @Sendable (Int, CacheEntry<Int, String>?) throws -> Generated<String>?
    ) -> Load {
        { [calls, begun, gate] keys, old in
            calls.change { $0.append(keys.sorted()) }
            begun.open()
            if waits { try await gate.waitInTask() }
            return try keys.reduce(into: [:]) { $0[$1] = try made($1, old[$1]) }
        }
    }

    @Test func `each key has its own age, tags and extended data, and what has no answer has no value`() async throws {
        let cache = try bench.numbers()
        cache[1] = "one"
        let found = try await cache.values(
            forKeys: [1, 2, 3, 4, 2],
            generate: load { key, _ in
                switch key {
                case 2: .value("two", maxAge: .minutes(1), cost: 7, extendedData: Data([2]), tags: ["even"])
                case 3: Generated<String>.none(for: .seconds(10))
                default: nil
                }
            })
        #expect(found == [1: "one", 2: "two"] && calls.value == [[2, 3, 4]])
        let entry = try #require(try await cache.entry(forKey: 2))
        #expect(entry.extendedData == Data([2]) && entry.metadata.tags == ["even"] && entry.metadata.cost == 7)
        #expect(entry.metadata.expiresAt == entry.metadata.writtenAt.addingTimeInterval(60))
        // That 3 has no value is remembered, and that 4 had none is not.
        let again = try await cache.values(forKeys: 1...4, generate: load { key, _ in .value("\(key)") })
        #expect(again == [1: "one", 2: "two", 4: "4"] && calls.value.last == [4])
        bench.time.advance(by: .milliseconds(10_001))
        let third = try await cache.values(forKeys: 1...4, generate: load { key, _ in .value("\(key)") })
        #expect(third == [1: "one", 2: "two", 3: "3", 4: "4"] && calls.value.last == [3])
        #expect(try await cache.values(forKeys: [], generate: load { _, _ in nil }).isEmpty && calls.value.count == 3)
    }

    @Test func `old values are in hand, and are kept, replaced or removed each for itself`() async throws {
        let cache = try bench.numbers(.minutes(1))
        for key in 1...4 { try await cache.setValue("old \(key)", forKey: key, extendedData: Data([UInt8(key)])) }
        bench.time.advance(by: .seconds(61))
        let found = try await cache.values(
            forKeys: 1...5,
            generate: load { key, old in
                #expect(old?.value == (key == 5 ? nil : "old \(key)"))
                #expect(old?.extendedData == (key == 5 ? nil : Data([UInt8(key)])) && old?.isExpired != false)
                return switch key {
                case 1, 2: .notModified
                case 3: .value("new")
                case 4: Generated<String>.none(for: .hours(1))
                default: nil
                }
            })
        #expect(found == [1: "old 1", 2: "old 2", 3: "new"] && calls.value == [[1, 2, 3, 4, 5]])
        #expect(try await cache.snapshot() == [1: "old 1", 2: "old 2", 3: "new"])
        #expect(try await cache.extendedData(forKey: 2) == Data([2]))
        #expect(try await cache.entry(forKey: 4, allowingExpired: true) == nil)
        #expect(cache.statistics.writes == 5)
        let error = await #expect(throws: CacheError.self) {
            try await cache.values(forKeys: [6], generate: load { _, _ in .notModified })
        }
        #expect(error?.code == .invalidConfiguration && error?.message.contains("key \"6\"") == true)
    }

    @Test(arguments: [true, false])
    func `stale and due values are served at once, and one call refreshes them`(isInMemory: Bool) async throws {
        let cache = try bench.numbers(.minutes(1), CacheOptions(memory: isInMemory ? MemoryLimits() : .disabled))
        let policy = GenerationPolicy(staleFor: .seconds(600), refreshAhead: 0.5)
        for key in 1...3 { cache[key] = "old" }
        bench.time.advance(by: .seconds(50))
        cache[4] = "fresh"
        bench.time.advance(by: .seconds(11))
        cache[5] = "fresh"
        bench.time.advance(by: .seconds(25))
        // Expired, due after 36 of 60 seconds, and neither.
        let found = try await cache.values(
            forKeys: 1...5, policy: policy, generate: load { .value("\($0)", tags: ["\($1 != nil)"]) })
        #expect(found == [1: "old", 2: "old", 3: "old", 4: "fresh", 5: "fresh"])
        try await Waiting.until { cache.statistics.writes == 9 && !cache.isGenerating }
        #expect(Set(calls.value.flatMap { $0 }) == [1, 2, 3, 4])
        #expect(calls.value.count <= 2 && cache.statistics.staleHits == 3)
        #expect(try await cache.snapshot() == [1: "1", 2: "2", 3: "3", 4: "4", 5: "fresh"])
        #expect(try await cache.metadata(forKey: 4)?.tags == ["true"])
    }

    @Test func `the soft timeout holds if each missing key has an old value`() async throws {
        let cache = try bench.numbers(.minutes(1))
        let policy = GenerationPolicy(softTimeout: .milliseconds(200))
        defer { gate.open() }
        for key in 1...2 { cache[key] = "old" }
        bench.time.advance(by: .seconds(61))
        cache[3] = "live"
        let slow = load(waits: true) { key, _ in .value("\(key)") }
        async let first = cache.values(forKeys: 1...3, policy: policy, generate: slow)
        try await begun.waitInTask()
        try await Waiting.until { cache.waitingCallers == 1 }
        // A caller of a key without an old value waits.
        async let second = cache.values(forKeys: 1...4, policy: policy, generate: slow)
        try await Waiting.until { cache.waitingCallers == 2 }
        bench.time.advance(by: .milliseconds(200))
        #expect(try await first == [1: "old", 2: "old", 3: "live"])
        #expect(cache.statistics.staleHits == 2 && cache.statistics.loadTimeouts == 0)
        gate.open()
        #expect(try await second == [1: "1", 2: "2", 3: "live", 4: "4"])
        try await Waiting.until { !cache.isGenerating }
        #expect(calls.value.sorted { $0.count > $1.count } == [[1, 2], [4]])
        #expect(try await cache.snapshot() == [1: "1", 2: "2", 3: "live", 4: "4"])
    }

    @Test func `keys that are found to have no value do not wait for those that are late`() async throws {
        let cache = try bench.numbers(.minutes(1))
        let policy = GenerationPolicy(softTimeout: .milliseconds(200))
        defer { gate.open() }
        for key in 1...2 { cache[key] = "old" }
        bench.time.advance(by: .seconds(61))
        let slow = Task {
            try await cache.values(
                forKeys: [2], policy: policy, generate: load(waits: true) { key, _ in .value("\(key)") })
        }
        try await begun.waitInTask()
        try await Waiting.until { cache.waitingCallers == 1 }
        let none = load { _, _ in Generated<String>.none(for: .seconds(0)) }
        async let both = cache.values(forKeys: 1...2, policy: policy, generate: none)
        // The first is done, and the call waits for the second.
        try await Waiting.until { cache.waitingCallers == 2 && calls.value.contains([1]) }
        try await Waiting.asking { try await cache.entry(forKey: 1, allowingExpired: true) == nil }
        try await Waiting.until { cache.waitingCallers == 2 }
        bench.time.advance(by: .milliseconds(200))
        #expect(try await both == [2: "old"] && calls.value == [[2], [1]])
        #expect(try await slow.value == [2: "old"])
    }

    @Test func `after the timeout nothing is stored, and old values are served as the policy allows`() async throws {
        let cache = try bench.numbers(.minutes(1))
        let policy = GenerationPolicy(staleOnError: .seconds(600), timeout: .seconds(10))
        defer { gate.open() }
        for key in 1...2 { cache[key] = "old" }
        bench.time.advance(by: .seconds(61))
        let slow = load(waits: true) { key, _ in .value("\(key)") }
        async let old = cache.values(forKeys: 1...2, policy: policy, generate: slow)
        try await Waiting.until { cache.waitingCallers == 1 }
        bench.time.advance(by: .seconds(10))
        #expect(try await old == [1: "old", 2: "old"])
        let task = Task { try await cache.values(forKeys: 1...3, policy: policy, generate: slow) }
        try await Waiting.until { cache.waitingCallers == 1 }
        bench.time.advance(by: .seconds(10))
        let error = await #expect(throws: CacheError.self) { try await task.value }
        #expect(error?.code == .timedOut && error?.message.contains("Key \"1\" and 2 more of cache") == true)
        #expect(cache.statistics.loadTimeouts == 2 && cache.statistics.writes == 2)
    }

    @Test func `a load that fails serves old values if all keys have one, else its error`() async throws {
        let cache = try bench.numbers(.minutes(1))
        let policy = GenerationPolicy(staleOnError: .seconds(600))
        for key in 1...2 { cache[key] = "old" }
        bench.time.advance(by: .seconds(61))
        let broken = load { _, _ in throw Offline() }
        #expect(try await cache.values(forKeys: 1...2, policy: policy, generate: broken) == [1: "old", 2: "old"])
        await #expect(throws: Offline.self) { try await cache.values(forKeys: 1...3, policy: policy, generate: broken) }
        #expect(cache.statistics.loadFailures == 2 && cache.statistics.staleHits == 2)
    }

    @Test func `a write, a removal and the removal of a tag overtake their keys alone`() async throws {
        let cache = try bench.numbers()
        defer { gate.open() }
        let slow = load(waits: true) { key, _ in .value("\(key)", tags: key == 4 ? ["red"] : []) }
        async let all = cache.values(forKeys: 1...5, generate: slow)
        try await begun.waitInTask()
        cache[1] = "written"
        cache[2] = nil
        try await cache.removeAll(tagged: "red")
        gate.open()
        #expect(try await all == [1: "1", 2: "2", 3: "3", 4: "4", 5: "5"])
        #expect(try await cache.snapshot() == [1: "written", 3: "3", 5: "5"])
    }

    @Test func `calls share what they have in common, and a caller that leaves ends its own load`() async throws {
        let cache = try bench.numbers()
        defer { gate.open() }
        let slow = load(waits: true) { key, _ in .value("\(key)") }
        let first = Task { try await cache.values(forKeys: [1, 2], generate: slow) }
        try await begun.waitInTask()
        let second = Task { try await cache.values(forKeys: [2, 3], generate: slow) }
        try await Waiting.until { calls.value.count == 2 }
        #expect(calls.value == [[1, 2], [3]])
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        gate.open()
        #expect(try await second.value == [2: "2", 3: "3"])
        try await Waiting.until { !cache.isGenerating }
    }

    // MARK: Memory

    @Test func `a memory cache does the same`() async throws {
        let memory: MemoryCache<Int, String> = bench.time.memoryCache(maxAge: .minutes(1))
        memory[1] = "one"
        let policy = GenerationPolicy(staleOnError: .seconds(60))
        let found = try await memory.values(
            forKeys: [1, 2, 3, 4, 2], policy: policy,
            generate: load { key, old in
                #expect(old == nil)
                return switch key {
                case 2: .value("two", maxAge: .seconds(10), cost: 7)
                case 3: Generated<String>.none(for: .seconds(10))
                default: nil
                }
            })
        #expect(found == [1: "one", 2: "two"] && calls.value == [[2, 3, 4]] && memory.totalCost == 7)
        #expect(try await memory.values(forKeys: 1...4, generate: load { key, _ in .value("\(key)") }).count == 3)
        #expect(calls.value.last == [4])
        // A write ends what is known of a key, and a removal does.
        memory[3] = "three"
        memory[3] = nil
        bench.time.advance(by: .milliseconds(10_001))
        let second = try await memory.values(
            forKeys: 1...4,
            generate: load { key, old in
                if key == 2 { #expect(old?.value == "two" && old?.isExpired == true && old?.metadata.cost == 7) }
                return key == 2 ? .notModified : .value("new")
            })
        #expect(second == [1: "one", 2: "two", 3: "new", 4: "4"] && calls.value.last == [2, 3])
        // Its own age and cost have begun again.
        bench.time.advance(by: .seconds(10))
        #expect(memory[2] == "two" && memory.totalCost == 7)
        bench.time.advance(by: .milliseconds(1))
        #expect(memory[2] == nil)
        #expect(memory.statistics.loads == 6 && memory.statistics.loadTimes.count == 3)
    }

    @Test(arguments: [0, 1, 2, 3])
    func `what is known to be absent in a memory cache is forgotten by a write of any kind`(kind: Int) async throws {
        let memory: MemoryCache<Int, String> = bench.time.memoryCache()
        let none = memory.generator { _, _ in Generated<String>.none(for: .hours(1)) }
        let value = memory.generator { _, _ in .value("loaded") }
        #expect(try await none(1) == nil)
        #expect(try await value(1) == nil)
        switch kind {
        case 0: memory.removeValue(forKey: 1)
        case 1: memory.removeAll()
        case 2: memory.setValues([1: "set"])
        default: memory.update(1) { $0 = "set" }
        }
        memory.trim(toCount: 0)
        #expect(try await value(1) == "loaded")
    }

    @Test func `a memory cache serves stale values, refreshes many at once, and removes what has none`() async throws {
        let memory: MemoryCache<Int, String> = bench.time.memoryCache(maxAge: .minutes(1))
        let policy = GenerationPolicy(staleFor: .seconds(600))
        // Expired entries stay from now on.
        _ = try await memory.values(forKeys: [0], policy: policy, generate: load { _, _ in nil })
        for key in 1...3 { memory[key] = "old" }
        bench.time.advance(by: .seconds(61))
        let refresh = load { key, old in
            #expect(old?.value == "old")
            return key == 3 ? Generated<String>.none(for: .hours(1)) : .value("new")
        }
        let found = try await memory.values(forKeys: 1...3, policy: policy, generate: refresh)
        #expect(found == [1: "old", 2: "old", 3: "old"] && memory.statistics.staleHits == 3)
        try await Waiting.until { memory[1] == "new" && memory[2] == "new" }
        #expect(calls.value.last == [1, 2, 3])
        #expect(try await memory.values(forKeys: 1...3, policy: policy, generate: refresh) == [1: "new", 2: "new"])
        #expect(calls.value.count == 2 && memory.count == 2)
    }

    @Test func `a memory cache refuses what it does not keep`() async throws {
        let memory: MemoryCache<Int, String> = bench.time.memoryCache()
        for made in [Generated.value("1", tags: ["red"]), .value("1", extendedData: Data()), .notModified] {
            let error = await #expect(throws: CacheError.self) {
                try await memory.values(forKeys: [1]) { _, _ in [1: made] }
            }
            #expect(error?.code == .invalidConfiguration && error?.message.contains("key \"1\"") == true)
        }
        #expect(memory.isEmpty && memory.statistics.loadFailures == 3 && memory.watchedKeyCount == 0)
    }

    @Test func `a memory cache gathers calls for single keys`() async throws {
        let memory: MemoryCache<Int, String> = bench.time.memoryCache()
        let value = memory.batching(limit: 3) { [calls] keys in
            calls.change { $0.append(keys.sorted()) }
            return Dictionary(uniqueKeysWithValues: keys.map { ($0, .value("\($0)")) })
        }
        let found = try await withThrowingTaskGroup(of: String?.self) { group in
            for key in 1...3 { group.addTask { try await value(key) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(found) == ["1", "2", "3"] && calls.value == [[1, 2, 3]] && memory.count == 3)
    }
}
