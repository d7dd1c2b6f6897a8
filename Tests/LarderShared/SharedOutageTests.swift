import Foundation
import Larder
import LarderShared
import LarderStore
import LarderTestSupport
import LarderTesting
import Testing

/// What nodes do while the tier is gone, and once it is there again.
struct SharedOutageTests {
    private let tiers = MemorySharedTier.nodes(2)

    private func next(_ events: inout AsyncStream<CacheEvent>.Iterator) async -> CacheEvent.Kind? {
        await events.next()?.kind
    }

    @Test func `without the tier each node reads, loads and writes for itself`() async throws {
        let node = try await TestNode(tiers[0])
        try await node.shared.setValue("one", forKey: "a")
        tiers[0].isAvailable = false
        #expect(try await node.get("a") == "one")
        #expect(try await node.get("b") == nil)
        #expect(try await node.shared.value(forKey: "b") { "loaded \($0)" } == "loaded b")
        #expect(node.cache["b"] == "loaded b")
        #expect(try await node.shared.values(forKeys: ["b", "c"]) { _ in ["c": "loaded c"] }.count == 2)
        try await node.shared.setValue("two", forKey: "a")
        #expect(try await node.get("a") == "two")
        try await node.shared.removeValue(forKey: "b")
        #expect(try await node.get("b") == nil)
        #expect(node.shared.statistics.pendingRemovals == 2 && node.shared.health != .current)
        #expect(node.tier.count(of: .fetch) == 0)
        #expect(node.shared.statistics.loadsAlone == 2 && node.shared.statistics.failures == 0)
    }

    @Test func `a removal tells whether the tier has it`() async throws {
        let node = try await TestNode(tiers[0])
        try await node.shared.setValue("one", forKey: "a", tags: ["red"])
        #expect(try await node.shared.removeValue(forKey: "a") == .everywhere)
        #expect(try await node.shared.removeAll(tagged: "red") == .everywhere)
        tiers[0].isAvailable = false
        #expect(try await node.shared.removeValue(forKey: "a") == .pending)
        #expect(try await node.shared.removeAll() == .pending)
        #expect(try await node.shared.removeValues(forKeys: []) == .everywhere)
        if case .alone = node.shared.health {} else { Issue.record("\(node.shared.health)") }
    }

