/// Evictions that let other threads write between their batches.
extension Writer {
    /// Runs an eviction that `begin` returns, after the rows that it has removed itself, and returns the number of all.
    func trim(_ begin: (WriterState) throws -> (removed: Int, Eviction)) throws(StoreError) -> Int {
        var (count, eviction) = try read(begin)
        if eviction.isHeld != nil { return count }
        count += try evict { state in
            // Whatever other stores commit, a trim goes on.
            state.waits.search.end()
            try state.evictBatch(&eviction, busyTimeout)
            return eviction.isHeld == nil
        }
        return count
    }

    /// Holds all limits, and returns the number of removed rows.
    func holdLimits(at now: Int64) throws(StoreError) -> Int {
        try read { try $0.lookAtLimits(at: now) }
        return try evict { try $0.holdLimits(waiting: busyTimeout) }
    }

    /// Removes batches as long as `step` returns true, and returns the number of removed rows.
    private func evict(_ step: (WriterState) throws -> Bool) throws(StoreError) -> Int {
        var (count, goesOn) = (0, true)
        while goesOn {
            lock.letOthersIn()
            count += try read { state in
                let before = state.evictedCount
                goesOn = try step(state)
                return state.evictedCount - before
            }
        }
        return count
    }
}
