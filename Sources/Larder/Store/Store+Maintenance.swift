internal import LarderSQLite
internal import Synchronization

/// What a pass over a store has done.
package struct MaintenanceCounts: Sendable {
    package var expired = 0
    package var trimmed = 0
    package var reclaimed = 0
    package var orphans = 0
    package var freedBytes: Int64 = 0
}

extension Store {
    /// How many pages are given back in one transaction.
    private static let pagesPerSlice = 256

    /// How old a file without a row has to be, in milliseconds: its row may be on its way.
    private static let orphanAge: Int64 = 3_600_000

    /// Removes what is over, over a limit, retired or orphaned, and gives the space back, slice by slice.
    package func maintain() throws(CacheError) -> MaintenanceCounts {
        var counts = MaintenanceCounts()
        counts.expired = try sweepAll()
        counts.trimmed += try inUse { (ledger) throws(CacheError) in try ledger.holdLimits(slack: false) }
        counts.trimmed += try holdLimits(slack: false)
        counts.reclaimed = try reclaimer.finish(self)
        try deleteStaleTags()
        counts.orphans = try sweepFiles()
        // What went has made the log long; what gives back its space adds little.
        try tidyLog()
        try checkpoint()
        counts.freedBytes = try vacuum()
        counts.trimmed += try holdFreeSpace()
        try emptyPool()
        try tidyLog()
        return counts
    }

    /// Removes what is over from all sub-caches.
    ///
    /// - Returns: How many went.
    func sweepAll() throws(CacheError) -> Int {
        try inUse { (ledger) throws(CacheError) in try ledger.sweep() } + sweepUnused()
    }

    /// Does something for every sub-cache in use; one that was superseded meanwhile has nothing to say.
    @discardableResult
    private func inUse(_ body: (RowLedger) throws(CacheError) -> Int) throws(CacheError) -> Int {
        var count = 0
        for ledger in live.all where !ledger.isSuperseded {
            count += try unlessSuperseded { () throws(CacheError) in try body(ledger) }
        }
        return count
    }

    /// Does something for a sub-cache; where another one takes its place meanwhile, here or in another process, there is
    /// nothing left to be done for it.
    func unlessSuperseded(_ body: () throws(CacheError) -> Int) throws(CacheError) -> Int {
        try unlessSuperseded(else: 0, body)
    }

    /// The result of `body`, or the other one where another sub-cache takes the place of its own meanwhile.
    func unlessSuperseded<R>(else other: R, _ body: () throws(CacheError) -> R) throws(CacheError) -> R {
        do throws(CacheError) {
            return try body()
        } catch {
            if error.code != .superseded { throw error }
            return other
        }
    }

    /// Removes what is over from sub-caches that nobody uses, by the age that was declared last.
    private func sweepUnused() throws(CacheError) -> Int {
        var count = 0
        let present = try present()
        let generations = try read { (c, _) throws(SQLiteError) in try c.liveGenerations() }
        for generation in generations {
            // One that another process has put in the place of ours is not in use here either.
            if let ledger = live[generation.name], !ledger.isSuperseded { continue }
            let binding = GenerationBinding(
                database: present.database, id: generation.id, root: generation.root, round: present.watch.round())
            let ledger = RowLedger(generation, present: present, binding: binding, store: self)
            let rule = generation.age.rule
            let grace = generation.keepsExpired
            count += try unlessSuperseded { () throws(CacheError) in
                try ledger.removeExpired(graceOfUse: RowLedger.longestNote) { () throws(CacheError) in
                    // Since somebody has opened it, its handles say what they may still serve.
                    let isInUse = live[generation.name].map { !$0.isSuperseded } == true
                    return (isInUse ? [] : [rule] + live.rulesApart(from: generation.name), grace, sweepClock.moment())
                }
            }
        }
        return count
    }

    /// Deletes files that no row names.
    package func sweepFiles() throws(CacheError) -> Int {
        guard let blobs = try present().blobs else { return 0 }
        // By the system's clock, which is the files'.
        var sweep = BlobSweep(olderThan: SystemClock.now() - Self.orphanAge)
        while !sweep.isDone {
            try CacheError.translating("cannot sweep the files of \(name)") {
                try blobs.sweep(&sweep, atMost: 1000) { names in
                    try read { (c, _) throws(SQLiteError) in try c.named(names) }
                }
            }
        }
        return sweep.deletedCount
    }

