import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// Orders of the steps of reads, writes and messages on two nodes.
///
/// In the end each copy is none or what the tier has.
struct SharedInterleavingTests {
    private let tiers = MemorySharedTier.nodes(3)

    private static let removals: [SharedRemoval] = [
        .key(Data("ta".utf8)), .tag("red"), .prefix(Data("ta".utf8)), .all,
    ]

    private func remove(_ removal: SharedRemoval, _ node: TestNode) async throws {
        switch removal {
        case .key: try await node.shared.removeValue(forKey: "a")
        case .tag(let tag): try await node.shared.removeAll(tagged: tag)
        case .prefix: try await node.shared.removeAll(prefix: "a")
        case .all: try await node.shared.removeAll()
        }
    }

    /// Holds the calls of a node up behind or in front of a step.
    private struct Hold {
        let hasCome = LoadGate()
        let goesOn = LoadGate()

        func step() async throws {
            hasCome.open()
            try await goesOn.waitInTask()
        }
    }

    /// Begins a load that stands in its closure until the test lets it go on.
    private func beginLoad(_ node: TestNode, _ value: String) async throws -> (Hold, Task<String, any Error>) {
        let hold = Hold()
        let load = Task {
            try await node.shared.value(forKey: "a") { _ in
                try await hold.step()
                return value
            }
        }
        try await Waiting.until { hold.hasCome.isOpen }
        return (hold, load)
    }

    private func expectAgreement(_ key: String, _ nodes: TestNode...) async throws {
        for node in nodes {
            try await node.catchUp()
            let (copy, shared) = (node.cache[key], try await node.inTier(key))
            #expect(copy == nil || copy == shared, "\(String(describing: copy)) and \(String(describing: shared))")
        }
    }

    // MARK: Reads and loads against removals

