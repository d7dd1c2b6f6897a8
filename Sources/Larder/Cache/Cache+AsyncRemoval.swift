/// The removals for tasks.
///
/// They run on threads of the system, because they may take long or call closures of the program.
extension Cache {
    /// Removes the entries that a predicate chooses, except those that are written after the predicate was called.
    ///
    /// - Parameter shouldRemove: Called while no lock is held. It may use the cache. If it throws, the entries that it
    ///   has chosen until then are removed.
    /// - Returns: The number of removed entries.
    /// - Throws: The error of the predicate, or a write error, see ``CacheError``.
    @discardableResult
    public func removeAll(
        where shouldRemove: @escaping @Sendable (CacheEntry<Key, Value>) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(where: shouldRemove) }
    }

    /// Removes the entries that a predicate chooses by key and metadata, without reading values.
    ///
    /// - Parameter shouldRemove: Called while no lock is held. It may use the cache. If it throws, the entries that it
    ///   has chosen until then are removed.
    /// - Returns: The number of removed entries.
    /// - Throws: The error of the predicate, or a write error, see ``CacheError``.
    @discardableResult
    public func removeAll(
        whereMetadata shouldRemove: @escaping @Sendable (Key, EntryMetadata) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(whereMetadata: shouldRemove) }
    }

    /// Removes all expired entries, including those that ``CacheOptions/keepsExpired`` keeps.
    ///
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeExpired() async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeExpired() }
    }

    /// Removes expired entries, then the least recently used, until at most `count` entries are left.
    ///
    /// - Parameter count: The number of entries; a negative number counts as 0.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func trim(toCount count: Int) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toCount: count) }
    }

    /// Removes expired entries, then the least recently used, until the rest takes at most `size` bytes.
    ///
    /// - Parameter size: The number of bytes, as ``sizeOnDisk`` counts them; a negative number counts as 0.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func trim(toSize size: Int64) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toSize: size) }
    }

    /// Removes all entries, and returns when no byte of them is left in the files of the store.
    ///
    /// - Parameter progress: Called at the start, after each batch of deleted rows, and at the end, while no lock is held.
    /// - Throws: A write error, see ``CacheError``.
    public func clear(progress: ProgressHandler? = nil) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.clear(progress: progress) }
    }
}

extension CacheManager {
    /// Removes the entries of all caches that have a tag, in one step, whether they have expired or not.
    ///
    /// - Parameter tag: The tag.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
    }
}
