internal import LarderLocks
internal import LarderStore

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

    /// Returns the number of entries that have a tag and have not expired.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func count(tagged tag: String) throws(CacheError) -> Int {
        try throwing("count the entries") { () throws(StoreError) in
            try rows.count(tagged: CBORText.normalized(tag), at: rows.now)
        }
    }

    /// Returns each tag with the number of entries that have it and have not expired.
    ///
    /// - Complexity: O(n) in the number of tags of all entries of the store.
    /// - Throws: A read error, see ``CacheError``.
    public func tags() throws(CacheError) -> [String: Int] {
        try throwing("list the tags") { () throws(StoreError) in try rows.tags(at: rows.now) }
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
}

/// The same for tasks.
extension Cache {
    /// Removes all entries of the cache that have a tag, in one step, whether they have expired or not.
    ///
    /// - Parameter tag: The tag.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
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
    /// - Throws: A read error, see ``CacheError``.
    public func keys(tagged tag: String) async throws(CacheError) -> [Key] {
        try await reading { () throws(CacheError) in try self.keys(tagged: tag) }
    }

    /// Returns the number of entries that have a tag and have not expired.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func count(tagged tag: String) async throws(CacheError) -> Int {
        try await reading { () throws(CacheError) in try self.count(tagged: tag) }
    }

    /// Returns each tag with the number of entries that have it and have not expired.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func tags() async throws(CacheError) -> [String: Int] {
        try await reading { () throws(CacheError) in try self.tags() }
    }

    /// Removes all entries whose keys are strings that begin so, in one step.
    ///
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll(prefix: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(prefix: prefix) }
    }
}
