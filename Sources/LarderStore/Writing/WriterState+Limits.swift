internal import LarderSQLite

/// Limits: expired rows are deleted first, then the least recently used.
///
/// A transaction that adds rows to a cache over its limit removes as many itself, so it is never the reason that a limit does
/// not hold. What is left, to go below the limit or because a limit was lowered, is removed in slices by the call that has
/// found it: see `Writer+Slices.swift`.
extension WriterState {
    /// The most rows that are deleted in one slice.
    static let batchLimit = 500

    /// The rows among which victims are chosen under the writer's lock, which takes some 20 ms.
    ///
    /// Among more, they are chosen over a connection of its own.
    private static let scanLimit: Int64 = 100_000

    /// Sets the limits of the store.
    func setLimits(_ limits: StoreLimits) throws(SQLiteError) {
        try connection.run(.setStoreLimits, limits.size, limits.freeSpace)
        limiter.set(limits, incarnations)
        limiter.forgetWaits()
    }

    /// Looks at all limits again, for upkeep.
    func lookAtLimits(at moment: Int64) throws(SQLiteError) {
        try lookUpLimits()
        now = moment
        limiter.forgetWaits(keepsSpares: true)
    }

    /// Lets limits look again at once: a row that was pinned may be what they wait for.
    func notePinGone() {
        limiter.notePinGone()
        open.hasUnpinned = true
    }

    /// Returns the totals of a cache, or of all; nil if rows were never counted.
    private func totals(of cache: Incarnation?) -> Totals? {
        if let cache { return counts[cache.id]?.totals }
        var totals = Totals()
        for cache in incarnations.values {
            guard let count = counts[cache.id] else { return nil }
            totals += count.totals
        }
        return totals
    }

    // MARK: In the transaction that adds

    /// Removes as many rows and bytes as the open transaction has added to a cache over its limit.
    ///
    /// The transaction that finds a limit exceeded removes a slice at least.
    func removeForAdditions() throws {
        guard limiter.hasLimits else { return }
        let additions = counts.additions
        if additions.isEmpty && !open.hasUnpinned { return }
        var inAll = Totals()
        for addition in additions { inAll += addition.difference }
        for (id, cache, limits) in limiter.limited(incarnations) {
            let own = cache == nil ? inAll : additions.first { $0.id == id }?.difference
            // A row that was unpinned may be what a limit limiter.waits for.
            guard let added = own ?? (open.hasUnpinned ? Totals() : nil) else { continue }
            let isNew = limiter.evictions[id] == nil
            open.evictionsBefore.append(limiter.saved(id))
            if isNew && !beginEviction(id, of: cache, limits) { continue }
            guard var eviction = limiter.evictions.removeValue(forKey: id) else { continue }
            let removed = try advance(&eviction, Quota(added, atLeast: isNew ? Self.batchLimit : 0)) ?? Totals()
            open.owed[id] = .some(isNew ? nil : added - removed)
            end(eviction, id)
        }
    }

    /// Begins the eviction of a limit that does not hold, and returns whether it has.
    private func beginEviction(_ id: Int64, of cache: Incarnation?, _ limits: Limits) -> Bool {
        guard let totals = totals(of: cache), isReliable(cache) else { return false }
        let excess = limits.excess(of: totals)
        if excess == Totals() || limiter.waits.isUnmet(id, at: now) { return false }
        var eviction = begin(Eviction(excess, of: totals, from: cache))
        // Memory may have served them since.
        if let spare = limiter.takeSpare(id), spare.foreignEpoch == foreignEpoch, isQuickToScan(cache) {
            noteMemory(of: cache?.cache.identity)
            eviction.take(spare)
        }
        limiter.evictions[id] = eviction
        return true
    }

    /// Returns whether an eviction may trust the counts: another store has committed nothing, or not since a moment ago.
    private func isReliable(_ cache: Incarnation?) -> Bool {
        !limiter.waits.counts.isOver
            || (cache.map { [$0] } ?? Array(incarnations.values)).allSatisfy { counts[$0.id]?.isExact == true }
    }

