import Larder
import LarderTestSupport
import Testing

/// Every order of events for one key, over the machine alone.
///
/// A case names what each of its callers does with its thread. From each state every possible event is tried; states that
/// the model cannot tell apart are tried once.
struct LoadInterleavingTests {
    private typealias Manner = LoadWait

    private func explore(_ manners: [LoadWait], _ budget: LoadModel.Budget = .init()) -> Int {
        var seen: Set<[Int]> = []
        var open = [LoadModel(manners, budget)]
        var endings = 0
        while let model = open.popLast() {
            let events = model.events
            if events.isEmpty {
                model.expectEnd()
                endings += 1
            }
            for event in events {
                var next = model
                next.apply(event)
                guard seen.insert(next.essence).inserted else { continue }
                next.expectConsistency()
                open.append(next)
            }
        }
        #expect(endings > 0)
        return seen.count
    }

    @Test func `four callers that suspend`() {
        let count = explore([.suspends, .suspends, .suspends, .suspends])
        #expect(count > 10_000, "\(count)")
    }

    @Test func `four callers of several manners, one of whose values is set meanwhile`() {
        let count = explore([.suspends, .blocksTask, .blocks, .suspends], .init(sets: 1, removals: 0))
        #expect(count > 1000, "\(count)")
    }

    @Test func `four callers of several manners, one of whose values is removed meanwhile`() {
        let count = explore([.suspends, .blocksTask, .blocksTask, .blocks], .init(sets: 0, removals: 1))
        #expect(count > 1000, "\(count)")
    }

    /// In whatever order they come, which the model tries.
    @Test func `three callers of all manners`() {
        let all: [LoadWait] = [.suspends, .blocks, .blocksTask]
        for (index, first) in all.enumerated() {
            for (last, second) in all[...index].enumerated() {
                for third in all[...last] {
                    let isMixed = first != second && second != third
                    let count = explore([first, second, third], .init(sets: 1, removals: isMixed ? 1 : 0))
                    #expect(count > 100, "\(count)")
                }
            }
        }
    }

    @Test(arguments: [
        [LoadWait.suspends, .suspends], [.suspends, .blocks], [.suspends, .blocksTask],
        [.blocks, .blocksTask],
    ])
    func `two callers, whose value is set and removed twice`(manners: [LoadWait]) {
        let count = explore(manners, .init(sets: 2, removals: 2))
        #expect(count > 500, "\(count)")
    }

    @Test(arguments: [[LoadWait.suspends, .suspends], [.suspends, .blocksTask]])
    func `callers, a refresh in the background, and a generator that makes nothing`(manners: [LoadWait]) {
        let count = explore(manners, .init(sets: 1, removals: 1, refreshes: 1, nothings: 1))
        #expect(count > 1000, "\(count)")
    }

    @Test func `long random orders, where no state is left out`() {
        var random = Seeded()
        for _ in 0..<2_000 {
            let manners: [LoadWait] = [.suspends, .blocks, .blocksTask, .suspends]
            let budget = LoadModel.Budget(sets: 2, removals: 2, refreshes: 2, nothings: 2)
            var model = LoadModel(manners.shuffled(using: &random), budget, seed: random.seed)
            while let event = model.events.randomElement(using: &random) {
                model.apply(event)
                model.expectConsistency()
            }
            model.expectEnd()
        }
    }
}
