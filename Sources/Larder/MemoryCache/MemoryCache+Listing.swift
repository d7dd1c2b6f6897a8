internal import LarderLocks

extension MemoryCache {
    /// The keys, in no guaranteed order; those of expired entries are left out.
    ///
    /// - Complexity: O(n). A cache of more than 1,024 entries is listed in batches: the lock is held for a copy of
    ///   the order, four bytes and about a nanosecond an entry, then for 1,024 entries at a time. Entries that are
    ///   removed in the meantime are left out.
    public var keys: [Key] { orderedKeys }

    /// The values, in no guaranteed order; expired ones are left out.
    ///
    /// - Complexity: O(n), in batches like ``keys``.
    public var values: [Value] { orderedValues }

    /// The keys, least recently used first by the order at the start of the call; expired entries are left out.
    ///
    /// - Complexity: O(n), in batches like ``keys``.
    public var orderedKeys: [Key] { listed { table, index in table.key(at: index) } }

    /// The values, least recently used first by the order at the start of the call; expired ones are left out.
    ///
    /// - Complexity: O(n), in batches like ``keys``.
    public var orderedValues: [Value] { listed { table, index in table.value(at: index) } }

    /// Removes the entries that a closure chooses.
    ///
    /// The closure is called outside the lock, once for each entry that existed at the start, least recently used
    /// first, and may use the cache. An entry that is replaced during the call of the closure stays. If the closure
    /// throws, the entries that it chose before are removed, and the error is rethrown.
    ///
    /// - Returns: The number of removed entries.
    /// - Complexity: O(n), in batches like ``keys``.
    @discardableResult
    public func removeAll(where shouldRemove: (Key, Value) throws -> Bool) rethrows -> Int {
        let walk = MemoryWalk(self)
        var count = 0
        for slice in walk.slices(of: Self.entriesPerPick) {
            let candidates = fetch(slice, in: walk)
            var picked: [(index: UInt32, key: Key, hash: UInt64)] = []
            defer { count += remove(picked, in: walk) }
            for (index, key, value) in candidates where try shouldRemove(key, value) {
                picked.append((index, key, seed.hash(key)))
            }
        }
        return count
    }

    /// The number of entries that are passed to a closure before the chosen ones are removed.
    static var entriesPerPick: Int { 256 }

    private func listed<Part: Sendable>(
        _ part: (borrowing LRUTable<Key, Value>, UInt32) -> Part
    ) -> [Part] {
        let now = rule.isUnlimited ? 0 : exactNow()
        var parts: [Part] = []
        let isWhole = state.withLock { state in
            guard state.table.count <= Self.entriesPerSlice else { return false }
            for index in state.table.order where !state.isExpired(index, rule: rule, now: now) {
                parts.append(part(state.table, index))
            }
            return true
        }
        if isWhole { return parts }

        let walk = MemoryWalk(self)
        parts.reserveCapacity(walk.order.count)
        for slice in walk.slices(of: Self.entriesPerSlice) {
            state.withLock { state in
                for index in slice where state.isServed(index, in: walk.identifier, rule: rule, now: now) {
                    parts.append(part(state.table, index))
                }
            }
        }
        return parts
    }

    private func fetch(_ slice: ArraySlice<UInt32>, in walk: MemoryWalk<Key, Value>) -> [(UInt32, Key, Value)] {
        let now = rule.isUnlimited ? 0 : exactNow()
        var entries: [(UInt32, Key, Value)] = []
        entries.reserveCapacity(slice.count)
        state.withLock { state in
            state.table.watch(slice, in: walk.identifier)
            for index in slice where state.isServed(index, in: walk.identifier, rule: rule, now: now) {
                entries.append((index, state.table.key(at: index), state.table.value(at: index)))
            }
        }
        return entries
    }

    private func remove(
        _ picked: [(index: UInt32, key: Key, hash: UInt64)], in walk: MemoryWalk<Key, Value>
    ) -> Int {
        var discards: [LRUTable<Key, Value>.Node] = []
        state.withLock { state in
            for (index, key, hash) in picked where state.table.isUntouched(index, in: walk.identifier) {
                if state.hasHolds { state.noteWrite(key, hash: hash) }
                discards.append(state.remove(index))
            }
        }
        return discards.count
    }
}

extension MemoryCacheState {
    /// Returns whether an entry of an iteration still exists and has not expired.
    func isServed(_ index: UInt32, in walk: UInt64, rule: AgeRule, now: Int64) -> Bool {
        table.isThere(index, in: walk) && !isExpired(index, rule: rule, now: now)
    }
}