    /// Lets an eviction begin with expired rows, if there can be any.
    func begin(_ eviction: Eviction) -> Eviction {
        var eviction = eviction
        let caches = eviction.cache.map { [$0] } ?? Array(incarnations.values)
        if limiter.waits.sweep.isOver(at: now),
            caches.contains(where: { $0.removal(at: counts[$0.id]?.firstEnd ?? .max) < now })
        {
            eviction.begin(with: Sweep(now: now))
        }
        return eviction
    }

    /// Keeps an eviction that goes on, and notes the end of one that does not.
    private func end(_ eviction: Eviction, _ id: Int64) {
        if limiter.end(eviction, id, at: now) {
            open.notices.append(.event(.limitUnmet(cache: eviction.cache?.cache.name)))
        }
    }

    // MARK: After the transaction

    /// Notes which evictions the call goes on with after its transaction, under the same lock.
    func noteShares() {
        guard limiter.hasLimits else { return }
        for (id, owed) in open.owed {
            if let eviction = limiter.evictions[id] { outbox.share.add(id, owed ?? eviction.rest) }
        }
        open.owed = [:]
        // A limit was set, or another store has added rows.
        for (id, cache, limits) in limiter.limited(incarnations) where limiter.evictions[id] == nil {
            if beginEviction(id, of: cache, limits), let eviction = limiter.evictions[id] {
                outbox.share.add(id, eviction.rest)
            }
        }
        if limiter.waits.counts.isOver, !counts.isCounting, limiter.needsCount(incarnations, counts) {
            outbox.needsCount = true
        }
        do {
            if try beginEvictionForSpace(), let eviction = limiter.evictions[Limiter.ofFreeSpace] {
                outbox.share.add(Limiter.ofFreeSpace, eviction.rest)
            }
        } catch {
            upkeep?.ask(at: now.addingSaturated(1000), from: now)
        }
    }

    /// Looks at the limits, and returns the evictions with which the caller goes on.
    func takeShare() -> EvictionShare {
        noteShares()
        defer { (outbox.share, outbox.needsCount) = (EvictionShare(), false) }
        return outbox.share
    }

    /// Begins to remove as many bytes as are missing on the disk, and returns whether it has.
    ///
    /// If another process keeps the room, the next look is a minute later.
    private func beginEvictionForSpace() throws -> Bool {
        guard let floor = limiter.storeLimits.freeSpace, let files else { return false }
        guard limiter.waits.space.isOver(at: now), limiter.evictions[Limiter.ofFreeSpace] == nil else { return false }
        let free = try files.freeSpace()
        let missing = floor.subtractingSaturated(free)
        guard missing > 0 else { return false }
        limiter.spaceBefore = free
        let rest = max(0, missing - Int64(try connection.freePages()) * Int64(Connection.pageSize))
        // Without rows to remove there may be pages to give back.
        limiter.evictions[Limiter.ofFreeSpace] = begin(Eviction(Totals(size: max(1, rest)), from: nil, for: .space))
        return true
    }

    /// What a slice of an eviction has done.
    enum Slice {
        case removed(Totals)
        /// Victims are to be chosen outside the lock.
        case needsVictims(Eviction)
        /// The eviction has ended, after a number of rows; the pages that are to be given back.
        case ended(removed: Int64, pages: Int64)
    }

    /// Removes a slice of an eviction in a transaction of its own.
    ///
    /// - Parameters:
    ///   - id: The key of the eviction.
    ///   - waiting: The milliseconds that it waits for another process.
    func evictSlice(_ id: Int64, waiting: Int64) throws -> Slice {
        guard let old = limiter.evictions[id] else { return .ended(removed: 0, pages: 0) }
        let (removed, eviction) = try evictSlice(old, waiting: waiting)
        limiter.evictions[id] = nil
        end(eviction, id)
        outbox.notices += open.notices
        open.notices = []
        if eviction.isHeld != nil {
            let pages = id == Limiter.ofFreeSpace ? try pagesToGiveBack() : 0
            return .ended(removed: removed?.count ?? 0, pages: pages)
        }
        return removed.map { .removed($0) } ?? .needsVictims(eviction)
    }

