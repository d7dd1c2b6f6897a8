import Larder

/// What the model knows of its callers and loads, and what may happen to them.
extension LoadModel {
    enum CallerFact: Hashable {
        case away, departed, waiting, got(Int), failed, cancelled
        /// The load had no value.
        case nothing
    }

    enum Phase: Hashable {
        /// It looks, says what it found, and looks once more for what was overtaken meanwhile.
        case finding, resuming, findingAgain
        case making, granted(commits: Bool), refused, over
    }

    struct LoadFact: Hashable {
        let isAsync: Bool
        /// The caller whose generator runs; nil in the background, where it goes on whoever leaves.
        let leader: Int?
        var phase = Phase.finding
        /// Who waits for it.
        var callers: Set<Int>
        var isOvertaken = false
        /// Whether its work is of no use any more, though its code may still run.
        var isEnded = false
        /// Whether it began next to a load that its caller must not wait for.
        var isAside = false
        /// Whether its generator has made nothing.
        var isEmpty = false
    }

    /// Everything that decides what may happen next.
    struct Facts: Hashable {
        var callers: [CallerFact]
        var loads: [LoadFact] = []
        /// A load's number plus one, 100 for what was set, nil for nothing.
        var stored: Int?
        var budget: Budget
    }

    /// How often may happen what could happen for ever.
    struct Budget: Hashable {
        var sets = 1
        var removals = 1
        var refreshes = 0
        /// Generators that make nothing.
        var nothings = 0
    }

    enum Event {
        case arrive(Int), cancel(Int), step(Int), fail(Int), claimInVain(Int), makeNothing(Int), set, remove, refresh
    }

    /// What decides what may happen next, and nothing else: callers of one manner that stand alike are one as good as the
    /// other, what came of those that are through makes no difference, nor which load stored what there is.
    var essence: [Int] {
        var callers = facts.callers.map { fact in
            switch fact {
            case .away: 0
            case .departed: 1
            default: 2
            }
        }
        var loads: [Int] = []
        var lateCount = 0
        for fact in facts.loads {
            if fact.isEnded {
                if fact.phase != .over { lateCount += 1 }
                continue
            }
            for caller in fact.callers { callers[caller] = 10 + 2 * loads.count + (fact.leader == caller ? 1 : 0) }
            let isTrue = [fact.isAsync, fact.leader != nil, fact.isOvertaken, fact.isAside, fact.isEmpty]
            loads.append(isTrue.reduce(fact.phase.number) { 2 * $0 + ($1 ? 1 : 0) })
        }
        let kinds = zip(manners, callers).map { manner, caller in
            switch manner {
            case .suspends: caller
            case .blocks: 1000 + caller
            case .blocksTask: 2000 + caller
            }
        }
        let budget = facts.budget
        return kinds.sorted() + [facts.stored == nil ? 0 : 1, lateCount]
            + [budget.sets, budget.removals, budget.refreshes, budget.nothings] + loads
    }
}

extension LoadModel.Phase {
    fileprivate var number: Int {
        switch self {
        case .finding: 0
        case .resuming: 1
        case .findingAgain: 2
        case .making: 3
        case .granted(let commits): commits ? 4 : 5
        case .refused: 6
        case .over: 7
        }
    }
}
