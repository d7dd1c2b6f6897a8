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

    /// Uses of entries that are not in memory.
    var uses: [StoredKey: NotedUse] = [:]

    /// Writes in the future that were met, and when.
    var corrections: [StoredKey: Int64] = [:]

    /// When memory was told last that the clock was set back, and that moment on the scale of revisions.
    private var told: (moment: Int64, revision: Int64)?
    /// The moment to which it was set back since.
    private var newsOfClock: Int64?
    /// That moment until all rows are corrected by it.
    var uncorrected: Int64?

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

    /// The highest moment of a write that the generation's row allows for, see `latest_at`.
    var latestAt: Int64

    init(_ present: StorePresent, binding: GenerationBinding, declared: Generation) {
        database = present.database
        watch = present.watch
        self.binding = binding
        self.declared = declared
        latestAt = declared.latestAt
    }

    /// The rows it was about are gone, or somebody else's.
    mutating func forgetEverything() {
        uses = [:]
        corrections = [:]
        uncorrected = nil
        unreadable = [:]
        undeletable = [:]
        expired = [:]
        tally = nil
    }

    /// The row it was about is another one.
    mutating func forget(_ key: StoredKey) {
        if !uses.isEmpty { uses[key] = nil }
        if !corrections.isEmpty { corrections[key] = nil }
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
        // A row that was corrected is older than it says, by which the clock was chosen.
        let now = corrections.isEmpty || !terms.isOfSystem ? now : SystemClock.now()
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
        var corrected = corrections.isEmpty ? nil : corrections[key]
        if let told, facts.revision < told.revision, facts.writtenAt > told.moment || facts.accessedAt > now {
            // Memory has corrected everything by that moment, its copy of this as well.
            corrected = min(corrected ?? .max, told.moment)
            corrections[key] = corrected
        }
        let used = !needsUse || uses.isEmpty ? nil : uses[key]?.accessedAt
        let writtenAt = min(facts.writtenAt, corrected ?? .max, now)
        if writtenAt < min(facts.writtenAt, corrected ?? .max) { noteSetBack(facts, now: now) }
        if writtenAt < facts.writtenAt {
            corrections[key] = writtenAt
            leastWritten = min(leastWritten, writtenAt)
        }
        let noted = min(facts.accessedAt, corrected ?? .max)
        if needsUse, NotedUse.isAhead(max(noted, used ?? .min), of: now) {
            // Its age would begin at every look until the clock has caught up.
            corrections[key] = min(now, corrections[key] ?? .max)
            noteSetBack(facts, now: now)
            if used != nil { uses[key]?.accessedAt = now }
        }
        let lastUse = min(max(noted, used ?? .min, accessedAt ?? .min), now)
        return facts.seen(writtenAt: writtenAt, accessedAt: lastUse)
    }

    /// A row of the future was met; news, unless it was written before memory was told of this or an earlier moment.
    private mutating func noteSetBack(_ facts: EntryFacts, now: Int64) {
        guard let told, now >= told.moment, facts.revision < told.revision else {
            newsOfClock = min(newsOfClock ?? .max, now)
            return
        }
    }

    /// The moment that memory is to be told of, to which the clock was set back.
    ///
    /// - Parameter revision: A number above those of all that was written.
    mutating func takeNewsOfClock(revision: @autoclosure () -> Int64) -> Int64? {
        guard let moment = newsOfClock.take() else { return nil }
        told = (moment, revision())
        uncorrected = moment
        return moment
    }
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
