public import Foundation
internal import LarderSQLite
internal import Synchronization

/// By what a reader judges an age.
@usableFromInline
package struct AgeTerms: Sendable {
    /// How old an entry may be.
    @usableFromInline package let rule: AgeRule
    private let injected: (@Sendable () -> Int64)?

    /// - Parameter now: A clock that was injected; the system's if nil.
    package init(rule: AgeRule, now: (@Sendable () -> Int64)? = nil) {
        self.rule = rule
        injected = now
    }

    /// Whether the clock is the system's.
    var isOfSystem: Bool { injected == nil }

    /// Now, exactly.
    @usableFromInline
    package func now() -> Int64 { injected?() ?? SystemClock.now() }

    /// Whether it is surely not later than a moment.
    @usableFromInline
    package func isBefore(_ moment: Int64) -> Bool {
        if let injected { return injected() <= moment }
        return Self.isSystemBefore(moment)
    }

    /// The same by the system's clock.
    @usableFromInline
    package static func isSystemBefore(_ moment: Int64) -> Bool {
        SystemClock.coarseNow().addingSaturated(SystemClock.coarseLag) <= moment
    }

    /// Now, as exactly as it takes to judge a row.
    func now(toJudge facts: EntryFacts) -> Int64 {
        if let injected { return injected() }
        let (now, rule) = (SystemClock.coarseNow(), facts.rule(else: rule))
        return rule.surelyServes(start: facts.writtenAt, from: now, to: now &+ SystemClock.coarseLag)
            && facts.accessedAt <= now ? now : SystemClock.now()
    }
}

/// The bytes of a value that a reader may have.
@usableFromInline
package struct FoundPayload: Sendable {
    /// Nil where the row is damaged.
    @usableFromInline package let bytes: Data?
    package let revision: Int64
    package let isInFile: Bool
}

/// A row that a reader may have, with the facts as this process knows them.
package struct FoundRow: Sendable {
    package let row: EntryRow
    package let facts: EntryFacts
    /// When it was found.
    package let moment: Int64
}

extension RowLedger {
    /// The row of a key that is served by these terms; nil counts as a miss.
    package func find(_ key: StoredKey, _ terms: AgeTerms, _ round: UInt32) throws(CacheError) -> FoundRow? {
        let row = try readMoment(round) { (c, id) throws(SQLiteError) in try c.row(id, key) } ?? nil
        guard let found = judged(key, row, terms) else { return nil }
        return try filled(key, found, terms)
    }

    /// The payload of a key that is served by these terms, counted as a hit and noted as used; nil counts as a miss.
    ///
    /// For a sub-cache of which memory holds nothing. Who cannot make sense of it takes it back with ``undoHit(_:)``.
    @usableFromInline
    package func findAlone(_ key: StoredKey, _ terms: AgeTerms) throws(CacheError) -> FoundPayload? {
        let row = try readMoment { (c, id) throws(SQLiteError) in try c.brief(id, key) } ?? nil
        guard let row else {
            count { $0.misses += 1 }
            return nil
        }
        // The clock is read after the disk: the wait counts.
        let facts = row.facts
        let now = terms.now(toJudge: facts)
        if let file = facts.file { return try findFile(key, file, row, terms, now: now) }
        let served = watchingClock { state -> Int64? in
            guard let (_, moment) = state.judged(key, facts, terms, now: now, isPlain: true) else { return nil }
            state.counts.diskHits += 1
            return moment
        }
        guard let served else { return nil }
        noteUse(key, facts, at: served)
        return FoundPayload(bytes: row.soundPayload, revision: row.revision, isInFile: false)
    }

    /// The same of a payload in a file.
    private func findFile(
        _ key: StoredKey, _ file: String, _ row: BriefRow, _ terms: AgeTerms, now: Int64
    ) throws(CacheError) -> FoundPayload? {
        let judged = watchingClock { $0.judged(key, row.facts, terms, now: now, isPlain: true) }
        guard let (_, moment) = judged else { return nil }
        guard case .bytes(let payload) = try read(file, of: key, size: row.payloadSize, checksum: row.payloadChecksum)
        else {
            return try findFileAnew(key, terms)
        }
        count { $0.diskHits += 1 }
        noteUse(key, row.facts, at: moment)
        return FoundPayload(bytes: payload, revision: row.revision, isInFile: true)
    }

