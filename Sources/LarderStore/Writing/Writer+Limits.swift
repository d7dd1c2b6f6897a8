/// Evictions that let other threads write between their batches.
extension Writer {
    /// Runs an eviction that `begin` returns, after the rows that it has removed itself, and returns the number of all.
    func trim(_ begin: (WriterState) throws -> (removed: Int, Eviction)) throws(StoreError) -> Int {
        var (count, eviction) = try read(begin)
        while eviction.isHeld == nil {
            lock.letOthersIn()
            count += try read { state in
                let before = state.evictedCount
                try state.evictBatch(&eviction, busyTimeout)
                return state.evictedCount - before
            }
        }
        return count
    }

    /// Holds all limits, and returns the number of removed rows.
    func holdLimits(at now: Int64) throws(StoreError) -> Int {
        try read { try $0.lookAtLimits(at: now) }
        var (count, isOver) = (0, true)
        while isOver {
            lock.letOthersIn()
            count += try read { state in
                let before = state.evictedCount
                isOver = try state.holdLimits(waiting: busyTimeout)
                return state.evictedCount - before
            }
        }
        return count
    }
}
