import Larder
import LarderLocks
import LarderShared
import LarderTestSupport
import Testing

/// Values that their callers have before they are stored, and what comes in between.
struct EarlyResultTests {
    private let tiers = MemorySharedTier.nodes(2)

    private static let options = SharedOptions(
        leaseAge: .seconds(60), loadWaitLimit: .seconds(120), catchUpLimit: .seconds(120))

    private func nodes() async throws -> (a: TestNode, b: TestNode) {
        (try await TestNode(tiers[0], options: Self.options), try await TestNode(tiers[1], options: Self.options))
    }

    /// Loads a value whose store in the tier waits for a gate, on one side of it.
    private func load(_ node: TestNode, stored isStored: Bool = false) async throws -> LoadGate {
        let (hasCome, goesOn) = (LoadGate(), LoadGate())
        let step: GatedTier.Step = {
            hasCome.open()
            try await goesOn.waitInTask()
        }
        if isStored { node.tier.after(.store, step) } else { node.tier.before(.store, step) }
        #expect(try await node.shared.value(forKey: "a") { _ in "loaded" } == "loaded")
        try await Waiting.until { hasCome.isOpen }
        node.tier.before(.store, nil)
        node.tier.after(.store, nil)
        return goesOn
    }

    @Test func `a loaded value is returned before it is stored, and later calls get it without a load`() async throws {
        let (_, b) = try await nodes()
        let goesOn = try await load(b)
        #expect(b.cache["a"] == nil)
        #expect(try await b.inTier("a") == nil)
        let asked = b.tier.count(of: .fetch)
        #expect(try await b.get("a") == "loaded")
        #expect(try await b.shared.value(forKey: "a") { _ in "again" } == "loaded")
        #expect(b.tier.count(of: .fetch) == asked)
        goesOn.open()
        try await Waiting.until { b.cache["a"] == "loaded" }
        #expect(try await b.inTier("a") == "loaded")
    }

    @Test func `a value of the tier is returned before it is stored, and until it expires`() async throws {
        let (a, b) = try await nodes()
        try await a.shared.setValue("a", forKey: "a", maxAge: .minutes(1))
        let (hasBegun, goesOn) = (LoadGate(), LoadGate())
        // The writer is taken, so that no commit comes in between.
        let body = Task {
            try await onThread {
                try b.manager.transaction { _ in
                    hasBegun.open()
                    try goesOn.wait()
                }
            }
        }
        try await Waiting.until { hasBegun.isOpen }
        #expect(try await b.get("a") == "a")
        #expect(b.cache["a"] == nil)
        let asked = b.tier.count(of: .fetch)
        #expect(try await b.get("a") == "a")
        #expect(try await b.shared.value(forKey: "a") { _ in "loaded" } == "a")
        #expect(b.tier.count(of: .fetch) == asked)
        b.store.clock.advance(by: .seconds(61))
        _ = try await b.get("a")
        #expect(b.tier.count(of: .fetch) == asked + 1)
        goesOn.open()
        try await body.value
        try await Waiting.until { !b.cache.isGenerating }
    }

    @Test func `an absence is known before the call returns`() async throws {
        let (_, b) = try await nodes()
        let loads = Counter()
        for _ in 0..<2 {
            let value = try await b.shared.value(forKey: "a") { _, _ -> Generated<String> in
                loads.increment()
                return .none(for: .hours(1))
            }
            #expect(value == nil && loads.value == 1)
        }
    }

    @Test func `a load that begins once its node is closed stores nothing`() async throws {
        let (a, b) = try await nodes()
        try await a.shared.setValue("a", forKey: "a")
        let (hasCome, goesOn) = (LoadGate(), LoadGate())
        b.tier.before(.fetch) {
            hasCome.open()
            try await goesOn.waitInTask()
        }
        let read = Task { try await b.get("a") }
        try await Waiting.until { hasCome.isOpen }
        await b.shared.close()
        goesOn.open()
        _ = await read.result
        try await Waiting.until { !b.cache.isGenerating }
        #expect(b.cache["a"] == nil)
    }

    @Test func `a handle that is dropped keeps its place until what it has loaded is stored`() async throws {
        let manager = try TemporaryStore().manager()
        let cache: Cache<String, String> = try await manager.cache(named: "texts", version: "1", maxAge: .days(1))
        let tier = GatedTier(tiers[0])
        let goesOn = LoadGate()
        tier.before(.store) { try await goesOn.waitInTask() }
        func load() async throws {
            let shared = try await cache.shared(through: tier, options: Self.options)
            #expect(try await shared.value(forKey: "a") { _ in "loaded" } == "loaded")
        }
        try await load()
        await #expect(throws: CacheError.self) { try await cache.shared(through: tier, options: Self.options) }
        goesOn.open()
        try await Waiting.until { cache["a"] == "loaded" }
    }

