internal import LarderLocks

extension MemoryCache {
    /// The keys, in no guaranteed order; those of expired entries are left out.
    ///
    /// - Complexity: O(n), with the lock held for 1,024 entries at a time.
    public var keys: [Key] { orderedKeys }

    /// The values, in no guaranteed order; expired ones are left out.
    ///
    /// - Complexity: O(n), with the lock held for 1,024 entries at a time.
    public var values: [Value] { orderedValues }

    /// The keys, least recently used first; expired entries are left out.
    ///
    /// - Complexity: O(n), with the lock held for 1,024 entries at a time.
    public var orderedKeys: [Key] { listed { state, index in state.table.key(at: index) } }

    /// The values, least recently used first; expired ones are left out.
    ///
    /// - Complexity: O(n), with the lock held for 1,024 entries at a time.
    public var orderedValues: [Value] { listed { state, index in state.table.value(at: index) } }

    /// Returns all entries that have not expired, as they are at one moment.
    ///
    /// - Complexity: O(n) under the lock, except for the creation of the dictionary.
    public func snapshot() -> [Key: Value] {
        let now = now()
        let pairs = state.withLock { state in
            var pairs: [(Key, Value)] = []
            pairs.reserveCapacity(state.table.count)
            for index in state.table.order where !state.isExpired(index, now: now) {
                pairs.append((state.table.key(at: index), state.table.value(at: index)))
            }
            return pairs
        }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    /// Returns a part of each entry that has not expired, least recently used first.
    ///
    /// The lock is held for a copy of the order, then for 1,024 entries at a time. An entry that takes the place of a
    /// removed one in the meantime may be listed; none is listed twice.
    func listed<Part: Sendable>(_ part: @Sendable (borrowing BoundedTable<Key, Value>, UInt32) -> Part) -> [Part] {
        let now = now()
        // Indices do not change as long as a sweep runs.
        let (order, removals) = state.withLock { state in
            state.sweeps += 1
            return (state.table.order, state.table.removals)
        }
        var parts: [(key: Key, part: Part)] = []
        parts.reserveCapacity(order.count)
        for start in stride(from: 0, to: order.count, by: Self.entriesPerSlice) {
            let slice = order[start..<Swift.min(start + Self.entriesPerSlice, order.count)]
            parts += state.withLock { state in
                var found: [(key: Key, part: Part)] = []
                for index in slice where index < state.table.indexLimit && state.table.isEntry(index) {
                    if !state.isExpired(index, now: now) {
                        found.append((state.table.key(at: index), part(state, index)))
                    }
                }
                return found
            }
        }
        let isChanged = state.withLock { state in
            state.sweeps -= 1
            state.giveBackRoom()
            return state.table.removals != removals
        }
        guard isChanged else { return parts.map(\.part) }
        var seen = Set<Key>(minimumCapacity: parts.count)
        return parts.compactMap { seen.insert($0.key).inserted ? $0.part : nil }
    }

    /// Removes the entries that a closure chooses.
    ///
    /// The closure is called outside the lock, once for each entry that existed at the start, least recently used
    /// first, and may use the cache. An entry that is replaced during the call of the closure stays. If the closure
    /// throws, the entries that it chose before are removed, and the error is rethrown.
    ///
    /// - Returns: The number of removed entries.
    /// - Complexity: O(n), in batches of 256 entries.
    @discardableResult
    public func removeAll(where shouldRemove: (Key, Value) throws -> Bool) rethrows -> Int {
        try removeAll(.removed, where: shouldRemove)
    }

    func removeAll(_ cause: RemovalCause, where shouldRemove: (Key, Value) throws -> Bool) rethrows -> Int {
        let keys = orderedKeys
        var count = 0
        for start in stride(from: 0, to: keys.count, by: 256) {
            let candidates = keys[start..<Swift.min(start + 256, keys.count)].map { (key: $0, hash: seed.hash($0)) }
            let now = now()
            let (watch, values) = state.withLock { ($0.watch(candidates), $0.values(of: candidates, now: now)) }
            var chosen = [Bool](repeating: false, count: candidates.count)
            defer { count += remove(watch, chosen, cause) }
            for (index, value) in values.enumerated() {
                if let value, try shouldRemove(candidates[index].key, value) { chosen[index] = true }
            }
        }
        return count
    }

    /// Removes the chosen keys of a watch that were not written since.
    private func remove(_ watch: Int, _ chosen: [Bool], _ cause: RemovalCause) -> Int {
        var discards: [LRUTable<Key, Value>.Node] = []
        let watches = state.withLock { state in
            let watches = state.endWatch(watch)
            for (watch, isChosen) in zip(watches, chosen) where isChosen && !watch.isWritten {
                let found = state.table.locate(watch.key, hash: watch.hash)
                if found == 0 { continue }
                state.noteWrite(watch.key, hash: watch.hash)
                discards.append(state.remove(found))
            }
            return watches
        }
        if cause == .removed { loads.overtake(zip(watches, chosen).filter { $0.1 }.map { $0.0.key }) }
        _ = consume watches
        report(discards, cause)
        return discards.count
    }
}

extension BoundedTable {
    /// Returns the values of keys, nil for each that is not there or has expired.
    func values(of keys: [(key: Key, hash: UInt64)], now: Int64) -> [Value?] {
        keys.map { key, hash in
            let found = table.locate(key, hash: hash)
            return found == 0 || isExpired(found, now: now) ? nil : table.value(at: found)
        }
    }
}

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
