internal import LarderStore

/// The part of a cache that is on disk, which is all of it; see ``Cache/disk``.
///
/// What is removed or trimmed here leaves both tiers. An iteration is in the order of keys and does not use memory.
public struct DiskTier<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    private let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) { self.cache = cache }

    /// Returns the value of a key from the disk, of which memory keeps no copy; nil if there is none that may be served.
    ///
    /// It counts as access.
    ///
    /// - Parameter key: The key.
    /// - Throws: As ``Cache/value(forKey:)``.
    public func value(forKey key: Key) throws(CacheError) -> Value? { try cache.entry(forKey: key)?.value }

    /// Returns the value of a key from the disk, for a task; see the synchronous form.
    public func value(forKey key: Key) async throws(CacheError) -> Value? { try await cache.entry(forKey: key)?.value }

    /// An iteration over the entries on disk, in the order of keys; as one over the cache.
    public typealias Iterator = Cache<Key, Value>.Iterator

    /// Starts an iteration, in the order of keys.
    public func makeIterator() -> Iterator { cache.makeIterator() }

    /// The number of entries that may be served.
    public var count: Int { get throws(CacheError) { try cache.count } }

    /// The bytes of the payloads and extended data of all entries, see ``Cache/sizeOnDisk``.
    public var size: Int64 { get throws(CacheError) { try cache.sizeOnDisk } }

    /// Returns whether a key has a value that may be served; it does not count as access.
    ///
    /// - Parameter key: The key.
    /// - Throws: As ``Cache/metadata(forKey:)``.
    public func contains(_ key: Key) throws(CacheError) -> Bool { try cache.contains(key) }

    /// The limits of what is on disk.
    ///
    /// A new value takes effect at once. If that fails, the failure goes to the log, the events and the statistics;
    /// ``setLimits(_:)`` throws it.
    public var limits: DiskLimits {
        get { cache.shared.current.disk }
        nonmutating set {
            do throws(CacheError) { try setLimits(newValue) } catch { cache.report(error, .writeFailed) }
        }
    }

    /// Sets the limits of what is on disk: what is too much is evicted at once, least recently used first.
    ///
    /// - Parameter limits: The new limits.
    /// - Throws: `.invalidConfiguration` for negative limits, `.readOnly`, `.closed`, `.superseded`, `.busy`, `.reentrant`.
    public func setLimits(_ limits: DiskLimits) throws(CacheError) {
        try limits.check(cacheNamed: cache.name)
        try cache.throwing("set the limits") { () throws(StoreError) in
            try cache.rows.setLimits(limits.storeLimits)
        }
        cache.shared.change { $0.disk = limits }
    }

    /// Removes expired entries, then the least recently used, until at most so many are left.
    ///
    /// - Parameter count: The number of entries.
    /// - Returns: The number of removed entries.
    /// - Throws: As ``Cache/trim(toCount:)``.
    @discardableResult
    public func trim(toCount count: Int) throws(CacheError) -> Int { try cache.trim(toCount: count) }

    /// Removes expired entries, then the least recently used, until they come to at most so many bytes.
    ///
    /// - Parameter size: The bytes.
    /// - Returns: The number of removed entries.
    /// - Throws: As ``Cache/trim(toSize:)``.
    @discardableResult
    public func trim(toSize size: Int64) throws(CacheError) -> Int { try cache.trim(toSize: size) }

    /// Removes all entries, in one step.
    ///
    /// - Returns: The number of entries that there were, including expired ones.
    /// - Throws: As ``Cache/removeAll()``.
    @discardableResult
    public func removeAll() throws(CacheError) -> Int { try cache.removeAll() }
}

/// An iteration over the entries on disk, in the order of keys.
public typealias DiskCacheGenerator<Key: Codable & Hashable & Sendable, Value: Sendable> = DiskTier<Key, Value>.Iterator

extension Cache {
    /// The tier on disk.
    public var disk: DiskTier<Key, Value> { DiskTier(self) }
}
