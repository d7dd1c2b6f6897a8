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
        if known.knowsEnds && now <= known.firstEnd { return known.totals.count }
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
        guard let known = try known(), known.knowsEnds else { return true }
        return now > known.firstEnd
    }

    private func counted() throws(StoreError) -> RowCount {
        if let known = try known() { return known }
        let stamp = store.writer.database.counter?.stamp()
        let counted = try read(.many) { connection, cache throws(SQLiteError) in
            (id: cache.id, count: try connection.count(of: cache, store.accesses))
        }
        guard let counted else { return RowCount() }
        // If no store has committed in the meantime, the next call need not count.
        _ = try store.writer.tryRead { state in
            try state.lookUpIncarnations()
            if let stamp, stamp == state.database.counter?.stamp(), state.incarnation(of: declaration)?.id == counted.id
            {
                state.counts.set(counted.count, of: counted.id)
                noteCounted()
            }
        }
        return counted.count
    }

    /// Returns the count that the writer has; nil if it has none, or while it works.
    private func known() throws(StoreError) -> RowCount? {
        let found = try store.writer.retrying { () throws(StoreError) -> RowCount?? in
            try store.writer.requireResumed()
            try store.readers?.compare(store.writer.database, at: store.time.now())
            return try store.writer.tryRead { state in
                try state.lookUpIncarnations()
                guard let cache = state.incarnation(of: declaration) else { return nil }
                guard let count = state.counts[cache.id], count.isExact else { return RowCount?.none }
                return count
            }
        }
        if let known = found ?? nil {
            noteCounted()
            return known
        }
        return nil
    }
}
