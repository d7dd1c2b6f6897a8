internal import LarderLocks

extension MemoryCache: Sequence {
    /// An iteration over the entries in memory, least recently used first by the order at its start.
    ///
    /// It changes no entry's recency, and other threads may write in the meantime. An entry that was removed since
    /// the start is skipped, a replaced one has its new value, and an added one is not included.
    public struct Iterator: IteratorProtocol, Sendable {
        private var keys: [Key]
        private var position = 0
        private let find: @Sendable (Key) -> Value?

        /// - Parameter find: Returns the value of a key that is still there and has not expired.
        init(_ keys: [Key], _ find: @escaping @Sendable (Key) -> Value?) { (self.keys, self.find) = (keys, find) }

        /// Returns the next entry that still exists and has not expired, or nil at the end.
        public mutating func next() -> (key: Key, value: Value)? {
            while position < keys.count {
                let key = keys[position]
                position += 1
                if let value = find(key) { return (key, value) }
            }
            keys = []
            return nil
        }
    }

    /// Starts an iteration, least recently used first.
    ///
    /// - Complexity: O(n) for the list of the keys.
    public func makeIterator() -> Iterator {
        Iterator(orderedKeys) { [self] key in
            let (hash, now) = (seed.hash(key), now())
            return state.withLock { state in
                let found = state.table.locate(key, hash: hash)
                return found == 0 || state.isExpired(found, now: now) ? nil : state.table.value(at: found)
            }
        }
    }
}

/// An iteration over a memory cache or a memory tier, least recently used first.
public typealias MemoryCacheGenerator<Key: Hashable & Sendable, Value: Sendable> = MemoryCache<Key, Value>.Iterator