    /// Removes a slice of an eviction.
    ///
    /// - Returns: The rows that were removed, or nil if victims are to be chosen first, and the eviction.
    func evictSlice(_ eviction: Eviction, waiting: Int64) throws -> (removed: Totals?, Eviction) {
        var eviction = eviction
        let removed = try transaction(until: Deadline(in: waiting)) { state in
            // Another store may have removed the cache, or its limits.
            if let cache = eviction.cache, let now = incarnations.incarnation(withID: cache.id),
                eviction.isTrim || now.limits == cache.limits
            {
                return try state.advance(&eviction, Quota(Totals(), atLeast: Self.batchLimit))
            }
            if eviction.cache != nil {
                eviction.isHeld = true
                return Totals()
            }
            return try state.advance(&eviction, Quota(Totals(), atLeast: Self.batchLimit))
        }
        return (removed, eviction)
    }

    private func pagesToGiveBack() throws -> Int64 {
        guard let floor = limiter.storeLimits.freeSpace, let files else { return 0 }
        files.discard(outbox.files)
        outbox.files = []
        files.emptyPool()
        return max(0, floor.subtractingSaturated(limiter.spaceBefore)) / Int64(Connection.pageSize) + 1
    }

    /// Notes that pages were given back for the floor of free space.
    func endEvictionForSpace() throws {
        guard let floor = limiter.storeLimits.freeSpace, let files else { return }
        let missing = floor.subtractingSaturated(limiter.spaceBefore)
        if try files.freeSpace() - limiter.spaceBefore < missing / 2 { limiter.waits.space.begin(at: now) }
    }

    /// Returns the eviction that trims a cache to limits: of what is too much now.
    ///
    /// It is nil if the rows are to be counted first.
    func beginTrim(_ declaration: CacheDeclaration, to limits: Limits) throws -> Eviction? {
        try lookUpIncarnations()
        guard let cache = incarnation(of: declaration) else { throw StoreError.superseded }
        guard let totals = counts[cache.id]?.totals else { return nil }
        let excess = limits.excess(of: totals, isExact: true)
        if excess == Totals() { return Eviction(excess, from: cache) }
        limiter.noteWrite(nil)
        return begin(Eviction(excess, of: totals, from: cache, isBounded: true))
    }

    // MARK: Removing

    /// What one transaction removes for an eviction, unless the eviction needs less.
    struct Quota {
        let rest: Totals

        /// As many rows and bytes as were added, and a number of rows at least.
        init(_ added: Totals, atLeast rows: Int) {
            rest = Totals(count: max(Int64(rows), added.count), size: max(0, added.size))
        }

        func isReached(by removed: Totals) -> Bool { removed.count >= rest.count && removed.size >= rest.size }
    }

