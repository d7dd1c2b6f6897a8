internal import LarderSQLite

/// A sweep through the rows in the order of ids, batch by batch, for those that have expired.
struct Sweep {
    let now: Int64
    /// The id at which the next batch begins; nil at the end.
    var next: Int64? = .min
}

/// What upkeep does with the writer: it sweeps, gives pages back, and stores accesses and counters.
extension WriterState {
    /// Removes the expired rows of a batch.
    ///
    /// - Returns: The number of the rows, and the totals of those of one incarnation, or of all.
    func sweepBatch(_ sweep: inout Sweep, of one: Int64? = nil) throws -> (count: Int, ofCache: Totals) {
        let ids = try findExpired(&sweep, atMost: Self.batchLimit)
        var totals = Totals()
        for id in ids {
            guard let (header, incarnation) = try connection.header(id) else { continue }
            try remove(header, from: incarnation, .expired)
            if one == nil || incarnation == one { totals += Totals(count: 1, size: header.size) }
        }
        return (ids.count, totals)
    }

    /// Returns the ids of the expired rows among the next 10,000, at most `limit`.
    private func findExpired(_ sweep: inout Sweep, atMost limit: Int) throws(SQLiteError) -> [Int64] {
        let caches = incarnations.byID
        var (expired, sliding): ([Int64], [(EntryHeader, Incarnation)]) = ([], [])
        try connection.with(.sweptRows) { row throws(SQLiteError) in
            guard let first = sweep.next else { return }
            try row.bind(first, at: 1)
            var count = 0
            while expired.count + sliding.count < limit {
                guard try row.step() else {
                    if count < 10_000 { sweep.next = nil }
                    return
                }
                count += 1
                let id = row.int64(0)
                guard let next = sweep.next, id >= next else { throw SQLiteError.damagedOrder }
                sweep.next = id == .max ? nil : id + 1
                guard let cache = caches[row.int64(9)] else { continue }
                let header = row.header(.integer(0), by: cache.rule)
                if cache.removal(at: header.end) >= sweep.now { continue }
                if header.slidingAge == nil { expired.append(header.id) } else { sliding.append((header, cache)) }
            }
        }
        for (var header, cache) in sliding {
            try connection.addAccess(to: &header, accesses)
            if cache.removal(at: header.end) < sweep.now { expired.append(header.id) }
        }
        return expired
    }

    /// Forgets the first ends of the swept caches.
    func endSweep(_ sweep: Sweep) {
        for cache in incarnations.values where cache.removal(at: counts[cache.id]?.firstEnd ?? .max) < sweep.now {
            counts.forgetEnds(of: cache.id)
        }
    }

    /// The moment at which the next row can be removed for its age, as far as rows were counted; nil if none ever can.
    var nextRemoval: Int64? {
        var next = Int64.max
        for cache in incarnations.values { next = min(next, cache.removal(at: counts[cache.id]?.firstEnd ?? .max)) }
        return next == .max ? nil : next
    }

    /// The pages that are given back in one hold of the lock.
    static let pagesGivenBack = 250

    /// Gives some empty pages back to the disk, and returns whether there may be more.
    func giveBackPages() throws(SQLiteError) -> Bool {
        // The file could not grow to its size again.
        if logKeeper.isFull { return false }
        connection.setBusyTimeout(Int32(clamping: busyTimeout))
        if try connection.freePages() == 0 { return false }
        let isLess = try connection.commitOwn(watch) { (connection) throws(SQLiteError) in
            let free = try connection.freePages()
            if free == 0 { return false }
            do throws(SQLiteError) {
                try connection.vacuum(pages: Self.pagesGivenBack)
            } catch {
                // The disk is asked at the commit. This is a page behind the end of the file, to which a damaged map leads.
                guard .full ~= error.code else { throw error }
                throw SQLiteError(code: .corrupt, message: "the map of the pages is damaged")
            }
            return try connection.freePages() < free
        }
        if isLess { copyLog() }
        return isLess
    }

    /// Stores the accesses that reads have noted and that memory has, unless the stored ones lag by less than the grain.
    func storeAccesses() throws(SQLiteError) {
        noteMemory(of: nil)
        for access in accesses.take() { try store(access) }
    }

    /// Notes the accesses that memory has, of a cache or of all.
    ///
    /// That takes time for each entry in memory, so it is done under the writer's lock only for few rows and at the end.
    func noteMemory(of cache: CacheIdentity?) {
        outbox.released += accesses.note(servedBy: tiers, of: cache, at: now) as [Any]
    }

    func store(_ access: Access) throws(SQLiteError) {
        stampCount += 1
        let latest = access.moment.subtractingSaturated(max(0, access.grain))
        try connection.run(.storeAccess, access.id, access.revision, access.moment, latest)
        if connection.changes > 0 { accesses.noteStored(access) }
    }

    /// Stores the last access of a row.
    package func storeAccess(to row: RowSummary, at moment: Int64) throws {
        try store(Access(id: row.id, revision: row.revision, moment: moment, grain: 0))
    }

    /// The milliseconds of a day.
    static let day: Int64 = 86_400_000

    /// Adds what the counters of caches have gained, notes what memory has used last, and once a day deletes those that are older than ninety days.
    func writeActivity(at now: Int64) throws(SQLiteError) {
        let day = now / Self.day
        for (cache, tiers) in tiers.all {
            outbox.released += tiers as [Any]
            guard incarnations[cache.name] != nil else { continue }
            for (counter, gain) in tiers.flatMap({ $0.takeActivity() }) where gain != 0 {
                try connection.run(.addActivity, text: cache.name.text, day, counter, gain)
            }
            // A handle of an older version knows other rows.
            for tier in tiers where incarnations[cache.name]?.cache.identity == cache {
                guard let ids = tier.takeRecentIDs() else { continue }
                try setNote(RecentNote.number, RecentNote.packed(ids), of: cache.name.text)
            }
        }
        if day == activityDay { return }
        try connection.run(.deleteOldActivity, day - 90)
        activityDay = day
    }
}
