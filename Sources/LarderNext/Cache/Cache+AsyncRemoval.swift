/// The removals for tasks, on threads of the system: they may take long, or call the program's closures.
extension Cache {
    /// Removes the entries that a predicate chooses, for a task; see the synchronous form.
    @discardableResult
    public func removeAll(
        where shouldRemove: @escaping @Sendable (CacheEntry<Key, Value>) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(where: shouldRemove) }
    }

    /// Removes the entries that a predicate chooses by key and metadata, for a task; see the synchronous form.
    @discardableResult
    public func removeAll(
        whereMetadata shouldRemove: @escaping @Sendable (Key, EntryMetadata) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(whereMetadata: shouldRemove) }
    }

    /// Removes all expired entries, for a task; see the synchronous form.
    @discardableResult
    public func removeExpired() async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeExpired() }
    }

    /// Removes entries until at most so many are left, for a task; see the synchronous form.
    @discardableResult
    public func trim(toCount count: Int) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toCount: count) }
    }

    /// Removes entries until they come to at most so many bytes, for a task; see the synchronous form.
    @discardableResult
    public func trim(toSize size: Int64) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toSize: size) }
    }

    /// Removes all entries and all of their bytes, for a task; see the synchronous form.
    public func clear(progress: ProgressHandler? = nil) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.clear(progress: progress) }
    }

    /// Removes all entries that have a tag, for a task; see the synchronous form.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
    }
}

extension Cache {
    /// Returns the entries that have a tag, for a task; see the synchronous form.
    public func entries(tagged tag: String) async throws(CacheError) -> [CacheEntry<Key, Value>] {
        try await reading { () throws(CacheError) in try self.entries(tagged: tag) }
    }
}

extension CacheManager {
    /// Removes the entries of all caches that have a tag, for a task; see the synchronous form.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
    }
}
