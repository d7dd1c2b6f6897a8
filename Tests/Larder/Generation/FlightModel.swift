import Larder
import Testing

/// What single flight promises for one key, told in a second way, and a machine that is held to it.
struct FlightModel {
    private struct Failure: Error {}

    private(set) var facts: Facts
    let manners: [FlightCallerManner]
    /// What its events are drawn with, if they are drawn.
    private let seed: UInt64?
    private var ids: [FlightID] = []
    private var machine = FlightMachine<String, Int>()
    private var graph = FlightGraph()
    private let key = "key"

    init(_ manners: [FlightCallerManner], _ budget: Budget = Budget(), seed: UInt64? = nil) {
        self.manners = manners
        self.seed = seed
        facts = Facts(callers: manners.map { _ in .away }, budget: budget)
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
            // Who comes first matters where manners differ.
            let isNext = (0..<caller).allSatisfy { earlier in
                manners[earlier] != manners[caller] || ![.away, .departed].contains(facts.callers[earlier])
            }
            if isNext, fact == .away || fact == .departed { events.append(.arrive(caller)) }
            let mayLeave = fact == .waiting || isNext && fact == .away
            if manners[caller] == .suspends, mayLeave { events.append(.cancel(caller)) }
        }
        for (flight, fact) in facts.flights.enumerated() where fact.phase != .over && !fact.isDeferred {
            events.append(.step(flight))
            if fact.isEnded { continue }
            guard fact.phase == .making else { continue }
            events += [.fail(flight), .claimInVain(flight)]
            if facts.budget.nothings > 0 { events.append(.makeNothing(flight)) }
        }
        if facts.budget.sets > 0 { events.append(.set) }
        if facts.budget.removals > 0 { events.append(.remove) }
        if facts.budget.refreshes > 0 { events.append(.refresh) }
        return events
    }

    mutating func apply(_ event: Event) {
        switch event {
        case .arrive(let caller): arrive(caller)
        case .cancel(let caller): cancel(caller)
        case .step(let flight): step(flight)
        case .fail(let flight): fail(flight)
        case .claimInVain(let flight): claim(flight, commits: false)
        case .makeNothing(let flight): makeNothing(flight)
        case .set:
            facts.stored = 100
            facts.budget.sets -= 1
            overtake(machine.noteWrite(key, &graph))
        case .remove:
            facts.stored = nil
            facts.budget.removals -= 1
            overtake(machine.noteClear(&graph))
        case .refresh: refresh()
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

    private var isBeingStored: Bool {
        contenders.contains { if case .granted = facts.flights[$0].phase { true } else { false } }
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
                let isAsync = manners[caller] == .suspends
                facts.flights.append(FlightFact(isAsync: isAsync, leader: caller, callers: [caller]))
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
            guard fact.callers.isEmpty, fact.isAsync, fact.leader != nil else { continue }
            if case .granted = fact.phase { continue }
            end(flight)
            check(effects.ended == [ids[flight]])
        }
    }

    private mutating func step(_ flight: Int) {
        if facts.flights[flight].isEnded { return late(flight) }
        switch facts.flights[flight].phase {
        case .finding: find(flight, otherwise: .resuming)
        case .resuming:
            // Where another flight has begun since, that one stores.
            let resumes = facts.flights[flight].isOvertaken && contenders.isEmpty
            check(machine.resume(ids[flight]) == (resumes ? [key] : []))
            facts.flights[flight].phase = resumes ? .findingAgain : .making
            if resumes { facts.flights[flight].isOvertaken = false }
        case .findingAgain: find(flight, otherwise: .making)
        case .making:
            claim(flight, commits: true)
        case .granted(let commits): finishStoring(flight, commits)
        case .refused: finishUnstored(flight, with: [key: flight + 1])
        case .over: Issue.record("it is over")
        }
    }

    private mutating func find(_ flight: Int, otherwise next: Phase) {
        facts.flights[flight].phase = next
        guard let stored = facts.stored else { return }
        facts.flights[flight].phase = .over
        let expected = landing(flight, .got(stored))
        expect(machine.found([key: stored], by: ids[flight], &graph), expected)
        check(machine.openKeys(of: ids[flight]).isEmpty && machine.resume(ids[flight]).isEmpty)
    }

    /// The flight has done its own, and stored nothing.
    private mutating func finishUnstored(_ flight: Int, with values: [String: Int]) {
        facts.flights[flight].phase = .over
        if contenders.contains(flight) && isBeingStored {
            facts.flights[flight].isDeferred = true
            expect(machine.finish(ids[flight], with: values, &graph), [:])
        } else {
            let expected = landing(flight)
            expect(machine.finish(ids[flight], with: values, &graph), expected)
        }
    }

    private mutating func makeNothing(_ flight: Int) {
        facts.budget.nothings -= 1
        facts.flights[flight].isEmpty = true
        finishUnstored(flight, with: [:])
    }

    /// A flight in the background begins, unless one is underway.
    private mutating func refresh() {
        facts.budget.refreshes -= 1
        let isUnderway = !contenders.isEmpty
        guard let (flight, keys) = machine.begin([key], &graph) else { return check(isUnderway) }
        check(!isUnderway && keys == [key])
        ids.append(flight)
        facts.flights.append(FlightFact(isAsync: true, leader: nil, callers: []))
    }

    /// The code of a flight that has ended goes on to its end, and nothing comes of it.
    private mutating func late(_ flight: Int) {
        check(!machine.openKeys(of: ids[flight]).contains(key) && !machine.mayStore(key, of: ids[flight]))
        check(machine.resume(ids[flight]).isEmpty)
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
                expected.merge(landing(other)) { first, _ in first }
            }
            expect(machine.finish(ids[flight], throwing: Failure(), &graph), expected)
        }
    }

    /// The flight comes to the place where writes are ordered, and its write will succeed or fail there.
    private mutating func claim(_ flight: Int, commits: Bool) {
        let isFree = !isBeingStored
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
                expected.merge(landing(flight)) { first, _ in first }
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

    /// Ends a flight with its own, and says what its callers have to be told.
    private mutating func landing(_ flight: Int) -> [Int: CallerFact] {
        guard facts.flights[flight].isEmpty else { return landing(flight, .got(flight + 1)) }
        let leader = facts.flights[flight].leader
        let callers = landing(flight, .unanswered).keys.map { ($0, $0 == leader ? CallerFact.nothing : .unanswered) }
        for (caller, fact) in callers { facts.callers[caller] = fact }
        return Dictionary(uniqueKeysWithValues: callers)
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
                let isNothing = landing.unanswered.isEmpty ? CallerFact.nothing : .unanswered
                check(fact == landing.values[key].map(CallerFact.got) ?? isNothing)
                check(landing.unanswered.isEmpty || landing.unanswered == [key] && landing.values.isEmpty)
            case .failure(let error):
                check(fact == (error is CancellationError ? .cancelled : .failed))
            }
        }
    }
}
