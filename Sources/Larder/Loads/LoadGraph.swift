internal import Synchronization

/// One run of a load closure, different from every other in this process.
package struct LoadID: Hashable, Sendable {
    let number: UInt64
}

/// One call that waits for a load.
package struct LoadCallerID: Hashable, Sendable {
    let number: Int

    package init(_ number: Int) {
        self.number = number
    }
}

/// How a caller waits.
package enum LoadWait: Hashable, Sendable {
    /// The task of the caller suspends.
    case suspends
    /// The caller blocks a thread that runs no task.
    case blocks
    /// The caller blocks a thread that runs a task, which an asynchronous load may need.
    case blocksTask
}

/// The loads that the running code is part of, outermost first.
///
/// A task-local value holds in synchronous code outside tasks as well: there it belongs to the thread.
enum LoadChain {
    @TaskLocal static var current: [LoadID] = []
}

/// Which load waits for which, over all keys and caches.
///
/// A load waits for another while code that is part of it does. Loads that have ended are not in the graph.
package struct LoadGraph: Sendable {
    /// The graph of the process.
    ///
    /// Its lock is taken inside that of one `Loads`, and nothing is taken inside it. No user code runs under it.
    static let shared = Mutex(LoadGraph())

    /// For each load, the loads that it waits for, with the number of waits on each.
    private var waits: [LoadID: [LoadID: Int]] = [:]
    private var lastNumber: UInt64 = 0

    package init() {}

    package mutating func begin() -> LoadID {
        lastNumber += 1
        let load = LoadID(number: lastNumber)
        waits[load] = [:]
        return load
    }

    package mutating func end(_ load: LoadID) {
        waits[load] = nil
    }

    /// Adds one wait of every load of `chain` for `load`, or with a step of -1 takes it back.
    package mutating func change(_ chain: [LoadID], waitingFor load: LoadID, by step: Int) {
        if chain.isEmpty || waits[load] == nil { return }
        for waiting in chain where waits[waiting] != nil {
            let count = (waits[waiting]?[load] ?? 0) + step
            waits[waiting]?[load] = count > 0 ? count : nil
        }
    }

    /// Returns whether `load` is one of `chain`, or waits, over any number of others, for one of it.
    package func isWaiting(_ load: LoadID, forAnyOf chain: [LoadID]) -> Bool {
        if chain.isEmpty { return false }
        var open = [load]
        var seen: Set<LoadID> = [load]
        while let load = open.popLast() {
            // An ended load is named by the loads that waited for it.
            guard let next = waits[load] else { continue }
            if chain.contains(load) { return true }
            for other in next.keys where seen.insert(other).inserted { open.append(other) }
        }
        return false
    }
}

extension LoadGraph {
    /// The number of loads that have not ended.
    package var count: Int { waits.count }

    /// Traps if loads wait for each other.
    package func checkInvariants() {
        for (load, others) in waits {
            for (other, count) in others {
                precondition(count > 0, "A wait is counted.")
                precondition(!isWaiting(other, forAnyOf: [load]), "Loads wait for each other.")
            }
        }
    }
}
