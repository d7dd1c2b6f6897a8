internal import LarderSQLite

/// Limits: expired rows go first, then the least recently used.
extension WriterState {
    /// The most rows that are deleted in one transaction.
    static let batchLimit = 500

    /// Sets the limits of the store.
    func setLimits(_ limits: StoreLimits) throws(SQLiteError) {
        try connection.run(.setStoreLimits, limits.size, limits.freeSpace)
        storeLimits = limits
        noteLimits()
        forgetWaits()
    }

    /// Refuses an entry that is larger than a whole size limit.
    func checkSize(_ size: Int64, in cache: Incarnation) throws(StoreError) {
        guard hasLimits else { return }
        if let limit = cache.limits.size, size > limit { throw .exceeds(limit, of: "its cache", size: size) }
        if let limit = storeLimits.size, size > limit { throw .exceeds(limit, of: "the store", size: size) }
    }

    /// Removes a batch of rows if a limit does not hold, and notes whether one still does not.
    ///
    /// Called after each batch of requests. If another process writes or the disk fails, the limits wait for upkeep.
    func holdLimits() {
        let wasEvicting = !evictions.isEmpty
        do {
            if try holdLimits(waiting: 0) {
                if !wasEvicting { aftermath.beginsEviction = true }
            } else {
                // Of caches that are gone or have no limit any more.
                evictions = [:]
            }
        } catch {
            evictions = [:]
            upkeep?.ask(at: now.addingSaturated(1000), from: now)
        }
    }

    /// Looks at all limits again, for upkeep, which then calls ``holdLimits(waiting:)``.
    func lookAtLimits(at moment: Int64) throws(SQLiteError) {
        try lookUpLimits()
        now = moment
        forgetWaits()
    }

    /// Forgets what limits wait for, and which row was written last.
    func forgetWaits() { (waits, evictions, lastWrittenID) = (LimitWaits(), [:], nil) }

    /// Lets limits look again at once: a row that was pinned may be what they wait for.
    func notePinGone() { (waits, evictions) = (LimitWaits(), [:]) }

    /// Removes a batch of rows in a transaction of its own if a limit does not hold, and returns whether one still does not.
    func holdLimits(waiting: Int64) throws -> Bool {
        guard hasLimits else { return false }
        let maySearch = waits.search.isOver(at: now)
        var isOver = false
        for incarnation in incarnations.values where incarnation.limits != Limits() && !isOver {
            isOver = try hold(incarnation.limits, of: incarnation, maySearch, waiting)
        }
        if !isOver && storeLimits.size != nil {
            isOver = try hold(Limits(size: storeLimits.size), of: nil, maySearch, waiting)
        }
        return try isOver || holdFreeSpace(waiting)
    }

    /// Holds the limits of a cache, or of all, by a batch, and returns whether the eviction goes on.
    ///
    /// Rows are counted after commits of another store, and searched in vain, at most once a second.
    private func hold(_ limits: Limits, of cache: Incarnation?, _ maySearch: Bool, _ waiting: Int64) throws -> Bool {
        let id = cache?.id ?? 0
        if evictions[id] == nil {
            if !areCounted(cache) {
                guard maySearch else {
                    upkeep?.ask(at: now.addingSaturated(1000), from: now)
                    return false
                }
                waits.search.begin(at: now)
            }
            let totals = try totals(of: cache)
            guard limits.excess(of: totals) != Totals(), maySearch || !waits.unmet.contains(id) else { return false }
            try removeExpired(of: cache.map { [$0] } ?? Array(incarnations.values), waiting)
            let rest = try self.totals(of: cache)
            evictions[id] = Eviction(limits.excess(of: rest), of: rest, from: cache)
        }
        guard let isHeld = try goOn(id, waiting) else { return true }
        if isHeld {
            waits.unmet.remove(id)
        } else {
            waits.search.begin(at: now)
            if waits.unmet.insert(id).inserted { aftermath.events.append(.limitUnmet(cache: cache?.cache.name)) }
        }
        return false
    }

