internal import LarderLocks
internal import LarderStore

/// The reason for which a value has left a memory cache.
public enum RemovalCause: Sendable, Hashable {
    /// Another value was set for its key, if only one that was too large to be kept.
    case replaced
    /// A call has removed it.
    case removed
    /// Its age was over when a call or a timer found it.
    case expired
    /// A limit, a trim or an eviction closure has chosen it.
    case evicted
    /// Memory was scarce.
    case pressure
}

/// What follows a write or a removal outside the lock: streams of changes, loads that are overtaken, and the closure of the
/// program.
extension MemoryCache {
    /// Returns a stream of the changes from now on, in batches.
    ///
    /// The first change starts an interval, and at its end a batch is sent. If nothing changes, nothing is sent and no timer
    /// runs. A slow reader delays no writer: pending changes hold keys, and values are read when the batch is taken, which
    /// doesn't count as access. After more than 10,000 pending keys, and after a `removeAll`, ``CacheChanges/isReset`` is true:
    /// read everything again. The stream keeps the cache alive, and ends when it is released.
    ///
    /// - Parameter interval: The minimum time between two batches.
    /// - Returns: The stream.
    public func changes(every interval: Duration = .milliseconds(100)) -> AsyncStream<CacheChanges<Key, Value>> {
        state.withLock { $0.isFollowed = true }
        return hub.changes(every: interval, timekeeper: timekeeper) { [self] in peeked($0) }
    }

    /// Returns a stream of the value of a key: the one that it has now, and the one after each change; nil for none.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - interval: The minimum time between two values. Of several changes within it only the last one is seen.
    public func changes(
        forKey key: Key, every interval: Duration = .milliseconds(100)
    ) -> AsyncStream<Value?> {
        state.withLock { $0.isFollowed = true }
        return hub.changes(of: key, every: interval, timekeeper: timekeeper) { [self] in peeked([key])[key] }
    }

    /// Returns the values of those keys that have one, which does not count as access.
    private func peeked(_ keys: [Key]) -> [Key: Value] {
        let (wanted, now) = (keys.map { (key: $0, hash: seed.hash($0)) }, now())
        let values = state.withLock { $0.values(of: wanted, now: now) }
        return zip(keys, values).reduce(into: [:]) { $0[$1.0] = $1.1 }
    }

    // MARK: Telling

    /// Tells of a key that was written, and of what left for it.
    ///
    /// - Parameter load: The load that has written it.
    func tellWrite(
        of key: Key, _ displaced: Displaced<Key, Value>, evicted: [LRUTable<Key, Value>.Node], by load: Int? = nil
    ) {
        loads.overtake([key], by: load)
        noteChange(of: CollectionOfOne(key))
        if let onRemoval, let old = displaced.value { onRemoval(displaced.key ?? key, old, .replaced) }
        tell(evicted, .evicted)
    }

    /// Tells of a call that has removed a key, whether it had an entry or not.
    @usableFromInline
    func tellRemoval(of key: Key, _ removed: BoundedTable<Key, Value>.Removed) {
        loads.overtake([key])
        if let node = removed.node { tell([node], removed.isExpired ? .expired : .removed) }
    }

    /// Tells of entries that have left.
    func tell(_ nodes: [LRUTable<Key, Value>.Node], _ cause: RemovalCause) {
        if nodes.isEmpty { return }
        if hub.isObserved { noteChange(of: nodes.map(\.key)) }
        if let onRemoval { for node in nodes { onRemoval(node.key, node.value, cause) } }
    }

    /// Tells that all entries have left.
    func tellClear(_ emptied: EmptiedTable<Key, Value>, _ cause: RemovalCause) {
        loads.overtake(nil)
        var deferred = Deferred()
        hub.noteReset(&deferred)
        if let onRemoval { emptied.forEach { onRemoval($0, $1, cause) } }
    }

    /// Notes that keys were written or removed; the reader of a batch looks which.
    private func noteChange(of keys: some Collection<Key>) {
        var deferred = Deferred()
        hub.noteUpdated(keys, &deferred)
    }
}
