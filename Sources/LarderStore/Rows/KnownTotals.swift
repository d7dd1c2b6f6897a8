internal import Synchronization

/// The totals of caches as the writer knows them, for readers that need not count.
///
/// The lock is a leaf.
final class KnownTotals: Sendable {
    private struct State {
        /// The epoch in which all these totals are true.
        var epoch: UInt32 = 0
        var totals: [String: (generation: Generation, totals: Totals)] = [:]
    }

    private let state = Mutex(State())

    /// Sets the totals of a generation after a commit; nil if they are not known.
    func set(_ totals: Totals?, of generation: Generation, _ epoch: UInt32) {
        state.withLock { state in
            if state.epoch != epoch { state = State(epoch: epoch) }
            state.totals[generation.name] = totals.map { (generation, $0) }
        }
    }

    /// Returns the totals of a cache if they are known in the epoch.
    func totals(of cache: CacheDeclaration, in epoch: UInt32) -> Totals? {
        state.withLock { state in
            guard state.epoch == epoch, let known = state.totals[cache.name], cache.fits(known.generation) else {
                return nil
            }
            return known.totals
        }
    }
}
