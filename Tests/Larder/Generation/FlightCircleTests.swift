import Larder
import Testing

/// A machine with its graph, and callers that are numbered.
private final class FlightRig {
    private var machine = FlightMachine<String, Int>()
    private(set) var graph = FlightGraph()
    private var lastCaller = 0

    var callerCount: Int { machine.callerCount }
    var isIdle: Bool { machine.isIdle }

    /// What a new caller is told that runs inside `chain`: the flight that it leads, nil if it waits for another's, and the
    /// key that would close a circle.
    func join(
        _ keys: String..., in chain: FlightID?..., manner: FlightCallerManner = .suspends
    ) -> (led: FlightID?, circle: String?) {
        lastCaller += 1
        defer { machine.checkInvariants(graph) }
        switch machine.join(keys, as: FlightCallerID(lastCaller), in: chain.compactMap(\.self), manner, &graph) {
        case .aboard(let led, _): return (led, nil)
        case .circle(let key): return (nil, key)
        case .cancelled: return (nil, nil)
        }
    }

    func begin(_ keys: String...) -> (FlightID, [String])? { machine.begin(keys, &graph) }

    /// The caller that joined last leaves.
    func leave(_ caller: Int? = nil) -> FlightEffects<String, Int> {
        change { machine, graph in machine.leave(FlightCallerID(caller ?? lastCaller), &graph) }
    }

    var caller: Int { lastCaller }

    func finish(_ flight: FlightID, with values: [String: Int]) -> FlightEffects<String, Int> {
        change { machine, graph in machine.finish(flight, with: values, &graph) }
    }

    func fail(_ flight: FlightID) -> FlightEffects<String, Int> {
        struct Failure: Error {}
        return change { machine, graph in machine.finish(flight, throwing: Failure(), &graph) }
    }

    func noteWrite(_ key: String) -> FlightEffects<String, Int> {
        change { machine, graph in machine.noteWrite(key, &graph) }
    }

    func resume(_ flight: FlightID) -> [String] {
        defer { machine.checkInvariants(graph) }
        return machine.resume(flight)
    }

    func mayStore(_ key: String, of flight: FlightID) -> Bool { machine.mayStore(key, of: flight) }
    func isFlying(_ flight: FlightID) -> Bool { machine.isFlying(flight) }

    private func change(
        _ event: (inout FlightMachine<String, Int>, inout FlightGraph) -> FlightEffects<String, Int>
    ) -> FlightEffects<String, Int> {
        defer { machine.checkInvariants(graph) }
        return event(&machine, &graph)
    }
}

/// Flights that wait for others, over the machine alone.
struct FlightCircleTests {
    private let rig = FlightRig()

    @Test func `what was overtaken while it looked is made as if the flight began now`() throws {
        let flight = try #require(rig.join("one", "two", "three").led)
        for key in ["one", "two"] { _ = rig.noteWrite(key) }
        // Another flight has begun for it since, which stores.
        let other = try #require(rig.join("two").led)
        #expect(rig.resume(flight) == ["one"])
        #expect(rig.join("one").led == nil)
        #expect(rig.resume(flight) == [])
        #expect(["one", "two", "three"].map { rig.mayStore($0, of: flight) } == [true, false, true])
        #expect(rig.mayStore("two", of: other))
        _ = rig.finish(flight, with: ["one": 1, "two": 2, "three": 3])
        #expect(rig.resume(flight) == [] && !rig.isFlying(flight))
        _ = rig.finish(other, with: ["two": 2])
        #expect(rig.isIdle && rig.callerCount == 0)
    }