    @Test func `a node that catches up knows all that others have done`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await b.shared.setValue("old", forKey: "a")
        #expect(try await a.get("a") == "old")
        let gate = LoadGate()
        a.tier.after(.changes) { try await gate.waitInTask() }
        defer { gate.open() }
        try await b.shared.removeValue(forKey: "a")
        a.tier.after(.changes, nil)
        try await a.shared.catchUp()
        #expect(a.cache["a"] == nil)
        tiers[0].isAvailable = false
        await #expect(throws: CacheError.self) { try await a.shared.catchUp() }
    }

    @Test func `a value that is too large for the tier stays on its node`() async throws {
        var options = TestNode.options
        options.entryLimit = 100
        let (a, b) = (try await TestNode(tiers[0], options: options), try await TestNode(tiers[1], options: options))
        let large = String(repeating: "x", count: 200)
        try await a.shared.setValue("small", forKey: "a")
        #expect(try await b.get("a") == "small")
        try await a.shared.setValue(large, forKey: "a")
        #expect(try await a.get("a") == large && a.cache["a"] == large)
        try await Waiting.until { b.cache["a"] == nil }
        #expect(try await a.inTier("a") == nil)
        #expect(try await b.shared.value(forKey: "b") { _ in large } == large)
        #expect(b.cache["b"] == large)
        // Its lease was given back.
        #expect(try await a.shared.value(forKey: "b") { _ in "small" } == "small")
        #expect(try await a.inTier("b") == "small")
    }

    @Test func `what was removed meanwhile is told once the tier is there, and read from it only then`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        for key in ["a", "b", "c"] {
            try await b.shared.setValue("old", forKey: key, tags: ["red"])
            #expect(try await a.get(key) == "old")
        }
        tiers[0].isAvailable = false
        try await Waiting.until { a.shared.health != .current }
        try await a.shared.removeValue(forKey: "a")
        try await a.shared.removeAll(tagged: "red")
        try await a.shared.setValue("here", forKey: "b")
        // The others removed something too.
        try await b.shared.removeValue(forKey: "c")
        // Until the tier was told, it has what this node has removed.
        a.tier.before(.remove) { throw GatedTier.Fault() }
        tiers[0].isAvailable = true
        try await Waiting.until { a.shared.health == .catchingUp }
        #expect(a.shared.health != .current)
        #expect(try await a.get("a") == nil)
        #expect(try await a.get("b") == "here")
        a.tier.before(.remove, nil)
        try await Waiting.until { a.shared.statistics.pendingRemovals == 0 }
        try await Waiting.until { b.isEmpty }
        for key in ["a", "b", "c"] {
            #expect(try await a.get(key) == nil)
            #expect(try await b.get(key) == nil)
        }
    }

    @Test func `a call of the tier that fails is one of a tier that is gone`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("one", forKey: "a")
        #expect(try await b.get("a") == "one")
        // The tier does what is asked, and the answer is lost.
        a.tier.after(.store) { throw GatedTier.Fault() }
        try await a.shared.setValue("two", forKey: "a")
        try await Waiting.until { a.shared.statistics.pendingRemovals == 0 }
        // Whether it was done is not known, so no node has a value.
        #expect(try await a.inTier("a") == nil)
        try await Waiting.until { b.cache["a"] == nil && a.cache["a"] == nil }
        a.tier.before(.fetch) { throw GatedTier.Fault() }
        #expect(try await a.shared.value(forKey: "b") { _ in "own" } == "own")
        #expect(a.shared.statistics.failures >= 2)
        #expect(try await b.get("b") == nil)
    }

    @Test func `pending removals and the place among messages outlive the process`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        for key in ["a", "b", "c"] {
            #expect(try await b.shared.value(forKey: key) { _ in "old" } == "old")
            #expect(try await a.get(key) == "old")
        }
        await a.shared.close()
        let again = try await a.cache.shared(through: a.tier, options: TestNode.options)
        // Nothing was missed, so the copies are good.
        #expect(a.cache.memory["a"] == "old")
        tiers[0].isAvailable = false
        try await again.removeValue(forKey: "a")
        try a.kill()
        // What was removed while the process was gone is caught up with before the opening returns.
        try await b.shared.removeValue(forKey: "b")
        let restarted = MemorySharedTier(joining: tiers[0])
        restarted.isAvailable = false
        var options = TestNode.options
        options.catchUpLimit = .zero
        let next = try await TestNode(restarted, on: a.store, options: options)
        #expect(next.shared.statistics.pendingRemovals == 1)
        restarted.isAvailable = true
        try await Waiting.until { next.shared.health == .current && next.shared.statistics.pendingRemovals == 0 }
        #expect(next.cache["b"] == nil && next.cache["c"] == "old")
        try await Waiting.until { b.cache["a"] == nil }
        #expect(try await b.get("a") == nil)
    }

    @Test func `too many pending removals become one of everything`() async throws {
        var options = TestNode.options
        options.pendingLimit = 3
        let (a, b) = (try await TestNode(tiers[0], options: options), try await TestNode(tiers[1]))
        try await b.shared.setValue("kept", forKey: "kept")
        #expect(try await a.get("kept") == "kept")
        var events = a.manager.events.makeAsyncIterator()
        tiers[0].isAvailable = false
        for key in ["1", "2", "3"] { try await a.shared.removeValue(forKey: key) }
        // One that is there already needs no place.
        try await a.shared.removeValue(forKey: "3")
        #expect(a.shared.statistics.pendingRemovals == 3)
        try await a.shared.removeValue(forKey: "4")
        #expect(a.shared.statistics.pendingRemovals == 1)
        let notes = try a.notes().filter { $0.key > 0 }.map(\.value)
        #expect(notes == ["a"])
        tiers[0].isAvailable = true
        try await Waiting.until { b.isEmpty && a.isEmpty }
        try await Waiting.until { a.shared.statistics.pendingRemovals == 0 }
        #expect(try a.notes().keys.filter { $0 > 0 } == [])
        var kinds: Set<CacheEvent.Kind> = []
        while kinds.count < 3, let kind = await next(&events) { kinds.insert(kind) }
        #expect(kinds == [.sharedTierLost, .sharedRemovalsOverflowed, .sharedTierFound])
    }

    @Test func `what the tier was told is not told again while this node cannot follow`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("old", forKey: "a")
        #expect(try await b.get("a") == "old")
        tiers[0].isAvailable = false
        try await a.shared.removeValue(forKey: "a")
        try await a.manager.suspend()
        tiers[0].isAvailable = true
        try await Waiting.until { b.cache["a"] == nil && a.tier.count(of: .remove) == 1 }
        #expect(a.shared.statistics.pendingRemovals == 1)
        a.manager.resume()
        try await Waiting.until { a.shared.statistics.pendingRemovals == 0 }
        #expect(a.tier.count(of: .remove) == 1)
    }

    @Test func `lost messages clear the copies, and an event says so`() async throws {
        let tiers = MemorySharedTier.nodes(2, messageLimit: 4)
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("one", forKey: "a")
        var events = a.manager.events.makeAsyncIterator()
        tiers[0].isAvailable = false
        try await Waiting.until { a.shared.health != .current }
        for number in 0..<20 { try await b.shared.removeValue(forKey: "\(number)") }
        tiers[0].isAvailable = true
        try await Waiting.until { a.shared.health == .current }
        #expect(a.isEmpty)
        #expect(try await a.get("a") == "one")
        #expect(await next(&events) == .sharedTierLost)
        #expect(await next(&events) == .sharedMessagesLost)
        #expect(await next(&events) == .sharedTierFound)
    }

    @Test func `a node that was never connected opens, and clears what it had once it is`() async throws {
        let place = try TemporaryStore()
        func fill() throws {
            let manager = try place.manager()
            let cache: Cache<String, String> = try manager.cache(named: "texts", version: "1", maxAge: .days(1))
            cache["a"] = "of before"
            try manager.close()
        }
        try fill()
        tiers[0].isAvailable = false
        var options = TestNode.options
        options.catchUpLimit = .zero
        let node = try await TestNode(tiers[0], on: place, options: options)
        #expect(try await node.get("a") == "of before")
        tiers[0].isAvailable = true
        try await Waiting.until { node.cache["a"] == nil }
    }

    @Test func `after too long a silence copies are not served`() async throws {
        var options = TestNode.options
        options.maxSilence = .zero
        let node = try await TestNode(tiers[0], options: options)
        try await node.shared.setValue("one", forKey: "a")
        let load = node.shared.generator { _ in "loaded" }
        #expect(try await node.get("a") == "one")
        #expect(try await load("a") == "one")
        tiers[0].isAvailable = false
        try await Waiting.until { node.shared.health != .current }
        #expect(try await node.get("a") == nil)
        #expect(try await node.shared.value(forKey: "a") { _ in "new" } == "new")
        #expect(try await load("a") == "loaded")
        tiers[0].isAvailable = true
        try await Waiting.until { node.shared.health == .current }
        #expect(try await node.get("a") == "loaded")
    }

    @Test func `notes are in no listing, stay when the cache is cleared, and go with it`() async throws {
        let node = try await TestNode(tiers[0])
        tiers[0].isAvailable = false
        try await node.shared.removeValue(forKey: "a")
        #expect(try node.notes().count == 2)
        #expect(try await node.manager.cacheInfo().map(\.count) == [0])
        #expect(node.isEmpty)
        #expect(try await node.cache.trim(toCount: 0) == 0)
        try node.removeEverything()
        #expect(try node.notes().count == 2)
        let _: Cache<String, String> = try await node.manager.cache(
            named: "texts", version: "2", maxAge: .days(1))
        #expect(try node.notes() == [:])
    }

    @Test func `nodes of another version have nothing in common`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1], version: "2"))
        try await a.shared.setValue("first", forKey: "a")
        #expect(try await b.get("a") == nil)
        try await b.shared.setValue("second", forKey: "a")
        try await b.shared.removeAll()
        #expect(a.cache["a"] == "first")
        #expect(try await a.inTier("a") == "first")
    }
}
