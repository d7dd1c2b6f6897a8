/// The part of a sub-cache that is on disk, which is all of it; see ``Cache/disk``.
///
/// What is removed or trimmed here leaves both tiers. A pass over it is in key order and bypasses memory.
public struct DiskTier<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    private let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) {
        self.cache = cache
    }

    /// Reads the value of a key from disk, past memory, which gets no copy of it; nil if there is no usable value now.
    ///
    /// It follows the age of the handle, and counts as a use.
    public func value(forKey key: Key) throws(CacheError) -> Value? { try cache.entry(forKey: key)?.value }

    /// Reads the value of a key from disk, without blocking the caller's executor; see the synchronous form.
    public func value(forKey key: Key) async throws(CacheError) -> Value? { try await cache.entry(forKey: key)?.value }

    /// An iteration over what is on disk, in key order; it behaves as one over the cache does.
    public struct Iterator: IteratorProtocol, Sendable {
        @usableFromInline var pass: EntryPass<Key, Value>

        /// Returns the next entry, or nil at the end and from then on.
        @inlinable
        public mutating func next() -> (key: Key, value: Value)? { pass.nextPair() }
    }

    /// Starts an iteration, in key order.
    public func makeIterator() -> Iterator { Iterator(pass: EntryPass(cache)) }

    /// How many entries are served now.
    ///
    /// - Complexity: O(n), over an index alone where the age is unlimited.
    public var count: Int {
        get throws(CacheError) { try cache.count }
    }

    /// Payloads and extended data of all entries in bytes, see ``Cache/sizeOnDisk``.
    public var size: Int64 {
        get throws(CacheError) { try cache.sizeOnDisk }
    }

    /// Whether there is a usable value of a key, which is not used by that.
    public func contains(_ key: Key) throws(CacheError) -> Bool { try cache.contains(key) }

    /// The limits of what is on disk.
    ///
    /// A new value takes effect at once. If that fails, the failure goes to the log, the events and the statistics;
    /// ``setLimits(_:)`` throws it.
    public var limits: DiskLimits {
        get {
            let limits = cache.ledger.limits
            return DiskLimits(countLimit: limits.count, sizeLimit: limits.size)
        }
        nonmutating set {
            do throws(CacheError) {
                try setLimits(newValue)
            } catch {
                cache.report(error, "change its limits")
            }
        }
    }

    /// Changes how much may be on disk, at once: what is too much is evicted, least recently used first.
    ///
    /// - Parameter limits: The new limits.
    /// - Throws: `.invalidConfiguration` for negative limits, which change nothing; `.readOnly`, `.closed`, `.reentrant`; what the
    ///   eviction met, after which the new limits hold with the next write.
    public func setLimits(_ limits: DiskLimits) throws(CacheError) {
        try cache.checkWritable("change the limits")
        try limits.check(cacheNamed: cache.name)
        try cache.ledger.setLimits(RowLimits(count: limits.countLimit, size: limits.sizeLimit))
    }

    /// Removes what is over, then the least recently used, until at most so many entries are left.
    ///
    /// - Returns: How many went.
    @discardableResult
    public func trim(toCount count: Int) throws(CacheError) -> Int { try cache.trim(toCount: count) }

    /// Removes what is over, then the least recently used, until the entries come to at most so many bytes.
    ///
    /// - Returns: How many went.
    @discardableResult
    public func trim(toSize size: Int64) throws(CacheError) -> Int { try cache.trim(toSize: size) }

    /// Deletes every entry, in one step.
    ///
    /// - Returns: The number of entries that there were, expired ones included.
    @discardableResult
    public func removeAll() throws(CacheError) -> Int { try cache.removeAll() }
}

/// An iteration over what is on disk, in key order.
public typealias DiskCacheGenerator<Key: Codable & Hashable & Sendable, Value: Sendable> = DiskTier<Key, Value>.Iterator

extension Cache {
    /// The tier on disk.
    public var disk: DiskTier<Key, Value> { DiskTier(self) }
}
