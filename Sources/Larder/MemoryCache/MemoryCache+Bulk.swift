internal import LarderLocks
internal import LarderStore

extension MemoryCache {
    /// Sets many values in one step: a reader sees all of them or none.
    ///
    /// If keys are equal, the last value counts. The values have the cost 0, as in the subscript.
    ///
    /// - Complexity: O(n) under the lock. The sequence is iterated and its keys are hashed before that.
    public func setValues(_ values: some Sequence<(Key, Value)>) {
        set(values.map { (key: $0.0, value: $0.1, hash: seed.hash($0.0)) })
    }

    /// Sets many values in one step: a reader sees all of them or none.
    ///
    /// - Complexity: O(n) under the lock.
    public func setValues(_ values: [Key: Value]) {
        set(values.map { (key: $0.key, value: $0.value, hash: seed.hash($0.key)) })
    }

    /// Returns the values of many keys as they are at one moment; keys without a value are left out.
    ///
    /// The entries become the most recently used ones, in the order of the keys.
    ///
    /// - Complexity: O(n) under the lock.
    public func values(forKeys keys: some Sequence<Key>) -> [Key: Value] {
        let wanted = keys.map { (key: $0, hash: seed.hash($0)) }
        let canExpire = canExpire
        let (now, staleTime) = (now(), staleTime.load(ordering: .relaxed))
        var found: [(Key, Value)] = []
        found.reserveCapacity(wanted.count)
        var expired: [LRUTable<Key, Value>.Node] = []
        state.withLock { state in
            for (key, hash) in wanted {
                if !canExpire {
                    if let value = state.value(forKey: key, hash: hash) { found.append((key, value)) }
                } else {
                    let read = state.agedValue(forKey: key, hash: hash, now: now, staleTime)
                    if let value = read.value { found.append((key, value)) }
                    if let node = read.expired { expired.append(node) }
                }
            }
        }
        tell(expired, .expired)
        return Dictionary(found) { first, _ in first }
    }

    /// Removes many keys in one step; keys without an entry are ignored.
    ///
    /// - Complexity: O(n) under the lock.
    public func removeValues(forKeys keys: some Sequence<Key>) {
        let (unwanted, now) = (keys.map { (key: $0, hash: seed.hash($0)) }, now())
        let removed = state.withLock { state in
            unwanted.map { state.removeValue(forKey: $0.key, hash: $0.hash, now: now) }
        }
        if removed.contains(where: \.isFollowed) { tellRemovals(of: unwanted.map { $0.key }, removed) }
    }

    private func set(_ values: [(key: Key, value: Value, hash: UInt64)]) {
        let end = newEnd()
        var discards: [LRUTable<Key, Value>.Node] = []
        var displaced: [Displaced<Key, Value>] = []
        displaced.reserveCapacity(values.count)
        let isFollowed = state.withLock { state in
            for (key, value, hash) in values {
                let bytes = BoundedTable<Key, Value>.bytes(of: key, cost: 0)
                displaced.append(
                    state.setValue(
                        value, forKey: key, hash: hash, cost: 0, bytes: bytes, end: end, into: &discards))
            }
            return state.isFollowed || !state.watches.isEmpty
        }
        if isFollowed { tellWrites(of: values.map { $0.key }, displaced, evicted: discards) }
        if let end, !values.isEmpty { noteEnd(end) }
    }
}