    @Test(arguments: removals)
    func `what was fetched before a removal is not kept`(removal: SharedRemoval) async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("old", forKey: "a", tags: ["red"])
        try await b.catchUp()
        let hold = Hold()
        b.tier.after(.fetch) { try await hold.step() }
        let read = Task { try await b.get("a") }
        try await Waiting.until { hold.hasCome.isOpen }
        try await remove(removal, a)
        try await b.catchUp()
        hold.goesOn.open()
        // It was read before.
        #expect(try await read.value == "old")
        #expect(b.cache["a"] == nil)
        #expect(try await b.get("a") == nil)
    }

    @Test(arguments: removals)
    func `what is loaded while it is removed is given to its callers and stored nowhere`(
        removal: SharedRemoval
    ) async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        let hold = Hold()
        let load = Task {
            try await b.shared.value(forKey: "a") { _, _ in
                try await hold.step()
                return .value("old", tags: ["red"])
            }
        }
        try await Waiting.until { hold.hasCome.isOpen }
        try await remove(removal, a)
        // With the message, or before it.
        if removal == .all { try await b.catchUp() }
        hold.goesOn.open()
        #expect(try await load.value == "old")
        #expect(b.cache["a"] == nil && b.shared.statistics.unkeptLoads == 1)
        #expect(try await b.inTier("a") == nil)
    }

    @Test(arguments: removals)
    func `what was stored in the tier and then removed is not kept here`(removal: SharedRemoval) async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        let hold = Hold()
        b.tier.after(.store) { try await hold.step() }
        let load = Task { try await b.shared.value(forKey: "a") { _, _ in .value("old", tags: ["red"]) } }
        try await Waiting.until { hold.hasCome.isOpen }
        try await remove(removal, a)
        try await b.catchUp()
        hold.goesOn.open()
        #expect(try await load.value == "old")
        #expect(b.cache["a"] == nil)
        try await expectAgreement("a", a, b)
    }

    @Test func `a node that catches up while it is read goes from the old value to the new one, and not back`()
        async throws
    {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("old", forKey: "a")
        try await b.catchUp()
        #expect(try await b.get("a") == "old")
        let hold = Hold()
        b.tier.after(.changes) { try await hold.step() }
        try await a.shared.setValue("new", forKey: "a")
        try await Waiting.until { hold.hasCome.isOpen }
        let hasEnded = LoadGate()
        let readers = (0..<8).map { _ in
            Task {
                var seen: [String?] = []
                repeat {
                    let value = try await b.get("a")
                    if seen.last != value { seen.append(value) }
                } while !hasEnded.isOpen || seen.last != "new"
                return seen
            }
        }
        b.tier.after(.changes, nil)
        hold.goesOn.open()
        try await b.catchUp()
        hasEnded.open()
        for reader in readers { #expect(try await ["old", "new"].suffix(reader.value.count) == reader.value) }
    }

    @Test func `a load whose lease has ended stores nowhere`() async throws {
        let clock = ManualClock()
        let tiers = MemorySharedTier.nodes(2, clock)
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        let (hold, first) = try await beginLoad(a, "first")
        clock.advance(by: .seconds(61))
        #expect(try await b.shared.value(forKey: "a") { _ in "second" } == "second")
        hold.goesOn.open()
        #expect(try await first.value == "first")
        #expect(a.cache["a"] == nil)
        #expect(try await a.get("a") == "second")
    }

    @Test func `a load that runs does not store over a write of its node`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        let (hold, load) = try await beginLoad(a, "loaded")
        try await a.shared.setValue("set", forKey: "a")
        hold.goesOn.open()
        #expect(try await load.value == "loaded")
        #expect(a.cache["a"] == "set")
        #expect(try await b.get("a") == "set")
    }

    @Test func `one that waits and is told before it listens gets the value`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        let (loading, load) = try await beginLoad(a, "once")
        let waiting = Hold()
        b.tier.after(.fetch) { try await waiting.step() }
        let wait = Task { try await b.shared.value(forKey: "a") { _ in "twice" } }
        try await Waiting.until { waiting.hasCome.isOpen }
        loading.goesOn.open()
        #expect(try await load.value == "once")
        try await b.catchUp()
        waiting.goesOn.open()
        #expect(try await wait.value == "once")
    }

    @Test func `one that has waited for too long loads for itself alone`() async throws {
        var options = TestNode.options
        options.loadWaitLimit = .zero
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1], options: options))
        let (hold, load) = try await beginLoad(a, "of a")
        #expect(try await b.shared.value(forKey: "a") { _ in "of b" } == "of b")
        #expect(b.cache["a"] == nil)
        #expect(try await b.inTier("a") == nil)
        hold.goesOn.open()
        #expect(try await load.value == "of a")
        #expect(try await b.get("a") == "of a")
    }

    // MARK: Writes of one node and of two

    @Test(arguments: [true, false])
    func `two writes of a node end as the tier has them, whichever comes there first`(isBehind: Bool) async throws {
        let a = try await TestNode(tiers[0])
        let hold = Hold()
        let step: GatedTier.Step = { try await hold.step() }
        if isBehind { a.tier.after(.store, step) } else { a.tier.before(.store, step) }
        let first = Task { try await a.shared.setValue("first", forKey: "a") }
        try await Waiting.until { hold.hasCome.isOpen }
        a.tier.after(.store, nil)
        a.tier.before(.store, nil)
        try await a.shared.setValue("second", forKey: "a")
        hold.goesOn.open()
        try await first.value
        #expect(try await a.inTier("a") == (isBehind ? "second" : "first"))
        try await expectAgreement("a", a)
    }

    @Test(arguments: removals)
    func `a write during a removal of its node ends as the tier has it`(removal: SharedRemoval) async throws {
        let a = try await TestNode(tiers[0])
        let hold = Hold()
        a.tier.before(.remove) { try await hold.step() }
        let removing = Task { try await remove(removal, a) }
        try await Waiting.until { hold.hasCome.isOpen }
        try await a.shared.setValue("set", forKey: "a", tags: ["red"])
        hold.goesOn.open()
        try await removing.value
        try await expectAgreement("a", a)
    }

    @Test(arguments: [true, false])
    func `a write of another node during a write ends as the tier has it`(isBehind: Bool) async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("old", forKey: "a")
        let hold = Hold()
        let step: GatedTier.Step = { try await hold.step() }
        if isBehind { a.tier.after(.store, step) } else { a.tier.before(.store, step) }
        let write = Task { try await a.shared.setValue("of a", forKey: "a") }
        try await Waiting.until { hold.hasCome.isOpen }
        try await b.shared.setValue("of b", forKey: "a")
        try await a.catchUp()
        hold.goesOn.open()
        try await write.value
        #expect(try await a.inTier("a") == (isBehind ? "of b" : "of a"))
        try await expectAgreement("a", a, b)
    }

    @Test(arguments: [true, false])
    func `a write or removal whose task is cancelled is done here if it was done in the tier`(isWrite: Bool)
        async throws
    {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("old", forKey: "a")
        let hold = Hold()
        a.tier.after(isWrite ? .store : .remove) {
            hold.hasCome.open()
            try await Waiting.until { hold.goesOn.isOpen }
        }
        let operation = Task {
            if isWrite {
                try await a.shared.setValue("new", forKey: "a")
            } else {
                try await a.shared.removeValue(forKey: "a")
            }
        }
        try await Waiting.until { hold.hasCome.isOpen }
        operation.cancel()
        hold.goesOn.open()
        _ = await operation.result
        try await expectAgreement("a", a, b)
        #expect(a.cache["a"] == (isWrite ? "new" : nil))
    }

    // MARK: Pending removals

    @Test func `a removal that is noted while it is sent is sent again`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        a.tier.before(.store) { throw GatedTier.Fault() }
        let hold = Hold()
        a.tier.before(.remove) { try await hold.step() }
        try await a.shared.setValue("first", forKey: "a")
        try await Waiting.until { hold.hasCome.isOpen }
        // Noted behind the copy of what is sent now.
        tiers[0].isAvailable = false
        try await a.shared.setValue("second", forKey: "a")
        tiers[0].isAvailable = true
        let count = a.tier.count(of: .remove)
        hold.goesOn.open()
        try await Waiting.until { a.shared.statistics.pendingRemovals == 0 }
        #expect(a.tier.count(of: .remove) == count + 1)
        try await Waiting.until { try a.notes().keys.allSatisfy { $0 == 0 } }
        try await expectAgreement("a", a, b)
    }

    @Test func `a value that is set while a removal is sent is stored after it`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("first", forKey: "a")
        let (hold, calls) = (Hold(), Counter())
        a.tier.before(.remove) {
            calls.increment()
            if calls.value == 1 { throw GatedTier.Fault() }
            try await hold.step()
        }
        #expect(try await a.shared.removeValue(forKey: "a") == .pending)
        try await Waiting.until { hold.hasCome.isOpen }
        let set = Task { try await a.shared.setValue("second", forKey: "a") }
        // A store that does not wait for the removal is done by now.
        for _ in 0..<1000 where a.tier.count(of: .store) == 1 { await Task.yield() }
        hold.goesOn.open()
        try await set.value
        try await Waiting.until { a.shared.statistics.pendingRemovals == 0 }
        #expect(try await a.inTier("a") == "second")
        #expect(try await a.get("a") == "second")
        try await Waiting.asking { try await b.get("a") == "second" }
    }

    // MARK: Kills

    /// The steps of a write or removal at which its process is killed.
    enum Step: CaseIterable { case beforeTier, behindTier, done }

    @Test(arguments: Step.allCases, [true, false])
    func `a node that is killed in a write or removal has no older copy after it`(step: Step, isWrite: Bool)
        async throws
    {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("old", forKey: "a")
        try await a.catchUp()
        let hold = Hold()
        let call: GatedTier.Call = isWrite ? .store : .remove
        if step == .beforeTier { a.tier.before(call) { try await hold.step() } }
        if step == .behindTier { a.tier.after(call) { try await hold.step() } }
        let saved = try a.notes()[0]
        let operation = Task {
            if isWrite {
                try await a.shared.setValue("new", forKey: "a")
            } else {
                try await a.shared.removeValue(forKey: "a")
            }
        }
        if step == .done { try await operation.value } else { try await Waiting.until { hold.hasCome.isOpen } }
        // Messages of others and its own are taken in until the place is saved again, which it is once a second if it has moved. While the
        // operation is held it may have been saved already.
        let end = ContinuousClock.now + .seconds(2)
        repeat {
            try await b.shared.removeValue(forKey: "other")
            try await a.catchUp()
        } while try a.notes()[0] == saved && ContinuousClock.now < end
        try a.kill()
        // The next process, or the next manager of this one.
        for tier in [MemorySharedTier(joining: tiers[0]), tiers[0]] {
            let next = try await TestNode(tier, on: a.store)
            if step == .beforeTier { #expect(next.cache["a"] == "old") }
            try await expectAgreement("a", next, b)
            try next.kill()
            if step == .beforeTier { break }
        }
        hold.goesOn.open()
        _ = await operation.result
        try await expectAgreement("a", try await TestNode(MemorySharedTier(joining: tiers[0]), on: a.store), b)
    }

    @Test func `a manager that opens again with the same tier gets what the one before it has sent`() async throws {
        let a = try await TestNode(tiers[0])
        try await a.shared.setValue("old", forKey: "a")
        try await a.catchUp()
        let hold = Hold()
        a.tier.after(.store) { try await hold.step() }
        let write = Task { try await a.shared.setValue("new", forKey: "a") }
        try await Waiting.until { hold.hasCome.isOpen }
        try a.kill()
        let next = try await TestNode(tiers[0], on: a.store)
        #expect(next.cache["a"] == nil)
        #expect(try await next.get("a") == "new")
        hold.goesOn.open()
        _ = await write.result
    }

    @Test func `a handle that is closed waits for its writes, and lets none begin`() async throws {
        let a = try await TestNode(tiers[0])
        try await a.shared.setValue("old", forKey: "a")
        let hold = Hold()
        a.tier.after(.store) { try await hold.step() }
        let write = Task { try await a.shared.setValue("new", forKey: "a") }
        try await Waiting.until { hold.hasCome.isOpen }
        let isClosed = LoadGate()
        let closing = Task {
            await a.shared.close()
            isClosed.open()
        }
        while true {
            do { _ = try await a.get("a") } catch let error as CacheError {
                #expect(error.code == .closed)
                break
            }
        }
        await #expect(throws: CacheError.self) { try await a.shared.setValue("newer", forKey: "a") }
        #expect(!isClosed.isOpen)
        hold.goesOn.open()
        await closing.value
        try await write.value
        #expect(a.cache["a"] == "new")
    }

    @Test func `a write and a load that come into one transaction leave what was written`() async throws {
        let a = try await TestNode(tiers[0])
        let (hold, load) = try await beginLoad(a, "loaded")
        // The lease was lost unnoticed, so that the load is to be stored here.
        a.tier.after(.store) { throw GatedTier.Fault() }
        let (holdsWriter, writerGoesOn, probe) = (LoadGate(), LoadGate(), StoreProbe(a.manager))
        let transaction = SideThread {
            try a.manager.transaction { _ in
                holdsWriter.open()
                try writerGoesOn.wait()
            }
        }
        try await Waiting.until { holdsWriter.isOpen }
        a.tier.after(.store, nil)
        let write = Task { try await a.shared.setValue("written", forKey: "a") }
        try await Waiting.until { try probe.waitingCount == 1 }
        a.tier.after(.store) { throw GatedTier.Fault() }
        hold.goesOn.open()
        try await Waiting.until { try probe.waitingCount == 2 }
        writerGoesOn.open()
        try await onThread { try transaction.value() }
        try await write.value
        #expect(try await load.value == "loaded")
        #expect(a.cache["a"] == "written")
    }

    @Test func `an absence that a node cannot use does not take the write of another one with it`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        #expect(try await b.shared.value(forKey: "a") { _, _ in .none(for: .hours(1)) } == nil)
        let hold = Hold()
        a.tier.after(.fetch) { try await hold.step() }
        let load = Task { try await a.shared.value(forKey: "a") { _ in "loaded" } }
        try await Waiting.until { hold.hasCome.isOpen }
        a.tier.after(.fetch, nil)
        try await b.shared.setValue("written", forKey: "a")
        hold.goesOn.open()
        #expect(try await load.value == "written")
        #expect(try await b.inTier("a") == "written")
        // A look alone changes nothing.
        #expect(try await b.shared.value(forKey: "b") { _, _ in .none(for: .hours(1)) } == nil)
        #expect(try await a.get("b") == nil)
        #expect(a.tier.count(of: .discard) == 1)
    }

    @Test func `a look does not answer for a load`() async throws {
        let a = try await TestNode(tiers[0])
        let hold = Hold()
        a.tier.before(.fetch) { try await hold.step() }
        let look = Task { try await a.get("a") }
        try await Waiting.until { hold.hasCome.isOpen }
        a.tier.before(.fetch, nil)
        #expect(try await a.shared.values(forKeys: ["a"]) { _ in ["a": "loaded"] } == ["a": "loaded"])
        hold.goesOn.open()
        #expect(try await look.value == "loaded")
    }

    @Test func `a node whose own copy cannot be changed removes it later`() async throws {
        let (a, b) = (try await TestNode(tiers[0]), try await TestNode(tiers[1]))
        try await a.shared.setValue("old", forKey: "a")
        try await a.catchUp()
        try await a.manager.suspend()
        await #expect(throws: CacheError.self) { try await a.shared.setValue("new", forKey: "a") }
        #expect(try await b.get("a") == "new")
        a.manager.resume()
        try await Waiting.until { a.cache["a"] == nil }
        #expect(try await a.get("a") == "new")
    }
}
