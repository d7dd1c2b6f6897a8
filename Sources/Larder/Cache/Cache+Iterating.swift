public import LarderStore

extension Cache: Sequence {
    /// An iteration over the entries of a cache, in the order of keys.
    ///
    /// It reads a page of rows at a time and holds no lock and no transaction between pages, so the loop may read, write and
    /// remove. Each key comes at most once. Every entry that is there throughout comes; one that is added after the start
    /// does not. An entry comes as it was when its page was read; what has expired then or does not decode is skipped. Iterating fills no memory and doesn't count as access.
    ///
    /// If a read fails, the iteration ends, and the failure goes to the log, the events and the statistics.
    public struct Iterator: IteratorProtocol, Sendable {
        @usableFromInline let cache: Cache<Key, Value>
        @usableFromInline var rows: PagedIteration<StoredRow>

        @usableFromInline init(_ cache: Cache<Key, Value>) { (self.cache, rows) = (cache, cache.rowIteration()) }

        /// Returns the next entry, or nil at the end and from then on.
        @inlinable
        public mutating func next() -> (key: Key, value: Value)? {
            while let row = rows.next() { if let entry = cache.decoded(row) { return entry } }
            return nil
        }
    }

    /// Starts an iteration over the entries, in the order of keys.
    @inlinable
    public func makeIterator() -> Iterator { Iterator(self) }

    /// Returns the values of all entries that may be served, by key, at one moment.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func snapshot() throws(CacheError) -> [Key: Value] {
        let rows = try throwing("read all entries") { () throws(StoreError) in try self.rows.allRows() }
        let now = self.rows.store.time.now()
        var values: [Key: Value] = [:]
        for row in rows where row.header.end >= now {
            if let key = key(of: row.header), let value = valueOrReported(of: row) { values[key] = value }
        }
        return values
    }

    /// Returns the values of all entries that may be served, by key, at one moment.
    public func snapshot() async throws(CacheError) -> [Key: Value] {
        try await offload { () throws(CacheError) in try self.snapshot() }
    }

    /// The keys that have a value that may be served, in their order; values are not read.
    public var keys: CacheKeys<Key, Value> { CacheKeys(self) }

    /// The values, in the order of their keys.
    public var values: CacheValues<Key, Value> { CacheValues(self) }
}

/// An iteration over the entries of a cache, in the order of keys.
public typealias CacheGenerator<Key: Codable & Hashable & Sendable, Value: Sendable> = Cache<Key, Value>.Iterator

/// The values of a cache, in the order of their keys.
///
/// An iteration is as one over the cache itself, see ``Cache/Iterator``.
public struct CacheValues<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    @usableFromInline let cache: Cache<Key, Value>

    @usableFromInline init(_ cache: Cache<Key, Value>) { self.cache = cache }

    /// The number of values, see ``Cache/count``.
    public var count: Int { get throws(CacheError) { try cache.count } }

    /// Starts an iteration over the values.
    @inlinable
    public func makeIterator() -> Iterator { Iterator(entries: cache.makeIterator()) }

    /// An iteration over the values.
    public struct Iterator: IteratorProtocol, Sendable {
        @usableFromInline var entries: Cache<Key, Value>.Iterator

        @usableFromInline init(entries: Cache<Key, Value>.Iterator) { self.entries = entries }

        /// Returns the next value, or nil at the end.
        @inlinable
        public mutating func next() -> Value? { entries.next()?.value }
    }
}
