internal import LarderSQLite

extension WriterState {
    /// Stores the accesses that reads have noted and that memory has, unless the stored ones lag by less than the grain.
    func storeAccesses() throws(SQLiteError) { for access in takeAccesses() { try store(access) } }

    func takeAccesses() -> [Access] {
        noteMemory()
        return accesses.take()
    }

    /// Notes the accesses that memory has.
    func noteMemory() {
        let all = Array(memories.all.values.joined())
        accesses.note(servedByMemory: all.flatMap { $0.takeAccesses(at: now) })
        releaseLater(all)
    }

    func store(_ access: Access) throws(SQLiteError) {
        let latest = access.moment.subtractingSaturated(max(0, access.grain))
        try connection.run(.storeAccess, access.id, access.revision, access.moment, latest)
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
        for (cache, counters) in gains where incarnations[cache] != nil {
            for (counter, gain) in counters where gain != 0 {
                try connection.run(.addActivity, text: cache.text, day, counter, gain)
            }
        }
    }
}
