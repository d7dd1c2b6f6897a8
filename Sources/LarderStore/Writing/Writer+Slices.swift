internal import Dispatch
internal import LarderLocks
internal import LarderSQLite

/// What a thread of Dispatch does after writes of tasks.
struct BackgroundEvictions {
    var isRunning = false
    var share = EvictionShare()
    var needsCount = false

    /// Takes what is to be done; nil ends the thread.
    mutating func next() -> (EvictionShare, needsCount: Bool)? {
        if share.isEmpty && !needsCount {
            isRunning = false
            return nil
        }
        defer { (share, needsCount) = (EvictionShare(), false) }
        return (share, needsCount)
    }
}

/// Evictions in slices, between which other threads write.
extension Writer {
    /// Removes the call's part of evictions.
    func goOn(_ share: EvictionShare) {
        var share = share
        repeat { lock.letOthersIn() } while removeSlice(of: &share)
    }

    /// Lets a thread of Dispatch do what the serial queue and threads of tasks may not wait for; one does it for all.
    func goOnInBackground(_ share: EvictionShare, needsCount: Bool) {
        let begins = background.withLock { background in
            background.share.add(share)
            background.needsCount = background.needsCount || needsCount
            defer { background.isRunning = true }
            return !background.isRunning
        }
        if !begins { return }
        DispatchQueue.global().async { [self] in
            while let (share, needsCount) = background.withLock({ $0.next() }) {
                if !share.isEmpty { goOn(share) }
                if needsCount { countAfterWrite() }
            }
        }
    }

    /// Removes a slice, and returns whether another one is left.
    ///
    /// If another process writes, the rest waits for upkeep.
    private func removeSlice(of share: inout EvictionShare) -> Bool {
        guard let id = share.next else { return false }
        do {
            let slice = try sliced { try $0.evictSlice(id, waiting: 0) }
            share.note(id, removed: try removed(by: slice, id))
            return !share.isEmpty
        } catch {
            lock.wait { state in
                guard let state else { return }
                state.limiter.evictions[id] = nil
                state.upkeep?.ask(at: state.now.addingSaturated(1000), from: state.now)
            }
            return false
        }
    }

    /// Does what a slice has left to do, and returns what was removed; nil if the eviction has ended.
    private func removed(by slice: WriterState.Slice, _ id: Int64) throws(StoreError) -> Totals? {
        switch slice {
        case .removed(let removed): return removed
        case .needsVictims(let eviction):
            try chooseVictims(for: eviction, id)
            return Totals()
        case .ended(_, let pages):
            if id == Limiter.ofFreeSpace && pages > 0 {
                try giveBackPages(pages)
                try read { try $0.endEvictionForSpace() }
            }
            return nil
        }
    }

    /// Runs `body` with the lock, and does what follows but for further evictions.
    func sliced<R>(_ body: (WriterState) throws -> R) throws(StoreError) -> R {
        var outbox = Outbox()
        let result = try lock.withLock { state throws(StoreError) in
            state?.connection.stopReading()
            let result = Result { () throws(StoreError) in
                if let state { try renew(state) }
                return try Self.reading(state, body)
            }
            outbox = state?.takeOutbox() ?? Outbox()
            return result
        }
        finishOnce(outbox, [], waits: true)
        return try result.get()
    }

    /// Chooses victims of an eviction that stands, among many rows, unless another call has done so in the meantime.
    private func chooseVictims(for eviction: Eviction, _ id: Int64) throws(StoreError) {
        let result = choosing.withLock { _ in
            Result { () throws(StoreError) in
                let isNeeded = try sliced {
                    $0.limiter.evictions[id].map { $0.number == eviction.number && $0.victimCount == 0 }
                }
                if isNeeded != true { return }
                var chosen = eviction
                try chooseVictims(for: &chosen)
                try sliced { state in
                    if state.limiter.evictions[id]?.number != eviction.number { return }
                    state.limiter.evictions[id]?.takeVictims(of: chosen)
                }
            }
        }
        try result.get()
    }

    /// Chooses victims over a connection of its own.
    private func chooseVictims(for eviction: inout Eviction) throws(StoreError) {
        try noteMemory(of: eviction.cache?.cache.identity)
        let (cache, limit) = (eviction.cache, eviction.choiceLimit)
        let (isByKey, basis, kept) = try sliced { state in
            (state.isByKey(cache), state.basis, cache?.limits.count == 0 ? nil : state.limiter.lastWrittenID)
        }
        let moments = accesses.moments
        let chosen = try StoreError.translating {
            try readAlone { connection in
                try connection.leastRecentlyUsed(of: cache, isByKey: isByKey, atMost: limit, moments, kept)
            }
        }
        eviction.take(chosen, limit: limit, basis)
    }

    /// Notes the accesses that memory has, of a cache or of all, outside the writer's lock.
    func noteMemory(of cache: CacheIdentity? = nil) throws(StoreError) {
        accesses.note(servedBy: tiers, of: cache, at: try sliced { $0.now })
    }

    // MARK: Whole evictions

    /// Removes rows of a cache until it is within limits, and returns their number: those that are too many now.
    func trim(_ declaration: CacheDeclaration, to limits: Limits, at now: Int64) throws(StoreError) -> Int {
        func countNow() throws(StoreError) {
            try countRows { state, cache in
                cache.cache.identity == declaration.identity && state.counts[cache.id]?.isExact != true
            }
        }
        var (begun, count): (Eviction?, Int64) = (nil, 0)
        // Another store may clear the cache after it was counted.
        while begun == nil {
            try countNow()
            begun = try sliced { state in
                state.now = now
                return try state.beginTrim(declaration, to: limits)
            }
        }
        while let eviction = begun, eviction.isHeld == nil {
            var (removed, next) = try sliced { try $0.evictSlice(eviction, waiting: self.busyTimeout) }
            count += removed?.count ?? 0
            if removed == nil {
                try countNow()
                try chooseVictims(for: &next)
            }
            begun = next
            lock.letOthersIn()
        }
        return Int(count)
    }