    /// The same where the file does not fit its row, which may have been written meanwhile.
    private func findFileAnew(_ key: StoredKey, _ terms: AgeTerms) throws(CacheError) -> FoundPayload? {
        guard let found = try find(key, terms, state.withLock { $0.watch }.round()) else { return nil }
        count { $0.diskHits += 1 }
        noteUse(key, found.row.facts, at: found.moment)
        return FoundPayload(
            bytes: found.row.isSound ? found.row.payload : nil, revision: found.facts.revision,
            isInFile: found.row.facts.file != nil)
    }

    /// Takes back what a read counted.
    package func undoHit(_ key: StoredKey) {
        state.withLock { state in
            state.counts.diskHits -= 1
            state.counts.misses += 1
            state.uses[key] = nil
        }
    }

    /// The rows of many keys as of one moment, their files read.
    ///
    /// - Parameter terms: By which an entry may be over, so that its file does not matter.
    package func rows(
        _ keys: [StoredKey], _ round: UInt32, _ terms: AgeTerms? = nil
    ) throws(CacheError) -> [EntryRow?] {
        let read: @Sendable (inout Connection, Int64) throws(SQLiteError) -> [EntryRow?] = {
            (c, id) throws(SQLiteError) in
            var rows: [EntryRow?] = []
            for key in keys { rows.append(try c.row(id, key)) }
            return rows
        }
        return try together(try readMoment(round, read), terms, read) ?? keys.map { _ in nil }
    }

    /// The rows of many keys, as of this moment.
    package func currentRows(_ keys: [StoredKey]) throws(CacheError) -> [EntryRow?] {
        try rows(keys, state.withLock { $0.watch }.round())
    }

    /// What a row that was read is to a reader by these terms; nil counts as a miss.
    ///
    /// - Parameter accessedAt: When memory saw the key used last.
    package func judged(
        _ key: StoredKey, _ row: EntryRow?, _ terms: AgeTerms, accessedAt: Int64? = nil
    ) -> FoundRow? {
        // The clock is read after the disk: the wait counts.
        let now = row.map { terms.now(toJudge: $0.facts) } ?? 0
        return watchingClock { state in
            guard let row else {
                state.counts.misses += 1
                return nil
            }
            let judged = state.judged(key, row.facts, terms, now: now, accessedAt: accessedAt)
            return judged.map { FoundRow(row: row, facts: $0, moment: $1) }
        }
    }

    /// Judges a row; memory hears of it when one is met that is from the future: the clock was set back.
    private func watchingClock<R>(_ body: (inout RowLedgerState) -> R) -> R {
        let (result, news) = state.withLock { state in
            let result = body(&state)
            return (result, state.takeNewsOfClock())
        }
        if let news {
            front?.clockWasSetBack(to: news)
            scheduleFlush()
        }
        return result
    }

    /// A miss that memory could tell of.
    package func noteMiss(_ key: StoredKey, expired revision: Int64) {
        state.withLock { state in
            state.counts.misses += 1
            state.noteExpired(key, revision: revision)
        }
    }

    /// The row of a key, over or not, with what this process knows better; nil if it counts as absent.
    package func row(
        _ key: StoredKey, _ terms: AgeTerms, accessedAt: Int64?
    ) throws(CacheError) -> (row: EntryRow, facts: EntryFacts)? {
        guard let row = try readMoment({ (c, id) throws(SQLiteError) in try c.row(id, key) }) ?? nil else { return nil }
        return seen(key, row.facts, now: terms.now(), accessedAt: accessedAt).map { (row, $0) }
    }

    /// What the row of a key says, with what this process knows better; nil if it counts as absent.
    package func facts(
        _ key: StoredKey, _ terms: AgeTerms, accessedAt: Int64?
    ) throws(CacheError) -> EntryFacts? {
        guard let facts = try readMoment({ (c, id) throws(SQLiteError) in try c.facts(id, key) }) ?? nil else {
            return nil
        }
        return seen(key, facts, now: terms.now(), accessedAt: accessedAt)
    }

    /// The facts of a row with what this process knows better; nil if it counts as absent.
    package func seen(
        _ key: StoredKey, _ facts: EntryFacts, now: Int64, accessedAt: Int64? = nil
    ) -> EntryFacts? {
        watchingClock { $0.seen(key, facts, now: now, accessedAt: accessedAt) }
    }

    /// The same in a turn among the writes, for which it waited since a moment: what was written or used meanwhile tells of
    /// a later one, and not of a clock that was set back.
    ///
    /// - Returns: With the moment by which to judge it.
    func seenInTurn(
        _ key: StoredKey, _ facts: EntryFacts, _ rule: AgeRule, since moment: Int64, accessedAt: Int64?
    ) -> (facts: EntryFacts, moment: Int64)? {
        watchingClock { $0.seenInTurn(key, facts, rule, since: moment, accessedAt: accessedAt) }
    }

