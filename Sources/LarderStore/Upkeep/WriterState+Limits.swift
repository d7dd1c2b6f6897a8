internal import Foundation
internal import LarderSQLite

/// A removal of least recently used rows in batches, between which other requests may run.
struct Eviction {
    typealias Victim = (id: Int64, place: Int64)

    /// The cache whose rows are removed; nil for those of all.
    let cache: Generation?
    /// What there is too little of; nil for rows or bytes over a limit.
    let shortage: RemovedRow.Shortage?
    /// What is left to remove.
    fileprivate(set) var rest: Totals
    /// The totals to reach; nil if it ends with a number of rows or bytes.
    fileprivate var goal: Totals?
    /// The rows that were chosen and are still to be removed.
    fileprivate var victims: ArraySlice<Victim> = []
    /// A Boolean value that indicates whether no other row can be chosen.
    fileprivate var areLast = false
    /// The epoch in which the rows were chosen.
    fileprivate var chosenIn: UInt32 = 0
    /// Whether enough was removed; nil while more can be.
    fileprivate(set) var isHeld: Bool?

    /// - Parameter totals: The totals of which the excess is a part, if they are to be reached, though other requests remove
    ///   rows too.
    init(
        _ excess: Totals, of totals: Totals? = nil, from cache: Generation?, for shortage: RemovedRow.Shortage? = nil
    ) {
        (rest, self.cache, self.shortage) = (excess, cache, shortage)
        goal = totals.map {
            Totals(
                count: excess.count > 0 ? $0.count - excess.count : .max,
                size: excess.size > 0 ? $0.size - excess.size : .max)
        }
    }

    fileprivate var isDone: Bool { rest.count <= 0 && rest.size <= 0 }

    /// Notes that a row was removed, or counts as removed and stays.
    fileprivate mutating func note(_ row: RowFacts, stays: Bool) {
        rest += Totals(count: -1, size: -row.size)
        guard stays, let goal else { return }
        self.goal = Totals(count: goal.count.addingSaturated(1), size: goal.size.addingSaturated(row.size))
    }

