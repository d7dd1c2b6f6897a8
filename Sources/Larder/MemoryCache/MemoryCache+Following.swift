internal import LarderLocks
internal import LarderStore

/// The reason for which a value has left a memory cache.
public enum RemovalCause: Sendable, Hashable {
    /// Another value was set for its key, if only one that was too large to be kept.
    case replaced
    /// A call has removed it, or the app went into the background.
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
    /// The first change is sent at once. Then an interval begins, and what changes in it is sent at its end. If nothing changes,
    /// nothing is sent and no timer runs. A slow reader delays no writer: pending changes hold keys, and values are read when the batch is taken, which
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
        return hub.changes(of: key, every: interval, timekeeper: timekeeper) {
            [self] () async throws(CacheError) in (peeked([key])[key], nil)
        }
    }

    /// Returns the values of those keys that have one, which does not count as access.
    private func peeked(_ keys: [Key]) -> [Key: Value] {
        let (wanted, now) = (keys.map { (key: $0, hash: seed.hash($0)) }, now())
        let values = state.withLock { $0.values(of: wanted, now: now) }
        return zip(keys, values).reduce(into: [:]) { $0[$1.0] = $1.1 }
    }

    // MARK: Telling

    /// Reports what no call can throw.
    func report(
        _ kind: CacheEvent.Kind, _ message: String, _ level: LogMessage.Level, _ error: CacheError? = nil,
        key: String? = nil
    ) {
        let name = name
        let event = CacheEvent(kind, cacheName: name.isEmpty ? nil : name, key: key, message: message)
        if let onEvent { onEvent(event) } else { LogMessage.standardLog(LogMessage(level, message, error: error)) }
    }

    /// The cache in the middle of a sentence.
    var described: String {
        let name = name
        return name.isEmpty ? "a memory cache" : "the memory cache \"\(name)\""
    }

    /// Tells of keys that were written in one step, of what each has displaced, and of what was evicted for them.
    ///
    /// - Parameter isLoaded: A Boolean value that indicates whether a load has written them, which has overtaken others before.
    func reportWrites(
        of keys: some Collection<Key>, _ displaced: some Collection<Displaced<Key, Value>>,
        evicted: [LRUTable<Key, Value>.Node], isLoaded: Bool = false
    ) {
        if !isLoaded { loads.overtake(Array(keys)) }
        noteChange(of: keys)
        if let onRemoval {
            for (key, old) in zip(keys, displaced) {
                if let value = old.value { onRemoval(old.key ?? key, value, .replaced) }
            }
        }
        report(evicted, .evicted)
    }

    /// Reports a call that has removed keys in one step, whether they had entries or not.
    func reportRemovals(of keys: some Collection<Key>, _ removed: [BoundedTable<Key, Value>.Removed]) {
        loads.overtake(Array(keys))
        noteChange(of: zip(keys, removed).filter { $1.node != nil }.map { $0.0 })
        guard let onRemoval else { return }
        for removed in removed {
            if let node = removed.node { onRemoval(node.key, node.value, removed.isExpired ? .expired : .removed) }
        }
    }

    /// Reports a call that has removed a key, whether it had an entry or not.
    @usableFromInline
    func reportRemoval(of key: Key, _ removed: BoundedTable<Key, Value>.Removed) {
        reportRemovals(of: CollectionOfOne(key), [removed])
    }

    /// Reports entries that have left.
    func report(_ nodes: [LRUTable<Key, Value>.Node], _ cause: RemovalCause) {
        if nodes.isEmpty { return }
        if hub.isObserved { noteChange(of: nodes.map(\.key)) }
        if let onRemoval { for node in nodes { onRemoval(node.key, node.value, cause) } }
    }

    /// Reports that all entries have left.
    func reportClear(_ emptied: EmptiedTable<Key, Value>, _ cause: RemovalCause) {
        loads.overtake(nil)
        var deferred = Deferred()
        hub.noteReset(&deferred)
        if let onRemoval { emptied.forEach { onRemoval($0, $1, cause) } }
    }

    /// Notes that keys were written or removed; the reader of a batch looks which.
    private func noteChange(of keys: some Collection<Key>) {
        if keys.isEmpty { return }
        var deferred = Deferred()
        hub.noteUpdated(keys, &deferred)
    }
}
