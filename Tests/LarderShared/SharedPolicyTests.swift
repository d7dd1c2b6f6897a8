import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// Loads of shared caches as a policy says.
struct SharedPolicyTests {
    private let clock = ManualClock()
    private let loads = Locked<[[String]]>([])

    private func nodes(_ count: Int, options: SharedOptions = TestNode.options) async throws -> [TestNode] {
        var nodes: [TestNode] = []
        for tier in MemorySharedTier.nodes(count, clock) {
            nodes.append(try await TestNode(tier, on: TemporaryStore(clock: clock), options: options))
        }
        return nodes
    }

    /// Asks a node for keys, and notes which of them it loads.
    private func values(
        _ node: TestNode, _ keys: [String], _ policy: GenerationPolicy = .init(),
        _ made: @escaping @Sendable (String, CacheEntry<String, String>?) -> Generated<String>?
    ) async throws -> [String: String] {
        try await node.shared.values(forKeys: keys, policy: policy) { [loads] keys, old in
            loads.change { $0.append(keys.sorted()) }
            return keys.reduce(into: [:]) { $0[$1] = made($1, old[$1]) }
        }
    }

    @Test func `many keys are loaded once for all nodes, each with what belongs to it`() async throws {
        let nodes = try await nodes(2)
        for node in nodes {
            let found = try await values(node, ["a", "b", "c", "d"]) { key, _ in
                switch key {
                case "a": .value("one", maxAge: .minutes(1), tags: ["red"])
                case "b": .value("two")
                case "c": Generated<String>.none(for: .hours(1))
                default: nil
                }
            }
            #expect(found == ["a": "one", "b": "two"])
        }
        // That there is no "c" is known to the other, and nothing is known of "d".
        #expect(loads.value == [["a", "b", "c", "d"], ["d"]])
        let metadata = try await nodes[1].cache.metadata(forKey: "a")
        #expect(metadata?.tags == ["red"])
        clock.advance(by: .seconds(61))
        let renewed = try await values(nodes[0], ["a", "b"]) { key, old in
            key == "a" && old?.value == "one" ? .notModified : nil
        }
        #expect(renewed == ["a": "one", "b": "two"] && loads.value.last == ["a"])
        #expect(try await nodes[1].get("a") == "one")
    }

