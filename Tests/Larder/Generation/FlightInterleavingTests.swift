import Larder
import LarderTestSupport
import Testing

/// Every order of events for one key, over the machine alone.
///
/// A case names what each of its callers does with its thread. From each state every possible event is tried; states that
/// the model cannot tell apart are tried once.
struct FlightInterleavingTests {
    private typealias Manner = FlightCallerManner

    private func explore(_ manners: [FlightCallerManner]) -> Int {
        var seen: Set<FlightModel.Facts> = []
        var open = [FlightModel(manners)]
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
                guard seen.insert(next.facts).inserted else { continue }
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

    @Test(arguments: [
        [FlightCallerManner.suspends, .blocksPool, .blocks, .suspends], [.suspends, .blocksPool, .blocksPool, .blocks],
    ])
    func `four callers of several manners`(manners: [FlightCallerManner]) {
        let count = explore(manners)
        #expect(count > 1000, "\(count)")
    }

    @Test func `three callers of all manners`() {
        let all: [FlightCallerManner] = [.suspends, .blocks, .blocksPool]
        for first in all {
            for second in all { for third in all { #expect(explore([first, second, third]) > 100) } }
        }
    }

    @Test func `long random orders, where no state is left out`() {
        var random = Seeded()
        for _ in 0..<3_000 {
            let manners: [FlightCallerManner] = [.suspends, .blocks, .blocksPool, .suspends]
            var model = FlightModel(manners.shuffled(using: &random), seed: random.seed)
            while let event = model.events.randomElement(using: &random) {
                model.apply(event)
                model.expectConsistency()
            }
            model.expectEnd()
        }
    }
}
