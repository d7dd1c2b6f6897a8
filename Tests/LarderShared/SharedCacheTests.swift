import Foundation
import Larder
import LarderLocks
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// What nodes that share a cache have of each other while the tier is there.
struct SharedCacheTests {
    private let clock = ManualClock()

    private func nodes(_ count: Int, options: SharedOptions = TestNode.options) async throws -> [TestNode] {
        var nodes: [TestNode] = []
        for tier in MemorySharedTier.nodes(count, clock) {
            nodes.append(try await TestNode(tier, on: TemporaryStore(clock: clock), options: options))
        }
        return nodes
    }

    // MARK: Loads

    @Test func `what one node has loaded the others have`() async throws {
        let nodes = try await nodes(2)
        #expect(try await nodes[0].shared.value(forKey: "a") { "loaded \($0)" } == "loaded a")
        let value = try await nodes[1].shared.value(forKey: "a") { _ in
            Issue.record("it was loaded again")
            return ""
        }
        #expect(value == "loaded a")
        // Each has a copy of its own.
        #expect(nodes[1].cache.memory["a"] == "loaded a")
        #expect(nodes[1].cache.disk["a"] == "loaded a")
        #expect(nodes[0].shared.statistics.stores == 1 && nodes[0].shared.statistics.misses == 1)
        #expect(nodes[1].shared.statistics.hits == 1 && nodes[1].shared.statistics.misses == 0)
        #expect(nodes[1].shared.health == .current)
    }

    @Test func `a hundred tasks on each of three nodes load a value once`() async throws {
        let nodes = try await nodes(3)
        let (gate, loads) = (LoadGate(), Counter())
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<300 {
                group.addTask {
                    try await nodes[number % 3].shared.value(forKey: "a") { _ in
                        loads.increment()
                        try await gate.waitInTask()
                        return "once"
                    }
                }
            }
            try await Waiting.until { nodes.reduce(0) { $0 + $1.cache.waitingCallers } == 300 && loads.value > 0 }
            try await Waiting.until { nodes.allSatisfy { $0.tier.count(of: .fetch) > 0 } }
            gate.open()
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(loads.value == 1 && values == ["once"])
    }

