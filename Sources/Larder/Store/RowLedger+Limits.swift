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
    var writes = 0

    /// After so many writes of our own a tally is no longer trusted where others write too.
    static let longestTrust = 256
}

/// Limits are held by those who write: each pays for what its write displaces, by a share of a pass over the rows.
extension RowLedger {
    package var limits: RowLimits { state.withLock { $0.limits } }

    /// Changes the limits, and holds them from this moment on.
    package func setLimits(_ limits: RowLimits) throws(CacheError) {
        let isChanged = state.withLock { state in
            defer { state.limits = limits }
            return state.limits != limits
        }
        if isChanged, !store.isReadOnly { _ = try holdLimits(slack: false) }
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
        let isUnmet = isOverLimits(slack: true) == true
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
            if tally.round != state.watch.knownRound, tally.writes > RowTally.longestTrust { return nil }
            let count = state.limits.count.map { $0 + (slack ? $0 / 20 : 0) } ?? .max
            let size = state.limits.size.map { $0 + (slack ? $0 / 20 : 0) } ?? .max
            return tally.count > count || tally.size > size
        }
    }

    /// Removes what is over, then the least recently used, until the limits hold.
    ///
    /// - Returns: How many went.
    package func holdLimits(slack: Bool) throws(CacheError) -> Int {
        // One at a time; who comes while another is at it waits, so that writers cannot outrun the limits.
        try evicting.withLock { queue throws(CacheError) in
            var removed = 0
            while true {
                var isOver = isOverLimits(slack: slack)
                if isOver == nil {
                    try countAnew()
                    isOver = isOverLimits(slack: slack)
                }
                guard isOver == true else { return removed }
                let gone = try evict(&queue)
                if gone == 0 { return removed }
                removed += gone
            }
        }
    }

    private func countAnew() throws(CacheError) {
        let round = state.withLock { $0.watch }.round()
        let found = try readMoment { (c, id) throws(SQLiteError) in (try c.countAll(id), try c.totalSize(id)) }
        state.withLock { $0.tally = RowTally(count: found?.0 ?? 0, size: found?.1 ?? 0, round: round) }
    }

    /// Removes the next few of the queue, which is filled when it is empty.
    private func evict(_ queue: inout EvictionQueue) throws(CacheError) -> Int {
        try front?.handOverUses()
        let (limits, tally, uses) = state.withLock { ($0.limits, $0.tally, $0.uses) }
        guard let tally else { return 0 }
        var count = limits.count.map { tally.count - $0 } ?? 0
        var size = limits.size.map { tally.size - $0 } ?? 0
        let cause: RemovalCause = count > 0 ? .count : .size
        let now = store.timekeeper.now()
        if queue.isSpent(tally.count, now: now) {
            try flushUses()
            let rule = loosestRule
            let share = max(256, tally.count / 4, count)
            // What somebody may still serve although it is over is as good as what is not.
            let moment = now.subtractingSaturated(longestKeeping)
            let found = try readMoment { (c, id) throws(SQLiteError) in
                try c.leastUsed(id, rule, now: moment, limit: share)
            }
            queue = EvictionQueue(found ?? [], now: now)
        }
        var victims: [RowVictim] = []
        while count > 0 || size > 0, victims.count < 1024, let candidate = queue.next() {
            // Used since the queue was made: no longer among the least used.
            if let use = uses[candidate.key], use.used > candidate.used { continue }
            victims.append(
                RowVictim(candidate.key, candidate.facts, used: candidate.used, isExpired: candidate.isExpired))
            count -= 1
            size -= candidate.facts.size
        }
        let removed = try remove(victims, cause).count
        // All of a queue may have been written over; another one tells.
        return removed == 0 && !victims.isEmpty ? try evictAfresh(&queue) : removed
    }

    private func evictAfresh(_ queue: inout EvictionQueue) throws(CacheError) -> Int {
        guard queue.wasReused else { return 0 }
        queue = EvictionQueue([], now: 0)
        return try evict(&queue)
    }

    /// The rule by which an entry counts as over: the loosest of the handles'.
    private var loosestRule: AgeRule {
        let rules = liveRules
        return rules.max { $0.maximum < $1.maximum } ?? AgeRule()
    }
}

/// Those that go next, as of the pass over the rows that found them.
struct EvictionQueue: Sendable {
    private var candidates: ArraySlice<TrimCandidate> = []
    private var madeAt: Int64 = 0
    private var writes = 0
    private(set) var wasReused = false

    init() {}

    init(_ candidates: [TrimCandidate], now: Int64) {
        self.candidates = candidates[...]
        madeAt = now
    }

    mutating func next() -> TrimCandidate? { candidates.popFirst() }

    /// Whether another pass is due: nothing is left, or time has passed and a pass costs little beside what was written.
    mutating func isSpent(_ count: Int, now: Int64) -> Bool {
        writes += 1
        wasReused = true
        return candidates.isEmpty || count <= 1_000 || (abs(now - madeAt) > 1_000 && writes > 64)
    }
}
