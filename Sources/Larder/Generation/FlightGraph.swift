internal import Synchronization

/// Which flight waits for which, over all keys and caches.
///
/// A flight waits for another while code that is part of it does. A generator runs in one flight or, where synchronous ones
/// nest, in several at once. Flights that have ended are not in the graph, and naming them says nothing.
package struct FlightGraph: Sendable {
    /// The graph of the process.
    ///
    /// Its lock is taken inside that of one `Flights`, and nothing is taken inside it. No user code runs under it.
    static let shared = Mutex(FlightGraph())

    private struct Node {
        /// Whether its generation needs the pool that runs tasks.
        let isAsync: Bool
        /// How many callers wait for it while they hold a thread of that pool.
        var poolCallers = 0
        /// With how many waits on each.
        var waitsFor: [FlightID: Int] = [:]
        var isWaitedForBy: [FlightID: Int] = [:]
    }

    private var nodes: [FlightID: Node] = [:]
    private var lastNumber: UInt64 = 0

    package init() {}

    package mutating func begin(isAsync: Bool) -> FlightID {
        lastNumber += 1
        let flight = FlightID(number: lastNumber)
        nodes[flight] = Node(isAsync: isAsync)
        return flight
    }

    package mutating func end(_ flight: FlightID) {
        guard let node = nodes.removeValue(forKey: flight) else { return }
        for other in node.waitsFor.keys { nodes[other]?.isWaitedForBy[flight] = nil }
        for other in node.isWaitedForBy.keys { nodes[other]?.waitsFor[flight] = nil }
    }

    /// Every flight of `chain` waits for `flight` once more.
    package mutating func add(_ chain: [FlightID], waitingFor flight: FlightID, _ manner: FlightCallerManner) {
        change(chain, flight, manner, by: 1)
    }

    /// Takes back what `add` noted.
    package mutating func remove(_ chain: [FlightID], waitingFor flight: FlightID, _ manner: FlightCallerManner) {
        change(chain, flight, manner, by: -1)
    }

    private mutating func change(
        _ chain: [FlightID], _ flight: FlightID, _ manner: FlightCallerManner, by step: Int
    ) {
        if chain.isEmpty && manner != .blocksPool { return }
        guard nodes[flight] != nil else { return }
        if manner == .blocksPool { nodes[flight]?.poolCallers += step }
        for waiting in chain where nodes[waiting] != nil {
            let count = (nodes[waiting]?.waitsFor[flight] ?? 0) + step
            nodes[waiting]?.waitsFor[flight] = count > 0 ? count : nil
            nodes[flight]?.isWaitedForBy[waiting] = count > 0 ? count : nil
        }
    }

    /// Whether `flight` is one of `chain` or waits, over any number of others, for one of it.
    package func isWaiting(_ flight: FlightID, forAnyOf chain: [FlightID]) -> Bool {
        if chain.isEmpty { return false }
        return contains(where: { flight, _ in chain.contains(flight) }, from: [flight], over: \.waitsFor)
    }

    /// Whether `flight` cannot end without the pool that runs tasks.
    package func needsPool(_ flight: FlightID) -> Bool {
        contains(where: { _, node in node.isAsync }, from: [flight], over: \.waitsFor)
    }

    /// Whether somebody who waits, over any number of others, for one of `chain` holds a thread of that pool.
    package func holdsPool(_ chain: [FlightID]) -> Bool {
        contains(where: { _, node in node.poolCallers > 0 }, from: chain, over: \.isWaitedForBy)
    }

    private func contains(
        where isMet: (FlightID, Node) -> Bool, from start: [FlightID], over edges: KeyPath<Node, [FlightID: Int]>
    ) -> Bool {
        var open = start
        var seen = Set(start)
        while let flight = open.popLast() {
            guard let node = nodes[flight] else { continue }
            if isMet(flight, node) { return true }
            for next in node[keyPath: edges].keys where seen.insert(next).inserted { open.append(next) }
        }
        return false
    }
}

extension FlightGraph {
    /// How many flights have not ended.
    package var count: Int { nodes.count }

    /// Traps if a circle has closed, or a thread of the pool waits for what needs the pool.
    package func checkInvariants() {
        for (flight, node) in nodes {
            for (other, count) in node.waitsFor {
                precondition(count > 0 && nodes[other]?.isWaitedForBy[flight] == count, "An edge has one end.")
                precondition(!isWaiting(other, forAnyOf: [flight]), "A circle has closed.")
            }
            precondition(node.poolCallers >= 0 && node.isWaitedForBy.keys.allSatisfy { nodes[$0] != nil })
            precondition(node.poolCallers == 0 || !needsPool(flight), "The pool waits for itself.")
        }
    }
}
