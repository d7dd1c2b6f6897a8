/// What the lock of a ledger guards.
struct RowLedgerState: Sendable {
    /// The database that all of this is true of, by its `serial`; what is told of an older one comes too late.
    var database: Int
    var watch: CommitWatch
    var binding: GenerationBinding

    /// What is written down of the sub-cache if another database takes the place of this one.
    var declared: Generation

    var isSuperseded = false
    var counts = LedgerCounts()

    /// Uses that are to be written down.
    var uses: [StoredKey: NotedUse] = [:]

    /// The times that the clock was set back and rows are not corrected yet.
    private(set) var setBacks: [SetBack] = []
    /// The moment to which it was set back, until memory has been told.
    private var newsOfClock: Int64?
    private let revisions: RevisionSource

    /// Rows that cannot be read, which count as absent.
    var unreadable: [StoredKey: UnreadableRow] = [:]

    /// Rows whose deletion was refused, by their revision: no limit chooses them again.
    var undeletable: [StoredKey: Int64] = [:]

    /// Entries that are over and still there, by their revision, so that each is counted once.
    private var expired: [StoredKey: Int64] = [:]

    /// Revisions that went of late: who read such a row before it went comes to count it after.
    private var gone: Set<Int64> = []

    /// Beyond so many, entries that are over are counted when they go.
    private static let mostExpired = 100_000

    /// How much may be on disk, and how much is, as far as that is known.
    var limits = RowLimits()
    var tally: RowTally?

    /// The revision of the last entry that was written here, which limits leave until the next one is.
    var newest = Int64.min

    /// Whether there was too much and nothing that might go, when limits were held last.
    var isLimitUnmet = false

    /// When the oldest entry was written, if somebody has looked; the oldest write since then, and how often it was.
    var oldest: OldestWrite?
    var leastWritten = Int64.max
    var oldestLooks = 0

    init(_ present: StorePresent, binding: GenerationBinding, declared: Generation, revisions: RevisionSource) {
        database = present.database
        watch = present.watch
        self.binding = binding
        self.declared = declared
        self.revisions = revisions
    }

    /// The rows it was about are gone, or somebody else's.
    mutating func forgetEverything() {
        uses = [:]
        setBacks = []
        unreadable = [:]
        undeletable = [:]
        expired = [:]
        tally = nil
    }

    /// Notes a use that is to be written down.
    ///
    /// What is one too many is forgotten: the next access is noted again.
    mutating func note(_ key: StoredKey, _ use: NotedUse, _ grain: AccessGrain) {
        if uses.count < RowLedger.mostNotes || grain.isExact || uses[key] != nil { uses[key] = use }
    }

    /// The row it was about is another one.
    mutating func forget(_ key: StoredKey) {
        if !uses.isEmpty { uses[key] = nil }
        if !unreadable.isEmpty { unreadable[key] = nil }
        if !expired.isEmpty { expired[key] = nil }
    }

    /// Counts an entry that is over, once.
    mutating func noteExpired(_ key: StoredKey, revision: Int64) {
        if gone.contains(revision) || expired[key] == revision { return }
        guard expired.count < Self.mostExpired || expired[key] != nil else { return }
        expired[key] = revision
        counts.expirations += 1
    }

    /// Counts an entry that was over and has gone, unless it was counted while it was there.
    mutating func noteExpiredGone(_ key: StoredKey, revision: Int64) {
        if gone.count >= Self.mostExpired { gone = [] }
        gone.insert(revision)
        if expired.removeValue(forKey: key) != revision { counts.expirations += 1 }
    }

    /// What a row says to a reader by these terms, and when it was judged; nil counts as a miss.
    ///
    /// - Parameters:
    ///   - accessedAt: When memory saw it used last.
    ///   - isPlain: Whether nobody asks when it was used, unless its age runs from there.
    mutating func judged(
        _ key: StoredKey, _ facts: EntryFacts, _ terms: AgeTerms, now: Int64, accessedAt: Int64? = nil,
        isPlain: Bool = false
    ) -> (facts: EntryFacts, moment: Int64)? {
        // Such a row is older than it says, by which the clock was chosen.
        let now = setBacks.isEmpty || !terms.isOfSystem ? now : SystemClock.now()
        let needsUse = !isPlain || facts.isSliding(else: terms.rule)
        guard let facts = seen(key, facts, now: now, accessedAt: accessedAt, needsUse: needsUse) else {
            counts.misses += 1
            return nil
        }
        if facts.isExpired(terms.rule, now: now) {
            counts.misses += 1
            noteExpired(key, revision: facts.revision)
            return nil
        }
        return (facts, now)
    }

