internal import LarderSQLite

/// Counting rows: the writer knows their totals, and the ages tell which may be served.
extension CacheRows {
    /// Returns the number of rows and their bytes, expired ones included.
    ///
    /// The writer knows them. While it works they are counted.
    package func totals() throws(StoreError) -> Totals { try counted().totals }

    /// Returns the number of entries that have not expired.
    ///
    /// Where some can have, their ages are read.
    package func count(at now: Int64) throws(StoreError) -> Int64 {
        let known = try counted()
        if now <= known.firstEnd { return known.totals.count }
        return try read(.many) { connection, cache throws(SQLiteError) in
            try connection.count(at: now, in: cache, store.accesses)
        } ?? 0
    }

    /// Returns whether there is an entry that has not expired: the first row tells, unless it has.
    package func hasEntry(at now: Int64) throws(StoreError) -> Bool {
        var (page, limit) = (try headers(limit: 1), Self.pageLimit)
        while !page.rows.contains(where: { $0.end >= now }) {
            guard let next = page.next else { return false }
            page = try headers(after: next, limit: limit)
            limit = min(limit * 2, 4096)
        }
        return true
    }

    /// Returns whether an entry can have expired, as far as is known without counting.
    package func mayHaveExpired(at now: Int64) throws(StoreError) -> Bool {
        try now > known()?.firstEnd ?? .min
    }

    private func counted() throws(StoreError) -> RowCount {
        if let known = try known() { return known }
        return try read(.many) { connection, cache throws(SQLiteError) in
            try connection.count(of: cache, store.accesses)
        } ?? RowCount()
    }

    /// Returns the count that the writer has; nil while it works.
    private func known() throws(StoreError) -> RowCount? {
        let found = try store.writer.retrying { () throws(StoreError) in
            try store.writer.requireResumed()
            try store.readers?.compare(store.writer.database, at: store.time.now())
            return try store.writer.tryRead { try $0.count(of: declaration) }
        }
        if case .some(.none) = found { noteSuperseded() }
        return found.map { $0 ?? RowCount() }
    }
}
