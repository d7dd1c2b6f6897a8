extension FrontState {
    /// What memory knows of a key.
    enum Look {
        case hit(Value)
        /// There, but somebody else has committed since: good if the row still has this revision.
        case unsure(revision: Int64)
        /// There, and written in the future: the clock was set back.
        case future
        /// There, and over by the caller's rule.
        case over(revision: Int64)
        /// Not there; an offer made of what the disk says now is good if nothing changed since `sequence`.
        case absent(sequence: UInt64)
    }

    /// Looks a key up by the exact time; a hit counts as a use.
    mutating func look(_ key: Key, hash: UInt64, rule: AgeRule, now: Int64, round: UInt32) -> Look {
        let place = memory.table.locate(key, hash: hash)
        if place.index == 0 { return .absent(sequence: offers.sequence) }
        let number = useNumber(at: SystemClock.coarseNow())
        let entry = entry(at: place.index)
        if entry.round != round { return .unsure(revision: entry.revision) }
        if NotedUse.isAhead(entry.writtenAt, of: now) { return .future }
        let own = entry.rule(else: rule)
        let accessedAt = entry.accessedAt == Entry.unknown ? now : min(entry.accessedAt, now)
        if own.isExpired(start: own.isSliding ? accessedAt : min(entry.writtenAt, now), now: now) {
            return .over(revision: entry.revision)
        }
        lastUse = number
        memory.table.promote(place.index, AccessStamp(number: number, moment: now))
        memoryHits += 1
        return .hit(entry.value)
    }

    /// Takes every moment in the future for now.
    mutating func correctAll(now: Int64) {
        for index in memory.table.order {
            withEntry(at: index) { entry in
                entry.writtenAt = min(entry.writtenAt, now)
                if entry.accessedAt != Entry.unknown { entry.accessedAt = min(entry.accessedAt, now) }
                entry.storedAccess = min(entry.storedAccess, now)
            }
        }
    }

    /// Notes that the row of a key still has the revision that memory has, as of a round.
    mutating func confirm(_ key: Key, hash: UInt64, revision: Int64, accessedAt: Int64, round: UInt32) {
        let place = memory.table.locate(key, hash: hash)
        if place.index == 0 { return }
        let known = watch.knownRound
        withEntry(at: place.index) { entry in
            guard entry.revision == revision else { return }
            // An older look must not undo the newest.
            if entry.round != known { entry.round = round }
            // Another process may have read it.
            entry.storedAccess = max(entry.storedAccess, accessedAt)
            if entry.accessedAt != Entry.unknown { entry.accessedAt = max(entry.accessedAt, accessedAt) }
        }
    }

    /// When an entry in memory was read last; a moment that is ahead of `now` is taken for now.
    mutating func accessed(_ key: Key, hash: UInt64, now: Int64 = .max) -> Int64? {
        let place = memory.table.locate(key, hash: hash)
        if place.index == 0 { return nil }
        var stamp = memory.table.stamp(of: place.index)
        if stamp.moment == Entry.unknown { return nil }
        if NotedUse.isAhead(stamp.moment, of: now) {
            stamp.moment = now
            memory.table.setStamp(stamp, of: place.index)
        }
        return stamp.moment
    }

    // MARK: - The order of use

    /// A number for a use that comes after everything here and after a write.
    mutating func nextUse(after revision: Int64) -> Int64 {
        lastUse = max(lastUse, min(revision, RevisionSource.highest))
        lastUse = useNumber(at: SystemClock.coarseNow())
        return lastUse
    }

    /// Notes a use of an entry that was read elsewhere; false if it is not here.
    mutating func use(_ key: Key, hash: UInt64, at now: Int64, used: Int64) -> Bool {
        let place = memory.table.locate(key, hash: hash)
        if place.index == 0 { return false }
        memory.table.promote(place.index, AccessStamp(number: used, moment: now))
        return true
    }

    /// Keeps the access of an entry that is about to leave memory.
    mutating func noteUse(at index: UInt32) {
        if let use = memory.dueUse(at: index, after: notedUse, grain) { evictedUses.append(use) }
    }

    /// Hands over the uses since the last time that are to be written down; those that asked no clock are uses of `now`.
    mutating func unnotedUses(now: Int64) -> [(Key, NotedUse)] {
        var uses: [(Key, NotedUse)] = []
        var index = memory.table.mostRecent
        // The order of recency is that of use, so behind the first that is old enough all are.
        while index != 0 {
            let entry = entry(at: index)
            if entry.used <= notedUse { break }
            let moment = entry.accessedAt == Entry.unknown ? now : entry.accessedAt
            if entry.used > entry.revision, grain.isStale(entry.storedAccess, age: entry.age, at: moment) {
                withEntry(at: index) { ($0.accessedAt, $0.storedAccess) = (moment, moment) }
                uses.append((memory.table.key(at: index), NotedUse(accessedAt: moment, used: entry.used)))
            }
            index = memory.table.older(than: index)
        }
        notedUse = lastUse
        isFlushScheduled = false
        return uses
    }

    /// The use of a key that memory has, after it was written.
    func lastUse(of key: Key, hash: UInt64) -> NotedUse? {
        let place = memory.table.locate(key, hash: hash)
        return place.index == 0 ? nil : entry(at: place.index).lastUse
    }

    /// The uses of everything in memory.
    func allUses() -> [(Key, NotedUse)] {
        var uses: [(Key, NotedUse)] = []
        var index = memory.table.mostRecent
        while index != 0 {
            if let use = entry(at: index).lastUse { uses.append((memory.table.key(at: index), use)) }
            index = memory.table.older(than: index)
        }
        return uses
    }
}
