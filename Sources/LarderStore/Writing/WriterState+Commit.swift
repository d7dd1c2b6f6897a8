internal import LarderSQLite

/// A change that was made in the open transaction: a request of a batch, or one of a body's changes.
protocol MadeChange {
    var cache: CacheIdentity? { get }
    /// The memory whose loads it overtakes; nil for all that are attached to the cache.
    var tier: (any TierDelegate)? { get }
    /// The loads that it overtakes after the commit; nil if it overtakes none, or was refused.
    var overtaken: Overtaken? { get }

    /// Lets memory take it in.
    ///
    /// What that displaces is deferred, or kept for the caller who has asked for the change.
    func end(_ epoch: UInt32, _ deferred: inout Deferred)
}

/// The order in which a change is made, committed and told.
///
/// A change overtakes loads twice. The first time is in the transaction, before its condition is asked: the put of a load may come later in
/// the same transaction, and asks its condition before anything is committed. The second time is after the commit: a load may have begun
/// in between, and has read what the change replaces. Between the two no load claims its keys, since the writer's lock is held.
extension WriterState {
    /// Makes a change in the open transaction.
    ///
    /// Refuses a superseded handle before it changes anything.
    func make(_ change: Change, on declaration: CacheDeclaration) throws(StoreError) -> Outcome {
        guard let incarnation = incarnation(of: declaration) else { throw .superseded }
        if !tiers.loadCount.isZero { overtake(change.overtakenBefore, change.tier, in: declaration.identity) }
        return try request {
            if case .put(let entries) = change.work {
                for entry in entries { try limiter.check(entry.size, in: incarnation) }
            }
            if change.condition?.holds() == false { return Outcome() }
            return try rows(change.work, in: incarnation)
        }
    }

    /// Commits what was made, and tells memory.
    ///
    /// Memory takes the changes in before hits agree with the new epoch, so no thread reads the new value from the disk and
    /// then the old one from memory.
    ///
    /// A transaction that has changed nothing is rolled back: an empty COMMIT is not counted in the log's index, so the
    /// next commit of another process would pass for ours.
    ///
    /// - Parameter keepsReading: A Boolean value that indicates whether the read transaction may be kept for a commit that follows.
    func commit(_ made: some Collection<some MadeChange>, keepsReading: Bool) throws {
        // Throws if SQLite has rolled the transaction back.
        try connection.requireTransaction()
        if changeCount != 0 {
            for (cache, moment) in unwrittenOpenings.values { try noteOpening(of: cache, at: moment) }
        }
        isWriting = false
        guard changeCount != 0 else {
            connection.abandonWriting()
            counts.rollBack()
            outbox.files += open.displacedFiles
            // A removal counts though it has found no row.
            return tell(made, epoch)
        }
        unwrittenOpenings = [:]
        let keepsReading = keepsReading && expectsCommits
        // Without it the commit is as good.
        if keepsReading { do { try connection.keepReading() } catch {} }
        let epoch = watch.beginCommit()
        do {
            try connection.finishWriting()
        } catch {
            _ = watch.endCommit(isCommitted: false, switchesIncarnation: false)
            counts.becomeEstimates()
            throw error
        }
        counts.commit()
        // After a move the files may be those of another database, and the commit may be in a file that is gone.
        do { try database.requirePlace() } catch {
            _ = watch.endCommit(isCommitted: true, switchesIncarnation: true)
            loss = .moved
            throw error
        }
        outbox.files += open.displacedFiles
        tell(made, epoch)
        // Nothing is known if another store has committed since.
        self.epoch = watch.endCommit(isCommitted: true, switchesIncarnation: open.switchesIncarnation) ?? 0
        commitCount += 1
        if keepsReading && expectsCommits && self.epoch != CommitWatch.noEpoch {
            readers?.scheduleRelease()
        } else {
            connection.stopReading()
        }
    }

    /// Tells of what was committed: loads first, then memory in the order of the changes, then memory of the rows that the store has removed.
    private func tell(_ made: some Collection<some MadeChange>, _ epoch: UInt32) {
        // Asked again: a load may have begun since the change was made.
        if !tiers.loadCount.isZero {
            for change in made { if let cache = change.cache { overtake(change.overtaken, change.tier, in: cache) } }
            for (loads, caches) in open.overtaken { for cache in caches { overtake(loads, nil, in: cache) } }
            for (cache, rows) in open.removedRows {

                let removed = rows.filter { $0.cause == .removed || $0.cause == .tagged }
                overtake(.keys(removed.map(\.key)), nil, in: cache)
            }
        }
        var deferred = Deferred()
        for change in made { change.end(epoch, &deferred) }
        if !deferred.isEmpty { outbox.released.append(deferred) }
        for (cache, rows) in open.removedRows {
            let tiers = tiers[cache]
            for tier in tiers { tier.rowsAreRemoved() }
            outbox.notices.append(.removed(rows, cache: cache, tiers: tiers))
        }
        outbox.notices += open.notices
        open.notices = []
    }

    /// Keeps loads from storing their results.
    private func overtake(_ loads: Overtaken?, _ tier: (any TierDelegate)?, in cache: CacheIdentity) {
        guard let loads, !loads.isEmpty else { return }
        if let tier { return tier.overtakeLoads(loads) }
        let tiers = tiers[cache]
        for tier in tiers { tier.overtakeLoads(loads) }
        outbox.released += tiers as [Any]
    }

    /// Keeps the loads of a cache that is retired from storing their results, those included that begin before the commit.
    func overtakeAllLoads(of cache: CacheIdentity) {
        if !tiers.loadCount.isZero { overtake(.all, nil, in: cache) }
        open.overtaken.append((.all, [cache]))
    }
}

/// The changes of a body, which holds the writer.
extension WriterState {
    /// Makes a change for the body of a transaction; memory takes it in after the commit.
    @discardableResult
    package func perform(_ change: Change, on rows: CacheRows) throws -> Outcome {
        let change = try rows.writingFiles(of: change)
        open.writtenFiles += change.files
        var isWritten = false
        // A body may catch the failure and be committed.
        defer { if !isWritten { open.displacedFiles += change.files } }
        let outcome = try make(change, on: rows.declaration)
        isWritten = !outcome.rows.isEmpty
        open.note(change, on: rows.declaration.identity, outcome)
        return outcome
    }

    /// Calls `body` under the writer's lock after the open transaction is committed, in the order of its changes.
    package func afterCommit(_ body: @escaping @Sendable () -> Void) {
        open.made.append(BodyChange(taking: { _, _ in body() }))
    }
}

/// A change that a body has made, without its payload, or a read of one.
struct BodyChange: MadeChange {
    var cache: CacheIdentity?
    var tier: (any TierDelegate)?
    var overtaken: Overtaken?
    var taking: Change.Taking?
    var outcome = Outcome()

    func end(_ epoch: UInt32, _ deferred: inout Deferred) {
        var outcome = outcome
        outcome.epoch = epoch
        taking?(outcome, &deferred)
    }
}

extension Transaction {
    /// Notes what its body has done to rows of a cache.
    ///
    /// Of a change without a memory of its own, which may be one of very many, not even the keys are kept.
    mutating func note(_ change: Change, on cache: CacheIdentity, _ outcome: Outcome) {
        if change.tier != nil || change.taking != nil {
            made.append(
                BodyChange(
                    cache: cache, tier: change.tier, overtaken: change.overtakenAfter(outcome), taking: change.taking,
                    outcome: outcome))
        } else if !overtaken.contains(where: { $0.loads.isAll && $0.caches == [cache] }) {
            overtaken.append((.all, [cache]))
        }
    }
}
