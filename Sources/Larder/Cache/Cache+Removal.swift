internal import LarderSQLite

extension Cache {
    /// Deletes every entry, in one step; the rows are reclaimed in the background.
    ///
    /// Handles stay good. No value that was read before is served again.
    ///
    /// - Returns: The number of entries that there were, expired ones included.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`.
    /// - Complexity: O(1), and O(n) over an index for the count.
    @discardableResult
    public func removeAll() throws(CacheError) -> Int {
        try checkWritable("remove everything")
        return try ledger.clear()
    }

    /// Deletes every entry, and returns when no byte of them is left in the files of the store.
    ///
    /// No reader sees an entry from the first moment on, as with `removeAll()`. Then rows are deleted and their bytes
    /// overwritten, value files deleted, recycled ones too, and the log is copied and cut. If another process or a long read
    /// pins the log, its old frames stay until the log can be cut.
    ///
    /// - Parameter progress: Called after each batch with the number of rows that are deleted; for an empty cache called once.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`.
    public func clear(progress: ProgressHandler? = nil) throws(CacheError) {
        try checkWritable("remove everything")
        let store = try manager.writableStore()
        let (count, own) = try ledger.readMoment { (c, id) throws(SQLiteError) in (try c.countAll(id), id) } ?? (0, 0)
        var (deleted, reported) = (0, -1)
        try ledger.run(WriteRequest(.clear, to: ledger))
        try store.reclaimer.finish(store) { removed, generation in
            // What others have cleared is deleted with it.
            guard generation == own, reported < count else { return }
            deleted += removed
            reported = Swift.min(deleted, count)
            progress?(CacheProgress(completed: reported, total: count))
        }
        try store.eraseDeleted()
        if reported < count { progress?(CacheProgress(completed: count, total: count)) }
    }

    /// Removes the entries that a closure picks, each unless it was written since the closure saw it.
    ///
    /// The closure is called while nothing is held, may use the cache, and may throw: what it had picked before is
    /// removed then, slice by slice.
    ///
    /// - Returns: How many went.
    @discardableResult
    public func removeAll(where shouldRemove: (CacheEntry<Key, Value>) throws -> Bool) throws -> Int {
        try checkCurrent("remove entries")
        return try removeEntries(.call, where: shouldRemove)
    }

    /// Removes the entries that a closure picks by their key and metadata; no value is read.
    ///
    /// It works as `removeAll(where:)` does.
    ///
    /// - Returns: How many went.
    @discardableResult
    public func removeAll(whereMetadata shouldRemove: (Key, EntryMetadata) throws -> Bool) throws -> Int {
        try checkCurrent("remove entries")
        return try removeEntries(.call, whereMetadata: shouldRemove)
    }

    // MARK: - What they share with deciders

    func removeEntries(
        _ cause: RemovalCause, where shouldRemove: (CacheEntry<Key, Value>) throws -> Bool,
        while goesOn: () -> Bool = { true }
    ) throws -> Int {
        var pass = RowPass()
        return try removeRows(cause, while: goesOn) { () throws(CacheError) in
            try pass.nextRows(of: ledger)
        } victim: { row in
            guard let entry = core.passed(row, terms, now: terms.now()), try shouldRemove(entry) else { return nil }
            return RowVictim(row.key, row.row.facts)
        }
    }

    func removeEntries(
        _ cause: RemovalCause, whereMetadata shouldRemove: (Key, EntryMetadata) throws -> Bool,
        while goesOn: () -> Bool = { true }
    ) throws -> Int {
        var pass = RowPass()
        return try removeRows(cause, while: goesOn) { () throws(CacheError) in
            try pass.nextFacts(of: ledger)
        } victim: { row in
            guard let (key, facts) = core.passed(row.key, row.facts, terms, now: terms.now()) else { return nil }
            let metadata = EntryMetadata(facts, rule: terms.rule, accessedAt: facts.accessedAt)
            return try shouldRemove(key, metadata) ? RowVictim(row.key, row.facts) : nil
        }
    }

    private func removeRows<Row>(
        _ cause: RemovalCause, while goesOn: () -> Bool, nextPage: () throws(CacheError) -> [Row],
        victim: (Row) throws -> RowVictim?
    ) throws -> Int {
        var count = 0
        while goesOn() {
            let page = try nextPage()
            if page.isEmpty { break }
            var victims: [RowVictim] = []
            var thrown: (any Error)?
            for row in page {
                do {
                    if let victim = try victim(row) { victims.append(victim) }
                } catch {
                    thrown = error
                    break
                }
            }
            count += try ledger.remove(victims, cause).count
            if let thrown { throw thrown }
        }
        return count
    }
}
