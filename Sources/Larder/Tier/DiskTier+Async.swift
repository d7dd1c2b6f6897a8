extension DiskTier {
    /// Returns whether a key has a value that may be served, without decoding the value.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func contains(_ key: Key) async throws(CacheError) -> Bool { try await cache.contains(key) }

    /// Sets the limits of the disk tier, and evicts at once the entries that exceed them.
    ///
    /// - Parameter limits: The new limits.
    /// - Throws: A write error, see ``CacheError``. `.invalidConfiguration` for negative limits.
    public func setLimits(_ limits: DiskLimits) async throws(CacheError) {
        try await offload { () throws(CacheError) in try setLimits(limits) }
    }

    /// Removes expired entries, then the least recently used, until at most `count` entries are left.
    ///
    /// - Parameter count: The number of entries; a negative number counts as 0.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func trim(toCount count: Int) async throws(CacheError) -> Int { try await cache.trim(toCount: count) }

    /// Removes expired entries, then the least recently used, until the rest takes at most `size` bytes.
    ///
    /// - Parameter size: The number of bytes, as ``Cache/sizeOnDisk`` counts them; a negative number counts as 0.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func trim(toSize size: Int64) async throws(CacheError) -> Int { try await cache.trim(toSize: size) }

    /// Removes all entries in one step.
    ///
    /// - Returns: The number of entries that there were, including expired ones.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll() async throws -> Int { try await cache.removeAll() }
}
