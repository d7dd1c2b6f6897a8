public import LarderStore

/// The order in which ``Cache/entries(orderedBy:descending:prefix:limit:)`` returns entries.
public enum EntryOrder: Hashable, Sendable {
    /// By key: integers by value, strings by their UTF-8 bytes, other keys by their encoding.
    case key
    /// By the moment of the last write.
    case written
    /// By the last access, read or write.
    ///
    /// It is as exact as ``CacheOptions/accessGrain``.
    case accessed
    /// By the bytes of payload and extended data.
    case size
}

/// Entries of a cache in an order; see ``Cache/entries(orderedBy:descending:prefix:limit:)``.
public struct CacheEntries<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    let cache: Cache<Key, Value>
    fileprivate let order: EntryOrder
    fileprivate let isDescending: Bool
    fileprivate let prefix: String?
    let limit: Int?

    /// Starts an iteration, in the order of this moment.
    public func makeIterator() -> Iterator {
        do throws(CacheError) {
            return Iterator(cache: cache, rows: try rows(), rest: limit ?? .max)
        } catch {
            cache.reportEndedIteration(error)
            return Iterator(cache: cache, rows: nil, rest: 0)
        }
    }

    /// Returns the rows in the order of this moment.
    func rows() throws(CacheError) -> PagedIteration<StoredRow> {
        let range = KeyRange(prefix: prefix, isDescending: isDescending)
        return try cache.rowIteration(order, range, limit ?? .max)
    }

    /// An iteration over entries in an order.
    public struct Iterator: IteratorProtocol, Sendable {
        fileprivate let cache: Cache<Key, Value>
        /// Nil if the order could not be read.
        fileprivate var rows: PagedIteration<StoredRow>?
        fileprivate var rest: Int

        /// Returns the next entry, or nil at the end.
        public mutating func next() -> CacheEntry<Key, Value>? {
            while rest > 0, let row = rows?.next() {
                guard let (key, value) = cache.decoded(row) else { continue }
                rest -= 1
                return CacheEntry(key, value, row.header)
            }
            return nil
        }
    }
}

extension Cache {
    /// Returns the entries, with what is stored with their values, in an order.
    ///
    /// An iteration holds a page of entries, and neither lock nor transaction between pages. In another order than by key it
    /// goes by the order at its start, for which it keeps 16 bytes an entry. A key that is removed and written again in the
    /// meantime may be left out.
    ///
    /// - Parameters:
    ///   - order: The order.
    ///   - descending: A Boolean value that indicates whether the last comes first.
    ///   - prefix: The beginning of the keys, in UTF-8 bytes of the stored NFC form; nothing matches for keys that are not
    ///     strings.
    ///   - limit: The greatest number of entries.
    public func entries(
        orderedBy order: EntryOrder = .key, descending: Bool = false, prefix: String? = nil, limit: Int? = nil
    ) -> CacheEntries<Key, Value> {
        CacheEntries(
            cache: self, order: order, isDescending: descending, prefix: prefix.map { CBORText.normalized($0) },
            limit: limit)
    }

    fileprivate func rowIteration(
        _ order: EntryOrder, _ range: KeyRange, _ limit: Int
    ) throws(CacheError) -> PagedIteration<StoredRow> {
        copies.noteAccesses()
        let rowOrder: RowOrder? =
            switch order {
            case .key: nil
            case .written: .written
            case .accessed: .accessed
            case .size: .size
            }
        let list = try throwing("list the entries") { () throws(StoreError) -> RowList? in
            try rowOrder.map { order throws(StoreError) in try rows.list(order, range) }
        }
        return rowIteration(RowPages(range, list, limit: limit, withAccess: true))
    }
}

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
                    page.append(try core.keyCodec.key(key, cache: name))
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
