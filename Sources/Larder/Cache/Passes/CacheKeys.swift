/// The keys of a sub-cache, in key order; no value is read.
///
/// Each pass is as one over the cache itself, see ``CacheGenerator``.
public struct CacheKeys<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    private let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) {
        self.cache = cache
    }

    /// Starts a pass over the keys.
    public func makeIterator() -> Iterator { Iterator(cache) }

    /// A pass over the keys.
    public struct Iterator: IteratorProtocol {
        private let cache: Cache<Key, Value>
        private var pass: RowPass? = RowPass()
        /// The rest of the page, the next one last.
        private var page: [ListedKey] = []

        init(_ cache: Cache<Key, Value>) {
            self.cache = cache
        }

        /// The next key, or nil at the end.
        public mutating func next() -> Key? {
            while true {
                while let row = page.popLast() {
                    if let key = cache.core.passed(row, cache.terms) { return key }
                }
                guard pass != nil else { return nil }
                do throws(CacheError) {
                    _ = try cache.manager.store()
                    page = try pass?.nextKeys(of: cache.ledger, cache.terms.rule).reversed() ?? []
                } catch {
                    cache.noteFailedPass(error)
                }
                if page.isEmpty { pass = nil }
            }
        }
    }
}

/// The values of a sub-cache, in the order of their keys.
///
/// Each pass is as one over the cache itself, see ``CacheGenerator``.
public struct CacheValues<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    private let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) {
        self.cache = cache
    }

    /// Starts a pass over the values.
    public func makeIterator() -> Iterator { Iterator(pass: EntryPass(cache)) }

    /// A pass over the values.
    public struct Iterator: IteratorProtocol {
        fileprivate var pass: EntryPass<Key, Value>

        /// The next value, or nil at the end.
        public mutating func next() -> Value? { pass.next()?.value }
    }
}

extension Cache {
    /// The keys that have a usable value, in key order; values are not read.
    public var keys: CacheKeys<Key, Value> { CacheKeys(self) }

    /// The values, in the order of their keys.
    public var values: CacheValues<Key, Value> { CacheValues(self) }
}
