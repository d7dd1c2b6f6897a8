import Larder
import Testing

/// A machine with its graph, and callers that are numbered.
private final class LoadRig {
    private var machine = LoadMachine<String, Int>()
    private(set) var graph = LoadGraph()
    private var lastCaller = 0

    var callerCount: Int { machine.callerCount }
    var isIdle: Bool { machine.isIdle }

    /// What a new caller is told that runs inside `chain`: the flight that it leads, nil if it waits for another's, and the
    /// key that would close a circle.
    func join(
        _ keys: String..., in chain: LoadID?..., manner: LoadWait = .suspends
    ) -> (led: LoadID?, circle: String?) {
        lastCaller += 1
        defer { machine.checkInvariants(graph) }
        switch machine.join(keys, as: LoadCallerID(lastCaller), in: chain.compactMap(\.self), manner, &graph) {
        case .leads(let led, _): return (led, nil)
        case .joined: return (nil, nil)
        case .wouldDeadlock(let key): return (nil, key)
        case .cancelled: return (nil, nil)
        }
    }

    func begin(_ keys: String...) -> (LoadID, [String])? { machine.begin(keys, &graph) }

    /// The caller that joined last leaves.
    func leave() -> LoadEffects<String, Int> {
        change { machine, graph in machine.leave(LoadCallerID(lastCaller), &graph) }
    }

    func finish(_ flight: LoadID, with values: [String: Int]) -> LoadEffects<String, Int> {
        change { machine, graph in machine.finish(flight, with: values, &graph) }
    }

    func fail(_ flight: LoadID) -> LoadEffects<String, Int> {
        struct Failure: Error {}
        return change { machine, graph in machine.finish(flight, throwing: Failure(), &graph) }
    }

    func noteWrite(_ key: String) -> LoadEffects<String, Int> {
        change { machine, _ in machine.noteWrite(key) }
    }

    func mayStore(_ key: String, of flight: LoadID) -> Bool { machine.mayStore(key, of: flight) }
    func isBeaten(_ key: String, of load: LoadID) -> Bool { machine.isBeaten(key, of: load) }
    func openKeys(of load: LoadID) -> [String] { machine.openKeys(of: load) }

    func found(_ values: [String: Int], by load: LoadID) -> LoadEffects<String, Int> {
        change { machine, graph in machine.found(values, by: load, &graph) }
    }

    func isRunning(_ flight: LoadID) -> Bool { machine.isRunning(flight) }

    private func change(
        _ event: (inout LoadMachine<String, Int>, inout LoadGraph) -> LoadEffects<String, Int>
    ) -> LoadEffects<String, Int> {
        defer { machine.checkInvariants(graph) }
        return event(&machine, &graph)
    }
}

/// Loads and their callers, over the machine alone.
struct LoadMachineTests {
    private let rig = LoadRig()

    @Test func `one key inside itself`() {
        let one = rig.join("one").led
        for manner in [LoadWait.suspends, .blocks, .blocksTask] {
            #expect(rig.join("one", in: one, manner: manner).circle == "one")
        }
        #expect(rig.join("two", in: one).circle == nil)
        #expect(rig.join("one").circle == nil)
    }

    @Test func `over three keys only the one who would close it is refused`() {
        let one = rig.join("one").led
        let two = rig.join("two", in: one).led
        let three = rig.join("three", in: two).led
        #expect(rig.join("two", in: one).circle == nil)
        #expect(rig.join("one", in: three).circle == "one")
        #expect(rig.join("four", "two", in: three).circle == "two")
        #expect(rig.callerCount == 4 && rig.graph.count == 3)
    }

    @Test func `over two caches`() {
        var (graph, texts, numbers) = (LoadGraph(), LoadMachine<String, Int>(), LoadMachine<Int, Int>())
        let (outer, inner, last) = (LoadCallerID(1), LoadCallerID(1), LoadCallerID(2))
        guard case .leads(let one, _) = texts.join(["one"], as: outer, in: [], .suspends, &graph),
            case .leads(let two, _) = numbers.join([2], as: inner, in: [one], .suspends, &graph)
        else {
            Issue.record("each leads")
            return
        }
        guard case .wouldDeadlock("one") = texts.join(["one"], as: last, in: [two], .suspends, &graph) else {
            Issue.record("the circle has closed")
            return
        }
    }