    /// Notes that the clock was set back.
    package func clockWasSetBack(to moment: Int64) { watchingClock { $0.noteSetBack(to: moment) } }

    /// The same of a row that a pass comes to; nil also if it is over.
    @usableFromInline
    package func served(
        _ key: StoredKey, _ facts: EntryFacts, _ rule: AgeRule, now: Int64, accessedAt: Int64?
    ) -> EntryFacts? {
        guard let seen = seen(key, facts, now: now, accessedAt: accessedAt), !seen.isExpired(rule, now: now) else {
            return nil
        }
        return seen
    }

    /// A Boolean value that indicates whether rows are known to be from before the clock was set back.
    package var isSetBack: Bool { state.withLock { !$0.setBacks.isEmpty } }

    /// Whether any row is known to be unreadable.
    package var knowsUnreadable: Bool { state.withLock { !$0.unreadable.isEmpty } }

    /// Looks whether the index of keys led to the row of another key; then the store is rebuilt, or this throws.
    package func wasIndexWrong(for key: StoredKey) throws(CacheError) -> Bool {
        let before = try store.present().database
        _ = try readMoment { (c, id) throws(SQLiteError) in try c.checkIndex(id, key) }
        return try store.present().database != before
    }

    /// Remembers a row that cannot be read; false if it is known already.
    package func noteUnreadable(_ key: StoredKey, revision: Int64, isDropped: Bool) -> Bool {
        state.withLock { state in
            let old = state.unreadable.updateValue(
                UnreadableRow(revision: revision, isDropped: isDropped), forKey: key)
            guard old?.revision != revision else { return false }
            state.counts.failures += 1
            return true
        }
    }

    /// How many entries are served, by these terms.
    package func count(_ terms: AgeTerms) throws(CacheError) -> Int {
        if isSetBack { return try countOneByOne(terms) }
        let (now, rule) = (terms.now(), terms.rule)
        let unreadable = state.withLock { $0.unreadable }
        // Where an age runs from the last read, that may be one that is not written down.
        let isAnySliding = try readMoment { (c, id) throws(SQLiteError) in try c.isAnySliding(id) } ?? false
        let uses = rule.isSliding || isAnySliding ? knownUses() : [:]
        return try readMoment { (c, id) throws(SQLiteError) in
            var count = try c.countLive(id, rule, now: now)
            for (key, row) in unreadable {
                guard let facts = try c.facts(id, key), facts.revision == row.revision else { continue }
                if !facts.isExpired(rule, now: now) { count -= 1 }
            }
            for (key, use) in uses {
                guard let facts = try c.facts(id, key), facts.isExpired(rule, now: now),
                    unreadable[key]?.revision != facts.revision
                else { continue }
                let seen = facts.seen(
                    writtenAt: facts.writtenAt, accessedAt: min(now, max(facts.accessedAt, use.accessedAt)))
                if !seen.isExpired(rule, now: now) { count += 1 }
            }
            return count
        } ?? 0
    }

    /// The number of entries that are served, where the rows do not tell it before they are corrected.
    private func countOneByOne(_ terms: AgeTerms) throws(CacheError) -> Int {
        let now = terms.now()
        var (count, pass) = (0, RowPass())
        while true {
            let page = try pass.nextFacts(of: self)
            if page.isEmpty { return count }
            let uses = uses(of: page.map(\.key))
            count += page.count {
                served($0.key, $0.facts, terms.rule, now: now, accessedAt: uses[$0.key]?.accessedAt) != nil
            }
        }
    }

    /// Whether no entry is served, by these terms.
    package func isEmpty(_ terms: AgeTerms) throws(CacheError) -> Bool {
        guard state.withLock({ $0.unreadable.isEmpty && $0.setBacks.isEmpty }) else {
            return try count(terms) == 0
        }
        let (now, rule) = (terms.now(), terms.rule)
        let isAnyLive = try readMoment { (c, id) throws(SQLiteError) in try c.isAnyLive(id, rule, now: now) } ?? false
        // Reads that are not written down may have kept some that the rows say are over.
        if isAnyLive { return false }
        return try count(terms) == 0
    }

    package func sizeOnDisk() throws(CacheError) -> Int64 {
        try readMoment { (c, id) throws(SQLiteError) in try c.totalSize(id) } ?? 0
    }
}