    @Test func `a load that fails or is cancelled lets another node load`() async throws {
        let nodes = try await nodes(2)
        let (gate, isWaiting) = (LoadGate(), LoadGate())
        let failing = Task {
            try await nodes[0].shared.value(forKey: "a") { _ in
                try await gate.waitInTask()
                throw GatedTier.Fault()
            }
        }
        try await Waiting.until { nodes[0].tier.count(of: .fetch) == 1 }
        nodes[1].tier.after(.fetch) { isWaiting.open() }
        let other = Task { try await nodes[1].shared.value(forKey: "a") { _ in "second" } }
        try await Waiting.until { isWaiting.isOpen }
        gate.open()
        await #expect(throws: GatedTier.Fault.self) { try await failing.value }
        #expect(try await other.value == "second")
        let cancelled = Task {
            try await nodes[0].shared.value(forKey: "b") { _ in
                try await LoadGate().waitInTask()
                return ""
            }
        }
        try await Waiting.until { nodes[0].cache.waitingCallers == 1 && nodes[0].tier.count(of: .fetch) == 2 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(try await nodes[1].shared.value(forKey: "b") { _ in "third" } == "third")
    }

    @Test func `many keys are looked for at once, and what is missing is loaded by one call`() async throws {
        let nodes = try await nodes(2)
        for key in ["a", "b"] { _ = try await nodes[0].shared.value(forKey: key) { "\($0) of 0" } }
        let asked = Mutex<[[String]]>([])
        let values = try await nodes[1].shared.values(forKeys: ["a", "b", "c", "d", "a"]) { keys in
            asked.withLock { $0.append(keys.sorted()) }
            return ["c": "c of 1"]
        }
        #expect(values == ["a": "a of 0", "b": "b of 0", "c": "c of 1"])
        #expect(asked.withLock { $0 } == [["c", "d"]])
        #expect(try await nodes[0].get("c") == "c of 1")
        // The lease of the key without a value was given back.
        #expect(try await nodes[0].shared.value(forKey: "d") { _ in "d of 0" } == "d of 0")
    }

    @Test func `many keys are set, looked for and asked for at once`() async throws {
        let nodes = try await nodes(2)
        let values = Dictionary(uniqueKeysWithValues: (0..<600).map { ("key \($0)", "\($0)") })
        try await nodes[0].shared.setValues(values, tags: ["red"])
        #expect(try await nodes[1].shared.values(forKeys: values.keys + ["none"]) == values)
        #expect(try await nodes[1].shared.contains("key 7"))
        #expect(try await nodes[1].shared.contains("none") == false)
        #expect(try await nodes[1].shared.values(forKeys: []) == [:])
        try await nodes[0].shared.removeAll(tagged: "red")
        try await nodes[1].catchUp()
        #expect(try await nodes[1].shared.values(forKeys: values.keys) == [:])
        await nodes[0].shared.close()
        await #expect(throws: CacheError.self) { try await nodes[0].shared.setValues(values) }
        await #expect(throws: CacheError.self) { try await nodes[0].shared.values(forKeys: values.keys) }
    }

    @Test func `nodes that load many keys in other orders do not wait for each other without end`() async throws {
        let nodes = try await nodes(2)
        let gates = [LoadGate(), LoadGate()]
        let loads = [["a", "b", "c"], ["c", "b", "a"]].enumerated().map { index, keys in
            Task {
                try await nodes[index].shared.values(forKeys: keys) { keys in
                    gates[index].open()
                    return Dictionary(uniqueKeysWithValues: keys.map { ($0, "of one") })
                }
            }
        }
        for load in loads { #expect(try await load.value.count == 3) }
    }

    @Test func `a node without its tier knows for no longer than it may that there is no value`() async throws {
        let tiers = MemorySharedTier.nodes(1, clock)
        var options = TestNode.options
        options.localMaxAge = .seconds(5)
        let node = try await TestNode(tiers[0], on: TemporaryStore(clock: clock), options: options)
        let loads = Counter()
        let load: @Sendable (String, CacheEntry<String, String>?) async throws -> Generated<String> = { _, _ in
            loads.increment()
            return .none(for: .hours(1))
        }
        _ = try await node.shared.value(forKey: "a", generate: load)
        tiers[0].isAvailable = false
        clock.advance(by: .seconds(4))
        #expect(try await node.shared.value(forKey: "a", generate: load) == nil && loads.value == 1)
        clock.advance(by: .seconds(2))
        #expect(try await node.shared.value(forKey: "a", generate: load) == nil && loads.value == 2)
    }

    @Test func `that there is no value is known to the others, for its time`() async throws {
        let nodes = try await nodes(2)
        let loads = Counter()
        let load: @Sendable (String, CacheEntry<String, String>?) async throws -> Generated<String> = { _, _ in
            loads.increment()
            return .none(for: .seconds(60))
        }
        for node in nodes { #expect(try await node.shared.value(forKey: "a", generate: load) == nil) }
        #expect(try await nodes[1].shared.value(forKey: "a", generate: load) == nil)
        #expect(loads.value == 1)
        clock.advance(by: .seconds(61))
        #expect(try await nodes[1].shared.value(forKey: "a", generate: load) == nil)
        #expect(loads.value == 2)
        // A call that needs a value loads one.
        #expect(try await nodes[0].shared.value(forKey: "a") { _ in "new" } == "new")
        // The other node knows for a minute that there is none.
        #expect(try await nodes[1].shared.value(forKey: "a", generate: load) == nil)
        clock.advance(by: .seconds(61))
        #expect(try await nodes[1].shared.value(forKey: "a", generate: load) == "new")
        #expect(loads.value == 2)
    }

    @Test func `an old value that is still good is given to the others`() async throws {
        let nodes = try await nodes(2)
        try await nodes[0].shared.setValue("old", forKey: "a", extendedData: Data([7]), tags: ["red"])
        try await nodes[1].catchUp()
        clock.advance(by: .seconds(86_401))
        let entry = try await nodes[0].shared.entry(forKey: "a") { _, old in
            #expect(old?.value == "old" && old?.extendedData == Data([7]))
            return .notModified
        }
        #expect(entry.value == "old" && entry.metadata.tags == ["red"])
        #expect(try await nodes[1].get("a") == "old")
        let copy = try await nodes[1].cache.entry(forKey: "a")
        #expect(copy?.extendedData == Data([7]) && copy?.metadata.tags == ["red"])
    }

    @Test func `a generator serves stale values and loads once for all nodes`() async throws {
        let nodes = try await nodes(2)
        let loads = Counter()
        let load = nodes.map { node in
            node.shared.generator(GenerationPolicy(staleFor: .seconds(60))) { _ in
                loads.increment()
                return "\(loads.value)"
            }
        }
        #expect(try await load[0]("a") == "1")
        #expect(try await load[1]("a") == "1")
        clock.advance(by: .seconds(86_401))
        #expect(try await load[0]("a") == "1")
        try await Waiting.until { loads.value == 2 && !nodes[0].cache.isGenerating }
        #expect(try await load[0]("a") == "2")
        clock.advance(by: .seconds(61))
        #expect(try await load[1]("a") == "2")
        #expect(loads.value == 2)
    }

    // MARK: Writes and removals

    @Test func `a write and a removal reach the others`() async throws {
        let nodes = try await nodes(2)
        try await nodes[0].shared.setValue("one", forKey: "a", tags: ["red"])
        #expect(try await nodes[1].get("a") == "one")
        try await nodes[1].catchUp()
        try await nodes[1].shared.setValue("two", forKey: "a", tags: ["red"])
        #expect(nodes[1].cache["a"] == "two")
        try await Waiting.until { nodes[0].cache["a"] == nil }
        #expect(try await nodes[0].get("a") == "two")
        try await nodes[0].shared.removeValue(forKey: "a")
        #expect(nodes[0].cache["a"] == nil)
        try await Waiting.until { nodes[1].cache["a"] == nil }
        #expect(try await nodes[1].get("a") == nil)
        try await nodes[0].shared.setValue("three", forKey: "a")
        try await nodes[0].shared.setValue(nil, forKey: "a")
        #expect(try await nodes[1].get("a") == nil)
    }

    @Test func `a tag, many keys and all are removed on all nodes`() async throws {
        let nodes = try await nodes(2)
        func fill() async throws {
            try await nodes[0].shared.setValue("1", forKey: "a", tags: ["red"])
            try await nodes[0].shared.setValue("2", forKey: "b", tags: ["red", "blue"])
            try await nodes[0].shared.setValue("3", forKey: "c")
            for key in ["a", "b", "c"] { #expect(try await nodes[1].get(key) != nil) }
        }
        func left() -> [[String]] { nodes.map { $0.cache.map(\.key).sorted() } }
        try await fill()
        try await nodes[1].shared.removeAll(tagged: "blue")
        try await Waiting.until { left() == [["a", "c"], ["a", "c"]] }
        try await nodes[1].shared.removeValues(forKeys: ["a", "c", "x"])
        try await Waiting.until { left() == [[], []] }
        try await fill()
        try await nodes[0].shared.removeAll()
        try await Waiting.until { left() == [[], []] }
        for key in ["a", "b", "c"] { #expect(try await nodes[1].get(key) == nil) }
    }

    @Test func `keys of any type, and tags in any form, are the same on all nodes`() async throws {
        struct Place: Codable, Hashable, Sendable { let x, y: Int }
        let tiers = MemorySharedTier.nodes(2)
        let managers = [try CacheManager.inMemory(), try CacheManager.inMemory()]
        var shared: [SharedCache<Place, Data>] = []
        for (manager, tier) in zip(managers, tiers) {
            let cache: Cache<Place, Data> = try await manager.cache(named: "a/%", version: "1", maxAge: .unlimited)
            shared.append(try await cache.shared(through: tier, options: TestNode.options))
        }
        let place = Place(x: -1, y: 2)
        try await shared[0].setValue(Data([1, 2]), forKey: place, tags: ["caf\u{e9}"])
        #expect(try await shared[1].value(forKey: place) == Data([1, 2]))
        try await shared[0].removeAll(tagged: "cafe\u{301}")
        try await Waiting.until { shared[1].local[place] == nil }
        #expect(try await shared[1].value(forKey: place) == nil)
    }

    // MARK: Ages

    @Test func `a copy has what was left of the age, and no more than the node allows`() async throws {
        let tiers = MemorySharedTier.nodes(3, clock)
        let a = try await TestNode(tiers[0], on: TemporaryStore(clock: clock))
        let b = try await TestNode(tiers[1], on: TemporaryStore(clock: clock))
        var options = TestNode.options
        options.localMaxAge = .seconds(5)
        let short = try await TestNode(tiers[2], on: TemporaryStore(clock: clock), options: options)
        try await a.shared.setValue("one", forKey: "a", maxAge: .seconds(60))
        // A message that comes behind a copy removes it.
        for node in [b, short] { try await node.catchUp() }
        clock.advance(by: .seconds(50))
        #expect(try await b.get("a") == "one")
        #expect(try await short.get("a") == "one")
        clock.advance(by: .seconds(6))
        #expect(b.cache["a"] == "one")
        #expect(short.cache["a"] == nil)
        clock.advance(by: .seconds(5))
        #expect(try await b.get("a") == nil)
        _ = try await short.shared.value(forKey: "b") { _ in "own" }
        try await short.shared.setValue("own", forKey: "c")
        clock.advance(by: .seconds(6))
        for key in ["b", "c"] {
            #expect(short.cache[key] == nil)
            #expect(try await a.get(key) == "own")
        }
        // An entry with an age of zero has expired on each node.
        try await a.shared.setValue("over", forKey: "c", maxAge: .seconds(0))
        #expect(try await short.get("c") == nil)
    }

    // MARK: Nonsense

    @Test func `an entry that does not decode is loaded again and stored over`() async throws {
        let nodes = try await nodes(2)
        let events = nodes[0].manager.events
        let space = SharedSpace("texts/1/\(ValueCodec<String>.standard.identifier)")
        let nonsense = SharedEntry(payload: Data([0xFF]), age: nil)
        _ = try await nodes[1].tier.store(nonsense, forKey: Data("ta".utf8), in: space, lease: nil)
        #expect(try await nodes[0].get("a") == nil)
        _ = try await nodes[1].tier.store(nonsense, forKey: Data("ta".utf8), in: space, lease: nil)
        #expect(try await nodes[0].shared.value(forKey: "a") { _ in "new" } == "new")
        #expect(try await nodes[1].get("a") == "new")
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next()?.kind == .undecodable)
    }

    @Test func `a message about a key that is none clears the copies`() async throws {
        let nodes = try await nodes(2)
        try await nodes[0].shared.setValue("one", forKey: "a")
        let space = SharedSpace("texts/1/\(ValueCodec<String>.standard.identifier)")
        try await nodes[1].tier.remove([.key(Data([0x74, 0xFF]))], in: space)
        try await Waiting.until { nodes[0].cache["a"] == nil }
        #expect(try await nodes[0].get("a") == "one")
    }

    @Test func `as long as a cache is shared its plain handle refuses writes and removals`() async throws {
        let node = try await nodes(1)[0]
        let cache = node.cache
        try await node.shared.setValue("shared", forKey: "a", tags: ["red"])
        let writes: [() throws -> Void] = [
            { try cache.setValue("plain", forKey: "a") },
            { try cache.setValues(["a": "plain"]) },
            { try cache.remove("a") },
            { try cache.removeValue(forKey: "a") },
            { try cache.removeValues(forKeys: ["a"]) },
            { try cache.removeAll() },
            { try cache.removeAll(tagged: "red") },
            { try cache.removeAll(prefix: "a") },
            { try cache.removeAll { _ in true } },
            { try cache.removeAll(whereMetadata: { _, _ in true }) },
            { try cache.clear() },
            { _ = try cache.touch("a") },
            { try cache.setExtendedData(Data(), forKey: "a") },
            { try cache.update("a") { $0 = "plain" } },
            { try node.manager.transaction { try $0.removeValue(forKey: "a", in: cache) } },
        ]
        for (index, write) in writes.enumerated() {
            await expectError(.invalidConfiguration, "Use the shared handle") { try write() }
            #expect(cache["a"] == "shared", "\(index)")
        }
        await expectError(.invalidConfiguration, "Use the shared handle") {
            try await cache.setValue("plain", forKey: "a")
        }
        cache["a"] = "plain"
        #expect(cache["a"] == "shared" && cache.statistics.failures == 1)
        // What this handle loads is a copy like any other, and the shared handle may write.
        #expect(try await cache.value(forKey: "b") { _ in "loaded" } == "loaded" && cache.disk["b"] == "loaded")
        try await node.shared.setValue("new", forKey: "a")
        #expect(cache["a"] == "new")
        await node.shared.close()
        try await cache.setValue("plain", forKey: "a")
        #expect(cache["a"] == "plain")
    }

    @Test(arguments: [false, true])
    func `caches of a file are shared by one manager at a time, and not while it is suspended`(isLeft: Bool)
        async throws
    {
        let tiers = MemorySharedTier.nodes(3)
        let first = try await TestNode(tiers[0])
        let (second, third) = (try first.store.manager(), try first.store.manager())
        func cache(_ manager: CacheManager) async throws -> Cache<String, String> {
            try await manager.cache(named: "texts", version: "1", maxAge: .days(1))
        }
        await expectError(.invalidConfiguration, "another process or manager") {
            _ = try await cache(second).shared(through: tiers[1])
        }
        // A cache beside it, of the same manager.
        let more: Cache<Int, Int> = try await first.manager.cache(named: "more", version: "1", maxAge: .days(1))
        let shared = try await more.shared(through: first.tier)
        try await first.manager.suspend()
        first.manager.resume()
        try await first.shared.setValue("one", forKey: "a")
        await expectError(.invalidConfiguration, "another process or manager") {
            _ = try await cache(second).shared(through: tiers[1])
        }
        // Another one may come in between, and then this one has to be opened again.
        try await first.manager.suspend()
        let other = try await cache(second).shared(through: tiers[1])
        if isLeft { await other.close() }
        first.manager.resume()
        await expectError(.closed, "shared(through:) again") { try await first.shared.removeValue(forKey: "a") }
        #expect(first.shared.health == .alone("The shared cache is closed."))
        await first.shared.close()
        await shared.close()
        if !isLeft {
            await expectError(.invalidConfiguration, "another process or manager") {
                _ = try await cache(third).shared(through: tiers[2])
            }
            await other.close()
        }
        let last = try await cache(third).shared(through: tiers[2])
        try await last.removeValue(forKey: "a")
        await last.close()
        #expect(!FileManager.default.fileExists(atPath: first.store.url.path + ".shared"))
    }

    @Test func `what cannot be shared is refused with a sentence`() async throws {
        let node = try await nodes(1)[0]
        await expectError(.invalidConfiguration, "shared already") {
            _ = try await node.cache.shared(through: node.tier)
        }
        await expectError(.invalidConfiguration, "since the last access") {
            try await node.shared.setValue("1", forKey: "a", maxAge: .hours(1).sinceLastAccess)
        }
        let sliding: Cache<Int, Int> = try await node.manager.cache(
            named: "sliding", version: "1", maxAge: .hours(1).sinceLastAccess)
        await expectError(.invalidConfiguration, "since the last access") {
            _ = try await sliding.shared(through: node.tier)
        }
        let plain: Cache<Int, Int> = try await node.manager.cache(named: "plain", version: "1", maxAge: .hours(1))
        await expectError(.invalidConfiguration, "negative") {
            _ = try await plain.shared(through: node.tier, options: SharedOptions(leaseAge: .zero))
        }
        try await node.shared.setValue("1", forKey: "a", maxAge: .until(Date(timeIntervalSince1970: -1e300)))
        try await node.shared.setValue("1", forKey: "a")
        let elsewhere: Cache<String, String> = try await CacheManager.inMemory().cache(
            named: "texts", version: "1", maxAge: .days(1))
        await expectError(.invalidConfiguration, "a tier for each manager") {
            _ = try await elsewhere.shared(through: node.tier)
        }
        await node.shared.close()
        await expectError(.closed, "shared(through:) again") { try await node.shared.removeAll() }
        await expectError(.closed, "shared(through:) again") { _ = try await node.get("a") }
        let again = try await node.cache.shared(through: node.tier)
        try await again.setValue("1", forKey: "a")
        #expect(try await again.value(forKey: "a") == "1")
        // A handle leaves its place once.
        await node.shared.close()
        await expectError(.invalidConfiguration, "shared already") {
            _ = try await node.cache.shared(through: node.tier)
        }
        await again.close()
        // A generator keeps its handle.
        let load = try await node.cache.shared(through: node.tier).generator { "loaded \($0)" }
        #expect(try await load("b") == "loaded b")
    }

    @Test func `a load that takes too long gives its lease back, and stores nothing on any node`() async throws {
        let tier = MemorySharedTier()
        let (a, b) = (try await TestNode(tier), try await TestNode(MemorySharedTier(joining: tier)))
        let (begun, gate, ended) = (LoadGate(), LoadGate(), LoadGate())
        defer { gate.open() }
        let value = a.shared.generator(GenerationPolicy(timeout: .seconds(10))) { _ in
            begun.open()
            while !gate.isOpen { await Task.yield() }
            defer { ended.open() }
            return "late"
        }
        let isEnded = Locked(false)
        let task = Task {
            defer { isEnded.change { $0 = true } }
            return try await value("a")
        }
        try await begun.waitInTask()
        // The timer of the load may come a little after the load has begun.
        try await Waiting.until {
            a.store.clock.advance(by: .seconds(10))
            return isEnded.value
        }
        let error = await #expect(throws: CacheError.self) { try await task.value }
        #expect(error?.code == .timedOut)
        // It would wait for two minutes for a lease that is held.
        #expect(try await b.shared.value(forKey: "a") { _ in "b" } == "b")
        gate.open()
        try await ended.waitInTask()
        try await Waiting.until { !a.cache.isGenerating }
        #expect(try await a.get("a") == "b")
        #expect(try await a.inTier("a") == "b")
    }

    @Test func `an entry with jitter ends at one moment in the tier and on its nodes`() async throws {
        let tier = MemorySharedTier()
        let node = try await TestNode(tier, maxAge: .hours(1).jittered(0.5))
        try await node.shared.setValue("set", forKey: "a")
        _ = try await node.shared.value(forKey: "b") { _ in "loaded" }
        let now = node.store.clock.now
        for key in ["a", "b"] {
            let end = try #require(try await node.cache.entry(forKey: key)?.metadata.expiresAt)
            let found = try await tier.fetch(Data("t\(key)".utf8), in: SharedSpace("texts/1/cbor"), lease: nil)
            guard case .entry(let entry) = found else { throw CancellationError() }
            #expect(entry.age.map { abs($0 / .seconds(1) - end.timeIntervalSince(now)) < 60 } == true)
            #expect((1740...3600).contains(end.timeIntervalSince(now)))
        }
    }

    @Test func `calls for single keys become one call of one node`() async throws {
        let tier = MemorySharedTier()
        let (a, b) = (try await TestNode(tier), try await TestNode(MemorySharedTier(joining: tier)))
        let calls = Counter()
        let values = [a, b].map { node in
            node.shared.batching(limit: 3) { keys in
                calls.increment()
                return Dictionary(uniqueKeysWithValues: keys.map { ($0, .value("\($0) loaded", tags: ["red"])) })
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for key in ["a", "b", "c"] { group.addTask { _ = try await values[0](key) } }
            try await group.waitForAll()
        }
        for value in values {
            for key in ["a", "b", "c"] { #expect(try await value(key) == "\(key) loaded") }
        }
        #expect(calls.value == 1)
        try await b.shared.removeAll(tagged: "red")
        #expect(try await a.inTier("b") == nil)
    }

    @Test func `calls of the tier and loads that take long are told`() async throws {
        let (store, traces) = (try TemporaryStore(), Locked<[CacheTrace]>([]))
        let manager = try store.manager { configuration in
            configuration.trace = { trace in traces.change { $0.append(trace) } }
            configuration.traceThreshold = .zero
        }
        let cache: Cache<String, String> = try await manager.cache(named: "texts", version: "1", maxAge: .days(1))
        let (tier, other) = (MemorySharedTier(), SharedSpace("texts/1/cbor"))
        let shared = try await cache.shared(through: tier, options: TestNode.options)
        func told() -> [String] {
            traces.change { traces in
                defer { traces = [] }
                return traces.filter { $0.place != .disk }.map { "\($0.operation): \($0.outcome)" }
            }
        }
        _ = told()
        #expect(try await shared.value(forKey: "a") { _ in "loaded" } == "loaded")
        #expect(told() == ["fetch from the tier: missing", "load the value: done", "store in the tier: done"])
        let payload = try CBOREncoder().encode("b")
        let entry = SharedEntry(payload: payload, age: .seconds(600))
        _ = try await MemorySharedTier(joining: tier).store(entry, forKey: Data("tb".utf8), in: other, lease: nil)
        #expect(try await shared.value(forKey: "b") == "b")
        #expect(told() == ["fetch from the tier: found"])
        try await shared.removeValue(forKey: "b")
        #expect(told() == ["remove from the tier: done"])
        await shared.close()
    }

    private func expectError(
        _ code: CacheError.Code, _ message: String, _ body: () async throws -> Void,
        _ location: SourceLocation = #_sourceLocation
    ) async {
        do {
            try await body()
            Issue.record("nothing was thrown", sourceLocation: location)
        } catch {
            let error = error as? CacheError
            #expect(error?.code == code, "\(String(describing: error))", sourceLocation: location)
            #expect(error?.message.contains(message) == true, "\(String(describing: error))", sourceLocation: location)
        }
    }
}