    @Test func `the rule of a cache gives its attributes to all nodes`() async throws {
        var stores: [TemporaryStore] = []
        var nodes: [(shared: SharedCache<String, String>, cache: Cache<String, String>)] = []
        for tier in MemorySharedTier.nodes(2, clock) {
            let store = try TemporaryStore(clock: clock)
            stores.append(store)
            let cache: Cache<String, String> = try await store.manager().cache(
                named: "values", version: "1", maxAge: .days(1),
                attributes: { _, value in EntryAttributes(tags: ["of:\(value)"], maxAge: .minutes(1)) })
            nodes.append((try await cache.shared(through: tier, options: TestNode.options), cache))
        }
        try await nodes[0].shared.setValue("red", forKey: "a")
        try await nodes[0].shared.setValue("red", forKey: "b", maxAge: .hours(1), tags: ["own"])
        _ = try await nodes[0].shared.value(forKey: "c") { _ in "red" }
        for key in ["a", "b", "c"] { #expect(try await nodes[1].shared.value(forKey: key) == "red") }
        for node in nodes {
            #expect(try await node.cache.keys(tagged: "of:red").sorted() == ["a", "c"])
            #expect(try await node.cache.keys(tagged: "own") == ["b"])
        }
        clock.advance(by: .seconds(61))
        #expect(try await nodes[1].shared.value(forKey: "a") == nil)
        #expect(try await nodes[1].shared.value(forKey: "b") == "red")
        try await nodes[1].shared.removeAll(tagged: "own")
        try await Waiting.asking { try await nodes[0].shared.value(forKey: "b") == nil }
        withExtendedLifetime(stores) {}
    }

    @Test func `one node refreshes ahead for all`() async throws {
        let nodes = try await nodes(3)
        let policy = GenerationPolicy(refreshAhead: 0.5)
        for node in nodes { #expect(try await values(node, ["a"]) { _, _ in .value("old") } == ["a": "old"]) }
        #expect(loads.value.count == 1)
        clock.advance(by: .seconds(43_200))
        let found = try await values(nodes[0], ["a"], policy) { _, old in .value("new of \(old?.value ?? "")") }
        #expect(found == ["a": "old"])
        try await Waiting.asking { try await nodes[0].inTier("a") == "new of old" }
        try await Waiting.until { nodes[0].cache["a"] == "new of old" && !nodes[0].cache.isGenerating }
        // The others take what the first has loaded.
        for node in nodes[1...] {
            #expect(try await values(node, ["a"], policy) { _, _ in .value("wrong") } == ["a": "old"])
            try await Waiting.until { node.cache["a"] == "new of old" && !node.cache.isGenerating }
        }
        #expect(loads.value.count == 2)
        // The new one is not due.
        #expect(try await values(nodes[2], ["a"], policy) { _, _ in .value("wrong") } == ["a": "new of old"])
        #expect(loads.value.count == 2 && !nodes[2].cache.isGenerating)
    }

    @Test func `a refresh that fails leaves the entry of the tier, and one that a removal has overtaken does not`()
        async throws
    {
        let nodes = try await nodes(2)
        let policy = GenerationPolicy(refreshAhead: 0.5)
        try await nodes[0].shared.setValue("old", forKey: "a")
        clock.advance(by: .seconds(43_200))
        let failing = nodes[0].shared.generator(policy) { _ in throw TestNode.Broken() }
        #expect(try await failing("a") == "old")
        try await Waiting.until { nodes[0].cache.statistics.loadFailures == 1 }
        try await Waiting.asking { try await nodes[0].inTier("a") == "old" }
        #expect(try await nodes[1].get("a") == "old")
        let end = try await nodes[1].cache.metadata(forKey: "a")?.expiresAt
        #expect(end.map { abs($0.timeIntervalSince(clock.now) - 43_200) < 1 } == true)

        let (begun, gate) = (LoadGate(), LoadGate())
        defer { gate.open() }
        let removed = nodes[0].shared.generator(policy) { _ in
            begun.open()
            try await gate.waitInTask()
            throw TestNode.Broken()
        }
        #expect(try await removed("a") == "old")
        try await begun.waitInTask()
        try await nodes[1].shared.removeValue(forKey: "a")
        gate.open()
        try await Waiting.until { nodes[0].cache.statistics.loadFailures == 2 }
        try await nodes[0].shared.catchUp()
        #expect(try await nodes[0].inTier("a") == nil)
        #expect(try await nodes[0].get("a") == nil)
    }

    @Test func `a look is no load, and an old value that is still good keeps its refresh time`() async throws {
        let node = try await nodes(1)[0]
        #expect(try await node.get("a") == nil)
        #expect(node.cache.statistics.loads == 0 && node.cache.statistics.loadTimes.count == 0)
        let value = node.shared.generator { _, old in
            old == nil ? .value("one", refreshAfter: .seconds(60)) : .notModified
        }
        #expect(try await value("a") == "one")
        for number in 2...3 {
            clock.advance(by: .seconds(61))
            #expect(try await value("a") == "one")
            try await Waiting.until { node.cache.statistics.loads == number && !node.cache.isGenerating }
        }
        #expect(node.cache.statistics.loadTimes.count == 3)
    }

    @Test func `a timeout bounds the calls of a node whose tier is silent`() async throws {
        var options = TestNode.options
        options.maxSilence = .zero
        let tier = MemorySharedTier()
        let node = try await TestNode(tier, options: options)
        try await node.shared.setValue("copy", forKey: "a")
        tier.isAvailable = false
        try await Waiting.until { node.shared.health != .current }
        let (begun, gate) = (LoadGate(), LoadGate())
        defer { gate.open() }
        let policy = GenerationPolicy(
            staleFor: .seconds(99), staleOnError: .seconds(99), softTimeout: .seconds(1), timeout: .seconds(10))
        let value = node.shared.generator(policy) { _ in
            begun.open()
            try await gate.waitInTask()
            return "loaded"
        }
        let isEnded = Locked(false)
        let task = Task {
            defer { isEnded.change { $0 = true } }
            return try await value("a")
        }
        try await begun.waitInTask()
        // No copy of a silent node is served. The timer of the load may come a little after the load has begun.
        try await Waiting.until {
            node.store.clock.advance(by: .seconds(10))
            return isEnded.value
        }
        let error = await #expect(throws: CacheError.self) { try await task.value }
        #expect(error?.code == .timedOut)
    }

    @Test func `code for tasks runs with a shared cache`() async throws {
        func tries(_ cache: some AsyncKeyedCache<String, String>) async throws {
            try await cache.setValue("one", forKey: "a")
            #expect(try await cache.value(forKey: "a") == "one")
            #expect(try await cache.value(forKey: "b") { "loaded \($0)" } == "loaded b")
            try await cache.setValue(nil, forKey: "a")
            #expect(try await !cache.contains("a"))
            try await cache.removeAll()
            #expect(try await cache.value(forKey: "b") == nil)
        }
        try await tries(try await nodes(1)[0].shared)
    }

    @Test func `callers of a generator have the value before the tier has it`() async throws {
        var options = TestNode.options
        options.waits = false
        let node = try await nodes(1, options: options)[0]
        let gate = LoadGate()
        node.tier.before(.store) { try await gate.waitInTask() }
        let value = node.shared.generator { "loaded \($0)" }
        #expect(try await value("a") == "loaded a")
        #expect(try await node.inTier("a") == nil && node.shared.statistics.stores == 0)
        gate.open()
        try await Waiting.asking { try await node.inTier("a") == "loaded a" }
        try await Waiting.until { node.cache["a"] == "loaded a" }
    }
}