    @Test func `one key inside itself`() {
        let one = rig.join("one").led
        for manner in [FlightCallerManner.suspends, .blocks, .blocksPool] {
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

    @Test func `over two flights that began apart`() {
        let (one, two) = (rig.join("one").led, rig.join("two").led)
        #expect(rig.join("two", in: one).led == nil)
        #expect(rig.join("one", in: two).circle == "one")
    }

    @Test func `over flights for several keys`() {
        let some = rig.join("one", "two").led
        let others = rig.join("three", "four").led
        #expect(rig.join("four", in: some).circle == nil)
        #expect(rig.join("five", "two", in: others).circle == "two")
    }

    @Test func `over two caches`() {
        var (graph, texts, numbers) = (FlightGraph(), FlightMachine<String, Int>(), FlightMachine<Int, Int>())
        let (outer, inner, last) = (FlightCallerID(1), FlightCallerID(1), FlightCallerID(2))
        guard case .aboard(let one?, _) = texts.join(["one"], as: outer, in: [], .suspends, &graph),
            case .aboard(let two?, _) = numbers.join([2], as: inner, in: [one], .suspends, &graph)
        else {
            Issue.record("each leads")
            return
        }
        guard case .circle("one") = texts.join(["one"], as: last, in: [two], .suspends, &graph) else {
            Issue.record("the circle has closed")
            return
        }
    }

    @Test func `who has left closes no circle`() {
        let one = rig.join("one").led
        let two = rig.join("two", in: one).led
        let inside = rig.caller
        #expect(rig.join("two").led == nil)
        #expect(rig.leave(inside).landings.count == 1)
        // The first does not wait for the second any more.
        #expect(rig.join("one", in: two).circle == nil)
        #expect(rig.join("two", in: one).circle == "two")
    }

    @Test func `a flight that has landed closes no circle`() throws {
        let one = try #require(rig.join("one").led)
        let two = rig.join("two", in: one).led
        #expect(rig.finish(one, with: ["one": 1]).landings.count == 1)
        let again = rig.join("one", in: two)
        #expect(again.led != nil && again.circle == nil)
    }

    @Test func `nested on one thread, every flight waits for what the innermost waits for`() throws {
        let outer = try #require(rig.join("outer", manner: .blocks).led)
        let inner = try #require(rig.join("inner", in: outer, manner: .blocks).led)
        let other = rig.join("other").led
        #expect(rig.join("other", in: outer, inner, manner: .blocks).led == nil)
        // The inner one has landed for its callers, though its code still waits.
        #expect(rig.finish(inner, with: ["inner": 1]).landings.count == 1)
        #expect(rig.join("outer", in: other).circle == "outer")
    }

    @Test func `a thread of the pool waits for nothing that needs the pool, over any number of flights`() throws {
        let slow = rig.join("slow").led
        #expect(rig.join("slow", manner: .blocksPool).led != nil)
        // A thread leads; one that waits for a generation in a task is no use to the pool.
        let waiting = rig.join("waiting", manner: .blocks).led
        #expect(rig.join("slow", in: waiting, manner: .blocks).led == nil)
        #expect(rig.join("waiting", manner: .blocksPool).led != nil)
        // And one whom the pool waits for must not begin to wait so.
        let wanted = rig.join("wanted", manner: .blocks).led
        #expect(rig.join("wanted", manner: .blocksPool).led == nil)
        let aside = rig.join("other", in: wanted, manner: .blocks).led
        #expect(aside != nil)
        let further = rig.join("further").led
        #expect(rig.join("further", in: wanted, aside, manner: .blocks).led != nil)
        #expect(slow != nil && further != nil)
    }

    @Test func `who goes aside for a key inside its own generation of it is refused`() {
        #expect(rig.join("one").led != nil)
        let aside = rig.join("one", manner: .blocksPool).led
        #expect(aside != nil)
        #expect(rig.join("one", in: aside, manner: .blocksPool).circle == "one")
    }

    @Test func `a call for several keys waits for all its flights, and fails with the first that fails`() throws {
        let one = try #require(rig.join("one").led)
        let both = try #require(rig.join("one", "two").led)
        #expect(rig.mayStore("two", of: both))
        #expect(rig.finish(both, with: ["two": 2]).landings.isEmpty)
        #expect(rig.fail(one).landings.count == 2)
        #expect(rig.callerCount == 0 && rig.graph.count == 0)
    }

    @Test func `a key for which another's flight makes nothing is unanswered, and one's own is not`() throws {
        let many = try #require(rig.join("one", "two").led)
        #expect(rig.join("one").led == nil)
        let effects = rig.finish(many, with: ["two": 2])
        let landings = try effects.landings.sorted { $0.caller.hashValue < $1.caller.hashValue }.map { try $0.1.get() }
        #expect(Set(landings.map(\.unanswered)) == [[], ["one"]])
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
        #expect(effects.ended.isEmpty && rig.isFlying(flight))
        #expect(rig.mayStore("one", of: flight))
        #expect(rig.finish(flight, with: ["one": 1, "two": 2]).ended == [flight])
        #expect(rig.isIdle && rig.graph.count == 0)
    }
}
