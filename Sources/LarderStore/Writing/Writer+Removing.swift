internal import LarderSQLite

/// Removals of many rows: few in one transaction, more in slices.
extension Writer {
    /// The most rows that are removed in one transaction.
    private static let atOnce = 10_000
    /// The rows of a slice.
    private static let sliceSize = 2000

    /// Removes the entries that have a tag, of a cache or of all, and returns their number.
    func removeAll(tagged tag: String, in declaration: CacheDeclaration?) throws(StoreError) -> Int {
        let few = try runBatch { try $0.removeTagged(tag, in: declaration, atMost: Self.atOnce) }
        if let few { return few }
        return try removeInSlices(KeyRange()) { state in
            try state.overtakeLoads(tagged: tag, in: declaration)
        } list: { connection, cache throws(SQLiteError) in
            try connection.list(.taggedRows, text: tag, cache.id) {
                ListedRow(id: $0.int64(0), revision: $0.int64(1), cache: cache.id)
            }
        }
    }

    /// Removes the entries whose keys are texts that begin so, and returns their number.
    func removeAll(prefix: String, in declaration: CacheDeclaration) throws(StoreError) -> Int {
        let few = try runBatch { try $0.removeAll(prefix: prefix, in: declaration, atMost: Self.atOnce) }
        if let few { return few }
        return try removeInSlices(KeyRange(prefix: prefix)) { state in
            [try state.overtakeLoads(prefix: prefix, in: declaration)]
        } list: { connection, cache throws(SQLiteError) in
            try connection.headers(prefix: prefix, in: cache) {
                ListedRow(id: $0.id, revision: $0.revision, cache: cache.id)
            }
        }
    }

    /// Removes rows in slices, between which other threads write.
    ///
    /// Readers may see the removal half done, and a crash leaves the rest. The rows are those of one snapshot: what is written
    /// after it stays.
    ///
    /// - Parameters:
    ///   - range: What the keys of the rows are in.
    ///   - overtake: Keeps loads from storing what is removed, in a transaction, and returns the caches. Called at the begin
    ///     and at the end, for the loads that have begun in the meantime.
    ///   - list: Lists the rows of a cache.
    private func removeInSlices(
        _ range: KeyRange, _ overtake: (WriterState) throws -> [Incarnation],
        list: (inout Connection, Incarnation) throws(SQLiteError) -> [ListedRow]
    ) throws(StoreError) -> Int {
        lock.wait { $0?.longRemovals += 1 }
        defer {
            lock.wait { state in
                state?.longRemovals -= 1
                if state?.longRemovals == 0 { state?.replacedRevisions = [:] }
            }
        }
        let caches = try runBatch(overtake)
        let rows = try StoreError.translating {
            try readAlone { connection in
                // Changes of attributes before the snapshot are in it.
                try connection.holdSnapshot()
                defer { do { try connection.releaseSnapshot() } catch {} }
                var rows: [ListedRow] = []
                for cache in caches { rows += try list(&connection, cache) }
                return rows
            }
        }
        var count = 0
        for start in stride(from: 0, to: rows.count, by: Self.sliceSize) {
            lock.letOthersIn()
            count += try runBatch { try $0.remove(rows[start..<min(rows.count, start + Self.sliceSize)], in: range) }
        }
        _ = try runBatch(overtake)
        return count
    }
}
