internal import Dispatch
internal import LarderSQLite

/// Counting rows, for which no write waits.
extension Writer {
    /// The rows that a write counts that has found a limit and no count.
    ///
    /// More are counted by upkeep.
    private static let fewRows: Int64 = 20_000

    /// Counts the rows of caches, and lets the writer know.
    ///
    /// The snapshot is taken under the writer's lock, and read over a connection of its own. What this store commits in the
    /// meantime is added. If another store commits in the meantime, the count is an estimate.
    ///
    /// - Parameters:
    ///   - most: The rows of a cache above which it is not counted; nil counts any number.
    ///   - isWanted: Returns whether a cache is counted. Called with the writer's lock.
    /// - Returns: False if a cache had too many rows.
    @discardableResult
    func countRows(
        atMost most: Int64? = nil, _ isWanted: (WriterState, Incarnation) -> Bool
    ) throws(StoreError) -> Bool {
        if database.file == nil {
            try read { state in
                for cache in state.incarnations.values where isWanted(state, cache) {
                    state.counts.set(try state.connection.count(of: cache, state.accesses), of: cache.id)
                }
            }
            return true
        }
        let isNeeded = try read { state in
            try state.lookUpIncarnations()
            return state.incarnations.values.contains { isWanted(state, $0) }
        }
        if !isNeeded { return true }
        let start = Deadline(in: 0)
        let database = self.database
        return try StoreError.translating {
            try readAlone { connection in
                let begun = try read { state -> (caches: [Incarnation], number: UInt, epoch: UInt32)? in
                    try state.lookUpIncarnations()
                    let caches = state.incarnations.values.filter { isWanted(state, $0) }
                    if database !== state.database || caches.isEmpty { return nil }
                    try connection.holdSnapshot()
                    return (caches, state.counts.beginCount(), state.foreignEpoch)
                }
                guard let begun else { return true }
                var (counted, isWhole) = ([Int64: RowCount](), true)
                defer {
                    lock.wait { state in
                        guard let state else { return }
                        do { try state.lookUpIncarnations() } catch { counted = [:] }
                        if state.database !== database { counted = [:] }
                        let isExact = begun.epoch != CommitWatch.noEpoch && state.foreignEpoch == begun.epoch
                        counted = counted.filter { state.incarnations.incarnation(withID: $0.key) != nil }
                        state.counts.endCount(begun.number, counted, isExact: isExact)
                        state.waits.counts = .afterPause(since: start)
                    }
                }
                for cache in begun.caches {
                    if let most, try connection.number(.hasMoreRows, cache.id, most) != nil {
                        isWhole = false
                    } else {
                        counted[cache.id] = try connection.count(of: cache, accesses)
                    }
                }
                try connection.releaseSnapshot()
                return isWhole
            }
        }
    }

    /// Runs chores that read over connections of their own too, and lets the writer know of a file that was moved or is damaged.
    func noting<R>(_ body: () throws(StoreError) -> R) throws(StoreError) -> R {
        let openings = readers?.openingCount
        do throws(StoreError) { return try body() } catch {
            if readers?.openingCount == openings { lock.wait { $0?.note(error) } }
            throw error
        }
    }

    /// Runs a call that may take long for a task, on a thread of Dispatch.
    static func offloaded<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Counts what limits depend on and is not known.
    @discardableResult
    func countForLimits(atMost most: Int64? = nil, evenInPause: Bool = true) throws(StoreError) -> Bool {
        try countRows(atMost: most) { state, cache in
            guard state.storeLimits.size != nil || cache.limits != Limits() else { return false }
            guard let count = state.counts[cache.id] else { return true }
            return !count.isExact && (evenInPause || state.waits.counts.isOver)
        }
    }

    /// Counts what the next sweep depends on: estimates only now and then.
    func countForSweep() throws(StoreError) {
        try countRows { state, cache in
            guard let count = state.counts[cache.id], count.knowsEnds else { return true }
            return !count.isExact && state.waits.counts.isOver
        }
    }

    /// Counts few rows at once, for a write that has found a limit and no count; upkeep counts many.
    func countAfterWrite() {
        do throws(StoreError) {
            let hasUpkeep = try read { $0.upkeep.map { !$0.isManual } ?? false }
            let isWhole = try countForLimits(atMost: hasUpkeep ? Self.fewRows : nil)
            let share = try sliced { state in
                if !isWhole { state.upkeep?.ask(at: state.now, from: state.now) }
                return state.takeShare()
            }
            if !share.isEmpty { goOn(share) }
        } catch {
            // Upkeep tries it again.
        }
    }
}
