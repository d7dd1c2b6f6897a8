internal import LarderLocks
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
        Int(try rows.run(clearing(), "remove everything").cleared?.count ?? 0)
    }

    /// Removes all entries in one step.
    @discardableResult
    public func removeAll() async throws -> Int {
        Int(try await rows.run(clearing(), "remove everything").cleared?.count ?? 0)
    }

    private func clearing(_ action: String = "remove everything") throws(CacheError) -> Change {
        try requireUnshared(action)
        let (copies, now) = (core.copies, rows.now())
        return Change(.clear, in: copies) { copies.cleared(&$1, removedAt: now) }
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

    /// Removes the entries that a predicate chooses, except those that are written after the predicate was called.
    ///
    /// If the predicate throws, the entries that it has chosen until then are removed.
    @discardableResult
    public func removeAll(
        where shouldRemove: @escaping @Sendable (CacheEntry<Key, Value>) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(where: shouldRemove) }
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

    /// Removes the entries that a predicate chooses by key and metadata, without reading values.
    @discardableResult
    public func removeAll(
        whereMetadata shouldRemove: @escaping @Sendable (Key, EntryMetadata) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(whereMetadata: shouldRemove) }
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

    /// Removes all expired entries, including those that ``CacheOptions/keepsExpired`` keeps.
    @discardableResult
    public func removeExpired() async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeExpired() }
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

    /// Removes expired entries, then the least recently used, until at most `count` entries are left.
    @discardableResult
    public func trim(toCount count: Int) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toCount: count) }
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

    /// Removes expired entries, then the least recently used, until the rest takes at most `size` bytes.
    @discardableResult
    public func trim(toSize size: Int64) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toSize: size) }
    }

    private func trim(to limits: Limits) throws(CacheError) -> Int {
        try throwing("trim the cache") { () throws(StoreError) in
            try rows.requireWritable()
            return try rows.trim(to: limits)
        }
    }

    /// Removes all entries, and returns when no byte of them is left in the database, its log and the value files.
    ///
    /// A damaged database that was set aside keeps what it has.
    ///
    /// From the start on, no reader sees an entry. Then the rows are deleted and overwritten, the value files are
    /// deleted, including recycled ones, and the log is copied and cut. If another process or a long read pins the log
    /// until the busy timeout has passed, the call throws `.busy`.
    ///
    /// - Parameter progress: Called at the start, after each batch of deleted rows, and at the end, while no lock is held.
    /// - Throws: A write error, see ``CacheError``.
    public func clear(progress: ProgressHandler? = nil) throws(CacheError) {
        let clear = try clearing("clear the cache")
        try throwing("clear the cache") { () throws(StoreError) in
            let total = Int(try rows.totals().count)
            if total > 0 { progress?(CacheProgress(completed: 0, total: total)) }
            let report: (Int) -> Void = {
                // Rows that were retired before are deleted too.
                if $0 < total { progress?(CacheProgress(completed: $0, total: total)) }
            }
            try rows.erase(progress: report, clear)
            progress?(CacheProgress(completed: total, total: total))
        }
    }

    /// Removes all entries, and returns when no byte of them is left in the database, its log and the value files, which can take long.
    public func clear(progress: ProgressHandler? = nil) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.clear(progress: progress) }
    }
}

