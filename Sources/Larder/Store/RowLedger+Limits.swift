internal import LarderSQLite
internal import Synchronization

/// How much of a sub-cache, or of a store, may be on disk.
package struct RowLimits: Hashable, Sendable {
    package var count: Int?
    package var size: Int64?

    package init(count: Int? = nil, size: Int64? = nil) {
        self.count = count.map { max(0, $0) }
        self.size = size.map { max(0, $0) }
    }

    var isNone: Bool { count == nil && size == nil }
}

/// How much there is, kept up with every write of our own.
struct RowTally: Sendable {
    var count: Int
    var size: Int64
    /// When somebody else has committed since, it is counted again, though not with every write.
    var round: UInt32
    /// Our own writes since it was counted, and their bytes.
    var writes = 0
    var bytes: Int64 = 0

    /// Whether so much may have been written here since somebody else committed that it is to be counted again: a share
    /// of what there is, so that several who write exceed a limit by no more than shares.
    var isStale: Bool { writes > count / 40 || bytes > size / 40 }
}

/// Limits are held by those who write: each pays for what its write displaces, by a share of a pass over the rows.
extension RowLedger {
    package var limits: RowLimits { state.withLock { $0.limits } }

    /// The revision of the last entry that was written here.
    var newestWritten: Int64 { state.withLock { $0.newest } }

    /// Changes the limits, and holds them from this moment on.
    package func setLimits(_ limits: RowLimits) throws(CacheError) {
        let isChanged = state.withLock { state in
            defer { state.limits = limits }
            return state.limits != limits
        }
        agesChanged(ownRules)
        largestEntry.store(min(limits.size ?? .max, store.policy.sizeLimit ?? .max), ordering: .relaxed)
        if isChanged, !store.isReadOnly { _ = try holdLimits(slack: false) }
    }

    /// Throws if an entry of so many bytes is more than all entries together may be.
    @usableFromInline
    func checkSize(_ size: Int64, of key: StoredKey) throws(CacheError) {
        let largest = largestEntry.load(ordering: .relaxed)
        if size <= largest { return }
        throw CacheError(
            .tooLarge,
            "The entry of key \(key) in cache \"\(name)\" has \(size) bytes, and the limit on disk is \(largest) bytes. Nothing"
                + " was changed; raise the limit or store less.")
    }

    /// Holds the limits after a write.
    ///
    /// A failure is not the write's, which is done: it is told in the background, and the next write tries again.
    func holdLimitsAfterWrite() {
        guard isOverLimits(slack: true) ?? true else {
            state.withLock { $0.isLimitUnmet = false }
            return
        }
        do throws(CacheError) {
            _ = try holdLimits(slack: true)
            noteUnmetLimits()
        } catch {
            if error.code != .superseded, error.code != .closed { store.notify(.backgroundFailure(error)) }
        }
    }

    /// Tells once when there is too much and nothing may go, and again when that has been over in between.
    private func noteUnmetLimits() {
        // What somebody is about to remove counts as gone.
        let isUnmet = isOverLimits(slack: true) == true && evicting.withLock { $0.claimedCount == 0 }
        let isNews = state.withLock { state in
            defer { state.isLimitUnmet = isUnmet }
            return isUnmet && !state.isLimitUnmet
        }
        if isNews { front?.limitIsUnmet() }
    }

    /// Whether there is too much; nil if that has to be counted.
    ///
    /// - Parameter slack: Whether a twentieth too much is let pass, so that entries go in numbers.
    func isOverLimits(slack: Bool) -> Bool? {
        state.withLock { state in
            if state.limits.isNone || state.isSuperseded { return false }
            guard let tally = state.tally else { return nil }
            if tally.round != state.watch.knownRound, tally.isStale { return nil }
            let count = state.limits.count.map { Self.allowed(Int64($0), slack: slack) } ?? .max
            let size = state.limits.size.map { Self.allowed($0, slack: slack) } ?? .max
            return Int64(tally.count) > count || tally.size > size
        }
    }

    /// Others have removed rows, of which it was not told: they are counted anew when it matters.
    func forgetTally() { state.withLock { $0.tally = nil } }

    /// What may be there before something has to go.
    static func allowed(_ limit: Int64, slack: Bool) -> Int64 {
        slack ? limit.addingSaturated(limit / 20) : limit
    }

