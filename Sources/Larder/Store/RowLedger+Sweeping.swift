internal import LarderSQLite
internal import Synchronization

/// A row that is to be removed, unless it was written, or used, since it was chosen.
package struct RowVictim: Sendable {
    package let key: StoredKey
    let revision: Int64
    /// Its place in the order of use, if a use saves it.
    let used: Int64?
    package let size: Int64
    let file: String?
    package let isExpired: Bool

    package init(_ key: StoredKey, _ facts: EntryFacts, used: Int64? = nil, isExpired: Bool = false) {
        self.key = key
        revision = facts.revision
        self.used = used
        size = facts.size
        file = facts.file
        self.isExpired = isExpired
    }
}

/// A row that may be chosen for deletion.
protocol DeletableRow {
    var key: StoredKey { get }
    var revision: Int64 { get }
}

extension RowVictim: DeletableRow {}
extension TrimCandidate: DeletableRow {
    var revision: Int64 { facts.revision }
}

/// Why entries are removed, other than that they are over.
package enum RemovalCause: Sendable {
    case call, count, size, freeSpace, decider
}

extension RowLedger {
    /// How many rows are deleted in one transaction, so that others get their turn.
    private static let rowsPerSlice = 256

    /// Removes the victims that are still what they were when they were chosen, slice by slice.
    ///
    /// - Returns: Those that went.
    package func remove(_ victims: [RowVictim], _ cause: RemovalCause) throws(CacheError) -> [RowVictim] {
        var removed: [RowVictim] = []
        try inSlices(deletable(victims), of: Self.rowsPerSlice) { (slice) throws(CacheError) in
            // The front's keys are the user's code, and made before anything is held.
            let front = front
            let request = WriteRequest(
                .evict(slice, cause), to: self, front?.removal(of: slice, cause, isLate: false))
            try run(request)
            let gone = request.outcome.indices
            // One that was opened meanwhile may have a copy since before that, and have counted the rows.
            if let current = store.live[name] {
                if current !== self { current.forgetTally() }
                if let late = current.front, late !== front {
                    var discards = Discards()
                    late.removal(of: slice, cause, isLate: true).apply(request.outcome, &discards)
                    store.release(discards)
                }
            }
            let went = gone.map { slice[$0] }
            front?.wentAway(went, cause)
            removed += went
        }
        return removed
    }

    /// Deletes one row; false if it stays.
    ///
    /// A row whose deletion is refused, by a trigger of another program say, keeps no other from being evicted.
    func delete(
        _ victim: RowVictim, _ generation: Int64, _ connection: inout Connection
    ) throws(SQLiteError) -> Bool {
        do throws(SQLiteError) {
            guard let used = victim.used else {
                return try connection.delete(generation, victim.key, revision: victim.revision)
            }
            return try connection.delete(generation, victim.key, revision: victim.revision, used: used)
        } catch {
            guard .constraint ~= error.code, !error.isCorruption else { throw error }
            let isNews = state.withLock { $0.undeletable.updateValue(victim.revision, forKey: victim.key) == nil }
            if isNews {
                let failure = CacheError(
                    "cannot delete the entry of key \(victim.key) from cache \"\(name)\" in", error)
                // This thread leads the writes, so that none of the user's code may run on it.
                store.tell([.backgroundFailure(failure)])
            }
            return false
        }
    }

    /// The revisions of the rows whose deletion was refused.
    var undeletableRevisions: [Int64] { state.withLock { Array($0.undeletable.values) } }

    /// The rows of a list whose deletion was not refused before.
    func deletable<Row: DeletableRow>(_ rows: [Row]) -> [Row] {
        let undeletable = state.withLock { $0.undeletable }
        return undeletable.isEmpty ? rows : rows.filter { undeletable[$0.key] != $0.revision }
    }

    // MARK: - What is over