    /// Removes a batch of an eviction, and returns whether enough was removed; nil while more can be.
    private func goOn(_ id: Int64, _ waiting: Int64) throws -> Bool? {
        guard var eviction = evictions.removeValue(forKey: id) else { return true }
        try evictBatch(&eviction, waiting)
        if eviction.isHeld == nil { evictions[id] = eviction }
        return eviction.isHeld
    }

    /// Returns whether the rows of a cache, or of all, are counted.
    private func areCounted(_ cache: Incarnation?) -> Bool {
        cache.map { counts[$0.id] != nil } ?? incarnations.values.allSatisfy { counts[$0.id] != nil }
    }

    private func totals(of cache: Incarnation?) throws(SQLiteError) -> Totals {
        if let cache { return try count(of: cache).totals }
        var totals = Totals()
        for cache in incarnations.values { totals += try count(of: cache).totals }
        return totals
    }

    /// Removes expired rows of a cache that exceeds limits, and returns their number and the eviction that is left to do.
    func beginTrim(_ declaration: CacheDeclaration, to limits: Limits) throws -> (removed: Int, Eviction) {
        try lookUpIncarnations()
        guard let cache = incarnation(of: declaration) else { throw StoreError.superseded }
        let before = try totals(of: cache)
        guard limits.excess(of: before) != Totals() else { return (0, Eviction(Totals(), from: cache)) }
        lastWrittenID = nil
        waits.sweep.end()
        // A sweep removes the expired rows of other caches too, which the trim does not count.
        try removeExpired(of: [cache], busyTimeout)
        let totals = try totals(of: cache)
        return (
            Int(before.count - totals.count),
            Eviction(limits.excess(of: totals, isExact: true), of: totals, from: cache)
        )
    }

    /// Removes expired and then least recently used rows of as many bytes as are missing on the disk, and gives their room
    /// back; returns whether the eviction goes on.
    ///
    /// If another process keeps the room, the next look is a minute later.
    private func holdFreeSpace(_ waiting: Int64) throws -> Bool {
        guard let floor = storeLimits.freeSpace, let files, waits.space.isOver(at: now) else { return false }
        let pageSize: Int64 = 4096
        if evictions[Self.ofFreeSpace] == nil {
            let free = try files.freeSpace()
            let missing = floor.subtractingSaturated(free)
            guard missing > 0 else { return false }
            spaceBefore = free
            try removeExpired(of: Array(incarnations.values), waiting)
            let rest = max(0, missing - Int64(try connection.freePages()) * pageSize)
            evictions[Self.ofFreeSpace] = Eviction(Totals(size: rest), from: nil, for: .space)
        }
        if try goOn(Self.ofFreeSpace, waiting) == nil { return true }
        files.discard(aftermath.files)
        aftermath.files = []
        files.emptyPool()
        let missing = floor.subtractingSaturated(spaceBefore)
        try giveBackPages(missing / pageSize + 1)
        if try files.freeSpace() - spaceBefore < missing / 2 { waits.space.begin(at: now) }
        return false
    }

    /// The key of the eviction that frees space of the disk.
    private static let ofFreeSpace: Int64 = -1

    /// Removes expired rows among the first 100,000, and returns their number.
    @discardableResult
    func removeExpired(of caches: [Incarnation], _ waiting: Int64) throws -> Int {
        guard waits.sweep.isOver(at: now),
            caches.contains(where: { $0.removal(at: counts[$0.id]?.firstEnd ?? .max) < now })
        else { return 0 }
        var (sweep, count) = (Sweep(now: now), 0)
        for _ in 0..<10 where sweep.next != nil {
            count += try transaction(until: Deadline(in: waiting)) { try $0.sweepBatch(&sweep) }
        }
        if count == 0 { waits.sweep.begin(at: now) }
        return count
    }