    /// Removes what is over, then the least recently used, until the limits hold.
    ///
    /// With slack, as after a write, the entry that was written last stays: else one larger than the limit would be gone
    /// before its writer could read it.
    ///
    /// Whoever comes while another is at it removes what that one has not claimed, so that writers cannot outrun the
    /// limits. Nothing is held over the removal: it runs the user's code.
    ///
    /// - Returns: How many went.
    package func holdLimits(slack: Bool) throws(CacheError) -> Int {
        var removed = 0
        while try isOverLimitsForSure(slack: slack), let claim = try claim(sparesNewest: slack) {
            defer { evicting.withLock { $0.giveBack(claim) } }
            let gone = try remove(claim.victims, claim.cause).count
            removed += gone
            // All of them may have been written over; another pass over the rows tells.
            if gone == 0, claim.isFresh || !evicting.withLock({ $0.forget() }) { break }
        }
        return removed
    }

    private func isOverLimitsForSure(slack: Bool) throws(CacheError) -> Bool {
        // What others have taken must not be made up for with what is left.
        if let isOver = isOverLimits(slack: slack), !isOver || isTallyCurrent { return isOver }
        try countAnew()
        return isOverLimits(slack: slack) ?? false
    }

    private var isTallyCurrent: Bool {
        let (watch, round) = state.withLock { ($0.watch, $0.tally?.round) }
        return round == watch.round()
    }

    private func countAnew() throws(CacheError) {
        // In its turn among the writes, so that none is counted twice or left out.
        _ = try write(BlockTraits(isCompound: false, isAlone: true)) { (connection, place) throws(SQLiteError) in
            (count: try connection.countAll(place.generation), size: try connection.totalSize(place.generation))
        } apply: { found, round in
            self.state.withLock { $0.tally = RowTally(count: found.count, size: found.size, round: round) }
        }
    }

    /// Claims the next few of the queue, which is filled when it is empty; nil if there is nothing to claim.
    private func claim(sparesNewest: Bool) throws(CacheError) -> EvictionClaim? {
        let now = store.timekeeper.now()
        var found: (candidates: [TrimCandidate], end: Int64)?
        if let rows = state.withLock({ $0.tally?.count }), evicting.withLock({ $0.isSpent(rows, now: now) }) {
            // Not under the lock: the pass may meet another generation, and let go of the user's values.
            found = try leastUsed(of: rows, now: now)
        }
        // Used since the queue was made: no longer among the least used. What was found just now is known to be.
        let uses = found == nil ? uses(of: evicting.withLock { $0.upcoming }) : [:]
        let (limits, tally, newest) = state.withLock { ($0.limits, $0.tally, $0.newest) }
        guard let tally else { return nil }
        // A limit of nothing keeps nothing.
        let spared = sparesNewest && limits.count != 0 && limits.size != 0 ? newest : nil
        return evicting.withLock { queue in
            // What was claimed may be gone and counted so already; and a limit may be any number.
            let count = limits.count.map { max(0, tally.count - queue.claimedCount) - $0 } ?? 0
            let size = limits.size.map { max(0, tally.size - queue.claimedSize) - $0 } ?? 0
            guard count > 0 || size > 0 else { return nil }
            // Of several who found it empty the first one fills it.
            let isFresh = found != nil && queue.isSpent(tally.count, now: now)
            if isFresh, let found { queue.fill(found.candidates, now: now, until: found.end) }
            return queue.claim(count: count, size: size, uses, sparing: spared, isFresh: isFresh)
        }
    }

