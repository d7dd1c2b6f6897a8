internal import LarderSQLite

extension WriterState {
    /// Notes the uses of the transaction that was committed.
    func noteUses() {
        for use in movedUses { uses.move(use.id, from: use.old, to: use.new) }
        var isFull = false
        for use in writtenUses { isFull = uses.note(use) || isFull }
        if isFull && hasLimits { upkeep?.ask(at: now, from: now) }
    }

    /// Writes the accesses to `used` that reads have noted and that memory has.
    ///
    /// - Parameter isExact: A Boolean value that indicates whether each counts. If not, only those do whose stored access is
    ///   older than the grain.
    func stampAccesses(isExact: Bool) throws(SQLiteError) {
        try stamp(takeAccesses(isExact: isExact), isExact: isExact)
    }

    func takeAccesses(isExact: Bool) -> [Access] {
        noteMemory()
        return uses.take(isExact: isExact)
    }

    /// Notes the accesses that memory has.
    func noteMemory() {
        let all = Array(memories.all.values.joined())
        uses.note(servedByMemory: all.flatMap { $0.takeAccesses(at: now) })
        releaseLater(all)
    }

    func stamp(_ accesses: some Collection<Access>, isExact: Bool) throws(SQLiteError) {
        let changes = connection.totalChanges
        for access in accesses {
            // The latest stamp that is too old.
            let latest = isExact ? .max : access.moment.addingSaturated(-max(0, access.grain))
            try connection.run(
                .stampUse, access.id, access.revision, access.place, access.moment, latest,
                isExact || (access.isReplacement && hasLimits) ? 1 : 0)
        }
        guard connection.totalChanges != changes, let place = accesses.map(\.place).max() else { return }
        try connection.run(.raisePlace, place)
    }

    /// Returns what the counters of caches have gained.
    func takeActivity() -> [ExactName: [Int64: Int64]] {
        var gains: [ExactName: [Int64: Int64]] = [:]
        for (cache, memories) in memories.all {
            for memory in memories { gains[cache.name, default: [:]].merge(memory.takeActivity(), uniquingKeysWith: +) }
            releaseLater(memories)
        }
        return gains
    }

    /// The milliseconds of a day.
    static let day: Int64 = 86_400_000
    private static let keptDays: Int64 = 90

    /// Deletes the counters that are older than ninety days, at most once a day.
    func deleteOldActivity(at now: Int64) throws(SQLiteError) {
        let day = now / Self.day
        if day == activityDay { return }
        try connection.run(.deleteOldActivity, day - Self.keptDays)
        activityDay = day
    }

    /// Adds what the counters of caches have gained.
    func addActivity(_ gains: [ExactName: [Int64: Int64]], at now: Int64) throws(SQLiteError) {
        let day = now / Self.day
        for (cache, counters) in gains where generations[cache] != nil {
            for (counter, gain) in counters where gain != 0 {
                try connection.run(.addActivity, text: cache.text, day, counter, gain)
            }
        }
    }
}