    /// Removes a batch of the least recently used rows.
    ///
    /// - Parameter waiting: The milliseconds that it waits for another process.
    func evictBatch(_ eviction: inout Eviction, _ waiting: Int64) throws {
        // With a limit of 0 no row may stay.
        let kept = eviction.cache?.limits.count == 0 ? nil : lastWrittenID
        try transaction(until: Deadline(in: waiting)) { state in
            // Another store may have removed rows since the last batch, or the cache.
            if let cache = eviction.cache, incarnations[cache.cache.identity.name]?.id != cache.id {
                return eviction.isHeld = true
            }
            if eviction.goal != nil {
                guard areCounted(eviction.cache) || waits.search.isOver(at: now) else {
                    upkeep?.ask(at: now.addingSaturated(1000), from: now)
                    return eviction.isHeld = true
                }
                if !areCounted(eviction.cache) { waits.search.begin(at: now) }
                eviction.look(at: try totals(of: eviction.cache))
            }
            if eviction.isDone { return eviction.isHeld = true }
            let before = eviction.rest
            noteMemory()
            // Ids that were chosen before a commit of another store mean nothing.
            let isNewChoice = eviction.victims.isEmpty || eviction.chosenIn != epoch
            if isNewChoice {
                if eviction.areLast && eviction.chosenIn == epoch { return eviction.isHeld = false }
                // Each choice looks at all rows.
                let limit = eviction.rest.size > 0 ? 10_000 : min(50_000, Int(clamping: eviction.rest.count))
                eviction.victims = try leastRecentlyUsed(of: eviction.cache, atMost: limit, kept)[...]
                (eviction.chosenIn, eviction.areLast) = (epoch, eviction.victims.count < limit)
            }
            for victim in eviction.victims.prefix(Self.batchLimit) where !eviction.isDone {
                guard let (header, incarnation) = try connection.header(victim.id),
                    eviction.cache.map({ $0.id == incarnation }) ?? true, !header.meta.isPinned
                else { continue }
                // It was written or read since it was chosen.
                if header.revision != victim.revision
                    || accesses.lastAccess(victim.id, victim.revision).map(Access.order) ?? .min > victim.lastUse
                {
                    eviction.areLast = false
                    continue
                }
                // The last written row is kept, and counted as removed.
                let shortage = eviction.shortage ?? (eviction.rest.count > 0 ? .count : .size)
                if victim.id != kept { try remove(header, from: incarnation, .evicted(by: shortage)) }
                eviction.note(header, stays: victim.id == kept)
            }
            // A damaged index names rows that are not there.
            if isNewChoice && eviction.rest == before { eviction.isHeld = false }
        }
        if eviction.isDone { eviction.isHeld = true }
        eviction.victims = eviction.victims.dropFirst(Self.batchLimit)
    }

    /// Returns unpinned rows in the order of use, with a row that is to be kept at the end.
    private func leastRecentlyUsed(
        of cache: Incarnation?, atMost count: Int, _ kept: Int64?
    ) throws(SQLiteError) -> [Eviction.Victim] {
        // Accesses that are not stored yet count too, and can move as many rows back.
        let noted = accesses.moments
        let all = counts.values.reduce(0) { $0 + $1.totals.count }
        // A cache that has few of the rows is looked through by its keys, other rows in the order of ids.
        let isSmall = cache.map { counts[$0.id]?.totals.count ?? 0 < all / 8 } ?? false
        let sql = isSmall ? SQL.leastRecentlyUsedByKey : .leastRecentlyUsed
        var rows = try connection.list(sql, Int64(count + noted.count + 1), cache?.id) { row -> Eviction.Victim in
            let id = row.int64(0)
            let lastUse = max(row.int64(2), noted[id].map(Access.order) ?? .min)
            return (id, row.int64(1), id == kept ? .max : lastUse)
        }
        rows.sort { ($0.lastUse, $0.id) < ($1.lastUse, $1.id) }
        return Array(rows.prefix(count))
    }
}
