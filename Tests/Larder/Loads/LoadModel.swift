import Larder
import Testing

/// What single load promises for one key, told in a second way, and a machine that is held to it.
struct LoadModel {
    private struct Failure: Error {}

    private(set) var facts: Facts
    let manners: [LoadWait]
    /// What its events are drawn with, if they are drawn.
    private let seed: UInt64?
    private var ids: [LoadID] = []
    private var machine = LoadMachine<String, Int>()
    private var graph = LoadGraph()
    private let key = "key"

    init(_ manners: [LoadWait], _ budget: Budget = Budget(), seed: UInt64? = nil) {
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
        for (load, fact) in facts.loads.enumerated() where fact.phase != .over {
            events.append(.step(load))
            if fact.isEnded { continue }
            guard fact.phase == .making else { continue }
            events += [.fail(load), .claimInVain(load)]
            if facts.budget.nothings > 0 { events.append(.makeNothing(load)) }
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
        case .step(let load): step(load)
        case .fail(let load): fail(load)
        case .claimInVain(let load): claim(load, commits: false)
        case .makeNothing(let load): makeNothing(load)
        case .set:
            facts.stored = 100
            facts.budget.sets -= 1
            overtake(machine.noteWrite(key))
        case .remove:
            facts.stored = nil
            facts.budget.removals -= 1
            overtake(machine.noteClear())
        case .refresh: refresh()
        }
    }

    func expectConsistency() {
        machine.checkInvariants(graph)
        check(machine.callerCount == facts.callers.count { $0 == .waiting })
        check(!machine.isIdle || contenders.isEmpty)
    }

    func expectEnd() {
        check(machine.callerCount == 0 && machine.isIdle && graph.count == 0)
        check(facts.callers.allSatisfy { $0 != .waiting && $0 != .away })
    }

    // MARK: - What has to follow

    /// The loads that may be joined.
    private var contenders: [Int] {
        facts.loads.indices.filter { !facts.loads[$0].isEnded && !facts.loads[$0].isOvertaken }
    }

    /// The load that callers join.
    private var joinable: Int? { contenders.first { !facts.loads[$0].isAside } }

    private var isBeingStored: Bool {
        contenders.contains { if case .granted = facts.loads[$0].phase { true } else { false } }
    }

    private mutating func arrive(_ caller: Int) {
        let choice = joinable.flatMap { manners[caller] != .blocksTask || !facts.loads[$0].isAsync ? $0 : nil }
        let wasDeparted = facts.callers[caller] == .departed
        switch machine.join([key], as: LoadCallerID(caller), in: [], manners[caller], &graph) {
        case .cancelled:
            check(wasDeparted)
            facts.callers[caller] = .cancelled
        case .wouldDeadlock: Issue.record("no load is inside another")
        case .joined:
            guard let choice else { return check(false) }
            check(!wasDeparted)
            facts.callers[caller] = .waiting
            facts.loads[choice].callers.insert(caller)
        case .leads(let led, let keys):
            check(!wasDeparted && choice == nil && keys == [key])
            facts.callers[caller] = .waiting
            ids.append(led)
            let isAside = joinable != nil
            facts.loads.append(
                LoadFact(isAsync: manners[caller] == .suspends, leader: caller, callers: [caller], isAside: isAside))
        }
    }

    private mutating func cancel(_ caller: Int) {
        let effects = machine.leave(LoadCallerID(caller), &graph)
        if facts.callers[caller] == .away {
            facts.callers[caller] = .departed
            return expect(effects, [:])
        }
        facts.callers[caller] = .cancelled
        expect(effects, [caller: .cancelled])
        for load in facts.loads.indices where facts.loads[load].callers.remove(caller) != nil {
            let fact = facts.loads[load]
            guard fact.callers.isEmpty, fact.isAsync, fact.leader != nil else { continue }
            if case .granted = fact.phase { continue }
            end(load)
            check(effects.ended == [ids[load]])
        }
    }

    private mutating func step(_ load: Int) {
        if facts.loads[load].isEnded { return late(load) }
        switch facts.loads[load].phase {
        case .finding: find(load, otherwise: .resuming)
        case .resuming:
            // Where another load has begun since, that one stores.
            let resumes = facts.loads[load].isOvertaken && joinable == nil
            check(machine.resume(ids[load]) == (resumes ? [key] : []))
            facts.loads[load].phase = resumes ? .findingAgain : .making
            if resumes { (facts.loads[load].isOvertaken, facts.loads[load].isAside) = (false, false) }
        case .findingAgain: find(load, otherwise: .making)
        case .making:
            claim(load, commits: true)
        case .granted(let commits): finishStoring(load, commits)
        case .refused: finishUnstored(load, with: [key: load + 1])
        case .over: Issue.record("it is over")
        }
    }

