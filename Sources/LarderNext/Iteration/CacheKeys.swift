internal import LarderStore

/// The keys of a cache, in their order; no value is read.
///
/// An iteration is as one over the cache itself, see ``Cache/Iterator``.
public struct CacheKeys<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    private let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) { self.cache = cache }

    /// The number of keys, see ``Cache/count``.
    public var count: Int { get throws(CacheError) { try cache.count } }

    /// Starts an iteration over the keys.
    public func makeIterator() -> Iterator { Iterator(cache) }

    /// An iteration over the keys.
    public struct Iterator: IteratorProtocol, Sendable {
        private let cache: Cache<Key, Value>
        private var page: ArraySlice<StoredKey> = []
        private var last: PagePosition?
        private var isDone = false

        init(_ cache: Cache<Key, Value>) { self.cache = cache }

        /// Returns the next key, or nil at the end and from then on.
        public mutating func next() -> Key? {
            while true {
                while let stored = page.popFirst() {
                    do throws(CacheError) {
                        return try cache.shared.keyCodec.key(stored, cache: cache.name)
                    } catch {
                        cache.removeUndecodable(stored, error)
                    }
                }
                if isDone { return nil }
                do throws(CacheError) {
                    try turnPage()
                } catch {
                    isDone = true
                    cache.reportEndedIteration(error)
                }
            }
        }

        /// Reads the next page: the keys alone, or with their ages if some can have expired.
        private mutating func turnPage() throws(CacheError) {
            let (cache, last) = (cache, last)
            let now = cache.rows.store.time.now()
            let (keys, next) = try cache.throwing("read keys") {
                () throws(StoreError) -> ([StoredKey], PagePosition?) in
                if try cache.rows.mayHaveExpired(at: now) {
                    let page = try cache.rows.facts(after: last)
                    return (page.rows.filter { $0.end >= now }.map(\.key), page.next)
                }
                let page = try cache.rows.keys(after: last)
                return (page.rows, page.next)
            }
            (page, self.last, isDone) = (keys[...], next, next == nil)
        }
    }
}

extension Cache {
    /// Treats a row whose key does not decode as one whose value does not.
    fileprivate func removeUndecodable(_ stored: StoredKey, _ error: CacheError) {
        do throws(StoreError) { if let facts = try rows.facts(stored) { noteUndecodable(facts, error) } } catch {}
    }
}
