internal import LarderLocks
internal import LarderStore

extension MemoryCache {
    /// Changes the value of a key in one step: no other `update` of the cache runs between the read and the write.
    ///
    /// The body is called exactly once, outside the lock: the cache stays accessible, also for the body. It receives nil
    /// if there is no value, and removes the entry by setting nil. If it throws, nothing changes. The entry keeps its
    /// cost, and has the age of the cache. A plain write, removal or `removeAll` of the key in the meantime, the body's own included, counts as the
    /// later write: it is kept, and the result of the body is discarded.
    ///
    /// Updates wait for each other. Replaced values are released after the update, so their `deinit` may update the key
    /// too. Those of an update inside a body are released inside the outer one.
    ///
    /// - Warning: An update of the same key from inside the body traps. A body that waits for another thread's update of
    ///   the cache waits forever.
    @discardableResult
    public func update<R>(_ key: Key, _ body: (inout Value?) throws -> R) rethrows -> R {
        let hash = seed.hash(key)
        // Outside the lock of updates, which a deinit that updates the key has to pass too.
        var remains = UpdateRemains<Key, Value>()
        defer { withExtendedLifetime(remains) {} }
        let result = try updates.pass {
            let now = now()
            let (watch, old, cost) = state.withLock { $0.beginUpdate(key, hash: hash, now: now) }
            (remains.old, remains.value) = (old, old)
            do {
                let result = try body(&remains.value)
                let end = newEnd()
                state.withLock { state in
                    state.finishUpdate(watch, cost: cost, end: end, now: now, &remains)
                }
                if let end { noteEnd(end) }
                return result
            } catch {
                remains.watches = state.withLock { $0.endWatch(watch) }
                throw error
            }
        }
        if let removed = remains.removed {
            tellRemoval(of: key, removed)
        } else if remains.isWritten {
            tellWrites(of: CollectionOfOne(key), CollectionOfOne(remains.displaced), evicted: remains.discards)
        }
        return result
    }
}

/// The objects that an update may hold last, and releases at its end.
private struct UpdateRemains<Key: Hashable & Sendable, Value: Sendable> {
    var old: Value?
    /// The value as the body left it, which a later write or an error may have made void.
    var value: Value?
    var displaced = Displaced<Key, Value>()
    var discards: [LRUTable<Key, Value>.Node] = []
    var watches: [KeyWatch<Key>] = []
    var isWritten = false
    var removed: BoundedTable<Key, Value>.Removed?
}

extension BoundedTable {
    /// Returns the watch of an update's key, and the value with which its body starts.
    mutating func beginUpdate(
        _ key: Key, hash: UInt64, now: Int64
    ) -> (watch: Int, value: Value?, cost: Int) {
        precondition(
            !watches.isUpdating(key, hash: hash),
            "MemoryCache.update was called from inside the update of the same key, and would wait for itself.")
        let watch = watch(CollectionOfOne((key: key, hash: hash)), isUpdate: true)
        let found = table.locate(key, hash: hash)
        if found == 0 || isExpired(found, now: now) { return (watch, nil, 0) }
        return (watch, table.value(at: found), cost(of: found))
    }

    /// Writes the result of an update's body, unless there is a later write already.
    fileprivate mutating func finishUpdate(
        _ watch: Int, cost: Int, end: Int64?, now: Int64, _ remains: inout UpdateRemains<Key, Value>
    ) {
        remains.watches = endWatch(watch)
        guard let watch = remains.watches.first, !watch.isWritten else { return }
        if let value = remains.value {
            remains.isWritten = true
            remains.displaced = setValue(
                value, forKey: watch.key, hash: watch.hash, cost: cost, bytes: Self.bytes(of: watch.key, cost: cost),
                end: end, into: &remains.discards)
        } else {
            remains.removed = removeValue(forKey: watch.key, hash: watch.hash, now: now)
        }
    }
}