    /// A share of the rows that may go, in the order in which they go, and until when none that was not over is known to be.
    private func leastUsed(
        of rows: Int, now: Int64
    ) throws(CacheError) -> (candidates: [TrimCandidate], end: Int64) {
        do throws(CacheError) {
            try correctMoments()
        } catch {
            if error.code != .storageFull { throw error }
        }
        // What somebody may still serve although it is over is as good as what is not.
        let keeping = longestKeeping
        let moment = now.subtractingSaturated(keeping)
        let live = liveRules
        let rules = AgeRule.loosest(live, at: moment)
        let deadline = live.map(\.deadline).filter { $0 >= moment }.min() ?? .max
        let excess = state.withLock { state in state.limits.count.map { rows - $0 } ?? 0 }
        let share = max(256, rows / 4, excess)
        let ownEnd = try readMoment { (c, id) throws(SQLiteError) in try c.nextOwnEnd(id, now: moment) } ?? .max
        let candidates = try leastUsed(rules.first, and: rules.second, now: moment, atLeast: share)
        let end = candidates.lazy.filter { !$0.isExpired }.map { $0.facts.end(rules.first, rules.second) }.min() ?? .max
        return (candidates, min(end, ownEnd, deadline).addingSaturated(keeping))
    }
}

extension EntryFacts {
    /// The last moment at which the entry is served by one rule or by another; `.max` if there is none.
    fileprivate func end(_ first: AgeRule, _ second: AgeRule?) -> Int64 {
        [first, second ?? first].map { rule in
            let rule = self.rule(else: rule)
            return rule.end(start: rule.isSliding ? accessedAt : writtenAt) ?? .max
        }.max() ?? .max
    }
}

/// Rows that somebody is about to remove.
struct EvictionClaim: Sendable {
    var victims: [RowVictim] = []
    var size: Int64 = 0
    let cause: RemovalCause
    /// Whether the pass over the rows was made for it.
    let isFresh: Bool
}

/// Those that go next, as of the pass over the rows that found them.
struct EvictionQueue: Sendable {
    private var candidates: ArraySlice<TrimCandidate> = []
    private var madeAt: Int64 = 0
    /// From then on some may be over that were not when the candidates were looked for.
    private var end = Int64.max
    private var claims = 0
    private var taken = 0

    /// What is about to go.
    private(set) var claimedCount = 0
    private(set) var claimedSize: Int64 = 0

    /// How many go in one step at most.
    private static let longestClaim = 1024

    mutating func fill(_ candidates: [TrimCandidate], now: Int64, until end: Int64) {
        self.candidates = candidates[...]
        madeAt = now
        self.end = end
        claims = 0
        taken = 0
    }

    /// Lets the next claim look at the rows.
    ///
    /// - Returns: True, so that the caller tries again.
    mutating func forget() -> Bool {
        candidates = []
        return true
    }

    /// Whether another pass is due: nothing is left, or time has passed and a pass costs little beside what was written.
    func isSpent(_ rows: Int, now: Int64) -> Bool {
        if candidates.isEmpty || rows <= 1_000 { return true }
        if now > end, taken > rows / 50, candidates.first?.isExpired == false { return true }
        return now.subtractingSaturated(madeAt).magnitude > 1_000 && claims > 64
    }

    /// The keys of those that may be claimed next.
    var upcoming: [StoredKey] { candidates.prefix(Self.longestClaim).map(\.key) }

    /// Takes out what makes up for so many rows and bytes; nil if nothing is left that may go.
    ///
    /// - Parameter spared: The revision of an entry that stays.
    mutating func claim(
        count: Int, size: Int64, _ uses: [StoredKey: NotedUse], sparing spared: Int64?, isFresh: Bool
    ) -> EvictionClaim? {
        claims += 1
        var claim = EvictionClaim(cause: count > 0 ? .count : .size, isFresh: isFresh)
        // What is far below its limit stays countable.
        var (count, size) = (max(0, count), max(0, size))
        while count > 0 || size > 0, claim.victims.count < Self.longestClaim, let candidate = candidates.popFirst() {
            if let use = uses[candidate.key], use.used > candidate.used { continue }
            if candidate.facts.revision == spared { continue }
            claim.victims.append(
                RowVictim(candidate.key, candidate.facts, used: candidate.used, isExpired: candidate.isExpired))
            claim.size += candidate.facts.size
            count -= 1
            size -= candidate.facts.size
        }
        taken += claim.victims.count
        // Of a queue that was used before, all that is left may have been used since; another pass tells.
        if claim.victims.isEmpty, isFresh { return nil }
        claimedCount += claim.victims.count
        claimedSize += claim.size
        return claim
    }

    /// Whether or not they went: they count no longer.
    mutating func giveBack(_ claim: EvictionClaim) {
        claimedCount -= claim.victims.count
        claimedSize -= claim.size
    }
}
