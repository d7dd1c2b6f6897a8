internal import LarderStore

extension Cache {
    /// Removes all entries in one step.
    ///
    /// The handles of the cache stay valid. The rows are deleted in the background.
    ///
    /// - Returns: The number of entries that there were, including expired ones.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll() throws(CacheError) -> Int {
        Int(try run(clearing(), "remove everything").cleared?.count ?? 0)
    }

    /// Removes all entries in one step.
    ///
    /// - Returns: The number of entries that there were, including expired ones.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll() async throws -> Int {
        Int(try await run(clearing(), "remove everything").cleared?.count ?? 0)
    }

    private func clearing() throws(CacheError) -> (RowOperation, CacheRows.Apply) {
        try requireUnshared("remove everything")
        let copies = shared.copies
        return (.clear, { copies.cleared(&$1) })
    }

    /// Removes the entries that a predicate chooses, except those that are written after the predicate was called.
    ///
    /// Expired entries are left out. The reads don't count as access.
    ///
    /// - Parameter shouldRemove: Called while no lock is held. It may use the cache. If it throws, the entries that it
    ///   has chosen until then are removed.
    /// - Returns: The number of removed entries.
    /// - Throws: The error of the predicate, or a write error, see ``CacheError``.
    @discardableResult
    public func removeAll(where shouldRemove: (CacheEntry<Key, Value>) throws -> Bool) throws -> Int {
        try removeEntries(.removed, where: shouldRemove)
    }

    func removeEntries(
        _ cause: RemovedRow.Cause, where shouldRemove: (CacheEntry<Key, Value>) throws -> Bool,
        while goesOn: () -> Bool = { true }
    ) throws -> Int {
        var pages = RowPages(withAccess: true)
        return try removeChosen(cause, while: { !pages.isDone && goesOn() }) { () throws(StoreError) in
            try pages.nextRows(of: rows)
        } choose: { row in
            guard let (key, value) = decoded(row) else { return nil }
            return try shouldRemove(CacheEntry(key, value, row.header)) ? row.header : nil
        } end: {
            $0.header.end
        }
    }

    /// Removes the entries that a predicate chooses by key and metadata, without reading values.
    ///
    /// Expired entries are left out, and so are those that are written after the predicate was called. The reads don't
    /// count as access.
    ///
    /// - Parameter shouldRemove: Called while no lock is held. It may use the cache. If it throws, the entries that it
    ///   has chosen until then are removed.
    /// - Returns: The number of removed entries.
    /// - Throws: The error of the predicate, or a write error, see ``CacheError``.
    @discardableResult
    public func removeAll(whereMetadata shouldRemove: (Key, EntryMetadata) throws -> Bool) throws -> Int {
        try removeEntries(.removed, whereMetadata: shouldRemove)
    }

    func removeEntries(
        _ cause: RemovedRow.Cause, whereMetadata shouldRemove: (Key, EntryMetadata) throws -> Bool,
        while goesOn: () -> Bool = { true }
    ) throws -> Int {
        var pages = RowPages(withAccess: true)
        return try removeChosen(cause, while: { !pages.isDone && goesOn() }) { () throws(StoreError) in
            try pages.nextHeaders(of: rows)
        } choose: { header in
            guard let key = key(of: header) else { return nil }
            return try shouldRemove(key, EntryMetadata(header)) ? header : nil
        } end: {
            $0.end
        }
    }

    private func removeChosen<Row>(
        _ cause: RemovedRow.Cause, while goesOn: () -> Bool, nextPage: () throws(StoreError) -> [Row],
        choose: (Row) throws -> EntryHeader?,
        end: (Row) -> Int64
    ) throws -> Int {
        if cause == .removed { try requireUnshared("remove entries") }
        try checkCurrent("remove entries")
        copies.noteAccesses()
        var count = 0
        while goesOn() {
            let page = try throwing("remove entries", nil, nextPage)
            let now = rows.store.time.now()
            var (chosen, failure): ([EntryHeader], (any Error)?) = ([], nil)
            for row in page where end(row) >= now {
                do {
                    if let header = try choose(row) { chosen.append(header) }
                } catch {
                    failure = error
                    break
                }
            }
            count += try throwing("remove entries") { () throws(StoreError) in try rows.remove(chosen, cause) }
            if let failure { throw failure }
        }
        return count
    }

    /// Throws `.superseded` for calls that may find nothing to write.
    private func checkCurrent(_ action: String) throws(CacheError) {
        try throwing(action) { () throws(StoreError) in try rows.requireWritable() }
    }

    /// Removes all expired entries, including those that ``CacheOptions/keepsExpired`` keeps.
    ///
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeExpired() throws(CacheError) -> Int {
        try checkCurrent("remove expired entries")
        return try throwing("remove expired entries") { () throws(StoreError) in
            let now = rows.store.time.now()
            guard try rows.mayHaveExpired(at: now) else { return 0 }
            var (pages, count) = (RowPages(), 0)
            while !pages.isDone {
                count += try rows.remove(try pages.nextHeaders(of: rows).filter { $0.end < now }, .expired)
            }
            return count
        }
    }

    /// Removes expired entries, then the least recently used, until at most `count` entries are left.
    ///
    /// Pinned entries stay.
    ///
    /// - Parameter count: The number of entries; a negative number counts as 0.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func trim(toCount count: Int) throws(CacheError) -> Int {
        try trim(to: Limits(count: Int64(Swift.max(0, count))))
    }

    /// Removes expired entries, then the least recently used, until the rest takes at most `size` bytes.
    ///
    /// Pinned entries stay.
    ///
    /// - Parameter size: The number of bytes, as ``sizeOnDisk`` counts them; a negative number counts as 0.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func trim(toSize size: Int64) throws(CacheError) -> Int { try trim(to: Limits(size: Swift.max(0, size))) }

    private func trim(to limits: Limits) throws(CacheError) -> Int {
        try throwing("trim the cache") { () throws(StoreError) in
            try rows.requireWritable()
            return try rows.trim(to: limits)
        }
    }

    /// Removes all entries, and returns when no byte of them is left in the files of the store.
    ///
    /// From the start on, no reader sees an entry. Then the rows are deleted and overwritten, the value files are
    /// deleted, including recycled ones, and the log is copied and cut. If another process or a long read pins the log
    /// until the busy timeout has passed, the call throws `.busy`.
    ///
    /// - Parameter progress: Called at the start, after each batch of deleted rows, and at the end, while no lock is held.
    /// - Throws: A write error, see ``CacheError``.
    public func clear(progress: ProgressHandler? = nil) throws(CacheError) {
        try requireUnshared("clear the cache")
        let copies = shared.copies
        try throwing("clear the cache") { () throws(StoreError) in
            let total = Int(try rows.totals().count)
            if total > 0 { progress?(CacheProgress(completed: 0, total: total)) }
            try rows.erase {
                // Rows that were retired before are deleted too.
                if $0 < total { progress?(CacheProgress(completed: $0, total: total)) }
            } apply: {
                copies.cleared(&$1)
            }
            progress?(CacheProgress(completed: total, total: total))
        }
    }
}
