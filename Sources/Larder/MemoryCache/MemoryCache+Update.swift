internal import LarderLocks

extension MemoryCache {
    /// Changes the value of a key in one step: no other `update` of the key runs between the read and the write.
    ///
    /// The body is called exactly once, outside the lock: other keys stay accessible, and the body may use the cache.
    /// It receives nil if there is no value, and removes the entry by setting nil. If it throws, nothing changes. The
    /// entry keeps its cost. A plain write, removal or `removeAll` of the key in the meantime, the body's own
    /// included, counts as the later write: it is kept, and the result of the body is discarded.
    ///
    /// Updates of one key wait for each other. Replaced values are released after the key is free, so their `deinit`
    /// may update the key too.
    ///
    /// - Warning: An update of the same key from inside the body traps. Bodies that update each other's keys from two
    ///   threads wait forever.
    @discardableResult
    public func update<R>(_ key: Key, _ body: (inout Value?) throws -> R) rethrows -> R {
        let hash = seed.hash(key)
        let gate = state.withLock { $0.hold(key, hash: hash) }
        // Outside the gate, which a deinit that updates the key has to pass too.
        var remains = UpdateRemains<Key, Value>()
        defer {
            let released = state.withLock { $0.release(key, hash: hash) }
            withExtendedLifetime((released, remains)) {}
        }
        return try gate.pass {
            let now = rule.isUnlimited ? 0 : exactNow()
            let (old, cost) = state.withLock { $0.beginUpdate(key, hash: hash, rule: rule, now: now) }
            (remains.old, remains.value) = (old, old)
            let result = try body(&remains.value)
            let start = rule.needsStart ? exactNow() : nil
            remains.displaced = state.withLock {
                $0.finishUpdate(
                    key, hash: hash, value: remains.value, cost: cost, start: start, into: &remains.discards)
            }
            if expiry != nil { noteStart(start) }
            return result
        }
    }
}

/// The objects that an update may hold last, and releases when its key is free.
private struct UpdateRemains<Key: Hashable & Sendable, Value: Sendable> {
    var old: Value?
    /// The value as the body left it, which a later write or an error may have made void.
    var value: Value?
    var displaced = Displaced<Key, Value>()
    var discards: [LRUTable<Key, Value>.Node] = []
}

extension MemoryCacheState {
    /// Registers an update of a key, and returns the gate to pass.
    mutating func hold(_ key: Key, hash: UInt64) -> UpdateGate {
        if let hold = hold(of: key, hash: hash) {
            holds[hold].users += 1
            return holds[hold].gate
        }
        let gate = UpdateGate()
        holds.append(UpdateHold(key: key, hash: hash, gate: gate, users: 1))
        hasHolds = true
        return gate
    }

    /// Registers the end of an update, and returns the hold if it was the last, to be released outside the lock.
    mutating func release(_ key: Key, hash: UInt64) -> UpdateHold<Key>? {
        guard let hold = hold(of: key, hash: hash) else { return nil }
        holds[hold].users -= 1
        if holds[hold].users > 0 { return nil }
        let released = holds.remove(at: hold)
        hasHolds = !holds.isEmpty
        return released
    }

    /// Returns the value with which an update's body starts; from here on a plain write counts as a later one.
    mutating func beginUpdate(_ key: Key, hash: UInt64, rule: AgeRule, now: Int64) -> (value: Value?, cost: Int) {
        if let hold = hold(of: key, hash: hash) { holds[hold].isOverwritten = false }
        let found = table.locate(key, hash: hash)
        if found == 0 || isExpired(found, rule: rule, now: now) { return (nil, 0) }
        return (table.value(at: found), cost(of: found))
    }

    /// Writes the result of an update's body, unless there is a later write already.
    mutating func finishUpdate(
        _ key: Key, hash: UInt64, value: Value?, cost: Int, start: Int64?, into discards: inout [Table.Node]
    ) -> Displaced<Key, Value> {
        if let hold = hold(of: key, hash: hash), holds[hold].isOverwritten { return Displaced() }
        if let value {
            return setValue(
                value, forKey: key, hash: hash, cost: cost, bytes: Self.bytes(of: key, cost: cost), start: start,
                into: &discards)
        }
        let found = table.locate(key, hash: hash)
        if found != 0 { discards.append(remove(found)) }
        return Displaced()
    }

    /// Reports to a running update of the key, if there is one, that this write comes after it.
    @usableFromInline
    mutating func noteWrite(_ key: Key, hash: UInt64) {
        if let hold = hold(of: key, hash: hash) { holds[hold].isOverwritten = true }
    }

    private func hold(of key: Key, hash: UInt64) -> Int? {
        holds.firstIndex { $0.hash == hash && $0.key == key }
    }
}
