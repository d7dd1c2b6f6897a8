internal import LarderSQLite

/// What a look shows of a cache, live or retired.
package struct CacheLook: Sendable {
    package let declaration: CacheDeclaration
    package let limits: Limits
    package let openedAt: Int64
    /// The number of rows, expired ones included.
    package let count: Int64
    /// What the counters have gained in a time, by their numbers.
    package let activity: [Int64: Int64]
}

/// Who has opened a store last.
package struct StoreOpener: Hashable, Sendable {
    package let program: String
    /// The release of the library that the program had.
    package let library: String
    package let openedAt: Int64
}

/// What a look shows of a store.
package struct StoreLook: Sendable {
    package let limits: StoreLimits
    package let opener: StoreOpener?
    /// The live caches, by name.
    package let caches: [CacheLook]
    /// The number of rows of live caches.
    package var count: Int64 { caches.reduce(0) { $0 + $1.count } }
    /// The incarnations whose rows wait to be deleted.
    package let retired: [CacheLook]
    package let freePages: Int
    /// The rows whose value is a file.
    package let fileCount: Int64
    /// The pages of the log that are not in the main file yet; nil if there is no log.
    package let uncopiedPages: Int?
}

extension Store {
    /// Returns what the tables say, from one moment.
    ///
    /// - Parameters:
    ///   - days: The days of whose activity the sums are.
    ///   - now: The end of those days.
    ///   - counts: A Boolean value that indicates whether the rows are counted.
    package func look(activityOf days: Int64, until now: Int64, counts: Bool) throws(StoreError) -> StoreLook {
        let day = now / 86_400_000 - days
        return try writer.retrying { () throws(StoreError) in
            try StoreError.translating {
                let uncopied = writer.database.counter?.uncopiedFrames
                return try writer.readAlone { connection in
                    try connection.look(since: day, uncopied, counts: counts)
                }
            }
        }
    }
}

extension Store {
    /// Returns what the counters of a cache have gained on each day after one, by days and their numbers.
    package func days(of cache: String, since day: Int64) throws(StoreError) -> [Int64: [Int64: Int64]] {
        let rows = try writer.retrying { () throws(StoreError) in
            try StoreError.translating {
                try writer.readAlone {
                    try $0.list(.daysOfCache, text: cache, day) { ($0.int64(0), $0.int64(1), $0.int64(2)) }
                }
            }
        }
        return rows.reduce(into: [:]) { $0[$1.0, default: [:]][$1.1] = $1.2 }
    }
}

extension CacheRows {
    /// Returns the number of rows that were written after a moment and not after another one.
    ///
    /// - Complexity: O(n) in the number of rows.
    package func count(writtenAfter first: Int64, to last: Int64) throws(StoreError) -> Int64 {
        try read(.many) { connection, cache throws(SQLiteError) in
            try connection.number(.countOfWritten, cache.id, first, last) ?? 0
        } ?? 0
    }
}

extension Connection {
    fileprivate mutating func look(since day: Int64, _ uncopiedPages: Int?, counts: Bool) throws(SQLiteError)
        -> StoreLook
    {
        try beginReading()
        defer { abandonWriting() }
        // It checks the rows of caches too.
        _ = try liveIncarnations()
        var (rows, looks): ([IncarnationRow], [Int64: [CacheLook]]) = ([], [:])
        try readIncarnations(.incarnations) { rows.append($0) }
        for row in rows {
            let incarnation = row.incarnation.withoutNonsense
            looks[row.state, default: []].append(
                CacheLook(
                    declaration: incarnation.cache, limits: incarnation.limits,
                    openedAt: try number(.openedAt, incarnation.id) ?? 0,
                    count: counts ? try count(of: incarnation, isOnly: rows.count == 1) : 0,
                    activity: try activity(of: incarnation, since: day)))
        }
        return StoreLook(
            limits: try storeLimits(), opener: try opener(),
            caches: (looks[0] ?? []).sorted { $0.declaration.name < $1.declaration.name }, retired: looks[1] ?? [],
            freePages: try freePages(), fileCount: try number(.countOfFiles) ?? 0, uncopiedPages: uncopiedPages)
    }

    /// Counting all rows is much faster than counting some of them.
    private mutating func count(of cache: Incarnation, isOnly: Bool) throws(SQLiteError) -> Int64 {
        try isOnly ? number(.countOfRows) ?? 0 : number(.countOfCache, cache.id) ?? 0
    }

    mutating func opener() throws(SQLiteError) -> StoreOpener? {
        try list(.opener) { StoreOpener(program: $0.text(0), library: $0.text(1), openedAt: $0.int64(2)) }.first
    }

    /// Returns what the counters of a cache have gained after a day, by their numbers.
    mutating func activity(of cache: Incarnation, since day: Int64) throws(SQLiteError) -> [Int64: Int64] {
        let gains = try list(.activityOfCache, text: cache.cache.name, day) { ($0.int64(0), $0.int64(1)) }
        return [Int64: Int64](gains) { first, _ in first }
    }
}
