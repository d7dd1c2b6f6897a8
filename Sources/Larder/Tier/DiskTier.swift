internal import LarderStore

/// The disk tier of a cache, which holds all of its entries; see ``Cache/disk``.
///
/// Entries that are removed or trimmed here leave both tiers. An iteration is in the order of keys and does not use
/// memory.
public struct DiskTier<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) { self.cache = cache }

    /// Returns the value of a key from the disk, and keeps no copy in memory; nil if there is none that may be served.
    ///
    /// The read counts as access.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``. `.undecodable` if the value is of another type.
    public func value(forKey key: Key) throws(CacheError) -> Value? { try cache.entry(forKey: key)?.value }

    /// Returns the value of a key from the disk, and keeps no copy in memory; nil if there is none that may be served.
    public func value(forKey key: Key) async throws(CacheError) -> Value? { try await cache.entry(forKey: key)?.value }

    /// The value of a key on the disk, of which memory keeps no copy; setting nil removes the entry.
    ///
    /// A failure is treated as by the subscript of the cache.
    public subscript(key: Key) -> Value? {
        get {
            do throws(CacheError) {
                return try value(forKey: key)
            } catch {
                cache.report(error, .readFailed, key)
                return nil
            }
        }
        nonmutating set {
            do throws(CacheError) { try setValue(newValue, forKey: key) } catch {
                cache.report(error, .writeFailed, key)
            }
        }
    }

    /// Sets the value of a key, and keeps no copy in memory; nil removes the entry.
    ///
    /// It resets the own age, cost, extended data and tags of the entry, and keeps its pin.
    ///
    /// - Throws: A write error, see ``CacheError``.
    public func setValue(_ value: Value?, forKey key: Key) throws(CacheError) {
        guard let value else { return try cache.remove(key) }
        try cache.runOnDisk(cache.write(value, forKey: key))
    }

    /// Sets the value of a key, and keeps no copy in memory; nil removes the entry.
    public func setValue(_ value: Value?, forKey key: Key) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.setValue(value, forKey: key) }
    }

    /// An iteration over the entries on disk, in the order of keys.
    ///
    /// It is of the same type as an iteration over the cache.
    public typealias Iterator = Cache<Key, Value>.Iterator

    /// Starts an iteration, in the order of keys.
    public func makeIterator() -> Iterator { cache.makeIterator() }

    /// The number of entries that may be served.
    public var count: Int { get throws(CacheError) { try cache.count } }

    /// The number of bytes of the payloads and extended data of all entries; see ``Cache/sizeOnDisk``.
    public var size: Int64 { get throws(CacheError) { try cache.sizeOnDisk } }

    /// Returns whether a key has a value that may be served, without decoding the value.
    ///
    /// The look-up doesn't count as access.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func contains(_ key: Key) throws(CacheError) -> Bool { try cache.contains(key) }

    /// Returns whether a key has a value that may be served, without decoding the value.
    public func contains(_ key: Key) async throws(CacheError) -> Bool { try await cache.contains(key) }

    /// The limits of the disk tier, as this manager has set them last.
    ///
    /// A new value takes effect at once. If it cannot be set, the failure goes to the log, the events and the
    /// statistics; `setLimits(_:)` throws it.
    public var limits: DiskLimits {
        get { cache.core.current.disk }
        nonmutating set {
            do throws(CacheError) { try setLimits(newValue) } catch { cache.report(error, .writeFailed) }
        }
    }

    /// Sets the limits of the disk tier, and evicts at once the entries that exceed them.
    ///
    /// Expired entries are deleted first, then the least recently used.
    ///
    /// - Parameter limits: The new limits.
    /// - Throws: A write error, see ``CacheError``. `.invalidConfiguration` for negative limits.
    public func setLimits(_ limits: DiskLimits) throws(CacheError) {
        try limits.check(cacheNamed: cache.name)
        try cache.throwing("set the limits") { () throws(StoreError) in
            try cache.rows.setLimits(limits.storeLimits)
        }
        cache.core.change { $0.disk = limits }
    }

    /// Sets the limits of the disk tier, and evicts at once the entries that exceed them.
    public func setLimits(_ limits: DiskLimits) async throws(CacheError) {
        try await offload { () throws(CacheError) in try setLimits(limits) }
    }

    /// Removes expired entries, then the least recently used, until at most `count` entries are left.
    ///
    /// Pinned entries stay.
    ///
    /// - Parameter count: The number of entries; a negative number counts as 0.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func trim(toCount count: Int) throws(CacheError) -> Int { try cache.trim(toCount: count) }

    /// Removes expired entries, then the least recently used, until at most `count` entries are left.
    @discardableResult
    public func trim(toCount count: Int) async throws(CacheError) -> Int { try await cache.trim(toCount: count) }

    /// Removes expired entries, then the least recently used, until the rest takes at most `size` bytes.
    ///
    /// Pinned entries stay.
    ///
    /// - Parameter size: The number of bytes, as ``Cache/sizeOnDisk`` counts them; a negative number counts as 0.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func trim(toSize size: Int64) throws(CacheError) -> Int { try cache.trim(toSize: size) }

    /// Removes expired entries, then the least recently used, until the rest takes at most `size` bytes.
    @discardableResult
    public func trim(toSize size: Int64) async throws(CacheError) -> Int { try await cache.trim(toSize: size) }

    /// Removes all entries in one step.
    ///
    /// The handles of the cache stay valid. The rows are deleted in the background.
    ///
    /// - Returns: The number of entries that there were, including expired ones.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll() throws(CacheError) -> Int { try cache.removeAll() }

    /// Removes all entries in one step.
    @discardableResult
    public func removeAll() async throws -> Int { try await cache.removeAll() }
}

/// An iteration over the entries on disk, in the order of keys.
public typealias DiskCacheGenerator<Key: Codable & Hashable & Sendable, Value: Sendable> = DiskTier<Key, Value>.Iterator

extension Cache {
    /// The disk tier of the cache.
    public var disk: DiskTier<Key, Value> { DiskTier(self) }
}