    /// Removes every entry that is over by all rules, and has been for a time of grace.
    ///
    /// - Parameters:
    ///   - graceOfUse: The least grace, in milliseconds, of entries whose age runs from the last use.
    ///   - terms: The rules, the grace in milliseconds, and the moment by which entries have expired; asked for each page once it
    ///     is read, since a handle may have been opened that serves more, or an entry written. The sweep ends where there
    ///     are no rules.
    /// - Returns: How many went.
    package func removeExpired(
        graceOfUse: Int64 = 0, _ terms: () throws(CacheError) -> (rules: [AgeRule], grace: Int64, now: SweepMoment)
    ) throws(CacheError) -> Int {
        try flushUsesWhereRoom()
        var count = 0
        var pass = RowPass()
        while true {
            let page = try pass.nextFacts(of: self)
            let (rules, grace, now) = try terms()
            if page.isEmpty || rules.isEmpty {
                // Moments in the future that were met.
                if !isSettled { try flushUsesWhereRoom() }
                return count
            }
            // Some may have been read, from memory, since the sweep began.
            let slides = page.contains { item in rules.contains { item.facts.isSliding(else: $0) } }
            let uses = slides ? uses(of: page.map(\.key)) : [:]
            let victims = page.compactMap { item -> RowVictim? in
                let accessedAt = uses[item.key]?.accessedAt
                guard let facts = seen(item.key, item.facts, now: now.wall, accessedAt: accessedAt) else { return nil }
                let isVictim = rules.allSatisfy { rule in
                    let isOfUse = facts.isSliding(else: rule)
                    return facts.isExpired(rule, now: now, grace: isOfUse ? max(grace, graceOfUse) : grace)
                }
                guard isVictim else { return nil }
                return RowVictim(item.key, item.facts, isExpired: true)
            }
            count += try remove(victims, .call).count
        }
    }

    /// By what entries are over: the ages of the live handles, and what was declared last, where another process did that,
    /// with how long after their end anybody wants them kept.
    package func sweepTerms() throws(CacheError) -> (rules: [AgeRule], keeping: Int64) {
        let (rules, own) = (liveRules, declared)
        let last = try readMoment { (c, _) throws(SQLiteError) in try c.liveGeneration(named: self.name) } ?? nil
        guard let last, !rules.isEmpty, last.age != own.age || last.keepsExpired != own.keepsExpired else {
            return (rules, longestKeeping)
        }
        return (rules + [last.age.rule], max(longestKeeping, last.keepsExpired))
    }

    /// Removes what is over for all live handles, and for longer than anybody wants it kept.
    ///
    /// Where its last handle is gone it is one that nobody uses once it is settled.
    package func sweep() throws(CacheError) -> Int {
        // Another process may have read a sliding entry, and not written that down yet.
        try removeExpired(graceOfUse: Self.longestNote) { () throws(CacheError) in
            let (rules, keeping) = try sweepTerms()
            return (rules, keeping, store.sweepClock.moment())
        }
    }

    // MARK: - Trims

    /// How many candidates are looked for at a time.
    private static let candidatesPerScan = 50_000

    /// Removes what is over, then the least recently used, until no more than so many rows are left.
    package func trim(toCount limit: Int, _ terms: AgeTerms) throws(CacheError) -> Int {
        try trim(terms, .count) { (connection, id) throws(SQLiteError) in
            Int64(try connection.countAll(id)) - Int64(max(0, limit))
        } weight: { _ in
            1
        }
    }

    /// Removes what is over, then the least recently used, until the rest comes to no more than so many bytes.
    package func trim(toSize limit: Int64, _ terms: AgeTerms) throws(CacheError) -> Int {
        try trim(terms, .size) { (connection, id) throws(SQLiteError) in
            try connection.totalSize(id) - max(0, limit)
        } weight: { facts in
            facts.size
        }
    }

