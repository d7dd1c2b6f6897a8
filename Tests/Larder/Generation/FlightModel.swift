import Larder
import Testing

/// What single flight promises for one key, told in a second way, and a machine that is held to it.
struct FlightModel {
    enum CallerFact: Hashable {
        case away, departed, waiting, got(Int), failed, cancelled
    }

    enum Phase: Hashable {
        case finding, making, granted(commits: Bool), refused, over
    }

    struct FlightFact: Hashable {
        let isAsync: Bool
        var phase = Phase.finding
        /// Who waits for it.
        var callers: Set<Int>
        var isOvertaken = false
        /// Whether its work is of no use any more, though its code may still run.
        var isEnded = false
        /// Whether it waits, having done its own, for another's storing.
        var isDeferred = false
    }

    /// Everything that decides what may happen next.
    struct Facts: Hashable {
        var callers: [CallerFact]
        var flights: [FlightFact] = []
        /// A flight's number plus one, 100 for what was set, nil for nothing.
        var stored: Int?
        var hasSet = false
        var hasRemoved = false
    }

    enum Event {
        case arrive(Int), cancel(Int), step(Int), fail(Int), claimInVain(Int), set, remove
    }

    private struct Failure: Error {}

    private(set) var facts: Facts
    private let manners: [FlightCallerManner]
    /// What its events are drawn with, if they are drawn.
    private let seed: UInt64?
    private var ids: [FlightID] = []
    private var machine = FlightMachine<String, Int>()
    private var graph = FlightGraph()
    private let key = "key"

    init(_ manners: [FlightCallerManner], seed: UInt64? = nil) {
        self.manners = manners
        self.seed = seed
        facts = Facts(callers: manners.map { _ in .away })
    }

    /// As `#expect`, which is too dear for millions of states.
    private func check(_ isMet: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
        if isMet { return }
        Issue.record("\(seed.map { "seed \($0), " } ?? "")\(facts)", sourceLocation: sourceLocation)
    }

    // MARK: - What may happen

    var events: [Event] {
        var events: [Event] = []
        for (caller, fact) in facts.callers.enumerated() {
            let isNext = facts.callers[..<caller].allSatisfy { $0 != .away && $0 != .departed }
            if isNext, fact == .away || fact == .departed { events.append(.arrive(caller)) }
            let mayLeave = fact == .waiting || isNext && fact == .away
            if manners[caller] == .suspends, mayLeave { events.append(.cancel(caller)) }
        }
        for (flight, fact) in facts.flights.enumerated() where fact.phase != .over && !fact.isDeferred {
            events.append(.step(flight))
            if fact.isEnded { continue }
            if fact.phase == .making { events += [.fail(flight), .claimInVain(flight)] }
        }
        if !facts.hasSet { events.append(.set) }
        if !facts.hasRemoved { events.append(.remove) }
        return events
    }

    mutating func apply(_ event: Event) {
        switch event {
        case .arrive(let caller): arrive(caller)
        case .cancel(let caller): cancel(caller)
        case .step(let flight): step(flight)
        case .fail(let flight): fail(flight)
        case .claimInVain(let flight): claim(flight, commits: false)
        case .set:
            (facts.stored, facts.hasSet) = (100, true)
            overtake(machine.noteWrite(key, &graph))
        case .remove:
            (facts.stored, facts.hasRemoved) = (nil, true)
            overtake(machine.noteClear(&graph))
        }
    }

    func expectConsistency() {
        machine.checkInvariants(graph)
        check(machine.callerCount == facts.callers.count { $0 == .waiting })
        check(machine.isIdle == contenders.isEmpty)
    }

    func expectEnd() {
        check(machine.callerCount == 0 && machine.isIdle && graph.count == 0)
        check(facts.callers.allSatisfy { $0 != .waiting && $0 != .away })
    }

    // MARK: - What has to follow

    /// The flights that may be joined.
    private var contenders: [Int] {
        facts.flights.indices.filter { !facts.flights[$0].isEnded && !facts.flights[$0].isOvertaken }
    }

    private mutating func arrive(_ caller: Int) {
        let choice = contenders.first { manners[caller] != .blocksPool || !facts.flights[$0].isAsync }
        let wasDeparted = facts.callers[caller] == .departed
        switch machine.join([key], as: FlightCallerID(caller), in: [], manners[caller], &graph) {
        case .cancelled:
            check(wasDeparted)
            facts.callers[caller] = .cancelled
        case .circle: Issue.record("no flight is inside another")
        case .aboard(let led, let keys):
            check(!wasDeparted && (led == nil) == (choice != nil) && keys == (led == nil ? [] : [key]))
            facts.callers[caller] = .waiting
            if let choice {
                facts.flights[choice].callers.insert(caller)
            } else if let led {
                ids.append(led)
                facts.flights.append(FlightFact(isAsync: manners[caller] == .suspends, callers: [caller]))
            }
        }
    }