    /// The facts of a row with what this process knows better: uses that are not written down, and a clock that was set
    /// back; nil if the row counts as absent.
    ///
    /// - Parameter accessedAt: When memory saw it used last.
    mutating func seen(
        _ key: StoredKey, _ facts: EntryFacts, now: Int64, accessedAt: Int64? = nil, needsUse: Bool = true
    ) -> EntryFacts? {
        if !unreadable.isEmpty, unreadable[key]?.revision == facts.revision { return nil }
        if NotedUse.isAhead(max(facts.writtenAt, needsUse ? facts.accessedAt : .min), of: now),
            !isOfOldClock(facts, now)
        {
            noteSetBack(to: now)
        }
        var (written, used) = (facts.writtenAt, facts.accessedAt)
        for setBack in setBacks where setBack.covers(facts.revision) {
            (written, used) = (min(written, setBack.moment), min(used, setBack.moment))
        }
        used = max(used, accessedAt ?? .min)
        if needsUse, !uses.isEmpty, let noted = uses[key]?.accessedAt { used = max(used, noted) }
        return facts.seen(writtenAt: min(written, now), accessedAt: min(used, now))
    }

    /// A Boolean value that indicates whether a row is known to be from before the clock was set back.
    private func isOfOldClock(_ facts: EntryFacts, _ now: Int64) -> Bool {
        setBacks.contains { $0.covers(facts.revision) && $0.moment <= now }
    }

    /// Takes every moment after `moment` for `moment`, in all that was written until now.
    mutating func noteSetBack(to moment: Int64) {
        // The rows of one write count on from its number.
        setBacks.append(SetBack(moment: moment, revision: max(revisions.next(), newest.addingSaturated(1))))
        newsOfClock = moment
        for key in uses.keys { uses[key]?.accessedAt.limit(to: moment) }
        leastWritten = min(leastWritten, moment)
    }

    /// The moment that memory is to be told of, to which the clock was set back.
    mutating func takeNewsOfClock() -> Int64? { newsOfClock.take() }

    /// Notes that the rows are corrected.
    mutating func noteCorrected(_ done: [SetBack]) { setBacks.removeAll { done.contains($0) } }

    /// The facts of a row, and the moment by which to judge it, in a turn among the writes that was waited for since `moment`.
    ///
    /// What was written or used meanwhile tells of a later moment, and not of a clock that was set back.
    mutating func seenInTurn(
        _ key: StoredKey, _ facts: EntryFacts, _ rule: AgeRule, since moment: Int64, accessedAt: Int64?
    ) -> (facts: EntryFacts, moment: Int64)? {
        if setBacks.contains(where: { $0.covers(facts.revision) }) {
            return seen(key, facts, now: moment, accessedAt: accessedAt).map { ($0, moment) }
        }
        let written = max(moment, facts.writtenAt)
        let used = max(written, facts.accessedAt, accessedAt ?? .min, uses[key]?.accessedAt ?? .min)
        // An age that runs from the write has nothing to do with a use, which may be from before the clock was set back.
        let judged = facts.isSliding(else: rule) ? used : written
        return seen(key, facts, now: used, accessedAt: accessedAt).map { ($0, judged) }
    }
}

/// A clock that was set back.
struct SetBack: Hashable, Sendable {
    /// The moment to which it was set.
    let moment: Int64
    /// What has a lower revision was written before that.
    let revision: Int64

    /// Whether a row of some revision was written before; one that is beyond all numbers counts as such.
    func covers(_ revision: Int64) -> Bool { revision < self.revision || revision > RevisionSource.highest }
}

extension Int64 {
    fileprivate mutating func limit(to most: Int64) { self = Swift.min(self, most) }
}

/// A row that cannot be read.
struct UnreadableRow: Sendable {
    let revision: Int64
    /// Whether the next write deletes it.
    let isDropped: Bool
}

/// A use of an entry that is not written down yet.
package struct NotedUse: Sendable {
    package var accessedAt: Int64
    /// Its place in the order of use.
    package var used: Int64

    package init(accessedAt: Int64, used: Int64) {
        self.accessedAt = accessedAt
        self.used = used
    }

    /// Stands for a use that asked no clock.
    package static let unknownMoment = Int64.min

    /// Whether a use was at a moment that the clock has left, not only seen by a thread that looked at it before another.
    package static func isAhead(_ moment: Int64, of now: Int64) -> Bool { moment > now.addingSaturated(1000) }
}