    private func trim(
        _ terms: AgeTerms, _ cause: RemovalCause,
        excess: @escaping @Sendable (inout Connection, Int64) throws(SQLiteError) -> Int64,
        weight: (EntryFacts) -> Int64
    ) throws(CacheError) -> Int {
        try flushUsesWhereRoom()
        let now = terms.now()
        // What another handle may serve longer is not over.
        let (first, second) = AgeRule.loosest(liveRules, at: now)
        var removed = 0
        while true {
            let found = try readMoment { (c, id) throws(SQLiteError) in try excess(&c, id) } ?? 0
            guard found > 0 else { return removed }
            let limit = min(Self.candidatesPerScan, Int(clamping: found))
            var rest = found
            var victims: [RowVictim] = []
            for candidate in try leastUsed(first, and: second, now: now, atLeast: limit) where rest > 0 {
                rest -= weight(candidate.facts)
                victims.append(
                    RowVictim(candidate.key, candidate.facts, used: candidate.used, isExpired: candidate.isExpired))
            }
            let gone = try remove(victims, cause).count
            removed += gone
            // All that is left is pinned, or in use at this moment.
            if gone == 0 { return removed }
        }
    }

    /// The rows that may go: expired ones first, then the least recently used.
    ///
    /// What this process knows of uses counts as if it were written down.
    ///
    /// - Parameter limit: How many rows to look at, at least; more where others were used since.
    func leastUsed(
        _ rule: AgeRule, and other: AgeRule?, now: Int64, atLeast limit: Int
    ) throws(CacheError) -> [TrimCandidate] {
        var limit = limit + undeletableRevisions.count
        while true {
            let asked = limit
            let found =
                try readMoment { (c, id) throws(SQLiteError) in
                    try c.leastUsed(id, rule, and: other, now: now, limit: asked)
                } ?? []
            let isAll = found.count < asked
            let rules = [rule, other ?? rule]
            let ordered = TrimCandidate.ordered(deletable(found), isAll: isAll, uses(of: found.map(\.key))) { facts in
                rules.contains { facts.isSliding(else: $0) }
            }
            if !ordered.isEmpty || isAll { return ordered }
            limit = limit.multipliedReportingOverflow(by: 4).partialValue
        }
    }
}

extension TrimCandidate {
    /// Puts rows into the order that follows from uses that are not written down.
    ///
    /// - Parameters:
    ///   - isAll: Whether there are no rows but these. If there are, one that was used later than the last of these is left
    ///     out, since others come before it.
    ///   - slides: Whether the age of a row runs from its last use.
    static func ordered(
        _ rows: [TrimCandidate], isAll: Bool, _ uses: [StoredKey: NotedUse], slides: (EntryFacts) -> Bool
    ) -> [TrimCandidate] {
        guard !uses.isEmpty, let last = rows.last else { return rows }
        let end = isAll ? .max : last.isExpired ? .min : last.used
        var ordered: [TrimCandidate] = []
        for row in rows {
            guard let use = uses[row.key], use.used > row.used, !row.isExpired || slides(row.facts) else {
                ordered.append(row)
                continue
            }
            if use.used <= end {
                ordered.append(TrimCandidate(key: row.key, facts: row.facts, used: use.used, isExpired: false))
            }
        }
        return ordered.sorted { $1.isExpired == $0.isExpired ? $0.used < $1.used : $0.isExpired }
    }
}

extension RowLedgerState {
    mutating func count(_ victim: RowVictim, _ cause: RemovalCause) {
        if victim.isExpired { return noteExpiredGone(victim.key, revision: victim.revision) }
        switch cause {
        case .call: counts.removals += 1
        case .count: counts.countEvictions += 1
        case .size: counts.sizeEvictions += 1
        case .freeSpace: counts.spaceEvictions += 1
        case .decider: counts.deciderEvictions += 1
        }
    }
}

extension EntryFacts {
    /// Whether the entry was over at the moment of a sweep for longer than `grace`.
    fileprivate func isExpired(_ rule: AgeRule, now moment: SweepMoment, grace: Int64) -> Bool {
        let own = self.rule(else: rule)
        let start = own.isSliding ? accessedAt : writtenAt
        let now = moment.now(from: start)
        guard isExpired(rule, now: now) else { return false }
        if grace == 0 { return true }
        // By its end: with an age of nothing it is over at every moment, those before it was written too.
        return own.end(start: start).map { now > $0.addingSaturated(grace) } ?? false
    }
}