    /// Gives empty pages back to the file system.
    ///
    /// - Returns: How many bytes.
    package func vacuum() throws(CacheError) -> Int64 {
        var freed: Int64 = 0
        var slice = Self.pagesPerSlice
        while true {
            let atMost = slice
            do throws(CacheError) {
                let pages = try write(BlockTraits()) { (connection, _) throws(SQLiteError) in
                    let before = try connection.freePages()
                    if before > 0 { try connection.vacuum(pages: atMost) }
                    return before - (try connection.freePages())
                }
                if pages <= 0 { return freed * Int64(Connection.pageSize) }
                freed += Int64(pages)
            } catch {
                slice = try smaller(atMost, after: error)
            }
        }
    }

    func emptyPool() throws(CacheError) {
        guard let blobs = try present().blobs else { return }
        do throws(SystemError) {
            try blobs.emptyPool()
        } catch {
            throw CacheError("cannot delete files of \(name) that wait to be used again", error)
        }
    }

    // MARK: - Limits of the whole

    /// Removes the least recently used entries of all sub-caches until the size limit holds.
    func holdLimits(slack: Bool) throws(CacheError) -> Int {
        guard let limit = policy.sizeLimit else { return 0 }
        let allowed = RowLedger.allowed(limit, slack: slack)
        let size = try read { (c, _) throws(SQLiteError) in try c.totalSizeOfAll() }
        written.store(0, ordering: .relaxed)
        // Half of what is left may be written before it is worth another look.
        room.store(Int(clamping: max(0, limit - size)) / 2, ordering: .relaxed)
        guard size > allowed else { return 0 }
        // What is over goes first of all.
        let expired = try sweepAll()
        let rest = expired == 0 ? size : try read { (c, _) throws(SQLiteError) in try c.totalSizeOfAll() }
        guard rest > limit else { return expired }
        // As with the limits of a sub-cache: after a write the entry written last stays, unless nothing may.
        let spared = slack && limit > 0 ? live.all.map(\.newestWritten).max() : nil
        return expired + (try evictOfAll(bytes: rest - limit, .size, sparing: spared))
    }

    /// Removes the least recently used entries until enough of the volume is free, or nothing is left that may go.
    ///
    /// What has gone and is not given back yet, since somebody stands in the log, counts as free.
    ///
    /// - Parameter sparesNewest: Whether the entry that was written last stays, as after a write.
    func holdFreeSpace(sparesNewest: Bool = false) throws(CacheError) -> Int {
        guard let floor = policy.freeSpaceFloor, let blobs = try present().blobs else { return 0 }
        writtenOnVolume.store(0, ordering: .relaxed)
        var removed = 0
        var hasSwept = false
        // What was free before nothing but what is owed was given back.
        var before: Int64?
        while true {
            let free = try CacheError.translating("cannot look how much room there is for \(name)") {
                try blobs.space().free
            }
            // Nothing went, and nothing came back: somebody stands in the log.
            guard free < floor, before.map({ free > $0 }) != false else { return removed }
            let owed = try onDatabase("cannot look at") { (database) throws(SQLiteError) in try database.owedBytes() }
            let missing = floor - free.addingSaturated(owed)
            var (gone, reclaimed) = (0, 0)
            if missing > 0 {
                // What nobody can see goes first of all, and then what is over.
                reclaimed = try reclaimer.reclaimSome(self)
                if reclaimed == 0, !hasSwept {
                    gone = try sweepAll()
                    hasSwept = true
                }
                if reclaimed == 0, gone == 0 {
                    let spared = sparesNewest ? live.all.map(\.newestWritten).max() : nil
                    gone = try evictOfAll(bytes: max(missing, 1 << 20), .freeSpace, sparing: spared)
                }
                removed += gone
            }
            before = gone == 0 && reclaimed == 0 ? free : nil
            try giveBackSpace()
        }
    }

    /// Gives what is empty back to the volume.
    func giveBackSpace() throws(CacheError) {
        try checkpoint()
        _ = try vacuum()
        try emptyPool()
        try tidyLog()
    }

    /// Removes the least recently used entries that come to so many bytes.
    ///
    /// - Parameter spared: The revision of an entry that stays.
    private func evictOfAll(
        bytes: Int64, _ cause: RemovalCause, sparing spared: Int64? = nil
    ) throws(CacheError) -> Int {
        var removed = 0
        var rest = bytes
        var limit = 1000
        while rest > 0 {
            let asked = limit
            let all = try read { (c, _) throws(SQLiteError) in try c.leastUsedOfAll(limit: asked) }
            let rows = ordered(all, isAll: all.count < asked)
            if rows.isEmpty, all.count == asked {
                limit *= 4
                continue
            }
            var victims: [Int64: [RowVictim]] = [:]
            let refused = Set(live.all.flatMap(\.undeletableRevisions))
            for (generation, candidate) in rows where rest > 0 && candidate.facts.revision != spared {
                if refused.contains(candidate.facts.revision) { continue }
                rest -= max(candidate.facts.size, 1)
                victims[generation, default: []].append(
                    RowVictim(candidate.key, candidate.facts, used: candidate.used))
            }
            var gone = 0
            for (generation, victims) in victims {
                gone += try unlessSuperseded { () throws(CacheError) in try remove(victims, of: generation, cause) }
            }
            if gone == 0 { return removed }
            removed += gone
        }
        return removed
    }

