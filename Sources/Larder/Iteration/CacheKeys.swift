public import LarderStore

/// The keys of a cache, in their order; no value is read.
///
/// An iteration is as one over the cache itself, see ``Cache/Iterator``.
public struct CacheKeys<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    @usableFromInline let cache: Cache<Key, Value>

    @usableFromInline init(_ cache: Cache<Key, Value>) { self.cache = cache }

    /// The number of keys, see ``Cache/count``.
    public var count: Int { get throws(CacheError) { try cache.count } }

    /// Starts an iteration over the keys.
    @inlinable
    public func makeIterator() -> Iterator { Iterator(keys: cache.keyIteration()) }

    /// An iteration over the keys.
    public struct Iterator: IteratorProtocol, Sendable {
        @usableFromInline var keys: PagedIteration<Key>

        @usableFromInline init(keys: PagedIteration<Key>) { self.keys = keys }

        /// Returns the next key, or nil at the end and from then on.
        @inlinable
        public mutating func next() -> Key? { keys.next() }
    }
}

extension Cache {
    @inlinable
    func keyIteration() -> PagedIteration<Key> {
        PagedIteration(RowPages(), report: reportEndedIteration) { [self] pages throws(CacheError) in
            let stored = try readKeys(&pages)
            var page: [Key] = []
            page.reserveCapacity(stored.count)
            for key in stored {
                do throws(CacheError) {
                    page.append(try shared.keyCodec.key(key, cache: name))
                } catch {
                    removeUndecodable(key, error)
                }
            }
            return page
        }
    }

    /// Returns the next page: the keys alone, or with their ages if some can have expired.
    @usableFromInline
    func readKeys(_ pages: inout RowPages) throws(CacheError) -> [StoredKey] {
        let now = rows.store.time.now()
        return try throwing("read keys") { () throws(StoreError) in
            guard try rows.mayHaveExpired(at: now) else { return try pages.nextKeys(of: rows) }
            return try pages.nextHeaders(of: rows).filter { $0.end >= now }.map { $0.key }
        }
    }

    /// Treats a row whose key does not decode as one whose value does not.
    @usableFromInline
    func removeUndecodable(_ stored: StoredKey, _ error: CacheError) {
        do throws(StoreError) { if let header = try rows.header(stored) { noteUndecodable(header, error) } } catch {}
    }
}
