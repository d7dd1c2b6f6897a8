/// The removals for tasks.
///
/// They run on threads of the system, because they may take long or call closures of the program.
extension Cache {
    /// Removes the entries that a predicate chooses, except those that are written after the predicate was called.
    ///
    /// The predicate is called on a thread of the system while no lock is held. If it throws, the entries that it has
    /// chosen until then are removed.
    ///
    /// - Returns: The number of removed entries.
    @discardableResult
    public func removeAll(
        where shouldRemove: @escaping @Sendable (CacheEntry<Key, Value>) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(where: shouldRemove) }
    }

    /// Removes the entries that a predicate chooses by key and metadata, without reading values.
    ///
    /// The predicate is called on a thread of the system while no lock is held. If it throws, the entries that it has
    /// chosen until then are removed.
    ///
    /// - Returns: The number of removed entries.
    @discardableResult
    public func removeAll(
        whereMetadata shouldRemove: @escaping @Sendable (Key, EntryMetadata) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(whereMetadata: shouldRemove) }
    }

    /// Removes all expired entries, including those that ``CacheOptions/keepsExpired`` keeps.
    ///
    /// - Returns: The number of removed entries.
    @discardableResult
    public func removeExpired() async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeExpired() }
    }

    /// Removes expired entries, then the least recently used, until at most `count` entries are left.
    ///
    /// Pinned entries stay. A negative number counts as 0.
    ///
    /// - Returns: The number of removed entries.
    @discardableResult
    public func trim(toCount count: Int) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toCount: count) }
    }

    /// Removes expired entries, then the least recently used, until the rest takes at most `size` bytes.
    ///
    /// Pinned entries stay. A negative number counts as 0.
    ///
    /// - Returns: The number of removed entries.
    @discardableResult
    public func trim(toSize size: Int64) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toSize: size) }
    }

    /// Removes all entries, and returns when no byte of them is left in the files of the store.
    ///
    /// If another process or a long read pins the log until the busy timeout has passed, the call throws `.busy`.
    public func clear(progress: ProgressHandler? = nil) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.clear(progress: progress) }
    }

    /// Removes all entries of the cache that have a tag, in one step, whether they have expired or not.
    ///
    /// - Returns: The number of removed entries.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
    }
}

extension Cache {
    /// Returns the entries that have a tag and have not expired, in no particular order.
    ///
    /// Each entry that is returned counts as accessed. An entry that does not decode is left out, and an event reports
    /// it.
    public func entries(tagged tag: String) async throws(CacheError) -> [CacheEntry<Key, Value>] {
        try await reading { () throws(CacheError) in try self.entries(tagged: tag) }
    }
}

extension CacheManager {
    /// Removes the entries of all caches that have a tag, in one step, whether they have expired or not.
    ///
    /// - Returns: The number of removed entries.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
    }
}
