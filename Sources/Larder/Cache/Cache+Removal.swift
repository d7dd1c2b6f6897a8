internal import LarderSQLite

extension Cache {
    /// Removes every entry, in one step and in no time; the rows go in the background.
    ///
    /// Handles stay good. What was read before is not seen again.
    /// - Complexity: O(1).
    public func removeAll() throws(CacheError) {
        try checkWritable("remove everything")
        try ledger.clear()
    }

    /// Removes every entry, and returns when the rows are gone from the disk.
    ///
    /// Nobody sees them from the first moment on, as with `removeAll()`.
    ///
    /// A trailing closure without a label is the one of ``removeAll(where:)``, but behind `await` it may be the one of this
    /// call's asynchronous form: see there.
    ///
    /// - Parameter progress: Told after each slice how many rows are gone; for an empty cache told once.
    @_disfavoredOverload
    public func removeAll(progress: ProgressHandler) throws(CacheError) {
        try checkWritable("remove everything")
        let (count, own) = try ledger.readMoment { (c, id) throws(SQLiteError) in (try c.countAll(id), id) } ?? (0, 0)
        _ = try ledger.run(ledger.clearTicket())
        let store = try manager.writableStore()
        var (gone, told) = (0, -1)
        try store.reclaimer.finish(store) { removed, generation in
            // What others have cleared goes with it.
            guard generation == own, told < count else { return }
            gone += removed
            told = Swift.min(gone, count)
            progress(CacheProgress(completed: told, total: count))
        }
        if told < count { progress(CacheProgress(completed: count, total: count)) }
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
    /// It works as ``removeAll(where:)`` does.
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
