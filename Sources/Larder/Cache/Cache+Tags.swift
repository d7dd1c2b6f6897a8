extension Cache {
    /// Deletes every entry that has a tag, in one step, whether it has expired or not.
    ///
    /// It takes time by the number of entries with the tag, not by the size of the cache. Tags are compared as Swift compares
    /// strings.
    ///
    /// - Parameter tag: The tag, as a call of `setValue` was given it.
    /// - Returns: The number of deleted entries.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`.
    @discardableResult
    public func removeAll(tagged tag: String) throws(CacheError) -> Int {
        try checkCurrent("remove entries")
        return try ledger.removeAll(tagged: EntryTags.normalized(tag))
    }

    /// Deletes every entry that has a tag, in one step, without blocking the caller's executor.
    ///
    /// - Parameter tag: The tag.
    /// - Returns: The number of deleted entries.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
    }

    /// Returns the entries that have a tag and have not expired, in no particular order.
    ///
    /// An entry that does not decode is left out, and an event reports it.
    ///
    /// - Parameter tag: The tag.
    /// - Throws: `.closed`, `.busy`, `.corrupt`.
    public func entries(tagged tag: String) throws(CacheError) -> [CacheEntry<Key, Value>] {
        _ = try manager.store()
        var entries: [CacheEntry<Key, Value>] = []
        for row in try ledger.tagged(EntryTags.normalized(tag)) {
            let key: Key
            do throws(CacheError) {
                key = try core.keyCodec.key(row.key, cache: name)
            } catch {
                core.noteUnreadable(row.key, row.facts.revision, error, terms)
                continue
            }
            if let entry = try entry(forKey: key) { entries.append(entry) }
        }
        return entries
    }

    /// Returns the entries that have a tag and have not expired, without blocking the caller's executor.
    ///
    /// - Parameter tag: The tag.
    /// - Throws: `.closed`, `.busy`, `.corrupt`.
    public func entries(tagged tag: String) async throws(CacheError) -> [CacheEntry<Key, Value>] {
        try await offload { () throws(CacheError) in try self.entries(tagged: tag) }
    }
}

extension CacheManager {
    /// Deletes every entry of every cache that has a tag, in one step.
    ///
    /// - Parameter tag: The tag.
    /// - Returns: The number of deleted entries.
    /// - Throws: `.readOnly`, `.closed`, `.storageFull`, `.busy`, `.reentrant`.
    @discardableResult
    public func removeAll(tagged tag: String) throws(CacheError) -> Int {
        let store = try writableStore()
        try store.inside.refuseCurrent("remove entries")
        return try store.removeAll(tagged: EntryTags.normalized(tag))
    }

    /// Deletes every entry of every cache that has a tag, in one step, without blocking the caller's executor.
    ///
    /// - Parameter tag: The tag.
    /// - Returns: The number of deleted entries.
    /// - Throws: `.readOnly`, `.closed`, `.storageFull`, `.busy`, `.reentrant`.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
    }
}
