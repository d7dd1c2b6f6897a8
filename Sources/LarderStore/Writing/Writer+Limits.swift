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
                state.evictions[id] = nil
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
            if id == WriterState.ofFreeSpace && pages > 0 {
                try giveBackPages(pages)
                try read { try $0.endEvictionForSpace() }
            }
            return nil
        }
    }

    /// Runs `body` with the lock, and does what follows but for further evictions.
    func sliced<R>(_ body: (WriterState) throws -> R) throws(StoreError) -> R {
        var aftermath = Aftermath()
        let result = try lock.withLock { state throws(StoreError) in
            let result = Result { () throws(StoreError) in
                if let state { try renew(state) }
                return try Self.reading(state, body)
            }
            aftermath = state?.takeAftermath() ?? Aftermath()
            return result
        }
        finishOnce(aftermath, [], waits: true)
        return try result.get()
    }

    /// Chooses victims of an eviction that stands, among many rows, unless another call has done so in the meantime.
    private func chooseVictims(for eviction: Eviction, _ id: Int64) throws(StoreError) {
        let result = choosing.withLock { _ in
            Result { () throws(StoreError) in
                let isNeeded = try sliced {
                    $0.evictions[id].map { $0.number == eviction.number && $0.victimCount == 0 }
                }
                if isNeeded != true { return }
                var chosen = eviction
                try chooseVictims(for: &chosen)
                try sliced { state in
                    if state.evictions[id]?.number == eviction.number { state.evictions[id]?.takeVictims(of: chosen) }
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
            (state.isByKey(cache), state.basis, cache?.limits.count == 0 ? nil : state.lastWrittenID)
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
