/// The keys of a sub-cache, in key order; no value is read.
///
/// Each pass is as one over the cache itself, see ``Cache/Iterator``.
public struct CacheKeys<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    private let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) {
        self.cache = cache
    }

    /// The number of keys: of entries that have a usable value, see ``Cache/count``.
    public var count: Int {
        get throws(CacheError) { try cache.count }
    }

    /// Starts a pass over the keys.
    public func makeIterator() -> Iterator { Iterator(cache) }

    /// A pass over the keys.
    public struct Iterator: IteratorProtocol, Sendable {
        @usableFromInline let cache: Cache<Key, Value>
        private var pass: RowPass? = RowPass()
        /// The page, where every key of it counts up to a moment.
        @usableFromInline var keys: [StoredKey] = []
        @usableFromInline var servedUntil = Int64.max
        /// Whether the system's clock tells when that is.
        @usableFromInline let isOfSystem: Bool
        /// Where the next one stands in it.
        @usableFromInline var index = 0
        /// The page, where that is for the rows to say; the next one last.
        @usableFromInline var rows: [ListedFacts] = []

        init(_ cache: Cache<Key, Value>) {
            self.cache = cache
            isOfSystem = cache.terms.age.isOfSystem
        }

        /// The next key, or nil at the end.
        @inlinable
        public mutating func next() -> Key? {
            repeat {
                while index < keys.count {
                    // The way of most passes touches nothing of the cache, whose reference counts took a quarter of it.
                    if Key.self == Int.self, isOfSystem, case .integer(let number) = keys[index],
                        servedUntil == .max || AgeTerms.isSystemBefore(servedUntil), let key = Int(number) as? Key
                    {
                        index += 1
                        return key
                    }
                    index += 1
                    if let key = cache.core.passed(keys[index - 1], cache.terms, servedUntil: servedUntil) {
                        return key
                    }
                }
                while let row = rows.popLast() {
                    let now = cache.terms.now()
                    if let found = cache.core.passed(row.key, row.facts, cache.terms, now: now, isPlain: true) {
                        return found.key
                    }
                }
            } while turnPage()
            return nil
        }

        /// Reads the next page; false at the end, and after a failure.
        @usableFromInline
        mutating func turnPage() -> Bool {
            (keys, rows, index) = ([], [], 0)
            guard pass != nil else { return false }
            do throws(CacheError) {
                _ = try cache.manager.store()
                let end = try cache.ledger.allServedUntil(cache.terms.age)
                servedUntil = end ?? .max
                switch try pass?.nextKeys(of: cache.ledger, needsFacts: end == nil) {
                case .plain(let page): keys = page
                case .judged(let page): rows = page.reversed()
                case nil: break
                }
            } catch {
                cache.noteFailedPass(error)
            }
            if keys.isEmpty && rows.isEmpty { pass = nil }
            return pass != nil
        }
    }
}

/// The values of a sub-cache, in the order of their keys.
///
/// Each pass is as one over the cache itself, see ``Cache/Iterator``.
public struct CacheValues<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    private let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) {
        self.cache = cache
    }

    /// The number of values, see ``Cache/count``.
    public var count: Int {
        get throws(CacheError) { try cache.count }
    }

    /// Starts a pass over the values.
    public func makeIterator() -> Iterator { Iterator(pass: EntryPass(cache)) }

    /// A pass over the values.
    public struct Iterator: IteratorProtocol, Sendable {
        @usableFromInline var pass: EntryPass<Key, Value>

        /// The next value, or nil at the end.
        @inlinable
        public mutating func next() -> Value? { pass.nextPair()?.value }
    }
}

extension Cache {
    /// The keys that have a usable value, in key order; values are not read.
    public var keys: CacheKeys<Key, Value> { CacheKeys(self) }

    /// The values, in the order of their keys.
    public var values: CacheValues<Key, Value> { CacheValues(self) }
}
