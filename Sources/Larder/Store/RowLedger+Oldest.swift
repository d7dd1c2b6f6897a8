internal import LarderSQLite
internal import Synchronization

/// When the oldest entry was written, as of a round of the watch.
struct OldestWrite: Sendable {
    let round: UInt32
    let generation: Int64
    let database: Int
    /// `.max` where there is none.
    let moment: Int64
}

/// Whether any entry can be over at all, so that who lists keys need not look at each row's age.
extension RowLedger {
    /// The last moment at which every entry without an age of its own is served; nil if that is past, or not known.
    package func allServedUntil(_ terms: AgeTerms) throws(CacheError) -> Int64? {
        let rule = terms.rule
        if rule.isUnlimited { return .max }
        guard !rule.isSliding, rule.maximum > 0, !isSetBack, let oldest = try oldestWrite() else { return nil }
        // Where the clock was set back, the rows have to be looked at: it is to be written down.
        let now = terms.now()
        guard oldest == .max || now >= oldest else { return nil }
        let end = rule.end(start: oldest) ?? .max
        return now <= end ? end : nil
    }

    private func oldestWrite() throws(CacheError) -> Int64? {
        // Without a watch nobody could tell whether what was found still holds.
        guard try store.present().allowsCopies else { return nil }
        let round = state.withLock { $0.watch }.round()
        let (known, number) = state.withLock { state -> (Int64?, Int) in
            if let known = state.oldest(in: round) { return (known, 0) }
            state.oldestLooks += 1
            state.leastWritten = .max
            return (nil, state.oldestLooks)
        }
        if let known { return known }
        let found = try readMoment(round) { (c, id) throws(SQLiteError) in (id, try c.oldestWrite(id)) }
        guard let (generation, moment) = found else { return nil }
        return state.withLock { state in
            // Somebody who looks later has begun to collect what was written since then.
            guard state.oldestLooks == number else { return nil }
            state.oldest = OldestWrite(
                round: round, generation: generation, database: state.binding.database, moment: moment ?? .max)
            return state.oldest(in: round)
        }
    }
}

extension RowLedgerState {
    /// No entry was written before this moment; nil if nobody has looked since somebody else has committed.
    fileprivate func oldest(in round: UInt32) -> Int64? {
        guard let oldest, oldest.round == round, oldest.generation == binding.id, oldest.database == binding.database
        else { return nil }
        return min(oldest.moment, leastWritten)
    }
}
