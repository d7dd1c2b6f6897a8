internal import Foundation
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
    func checkSize(_ payloadSize: Int64, _ extendedData: Data?, in cache: Generation) throws(StoreError) {
        guard hasLimits else { return }
        let size = payloadSize + Int64(extendedData?.count ?? 0)
        if size > min(cache.limits.size ?? .max, storeLimits.size ?? .max) { throw .exceedsLimit }
    }

    /// Removes rows until all limits hold, each batch in a transaction of its own.
    ///
    /// Called after each batch of requests. If another process writes or the disk fails, the limits wait for upkeep.
    func holdLimits() {
        guard hasLimits else { return }
        do { try holdLimits(waiting: 0) } catch { upkeep?.ask(at: now.addingSaturated(1000), from: now) }
    }

    /// Holds all limits for upkeep, and returns the number of removed rows.
    func holdLimits(at moment: Int64) throws -> Int {
        try lookUpGenerations()
        now = moment
        forgetWaits()
        let before = evictedCount
        if hasLimits { try holdLimits(waiting: busyTimeout) }
        return evictedCount - before
    }

    /// Forgets what limits wait for, and which row was written last.
    func forgetWaits() {
        (unheld, nextRecount, nextSweep, nextSpaceCheck) = ([:], .min, .min, .min)
        lastWrittenID = nil
    }

    /// Returns whether a moment is less than `wait` ahead.
    ///
    /// A moment further ahead means that the clock was set back.
    private func isAhead(_ moment: Int64, _ wait: Int64) -> Bool { now < moment && now.addingSaturated(wait) >= moment }

    private func holdLimits(waiting: Int64) throws {
        let mayCount = !isAhead(nextRecount, 1000)
        for generation in generations.values where generation.limits != Limits() {
            try hold(generation.limits, of: generation, mayCount, waiting)
        }
        if storeLimits.size != nil { try hold(Limits(size: storeLimits.size), of: nil, mayCount, waiting) }
        try holdFreeSpace(waiting)
    }

    /// Holds the limits of a cache, or of all.
    ///
    /// After commits of another store rows are counted at most once a second, or else by upkeep. If pins leave too few rows to
    /// remove, the next search comes when the totals have grown by a twentieth, or a pin has gone.
    private func hold(_ limits: Limits, of cache: Generation?, _ mayCount: Bool, _ waiting: Int64) throws {
        let caches = cache.map { [$0] } ?? Array(generations.values)
        if !caches.allSatisfy({ counts[$0.id] != nil }) {
            nextRecount = now.addingSaturated(1000)
            guard mayCount else { upkeep?.ask(at: nextRecount, from: now); return }
        }
        let (totals, id) = (try self.totals(of: cache), cache?.id ?? 0)
        guard limits.excess(of: totals) != Totals() else { return }
        if let last = unheld[id], totals.count <= last.count + last.count / 20,
            totals.size <= last.size + last.size / 20
        {
            return
        }
        try removeExpired(of: caches, waiting)
        let isHeld = try evict(limits.excess(of: try self.totals(of: cache)), from: cache, waiting)
        if !isHeld && unheld[id] == nil { events.append(.limitUnmet(cache: cache?.cache.name)) }
        unheld[id] = isHeld ? nil : try self.totals(of: cache)
    }

    private func totals(of cache: Generation?) throws(SQLiteError) -> Totals {
        if let cache { return try count(of: cache).totals }
        var totals = Totals()
        for cache in generations.values { totals += try count(of: cache).totals }
        return totals
    }

    /// Removes rows of a cache until it is within limits, and returns their number.
    func trim(_ declaration: CacheDeclaration, to limits: Limits) throws -> Int {
        try lookUpGenerations()
        guard let cache = generation(of: declaration) else { throw StoreError.superseded }
        let before = evictedCount
        guard limits.excess(of: try totals(of: cache)) != Totals() else { return 0 }
        (lastWrittenID, nextSweep) = (nil, .min)
        let expired = try removeExpired(of: [cache], busyTimeout)
        _ = try evict(limits.excess(of: try totals(of: cache), isExact: true), from: cache, busyTimeout)
        return expired + evictedCount - before
    }

    /// Removes expired and then least recently used rows of as many bytes as are missing on the disk, and gives their room
    /// back.
    ///
    /// If another process keeps the room, the next look is a minute later.
    private func holdFreeSpace(_ waiting: Int64) throws {
        guard let floor = storeLimits.freeSpace, let files, !isAhead(nextSpaceCheck, 60_000) else { return }
        let free = try files.freeSpace()
        let missing = floor.subtractingSaturated(free)
        guard missing > 0 else { return }
        try removeExpired(of: Array(generations.values), waiting)
        let pageSize: Int64 = 4096
        let rest = missing - Int64(try connection.freePages()) * pageSize
        if rest > 0 { _ = try evict(Totals(size: rest), from: nil, waiting, for: .space) }
        files.discard(takeDiscardedFiles())
        files.emptyPool()
        try giveBackPages(missing / pageSize + 1)
        if try files.freeSpace() - free < missing / 2 { nextSpaceCheck = now.addingSaturated(60_000) }
    }

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

    /// Removes the least recently used rows of a cache, or of all, and returns false if fewer could go.
    ///
    /// - Parameters:
    ///   - waiting: The milliseconds that it waits for another process.
    ///   - shortage: The reason; nil if it is the excess.
    ///   - stamps: A Boolean value that indicates whether accesses are written before, for which a full disk has no room.
    func evict(
        _ excess: Totals, from cache: Generation?, _ waiting: Int64, for shortage: RemovedRow.Shortage? = nil,
        stamps: Bool = true
    ) throws -> Bool {
        // With a limit of 0 no row may stay.
        let kept = cache?.limits.count == 0 ? nil : lastWrittenID
        var (rest, victims, areLast, chosenIn) = (excess, ArraySlice<Int64>(), false, epoch)
        while rest.count > 0 || rest.size > 0 {
            if victims.isEmpty && areLast { return false }
            let before = rest
            try transaction(until: Deadline(in: waiting)) { state in
                // Ids that were chosen before a commit of another store mean nothing.
                if victims.isEmpty || chosenIn != epoch {
                    let limit = rest.size > 0 ? 10_000 : min(10_000, Int(clamping: rest.count))
                    if stamps { try stampAccesses(isExact: true) } else { noteMemory() }
                    (victims, chosenIn) = (try leastRecentlyUsed(of: cache, atMost: limit)[...], epoch)
                    areLast = victims.count < limit
                }
                for id in victims.prefix(Self.batchLimit) where rest.count > 0 || rest.size > 0 {
                    guard let (facts, generation) = try connection.facts(id) else { continue }
                    // The last written row is kept, and counted as removed.
                    let shortage = shortage ?? (rest.count > 0 ? .count : .size)
                    if id != kept { try remove(facts, from: generation, .evicted(by: shortage)) }
                    rest += Totals(count: -1, size: -facts.size)
                }
            }
            victims = victims.dropFirst(Self.batchLimit)
            // A damaged index names rows that are not there.
            if rest == before { return false }
        }
        return true
    }

    /// Returns the ids of unpinned rows in the order of use.
    private func leastRecentlyUsed(of cache: Generation?, atMost count: Int) throws(SQLiteError) -> [Int64] {
        typealias Place = (id: Int64, place: Int64)
        // Accesses that are not stamped count too.
        let noted = uses.places
        let limit = count + noted.count
        func first(_ places: [Place]) -> [Int64] {
            let places = places.map { Place($0.id, max($0.place, noted[$0.id] ?? .min)) }
            return places.sorted { $0.place < $1.place }.prefix(count).map(\.id)
        }
        func places(_ sql: SQL, _ limit: Int, _ parameter: Int64?) throws(SQLiteError) -> [Place] {
            try connection.list(sql, Int64(limit), parameter) { ($0.int64(0), $0.int64(1)) }
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