    /// Takes over what other requests have removed or added in the meantime.
    fileprivate mutating func look(at totals: Totals) {
        guard let goal else { return }
        rest = Totals(
            count: max(0, totals.count.subtractingSaturated(goal.count)),
            size: max(0, totals.size.subtractingSaturated(goal.size)))
    }
}

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
    func checkSize(_ payloadSize: Int64, _ extendedData: Data?, in cache: Generation) throws(StoreError) {
        guard hasLimits else { return }
        let size = payloadSize + Int64(extendedData?.count ?? 0)
        if let limit = cache.limits.size, size > limit { throw .exceeds(limit, of: "its cache", size: size) }
        if let limit = storeLimits.size, size > limit { throw .exceeds(limit, of: "the store", size: size) }
    }

    /// Removes a batch of rows if a limit does not hold, and notes whether one still does not.
    ///
    /// Called after each batch of requests. If another process writes or the disk fails, the limits wait for upkeep.
    func holdLimits() {
        guard hasLimits else { return }
        let wasEvicting = !evictions.isEmpty
        do {
            if try holdLimits(waiting: 0) && !wasEvicting { noteEviction() }
        } catch {
            upkeep?.ask(at: now.addingSaturated(1000), from: now)
        }
    }

    /// Looks at all limits again, for upkeep, which then calls ``holdLimits(waiting:)``.
    func lookAtLimits(at moment: Int64) throws(SQLiteError) {
        try lookUpGenerations()
        now = moment
        forgetWaits()
    }

    /// Forgets what limits wait for, and which row was written last.
    func forgetWaits() {
        (unheld, evictions, nextRecount, nextSweep, nextSpaceCheck) = ([:], [:], .min, .min, .min)
        lastWrittenID = nil
    }

    /// Returns whether a moment is less than `wait` ahead.
    ///
    /// A moment further ahead means that the clock was set back.
    private func isAhead(_ moment: Int64, _ wait: Int64) -> Bool { now < moment && now.addingSaturated(wait) >= moment }

    /// Removes a batch of rows in a transaction of its own if a limit does not hold, and returns whether one still does not.
    func holdLimits(waiting: Int64) throws -> Bool {
        guard hasLimits else { return false }
        let mayCount = !isAhead(nextRecount, 1000)
        var isOver = false
        for generation in generations.values where generation.limits != Limits() && !isOver {
            isOver = try hold(generation.limits, of: generation, mayCount, waiting)
        }
        if !isOver && storeLimits.size != nil {
            isOver = try hold(Limits(size: storeLimits.size), of: nil, mayCount, waiting)
        }
        return try isOver || holdFreeSpace(waiting)
    }

    /// Holds the limits of a cache, or of all, by a batch, and returns whether the eviction goes on.
    ///
    /// After commits of another store rows are counted at most once a second, or else by upkeep. If pins leave too few rows to
    /// remove, the next search comes when the totals have grown by a twentieth, or a pin has gone.
    private func hold(_ limits: Limits, of cache: Generation?, _ mayCount: Bool, _ waiting: Int64) throws -> Bool {
        let id = cache?.id ?? 0
        if evictions[id] == nil {
            if !areCounted(cache) {
                nextRecount = now.addingSaturated(1000)
                guard mayCount else { upkeep?.ask(at: nextRecount, from: now); return false }
            }
            let totals = try totals(of: cache)
            guard limits.excess(of: totals) != Totals() else { return false }
            if let last = unheld[id], totals.count <= last.count + last.count / 20,
                totals.size <= last.size + last.size / 20
            {
                return false
            }
            try removeExpired(of: cache.map { [$0] } ?? Array(generations.values), waiting)
            let rest = try self.totals(of: cache)
            evictions[id] = Eviction(limits.excess(of: rest), of: rest, from: cache)
        }
        guard let isHeld = try goOn(id, waiting) else { return true }
        if !isHeld && unheld[id] == nil { events.append(.limitUnmet(cache: cache?.cache.name)) }
        unheld[id] = isHeld ? nil : try totals(of: cache)
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
    private func areCounted(_ cache: Generation?) -> Bool {
        cache.map { counts[$0.id] != nil } ?? generations.values.allSatisfy { counts[$0.id] != nil }
    }

    private func totals(of cache: Generation?) throws(SQLiteError) -> Totals {
        if let cache { return try count(of: cache).totals }
        var totals = Totals()
        for cache in generations.values { totals += try count(of: cache).totals }
        return totals
    }

    /// Removes expired rows of a cache that exceeds limits, and returns their number and the eviction that is left to do.
    func beginTrim(_ declaration: CacheDeclaration, to limits: Limits) throws -> (removed: Int, Eviction) {
        try lookUpGenerations()
        guard let cache = generation(of: declaration) else { throw StoreError.superseded }
        guard limits.excess(of: try totals(of: cache)) != Totals() else { return (0, Eviction(Totals(), from: cache)) }
        (lastWrittenID, nextSweep) = (nil, .min)
        let expired = try removeExpired(of: [cache], busyTimeout)
        let totals = try totals(of: cache)
        return (expired, Eviction(limits.excess(of: totals, isExact: true), of: totals, from: cache))
    }

    /// Removes expired and then least recently used rows of as many bytes as are missing on the disk, and gives their room
    /// back; returns whether the eviction goes on.
    ///
    /// If another process keeps the room, the next look is a minute later.
    private func holdFreeSpace(_ waiting: Int64) throws -> Bool {
        guard let floor = storeLimits.freeSpace, let files, !isAhead(nextSpaceCheck, 60_000) else { return false }
        let pageSize: Int64 = 4096
        if evictions[Self.ofFreeSpace] == nil {
            let free = try files.freeSpace()
            let missing = floor.subtractingSaturated(free)
            guard missing > 0 else { return false }
            spaceBefore = free
            try removeExpired(of: Array(generations.values), waiting)
            let rest = max(0, missing - Int64(try connection.freePages()) * pageSize)
            evictions[Self.ofFreeSpace] = Eviction(Totals(size: rest), from: nil, for: .space)
        }
        if try goOn(Self.ofFreeSpace, waiting) == nil { return true }
        files.discard(takeDiscardedFiles())
        files.emptyPool()
        let missing = floor.subtractingSaturated(spaceBefore)
        try giveBackPages(missing / pageSize + 1)
        if try files.freeSpace() - spaceBefore < missing / 2 { nextSpaceCheck = now.addingSaturated(60_000) }
        return false
    }

    /// The key of the eviction that frees space of the disk.
    private static let ofFreeSpace: Int64 = -1

    /// Removes expired rows among the first 100,000, at most once a second if there are none, and returns their number.
    @discardableResult
    func removeExpired(of caches: [Generation], _ waiting: Int64) throws -> Int {
        guard !isAhead(nextSweep, 1000),
            caches.contains(where: { $0.removal(at: counts[$0.id]?.firstEnd ?? .max) < now })
        else { return 0 }
        var (sweep, count) = (Sweep(now: now), 0)
        for _ in 0..<10 where sweep.next != nil {
            count += try transaction(until: Deadline(in: waiting)) { try $0.sweepBatch(&sweep) }
        }
        if count == 0 { nextSweep = now.addingSaturated(1000) }
        return count
    }

    /// Removes a batch of the least recently used rows.
    ///
    /// - Parameter waiting: The milliseconds that it waits for another process.
    func evictBatch(_ eviction: inout Eviction, _ waiting: Int64) throws {
        if let cache = eviction.cache, generations[cache.cache.exactName]?.id != cache.id {
            return eviction.isHeld = true
        }
        if areCounted(eviction.cache) || !isAhead(nextRecount, 1000) {
            if !areCounted(eviction.cache) { nextRecount = now.addingSaturated(1000) }
            eviction.look(at: try totals(of: eviction.cache))
        }
        if eviction.isDone { return eviction.isHeld = true }
        // With a limit of 0 no row may stay.
        let kept = eviction.cache?.limits.count == 0 ? nil : lastWrittenID
        let before = eviction.rest
        try transaction(until: Deadline(in: waiting)) { state in
            noteMemory()
            // Ids that were chosen before a commit of another store mean nothing.
            let isNewChoice = eviction.victims.isEmpty || eviction.chosenIn != epoch
            if isNewChoice {
                if eviction.areLast && eviction.chosenIn == epoch { return eviction.isHeld = false }
                let limit = eviction.rest.size > 0 ? 10_000 : min(10_000, Int(clamping: eviction.rest.count))
                eviction.victims = try leastRecentlyUsed(of: eviction.cache, atMost: limit)[...]
                (eviction.chosenIn, eviction.areLast) = (epoch, eviction.victims.count < limit)
            }
            for victim in eviction.victims.prefix(Self.batchLimit) where !eviction.isDone {
                guard let (facts, generation) = try connection.facts(victim.id),
                    eviction.cache.map({ $0.id == generation }) ?? true, !facts.meta.isPinned
                else { continue }
                // It was written or read since it was chosen.
                if uses.place(of: victim.id) ?? .min > victim.place {
                    eviction.areLast = false
                    continue
                }
                // The last written row is kept, and counted as removed.
                let shortage = eviction.shortage ?? (eviction.rest.count > 0 ? .count : .size)
                if victim.id != kept { try remove(facts, from: generation, .evicted(by: shortage)) }
                eviction.note(facts, stays: victim.id == kept)
            }
            // A damaged index names rows that are not there.
            if isNewChoice && eviction.rest == before { eviction.isHeld = false }
        }
        if eviction.isDone { eviction.isHeld = true }
        eviction.victims = eviction.victims.dropFirst(Self.batchLimit)
    }

    /// Returns unpinned rows in the order of use.
    private func leastRecentlyUsed(of cache: Generation?, atMost count: Int) throws(SQLiteError) -> [Eviction.Victim] {
        typealias Place = Eviction.Victim
        // Accesses that are not stamped count too.
        let noted = uses.places
        let limit = count + noted.count
        func first(_ places: [Place]) -> [Place] {
            let places = places.map { Place(id: $0.id, place: max($0.place, noted[$0.id] ?? .min)) }
            return Array(places.sorted { $0.place < $1.place }.prefix(count))
        }
        func places(_ sql: SQL, _ limit: Int, _ parameter: Int64?) throws(SQLiteError) -> [Place] {
            try connection.list(sql, Int64(limit), parameter) { Place(id: $0.int64(0), place: $0.int64(1)) }
        }
        let all = counts.values.reduce(0) { $0 + $1.totals.count }
        // A cache that has few of the rows is looked through by its keys, other rows in the order of ids.
        if let cache, counts[cache.id]?.totals.count ?? 0 < max(2000, all / 8) {
            return first(try places(.oldestByKey, limit, cache.id))
        }
        let unused = try places(.oldestUnused, limit, cache?.id)
        // A used row that is newer than all of these is not chosen.
        let end = unused.count < limit ? Int64.max : unused.last?.place ?? .max
        let live = Set(generations.values.map(\.id))
        var (used, last, page): ([Place], Int64, Int) = ([], .min, 2000)
        while used.count < limit {
            let next = try places(.oldestUsed, page, last)
            for place in next where place.place < end && used.count < limit {
                guard let (facts, generation) = try connection.facts(place.id), !facts.meta.isPinned,
                    cache?.id ?? generation == generation, live.contains(generation)
                else { continue }
                used.append(place)
            }
            guard let place = next.last?.place, place > last, place < end else { break }
            // Each page looks at all used rows.
            (last, page) = (place, min(page * 8, 1_000_000))
        }
        return first(unused + used)
    }
}
