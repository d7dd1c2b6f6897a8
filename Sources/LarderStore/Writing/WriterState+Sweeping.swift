internal import LarderSQLite

/// A sweep through the rows in the order of ids, batch by batch, for those that have expired.
struct Sweep {
    let now: Int64
    /// The id at which the next batch begins; nil at the end.
    var next: Int64? = .min
}

extension WriterState {
    /// Removes the expired rows of a batch, and returns their number.
    func sweepBatch(_ sweep: inout Sweep) throws -> Int {
        let ids = try findExpired(&sweep, atMost: Self.batchLimit)
        for id in ids {
            if let (header, incarnation) = try connection.header(id) { try remove(header, from: incarnation, .expired) }
        }
        return ids.count
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

    /// Discards the counts of the swept caches, whose first end has changed.
    func endSweep(_ sweep: Sweep) {
        for cache in incarnations.values where cache.removal(at: counts[cache.id]?.firstEnd ?? .max) < sweep.now {
            counts[cache.id] = nil
        }
    }

    /// Returns the moment at which the next row can be removed for its age; nil if none ever can.
    func nextRemoval() throws(SQLiteError) -> Int64? {
        try lookUpIncarnations()
        var next = Int64.max
        for cache in incarnations.values { next = min(next, cache.removal(at: try count(of: cache).firstEnd)) }
        return next == .max ? nil : next
    }

    /// Gives empty pages back to the disk.
    func giveBackPages(_ count: Int64) throws(SQLiteError) {
        // The file could not grow to its size again.
        if room.isFull { return }
        connection.setBusyTimeout(Int32(clamping: busyTimeout))
        var rest = count
        while rest > 0 {
            if try connection.freePages() == 0 { return }
            let isLess = try connection.commitOwn(watch) { (connection) throws(SQLiteError) in
                let free = try connection.freePages()
                if free == 0 { return false }
                try connection.vacuum(pages: 1000)
                return try connection.freePages() < free
            }
            if !isLess { return }
            copyLog()
            rest -= 1000
        }
    }
}