    @Test func `a thread that runs a task, or a load, waits for no asynchronous load`() throws {
        let slow = rig.join("slow").led
        #expect(slow != nil && rig.join("slow", manner: .blocksTask).led != nil)
        // A task may wait for a load on a thread, which therefore waits for no task.
        let wanted = rig.join("wanted", manner: .blocks).led
        #expect(rig.join("wanted", manner: .blocksTask).led == nil)
        #expect(rig.join("slow", in: wanted, manner: .blocks).led != nil)
        #expect(rig.join("wanted").led == nil)
    }

    @Test func `who goes aside for a key inside its own generation of it is refused`() {
        #expect(rig.join("one").led != nil)
        let aside = rig.join("one", manner: .blocksTask).led
        #expect(aside != nil)
        #expect(rig.join("one", in: aside, manner: .blocksTask).circle == "one")
    }

    @Test func `a call for several keys leads a load of those that have none, and then waits for the others`() throws {
        let one = try #require(rig.join("one").led)
        let two = try #require(rig.join("one", "two").led)
        #expect(rig.openKeys(of: two) == ["two"] && rig.callerCount == 2)
        #expect(rig.finish(two, with: ["two": 2]).landings.count == 1)
        #expect(rig.join("one").led == nil)
        #expect(rig.fail(one).landings.count == 2)
        #expect(rig.callerCount == 0 && rig.graph.count == 0)
    }

    @Test func `a caller is woken when its own keys are found, and not before`() throws {
        let many = try #require(rig.join("one", "two", "three").led)
        #expect(rig.join("one").led == nil && rig.join("two", "one").led == nil)
        #expect(rig.found(["one": 1], by: many).landings.count == 1)
        #expect(rig.found(["two": 2], by: many).landings.count == 1)
        #expect(rig.finish(many, with: [:]).landings.count == 1)
        #expect(rig.isIdle && rig.callerCount == 0)
    }

    @Test func `of a load and one next to it the first to store decides`() throws {
        for asideIsFirst in [true, false] {
            let key = "\(asideIsFirst)"
            let load = try #require(rig.join(key).led)
            let aside = try #require(rig.join(key, manner: .blocksTask).led)
            let (first, second) = asideIsFirst ? (aside, load) : (load, aside)
            #expect(rig.mayStore(key, of: first) && !rig.mayStore(key, of: second))
            #expect(rig.isBeaten(key, of: second) && rig.mayStore(key, of: first))
            let landings = rig.finish(first, with: [key: 1]).landings
            #expect(landings.count == (asideIsFirst ? 2 : 1))
            #expect(try landings.allSatisfy { try $0.1.get() == [key: 1] })
            #expect(rig.isRunning(second) != asideIsFirst && !rig.mayStore(key, of: second))
            _ = rig.finish(second, with: [key: 1])
        }
        #expect(rig.isIdle && rig.callerCount == 0 && rig.graph.count == 0)
    }

    @Test func `a load next to one that has failed may store, and a write overtakes both`() throws {
        for isWritten in [true, false] {
            let load = try #require(rig.join("one").led)
            let aside = try #require(rig.join("one", manner: .blocksTask).led)
            if isWritten { _ = rig.noteWrite("one") }
            _ = rig.fail(load)
            #expect(rig.mayStore("one", of: aside) != isWritten)
            _ = rig.finish(aside, with: ["one": 1])
        }
    }

    @Test func `a write overtakes its own key of a flight and no other`() throws {
        let many = try #require(rig.join("one", "two").led)
        #expect(rig.noteWrite("one").landings.isEmpty)
        #expect(!rig.mayStore("one", of: many) && rig.mayStore("two", of: many))
        #expect(rig.join("two").led == nil)
        #expect(rig.join("one").led != nil)
        let effects = rig.finish(many, with: ["one": 1, "two": 2])
        #expect(effects.landings.count == 2)
    }

    @Test func `a refresh needs no callers, and begins only what is not underway`() throws {
        let (flight, keys) = try #require(rig.begin("one", "two"))
        #expect(keys == ["one", "two"] && rig.begin("one") == nil)
        #expect(rig.join("one").led == nil)
        let effects = rig.leave()
        #expect(effects.ended.isEmpty && rig.isRunning(flight))
        #expect(rig.mayStore("one", of: flight))
        #expect(rig.finish(flight, with: ["one": 1, "two": 2]).ended == [flight])
        #expect(rig.isIdle && rig.graph.count == 0)
    }
}

extension LoadEffects {
    /// The result of each caller.
    var landings: [(caller: LoadCallerID, Result<[Key: Output], any Error>)] {
        groups.flatMap { group in group.callers.map { ($0, group.result) } }
    }
}