/// Entries that belong together: those with a tag, and those whose keys begin with a text.
///
/// The duration of each call depends on the number of entries that it concerns, not on the size of the cache. Tags are compared as
/// Swift compares strings.
extension Cache {
    /// Removes all entries that have a tag, whether they have expired or not.
    ///
    /// Up to 10,000 entries are removed in one step. More are removed in slices, between which other writes run: a reader can see
    /// the removal half done, and after a crash the rest is left.
    ///
    /// - Parameter tag: The tag.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll(tagged tag: String) throws(CacheError) -> Int {
        try requireUnshared("remove entries")
        return try throwing("remove entries") { () throws(StoreError) in
            try rows.removeAll(tagged: CBORText.normalized(tag))
        }
    }

    /// Removes all entries of the cache that have a tag, whether they have expired or not, and returns their number.
    ///
    /// Up to 10,000 are removed in one step, and more in slices.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
    }

    /// Returns the entries that have a tag and have not expired, in no particular order.
    ///
    /// Each entry that is returned counts as accessed. An entry that does not decode is left out, and an event reports
    /// it.
    ///
    /// - Parameter tag: The tag.
    /// - Throws: A read error, see ``CacheError``.
    public func entries(tagged tag: String) throws(CacheError) -> [CacheEntry<Key, Value>] {
        let tagged = try throwing("list the entries") { () throws(StoreError) in
            try rows.rows(tagged: CBORText.normalized(tag))
        }
        let now = rows.store.time.now()
        var entries: [CacheEntry<Key, Value>] = []
        for row in tagged where row.header.end >= now {
            guard let (key, value) = decoded(row) else { continue }
            let header = noteAccess(to: key, copies.seed.hash(key), row.header, at: now)
            entries.append(CacheEntry(key, value, header))
        }
        copies.count { [count = entries.count] in $0.diskHits += count }
        return entries
    }

    /// Returns the entries that have a tag and have not expired, in no particular order.
    ///
    /// - Parameter tag: The tag.
    /// - Throws: A read error, see ``CacheError``.
    public func entries(tagged tag: String) async throws(CacheError) -> [CacheEntry<Key, Value>] {
        try await reading { () throws(CacheError) in try self.entries(tagged: tag) }
    }

    /// Returns the keys of the entries that have a tag and have not expired, in no particular order.
    ///
    /// No value is read, and nothing counts as accessed.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func keys(tagged tag: String) throws(CacheError) -> [Key] {
        let found = try throwing("list the entries") { () throws(StoreError) in
            try rows.headers(tagged: CBORText.normalized(tag))
        }
        let now = rows.store.time.now()
        return found.filter { $0.end >= now }.compactMap { key(of: $0) }
    }

    /// Returns the keys of the entries that have a tag and have not expired, in no particular order.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func keys(tagged tag: String) async throws(CacheError) -> [Key] {
        try await reading { () throws(CacheError) in try self.keys(tagged: tag) }
    }

    /// Returns the number of entries that have a tag and have not expired.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func count(tagged tag: String) throws(CacheError) -> Int {
        try throwing("count the entries") { () throws(StoreError) in
            try rows.count(tagged: CBORText.normalized(tag), at: rows.now)
        }
    }

    /// Returns the number of entries that have a tag and have not expired.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func count(tagged tag: String) async throws(CacheError) -> Int {
        try await reading { () throws(CacheError) in try self.count(tagged: tag) }
    }

    /// Returns each tag with the number of entries that have it and have not expired.
    ///
    /// - Complexity: O(n) in the number of tags of all entries of the store.
    /// - Throws: A read error, see ``CacheError``.
    public func tags() throws(CacheError) -> [String: Int] {
        try throwing("list the tags") { () throws(StoreError) in try rows.tags(at: rows.now) }
    }

    /// Returns each tag with the number of entries that have it and have not expired.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func tags() async throws(CacheError) -> [String: Int] {
        try await reading { () throws(CacheError) in try self.tags() }
    }

    /// Removes all entries whose keys are strings that begin so, whether they have expired or not.
    ///
    /// Up to 10,000 entries are removed in one step. More are removed in slices, between which other writes run: a reader can see
    /// the removal half done, and after a crash the rest is left. No value is decoded. To remove all entries, use `removeAll()`.
    /// Keys that are no strings never match. The bytes of UTF-8 in normal form C are compared, as in
    /// ``entries(orderedBy:descending:prefix:limit:)``.
    ///
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll(prefix: String) throws(CacheError) -> Int {
        try requireUnshared("remove entries")
        return try throwing("remove entries") { () throws(StoreError) in
            try rows.removeAll(prefix: CBORText.normalized(prefix))
        }
    }

    /// Removes all entries whose keys are strings that begin so, and returns their number.
    ///
    /// Up to 10,000 are removed in one step, and more in slices.
    @discardableResult
    public func removeAll(prefix: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(prefix: prefix) }
    }
}
