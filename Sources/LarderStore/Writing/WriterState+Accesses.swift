internal import LarderSQLite

extension WriterState {
    /// Stores the accesses that reads have noted and that memory has, unless the stored ones lag by less than the grain.
    func storeAccesses() throws(SQLiteError) {
        noteMemory(of: nil)
        for access in accesses.take() { try store(access) }
    }

    /// Notes the accesses that memory has, of a cache or of all.
    ///
    /// That takes time for each entry in memory, so it is done under the writer's lock only for few rows and at the end.
    func noteMemory(of cache: CacheIdentity?) {
        aftermath.released += accesses.note(servedBy: tiers, of: cache, at: now) as [Any]
    }

    func store(_ access: Access) throws(SQLiteError) {
        stampCount += 1
        let latest = access.moment.subtractingSaturated(max(0, access.grain))
        try connection.run(.storeAccess, access.id, access.revision, access.moment, latest)
    }

    /// Stores the last access of a row.
    package func storeAccess(to row: RowStamp, at moment: Int64) throws {
        try store(Access(id: row.id, revision: row.revision, moment: moment, grain: 0))
    }

    /// The milliseconds of a day.
    static let day: Int64 = 86_400_000

    /// Adds what the counters of caches have gained, and once a day deletes those that are older than ninety days.
    func writeActivity(at now: Int64) throws(SQLiteError) {
        let day = now / Self.day
        for (cache, tiers) in tiers.all {
            aftermath.released += tiers as [Any]
            guard incarnations[cache.name] != nil else { continue }
            for (counter, gain) in tiers.flatMap({ $0.takeActivity() }) where gain != 0 {
                try connection.run(.addActivity, text: cache.name.text, day, counter, gain)
            }
        }
        if day == activityDay { return }
        try connection.run(.deleteOldActivity, day - 90)
        activityDay = day
    }
}