    /// The order of rows of several caches that follows from uses that are not written down.
    private func ordered(
        _ rows: [(generation: Int64, candidate: TrimCandidate)], isAll: Bool
    ) -> [(generation: Int64, candidate: TrimCandidate)] {
        let end = isAll ? Int64.max : rows.last?.candidate.used ?? .max
        let ledgers = Dictionary(live.all.map { ($0.generation, $0) }) { first, _ in first }
        let keys = Dictionary(grouping: rows, by: \.generation).mapValues { $0.map(\.candidate.key) }
        let uses = keys.reduce(into: [:]) { uses, item in uses[item.key] = ledgers[item.key]?.uses(of: item.value) }
        return rows.compactMap { generation, row -> (generation: Int64, candidate: TrimCandidate)? in
            guard let use = uses[generation]?[row.key], use.used > row.used else { return (generation, row) }
            if use.used > end { return nil }
            let later = TrimCandidate(key: row.key, facts: row.facts, used: use.used, isExpired: row.isExpired)
            return (generation, later)
        }
        .sorted { $0.candidate.used < $1.candidate.used }
    }

    private func remove(
        _ victims: [RowVictim], of id: Int64, _ cause: RemovalCause
    ) throws(CacheError) -> Int {
        if let ledger = live.all.first(where: { $0.generation == id }) {
            return try ledger.remove(victims, cause).count
        }
        let present = try present()
        let found = try read { (c, _) throws(SQLiteError) in try c.liveGenerations().first { $0.id == id } }
        guard let generation = found else { return 0 }
        let binding = GenerationBinding(
            database: present.database, id: id, root: generation.root, round: present.watch.round())
        let ledger = RowLedger(generation, present: present, binding: binding, store: self)
        return try ledger.remove(victims, cause).count
    }

    // MARK: - By itself

    /// Notes bytes that were written, and looks after the limits of the whole when they have come to something.
    func noteWritten(_ bytes: Int64) {
        scheduleMaintenance()
        let bytes = Int(clamping: bytes)
        let isLimitDue = policy.sizeLimit.map { limit in
            let total = written.wrappingAdd(bytes, ordering: .relaxed).newValue
            guard total > max(Int(clamping: limit / 20), room.load(ordering: .relaxed)) else { return false }
            // Of several who come to it at once one looks.
            return written.compareExchange(expected: total, desired: 0, ordering: .relaxed).exchanged
        }
        let isFloorDue = policy.freeSpaceFloor.map { _ in
            let total = writtenOnVolume.wrappingAdd(bytes, ordering: .relaxed).newValue
            return total > 4 << 20
                && writtenOnVolume.compareExchange(expected: total, desired: 0, ordering: .relaxed).exchanged
        }
        do throws(CacheError) {
            if isLimitDue == true { try holdLimitsAfterWrites() }
            if isFloorDue == true { _ = try holdFreeSpace(sparesNewest: true) }
        } catch {
            if error.code != .closed { notify(.backgroundFailure(error)) }
        }
    }

    /// Holds the limit of the whole; where that fails the next write tries again.
    private func holdLimitsAfterWrites() throws(CacheError) {
        do throws(CacheError) {
            _ = try holdLimits(slack: true)
        } catch {
            room.store(0, ordering: .relaxed)
            written.add(Int(clamping: (policy.sizeLimit ?? 0) / 20), ordering: .relaxed)
            throw error
        }
    }

    /// Sees to it that a store that was written is looked after later; one that is not needs no timer.
    func scheduleMaintenance() {
        guard let interval = policy.maintenanceInterval, !isReadOnly else { return }
        guard !isMaintenanceScheduled.exchange(true, ordering: .relaxed) else { return }
        _ = timekeeper.wake(interval) { [weak self] in
            guard let self else { return }
            offloadInBackground { self.maintainInBackground() }
        }
    }

    private func maintainInBackground() {
        isMaintenanceScheduled.store(false, ordering: .relaxed)
        // Only readers are left; the next writer sees to it.
        guard !isReadOnly else { return }
        do throws(CacheError) {
            _ = try maintain()
        } catch {
            if error.code != .closed { notify(.backgroundFailure(error)) }
        }
    }
}
