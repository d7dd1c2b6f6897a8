internal import LarderLocks
internal import LarderStore

extension MemoryCache {
    /// Traps with a message if an invariant does not hold; release builds omit the check.
    ///
    /// - Complexity: O(n), under the lock.
    package func checkInvariants() {
        #if DEBUG
        state.withLock { state in
            state.table.checkInvariants()
            state.checkBesides(hasEnds: !rule.isUnlimited)
        }
        #endif
    }

    /// Returns the number of chunks that a look-up of this key looks at.
    package func probeCount(_ key: Key) -> Int {
        let hash = seed.hash(key)
        return state.withLock { $0.table.probeCount(key, hash: hash) }
    }

    /// The number of keys that closures decide on.
    package var watchedKeyCount: Int { state.withLock { $0.watches.count } }

    /// The number of callers that wait for loads.
    package var waitingCallers: Int { loads.waitingCount }

    /// The capacity of the table, in entries.
    package var capacity: Int { state.withLock { Int($0.table.nodeCapacity) - 1 } }
}

#if DEBUG
extension BoundedTable {
    func checkBesides(hasEnds: Bool) {
        var total = WideSum(0)
        for index in table.order {
            total = total + WideSum(cost(of: index))
            precondition(!hasEnds || Int(index) < ends.count, "An entry has no end of its age.")
        }
        precondition(total == totalCost, "The total cost is not the sum of the costs.")
        precondition(costs.reduce(WideSum(0)) { $0 + WideSum($1) } == total, "A cost belongs to no entry.")
        var held = 0
        for index in 1..<max(1, table.indexLimit) where table.isEntry(index) { held += Int(units(of: index)) }
        precondition(held == totalUnits, "The total of bytes is not that of the entries.")
        precondition(units.reduce(0) { $0 + Int($1) } == held, "Bytes belong to no entry.")
        precondition(!isOverLimit, "A limit is exceeded.")
    }
}
#endif
