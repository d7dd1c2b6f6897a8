internal import LarderLocks
internal import LarderSQLite
internal import LarderStore

/// The part of a cache that is in memory; see ``Cache/memory``.
///
/// What leaves memory stays on disk. An iteration is in the order of use, the least recent first, and shows what is served
/// now; it does not count as access. After a commit of another process it asks the disk whether a copy is still good; the
/// subscript returns nil instead, and never waits for the disk.
public struct MemoryTier<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    @usableFromInline let cache: Cache<Key, Value>
    private var copies: TierStorage<Key, Value> { cache.copies }

    @inlinable
    init(_ cache: Cache<Key, Value>) { self.cache = cache }

    /// Returns the value of a key if memory has one that may be served as it is; the disk is never asked.
    ///
    /// It counts as access, and may be called where nothing may wait. Nil says nothing of what is on disk, and is no miss in
    /// the statistics. It is also nil if only the disk can tell whether a copy is still good: after a commit of another
    /// process, until the cache reads the key.
    ///
    /// - Parameter key: The key.
    /// - Complexity: O(1)
    @inlinable
    public func value(forKey key: Key) -> Value? { cache.valueInMemory(key) }

    /// Returns the value of a key in memory, also one that has expired; the disk is never asked.
    ///
    /// Use it to draw a view with an old value while a new one loads, see ``GenerationPolicy/staleFor``. An expired value stays in
    /// memory until the store deletes it. This does not count as access.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - allowingExpired: A Boolean value that indicates whether an expired value is returned.
    public func value(forKey key: Key, allowingExpired: Bool) -> Value? {
        if !allowingExpired { return value(forKey: key) }
        let (hash, now) = (copies.seed.hash(key), cache.rows.store.time.now())
        let copy = copies.state.withLock { $0.copy(of: key, hash: hash, at: now) }
        return copy?.isKnown == true ? copy?.value : nil
    }

    /// The value of a key if memory has one that may be served as it is; see ``value(forKey:)``.
    @inlinable
    public subscript(key: Key) -> Value? { value(forKey: key) }

    /// Starts an iteration, least recently used first.
    ///
    /// - Complexity: O(n) for the copy of the keys.
    public func makeIterator() -> MemoryCache<Key, Value>.Iterator {
        MemoryCache.Iterator(recentKeys) { [cache] in cache.copy(of: $0) }
    }

    /// The keys of all copies, least recently used first.
    var recentKeys: [Key] {
        copies.state.withLock { state in state.memory.table.order.map { state.memory.table.key(at: $0) } }
    }

    /// Returns the value in memory if it may be served, for which the disk may be asked; it does not count as access.
    func copy(of key: Key) -> Value? { cache.copy(of: key) }

    /// The keys of the entries in memory that may be served, least recently used first.
    ///
    /// - Complexity: O(n)
    public var keys: [Key] { map(\.key) }

    /// The number of entries in memory, including expired ones that were not removed yet.
    public var count: Int { copies.state.withLock { $0.memory.table.count } }

    /// The sum of the costs of the entries in memory.
    public var totalCost: Int { copies.state.withLock { $0.memory.totalCost.clamped } }

    /// The bytes of memory that the entries take; `Int.max` if they are more.
    ///
    /// Each entry counts with its place in the table, and with what its key and its value have outside of that. The size of
    /// the payload stands for the value. A value without references, such as an `Int` or a struct of numbers, is in the table
    /// as a whole.
    public var totalBytes: Int { copies.state.withLock { $0.memory.totalBytes.clamped } }

    /// Returns whether memory has a value of a key that may be served; it does not count as access.
    ///
    /// After a commit of another process it asks the disk, which ``value(forKey:)`` never does.
    ///
    /// - Parameter key: The key.
    public func contains(_ key: Key) -> Bool {
        cache.copy(of: key) != nil
    }

    /// Returns whether memory has a value of a key that may be served, and blocks no thread of the cooperative pool.
    public func contains(_ key: Key) async -> Bool { await cache.reading { cache.copy(of: key) != nil } }

    /// Returns the entries in memory that may be served, least recently used first.
    ///
    /// - Complexity: O(n)
    public func entries() async -> [(key: Key, value: Value)] { await cache.reading { Array(self) } }

    /// The greatest number of entries in memory; nil for any.
    ///
    /// A change takes effect at once. A negative number counts as 0.
    public var countLimit: Int? {
        get { copies.state.withLock { $0.limits.countLimit } }
        nonmutating set { copies.limit { $0.countLimit = newValue } }
    }

    /// The greatest sum of the costs of the entries in memory; nil for any.
    ///
    /// A change takes effect at once. A negative number counts as 0.
    public var costLimit: Int? {
        get { copies.state.withLock { $0.limits.costLimit } }
        nonmutating set { copies.limit { $0.costLimit = newValue } }
    }

    /// The greatest number of bytes that the entries in memory take, as ``totalBytes`` counts them; nil for any.
    ///
    /// A change takes effect at once. A negative number counts as 0, at which nothing is kept.
    public var byteLimit: Int? {
        get { copies.state.withLock { $0.limits.byteLimit } }
        nonmutating set { copies.limit { $0.byteLimit = newValue } }
    }

    /// The time for which a copy is used before it is compared with its row; nil for any.
    ///
    /// See ``MemoryLimits/maxAge``. A change takes effect at once.
    public var maxAge: MaxAge? {
        get { copies.state.withLock { $0.limits.maxAge } }
        nonmutating set { copies.limit { $0.maxAge = newValue } }
    }

    /// Removes the least recently used entries from memory until at most so many are left.
    ///
    /// - Parameter count: The number of entries; a negative number counts as 0.
    public func trim(toCount count: Int) {
        let count = Swift.max(0, count)
        copies.trim { $0.table.count > count }
    }

    /// Removes the least recently used entries from memory until the costs of the rest come to at most so much.
    ///
    /// - Parameter cost: The sum; a negative number counts as 0.
    public func trim(toCost cost: Int) {
        let cost = WideSum(Swift.max(0, cost))
        copies.trim { $0.totalCost > cost }
    }

    /// Removes the entries from memory that have expired.
    ///
    /// - Returns: Their number.
    @discardableResult
    public func removeExpired() -> Int { copies.removeExpired(at: cache.rows.now()) }

    /// Removes all entries from memory.
    public func removeAll() { copies.trim { _ in true } }
}

extension Cache {
    /// The tier in memory.
    @inlinable
    public var memory: MemoryTier<Key, Value> { MemoryTier(self) }

    /// Returns the value in memory if it may be served, for which the disk may be asked; it does not count as access.
    fileprivate func copy(of key: Key) -> Value? {
        let (hash, now) = (copies.seed.hash(key), rows.store.time.now())
        guard let copy = copies.state.withLock({ $0.copy(of: key, hash: hash, at: now) }), copy.end >= now else {
            return nil
        }
        if copy.isKnown { return copy.value }
        do {
            guard let header = try rows.header(try stored(key)) else { return nil }
            return header.revision == copy.revision && header.end >= now ? copy.value : nil
        } catch {
            return nil
        }
    }
}