    enum Removal: CaseIterable {
        case key, tag, prefix, all
    }

    @Test(arguments: [false, true], Removal.allCases)
    func `a removal between a result and its store is not undone`(isStored: Bool, removal: Removal) async throws {
        let (a, b) = try await nodes()
        for remover in [a, b] {
            let (hasCome, goesOn) = (LoadGate(), LoadGate())
            let step: GatedTier.Step = {
                hasCome.open()
                try await goesOn.waitInTask()
            }
            if isStored { b.tier.after(.store, step) } else { b.tier.before(.store, step) }
            let entry = try await b.shared.entry(forKey: "a") { _, _ in .value("loaded", tags: ["red"]) }
            #expect(entry.value == "loaded")
            try await Waiting.until { hasCome.isOpen }
            switch removal {
            case .key: try await remover.shared.removeValue(forKey: "a")
            case .tag: try await remover.shared.removeAll(tagged: "red")
            case .prefix: try await remover.shared.removeAll(prefix: "a")
            case .all: try await remover.shared.removeAll()
            }
            try await b.catchUp()
            goesOn.open()
            try await Waiting.until { !b.cache.isGenerating }
            #expect(b.cache["a"] == nil)
            #expect(try await b.inTier("a") == nil)
            #expect(try await b.get("a") == nil)
        }
    }

    @Test(arguments: [false, true])
    func `a write between a result and its store stays`(isOwn: Bool) async throws {
        let (a, b) = try await nodes()
        let goesOn = try await load(b, stored: true)
        try await (isOwn ? b : a).shared.setValue("written", forKey: "a")
        #expect(isOwn ? b.cache["a"] == "written" : true)
        try await b.catchUp()
        goesOn.open()
        try await Waiting.until { !b.cache.isGenerating }
        #expect(b.cache["a"] == (isOwn ? "written" : nil))
        #expect(try await b.get("a") == "written")
    }

    @Test func `a value whose node dies before it is stored is loaded again`() async throws {
        let (_, b) = try await nodes()
        let goesOn = try await load(b)
        try b.kill()
        goesOn.open()
        try await Waiting.until { !b.cache.isGenerating }
        let next = try await TestNode(MemorySharedTier(joining: tiers[1]), on: b.store, options: Self.options)
        #expect(next.cache["a"] == nil)
        // The tier may have it, since only the node has died.
        let inTier = try await next.inTier("a")
        #expect(try await next.shared.value(forKey: "a") { _ in "again" } == inTier ?? "again")
    }

    @Test func `another node waits until a result is stored, and loads nothing`() async throws {
        let (a, b) = try await nodes()
        let goesOn = try await load(b)
        let other = Task { try await a.shared.value(forKey: "a") { _ in "other" } }
        try await Waiting.until { a.tier.count(of: .fetch) >= 2 }
        goesOn.open()
        #expect(try await other.value == "loaded")
    }

    @Test func `closing waits for what is being stored, and lets no other load store`() async throws {
        let (_, b) = try await nodes()
        let goesOn = try await load(b)
        let (hasBegun, ends) = (LoadGate(), LoadGate())
        let late = Task {
            try await b.shared.value(forKey: "late") { _ in
                hasBegun.open()
                try await ends.waitInTask()
                return "late"
            }
        }
        try await Waiting.until { hasBegun.isOpen }
        let close = Task { await b.shared.close() }
        try await Waiting.until { b.shared.health != .current }
        goesOn.open()
        await close.value
        #expect(b.cache["a"] == "loaded")
        ends.open()
        #expect(try await late.value == "late")
        try await Waiting.until { !b.cache.isGenerating }
        #expect(b.cache["late"] == nil)
    }

    @Test func `so many results wait for their store, and further callers wait for theirs`() async throws {
        let (_, b) = try await nodes()
        let goesOn = LoadGate()
        b.tier.before(.store) { try await goesOn.waitInTask() }
        for key in 0..<1000 {
            #expect(try await b.shared.value(forKey: "\(key)") { _ in "loaded" } == "loaded")
        }
        let further = Task { try await b.shared.value(forKey: "further") { _ in "loaded" } }
        try await Waiting.until { b.tier.count(of: .store) == 1001 }
        #expect(b.cache.waitingCallers == 1)
        goesOn.open()
        #expect(try await further.value == "loaded")
        try await Waiting.until { !b.cache.isGenerating }
        #expect(try b.cache.count == 1001)
    }
}