    /// Holds all limits, and returns the number of removed rows.
    ///
    /// - Parameter isWhole: A Boolean value that indicates whether rows are counted again that were estimated a moment ago.
    func holdLimits(at now: Int64, isWhole: Bool) throws(StoreError) -> Int {
        try countForLimits(evenInPause: isWhole)
        var share = try sliced { state in
            try state.lookAtLimits(at: now)
            return state.takeShare()
        }
        var count: Int64 = 0
        while let id = share.next {
            let slice = try sliced { try $0.evictSlice(id, waiting: self.busyTimeout) }
            switch slice {
            case .removed(let removed): count += removed.count
            case .ended(let removed, _): count += removed
            case .needsVictims: break
            }
            share.note(id, removed: try removed(by: slice, id))
            lock.letOthersIn()
        }
        return Int(count)
    }

    // MARK: Pages

    /// Gives empty pages back to the disk, a thousand at a time.
    func giveBackPages(_ count: Int64) throws(StoreError) {
        var rest = count
        while rest > 0, try sliced({ try $0.giveBackPages() }) {
            rest -= Int64(WriterState.pagesGivenBack)
            lock.letOthersIn()
        }
    }
}

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
                        state.limiter.waits.counts = .afterPause(since: start)
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
            guard state.limiter.storeLimits.size != nil || cache.limits != Limits() else { return false }
            guard let count = state.counts[cache.id] else { return true }
            return !count.isExact && (evenInPause || state.limiter.waits.counts.isOver)
        }
    }

    /// Counts what the next sweep depends on: estimates only now and then.
    func countForSweep() throws(StoreError) {
        try countRows { state, cache in
            guard let count = state.counts[cache.id], count.knowsEnds else { return true }
            return !count.isExact && state.limiter.waits.counts.isOver
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

/// Removals of many rows: few in one transaction, more in slices.
extension Writer {
    /// The most rows that are removed in one transaction.
    private static let atOnce = 10_000
    /// The rows of a slice.
    private static let sliceSize = 2000

    /// Removes the entries that have a tag, of a cache or of all, and returns their number.
    func removeAll(tagged tag: String, in declaration: CacheDeclaration?) throws(StoreError) -> Int {
        let few = try runBatch { try $0.removeTagged(tag, in: declaration, atMost: Self.atOnce) }
        if let few { return few }
        return try removeInSlices(KeyRange(), .tagged) { state in
            try state.overtakeLoads(tagged: tag, in: declaration)
        } list: { connection, cache throws(SQLiteError) in
            try connection.list(.taggedRows, text: tag, cache.id) {
                ListedRow(id: $0.int64(0), revision: $0.int64(1), cache: cache.id)
            }
        }
    }

    /// Removes the entries whose keys are texts that begin so, and returns their number.
    func removeAll(prefix: String, in declaration: CacheDeclaration) throws(StoreError) -> Int {
        let few = try runBatch { try $0.removeAll(prefix: prefix, in: declaration, atMost: Self.atOnce) }
        if let few { return few }
        return try removeInSlices(KeyRange(prefix: prefix), .removed) { state in
            [try state.overtakeLoads(prefix: prefix, in: declaration)]
        } list: { connection, cache throws(SQLiteError) in
            try connection.headers(prefix: prefix, in: cache) {
                ListedRow(id: $0.id, revision: $0.revision, cache: cache.id)
            }
        }
    }

    /// Removes rows in slices, between which other threads write.
    ///
    /// Readers may see the removal half done, and a crash leaves the rest. The rows are those of one snapshot: what is written
    /// after it stays.
    ///
    /// - Parameters:
    ///   - range: What the keys of the rows are in.
    ///   - cause: What memory is told.
    ///   - overtake: Keeps loads from storing what is removed, in a transaction, and returns the caches. Called at the begin
    ///     and at the end, for the loads that have begun in the meantime.
    ///   - list: Lists the rows of a cache.
    private func removeInSlices(
        _ range: KeyRange, _ cause: RemovedRow.Cause, _ overtake: (WriterState) throws -> [Incarnation],
        list: (inout Connection, Incarnation) throws(SQLiteError) -> [ListedRow]
    ) throws(StoreError) -> Int {
        lock.wait { $0?.longRemovals += 1 }
        defer {
            lock.wait { state in
                state?.longRemovals -= 1
                if state?.longRemovals == 0 { state?.replacedRevisions = [:] }
            }
        }
        let caches = try runBatch(overtake)
        let rows = try StoreError.translating {
            try readAlone { connection in
                // Changes of attributes before the snapshot are in it.
                try connection.holdSnapshot()
                defer { do { try connection.releaseSnapshot() } catch {} }
                var rows: [ListedRow] = []
                for cache in caches { rows += try list(&connection, cache) }
                return rows
            }
        }
        var count = 0
        for start in stride(from: 0, to: rows.count, by: Self.sliceSize) {
            lock.letOthersIn()
            count += try runBatch {
                try $0.remove(rows[start..<min(rows.count, start + Self.sliceSize)], in: range, cause)
            }
        }
        _ = try runBatch(overtake)
        return count
    }
}