    /// Removes rows of an eviction in the open transaction.
    ///
    /// - Returns: What was removed, or nil if victims have to be chosen outside the lock before any is.
    func advance(_ eviction: inout Eviction, _ quota: Quota) throws -> Totals? {
        if eviction.hasGoal {
            guard let totals = totals(of: eviction.cache) else {
                eviction.isHeld = true
                return Totals()
            }
            eviction.adjust(to: totals)
        }
        var removed = Totals()
        while var sweep = eviction.sweep, !eviction.isDone, !quota.isReached(by: removed) {
            let swept = try sweepBatch(&sweep, of: eviction.cache?.id)
            removed += swept.ofCache
            eviction.note(swept: swept.ofCache, to: sweep)
            if eviction.sweep == nil && eviction.sweptCount == 0 { limiter.waits.sweep.begin(at: now) }
        }
        // With a limit of 0 no row may stay.
        let kept = eviction.cache?.limits.count == 0 ? nil : limiter.lastWrittenID
        while !eviction.isDone, !quota.isReached(by: removed) {
            guard let victim = eviction.nextVictim(after: foreignEpoch) else {
                if eviction.isInVain(upTo: lastID) {
                    eviction.isHeld = false
                    return removed
                }
                // Another store may have removed the first victims, so the rows are counted again before others are chosen.
                if eviction.hasChosen && eviction.hasGoal && !isReliable(eviction.cache) {
                    if eviction.isTrim { return removed == Totals() ? nil : removed }
                    eviction.isHeld = true
                    return removed
                }
                if try chooseHere(&eviction, kept) { continue }
                return removed == Totals() ? nil : removed
            }
            removed += try remove(victim, of: &eviction, kept)
        }
        if eviction.isDone { eviction.isHeld = true }
        return removed
    }

    /// Removes a row that was chosen, unless it was written or read since, and returns what counts as removed.
    ///
    /// What is known of a row holds as long as its revision does.
    private func remove(_ victim: Eviction.Victim, of eviction: inout Eviction, _ kept: Int64?) throws -> Totals {
        let (row, size) = (victim.row, Totals(count: 1, size: victim.row.size))
        let cache = eviction.cache ?? incarnations.incarnation(withID: victim.cache)
        guard let cache, cache.id == victim.cache else { return Totals() }
        if row.id == kept, try connection.header(row.id)?.header.revision == row.revision {
            // The last written row is kept, and counted as removed.
            eviction.note(stays: size)
            return size
        }
        if accesses.lastAccess(row.id, row.revision).map(Access.order) ?? .min > victim.lastUse {
            eviction.noteLeftOut()
            return Totals()
        }
        try connection.run(.deleteRevision, row.id, row.revision)
        if connection.changes == 0 {
            eviction.noteLeftOut()
            return Totals()
        }
        if victim.isStamped || eviction.stampCount != stampCount { try connection.run(.deleteUse, row.id) }
        try noteDeletion(of: row, from: cache.id)
        let shortage = eviction.shortage ?? (eviction.rest.count > 0 ? .count : .size)
        noteRemoval(of: row, from: cache, .evicted(by: shortage))
        eviction.note(removed: size)
        return size
    }

    /// Chooses victims under the lock, and returns false if there are too many rows to look at for that.
    @discardableResult
    func chooseHere(_ eviction: inout Eviction, _ kept: Int64?, amongMany: Bool = false) throws(SQLiteError) -> Bool {
        let isByKey = isByKey(eviction.cache)
        if !amongMany && !isQuickToScan(eviction.cache) { return false }
        noteMemory(of: eviction.cache?.cache.identity)
        let limit = eviction.choiceLimit
        eviction.take(
            try connection.leastRecentlyUsed(
                of: eviction.cache, isByKey: isByKey, atMost: limit, accesses.moments, kept),
            limit: limit, basis)
        return true
    }

    var basis: Eviction.Basis {
        .init(lastID: lastID, stampCount: stampCount, foreignEpoch: foreignEpoch, now: now)
    }

    /// Returns whether a choice among the rows of a cache, or of all, takes so little time that writers may wait for it.
    private func isQuickToScan(_ cache: Incarnation?) -> Bool {
        if database.file == nil { return true }
        // A row that is found by its key takes as long as some neighbours.
        let rows = isByKey(cache) ? (counts[cache?.id ?? 0]?.totals.count ?? 0) * 5 : counts.rowCount
        return rows <= Self.scanLimit
    }

    /// Returns whether a cache is looked through by its keys: it has few of the rows, the others are in the order of ids.
    func isByKey(_ cache: Incarnation?) -> Bool {
        cache.map { counts[$0.id]?.totals.count ?? 0 < counts.rowCount / 8 } ?? false
    }
}