    private mutating func find(_ load: Int, otherwise next: Phase) {
        facts.loads[load].phase = next
        guard let stored = facts.stored else { return }
        facts.loads[load].phase = .over
        let expected = result(load, .got(stored))
        expect(machine.found([key: stored], by: ids[load], &graph), expected)
        check(machine.openKeys(of: ids[load]).isEmpty && machine.resume(ids[load]).isEmpty)
    }

    /// The load has done its own, and stored nothing.
    private mutating func finishUnstored(_ load: Int, with values: [String: Int]) {
        facts.loads[load].phase = .over
        let expected = result(load)
        expect(machine.finish(ids[load], with: values, &graph), expected)
    }

    private mutating func makeNothing(_ load: Int) {
        facts.budget.nothings -= 1
        facts.loads[load].isEmpty = true
        finishUnstored(load, with: [:])
    }

    /// A load in the background begins, unless one is underway.
    private mutating func refresh() {
        facts.budget.refreshes -= 1
        let isUnderway = joinable != nil
        guard let (load, keys) = machine.begin([key], &graph) else { return check(isUnderway) }
        check(!isUnderway && keys == [key])
        ids.append(load)
        facts.loads.append(LoadFact(isAsync: true, leader: nil, callers: []))
    }

    /// The code of a load that has ended goes on to its end, and nothing comes of it.
    private mutating func late(_ load: Int) {
        check(!machine.openKeys(of: ids[load]).contains(key) && !machine.mayStore(key, of: ids[load]))
        check(machine.resume(ids[load]).isEmpty)
        expect(machine.found([key: load + 1], by: ids[load], &graph), [:])
        expect(machine.finish(ids[load], throwing: Failure(), &graph), [:])
        expect(machine.finish(ids[load], with: [key: load + 1], &graph), [:])
        facts.loads[load].phase = .over
    }

    private mutating func finishStoring(_ load: Int, _ commits: Bool) {
        let fact = facts.loads[load]
        facts.loads[load].phase = .over
        check(!fact.isEnded)
        if commits {
            let others = fact.isOvertaken ? [] : contenders.filter { $0 != load }
            var expected = result(load, .got(load + 1))
            for other in others {
                if facts.loads[other].isAside {
                    facts.loads[other].isOvertaken = true
                } else {
                    expected.merge(result(other, .got(load + 1))) { first, _ in first }
                }
            }
            expect(machine.finish(ids[load], with: [key: load + 1], &graph), expected)
        } else {
            let expected = result(load, .failed)
            expect(machine.finish(ids[load], throwing: Failure(), &graph), expected)
        }
    }

    /// The load comes to the place where writes are ordered, and its write will succeed or fail there.
    private mutating func claim(_ load: Int, commits: Bool) {
        let isFree = !isBeingStored
        let mayStore = machine.mayStore(key, of: ids[load])
        check(mayStore == (contenders.contains(load) && isFree))
        facts.loads[load].phase = mayStore ? .granted(commits: commits) : .refused
        if mayStore && commits { facts.stored = load + 1 }
    }

    /// The generator fails.
    private mutating func fail(_ load: Int) {
        facts.loads[load].phase = .over
        let expected = result(load, .failed)
        expect(machine.finish(ids[load], throwing: Failure(), &graph), expected)
    }

    private mutating func overtake(_ effects: LoadEffects<String, Int>) {
        for load in contenders { facts.loads[load].isOvertaken = true }
        expect(effects, [:])
    }

    private mutating func end(_ load: Int) {
        facts.loads[load].isEnded = true
        // How far it was makes no difference any more, but that its code may still run does.
        if facts.loads[load].phase != .over { facts.loads[load].phase = .making }
        facts.loads[load].callers = []
    }

    /// Ends a load with its own result, and says what its callers have to get.
    private mutating func result(_ load: Int) -> [Int: CallerFact] {
        result(load, facts.loads[load].isEmpty ? .nothing : .got(load + 1))
    }

    /// Ends a load, and says what its callers have to be told.
    private mutating func result(_ load: Int, _ fact: CallerFact) -> [Int: CallerFact] {
        let callers = facts.loads[load].isEnded ? [] : facts.loads[load].callers
        end(load)
        for caller in callers { facts.callers[caller] = fact }
        return Dictionary(uniqueKeysWithValues: callers.map { ($0, fact) })
    }

    private func expect(_ effects: LoadEffects<String, Int>, _ expected: [Int: CallerFact]) {
        check(effects.landings.count == expected.count)
        for (id, result) in effects.landings {
            let fact = expected.first { LoadCallerID($0.key) == id }?.value
            switch result {
            case .success(let values):
                check(fact == values[key].map(CallerFact.got) ?? .nothing)
            case .failure(let error):
                check(fact == (error is CancellationError ? .cancelled : .failed))
            }
        }
    }
}