    private mutating func cancel(_ caller: Int) {
        let effects = machine.leave(FlightCallerID(caller), &graph)
        if facts.callers[caller] == .away {
            facts.callers[caller] = .departed
            return expect(effects, [:])
        }
        facts.callers[caller] = .cancelled
        expect(effects, [caller: .cancelled])
        for flight in facts.flights.indices where facts.flights[flight].callers.remove(caller) != nil {
            let fact = facts.flights[flight]
            guard fact.callers.isEmpty, fact.isAsync else { continue }
            if case .granted = fact.phase { continue }
            end(flight)
            check(effects.ended == [ids[flight]])
        }
    }

    private mutating func step(_ flight: Int) {
        if facts.flights[flight].isEnded { return late(flight) }
        switch facts.flights[flight].phase {
        case .finding:
            facts.flights[flight].phase = .making
            guard let stored = facts.stored else { return }
            facts.flights[flight].phase = .over
            let expected = landing(flight, .got(stored))
            expect(machine.found([key: stored], by: ids[flight], &graph), expected)
        case .making:
            claim(flight, commits: true)
        case .granted(let commits): finishStoring(flight, commits)
        case .refused:
            facts.flights[flight].phase = .over
            let isWaiting =
                contenders.contains(flight)
                && contenders.contains { if case .granted = facts.flights[$0].phase { true } else { false } }
            if isWaiting {
                facts.flights[flight].isDeferred = true
                expect(machine.finish(ids[flight], with: [key: flight + 1], &graph), [:])
            } else {
                let expected = landing(flight, .got(flight + 1))
                expect(machine.finish(ids[flight], with: [key: flight + 1], &graph), expected)
            }
        case .over: Issue.record("it is over")
        }
    }

    /// The code of a flight that has ended goes on to its end, and nothing comes of it.
    private mutating func late(_ flight: Int) {
        check(!machine.openKeys(of: ids[flight]).contains(key) && !machine.mayStore(key, of: ids[flight]))
        expect(machine.found([key: flight + 1], by: ids[flight], &graph), [:])
        expect(machine.finish(ids[flight], throwing: Failure(), &graph), [:])
        expect(machine.finish(ids[flight], with: [key: flight + 1], &graph), [:])
        facts.flights[flight].phase = .over
    }

    private mutating func finishStoring(_ flight: Int, _ commits: Bool) {
        let fact = facts.flights[flight]
        facts.flights[flight].phase = .over
        check(!fact.isEnded)
        let others = fact.isOvertaken ? [] : contenders.filter { $0 != flight }
        if commits {
            var expected = landing(flight, .got(flight + 1))
            for other in others { expected.merge(landing(other, .got(flight + 1))) { first, _ in first } }
            expect(machine.finish(ids[flight], with: [key: flight + 1], &graph), expected)
        } else {
            var expected = landing(flight, .failed)
            for other in others where facts.flights[other].isDeferred {
                expected.merge(landing(other, .got(other + 1))) { first, _ in first }
            }
            expect(machine.finish(ids[flight], throwing: Failure(), &graph), expected)
        }
    }

    /// The flight comes to the place where writes are ordered, and its write will succeed or fail there.
    private mutating func claim(_ flight: Int, commits: Bool) {
        let isFree = !contenders.contains { if case .granted = facts.flights[$0].phase { true } else { false } }
        let mayStore = machine.mayStore(key, of: ids[flight])
        check(mayStore == (contenders.contains(flight) && isFree))
        facts.flights[flight].phase = mayStore ? .granted(commits: commits) : .refused
        if mayStore && commits { facts.stored = flight + 1 }
    }

    /// The generator fails.
    private mutating func fail(_ flight: Int) {
        facts.flights[flight].phase = .over
        let expected = landing(flight, .failed)
        expect(machine.finish(ids[flight], throwing: Failure(), &graph), expected)
    }

    private mutating func overtake(_ effects: FlightEffects<String, Int>) {
        var expected: [Int: CallerFact] = [:]
        for flight in contenders {
            facts.flights[flight].isOvertaken = true
            if facts.flights[flight].isDeferred {
                expected.merge(landing(flight, .got(flight + 1))) { first, _ in first }
            }
        }
        expect(effects, expected)
    }

    private mutating func end(_ flight: Int) {
        facts.flights[flight].isEnded = true
        // How far it was makes no difference any more, but that its code may still run does.
        if facts.flights[flight].phase != .over { facts.flights[flight].phase = .making }
        facts.flights[flight].isDeferred = false
        facts.flights[flight].callers = []
    }

    /// Ends a flight, and says what its callers have to be told.
    private mutating func landing(_ flight: Int, _ fact: CallerFact) -> [Int: CallerFact] {
        let callers = facts.flights[flight].isEnded ? [] : facts.flights[flight].callers
        end(flight)
        for caller in callers { facts.callers[caller] = fact }
        return Dictionary(uniqueKeysWithValues: callers.map { ($0, fact) })
    }

    private func expect(_ effects: FlightEffects<String, Int>, _ expected: [Int: CallerFact]) {
        check(effects.landings.count == expected.count)
        for (id, result) in effects.landings {
            let fact = expected.first { FlightCallerID($0.key) == id }?.value
            switch result {
            case .success(let landing):
                check(landing.unanswered.isEmpty && fact == landing.values[key].map(CallerFact.got))
            case .failure(let error):
                check(fact == (error is CancellationError ? .cancelled : .failed))
            }
        }
    }
}
