internal import Foundation
internal import LarderLocks

extension MemoryCache {
    /// Returns the time to store, from the caller's clock or the system's.
    @usableFromInline
    func exactNow() -> Int64 {
        if let clock { return SystemClock.milliseconds(of: clock()) }
        return SystemClock.now()
    }

    /// Returns a value whose age counts.
    @usableFromInline
    func agedValue(forKey key: Key, hash: UInt64) -> Value? {
        // A sliding age begins again at each read, and that moment has to be exact.
        let isCoarse = clock == nil && !rule.isSliding
        let now = isCoarse ? SystemClock.coarseNow() : exactNow()
        let found = state.withLock {
            $0.agedValue(forKey: key, hash: hash, rule: rule, now: now, isCoarse: isCoarse)
        }
        return found.value
    }
}

extension MemoryCacheState {
    @usableFromInline
    struct Found: Sendable {
        var value: Value?
        /// The node of an expired entry, released outside the lock.
        var expired: Table.Node?
    }

    @usableFromInline
    struct Removed: Sendable {
        @usableFromInline var node: Table.Node?
        @usableFromInline var isExpired = false

        @inlinable
        init() {}
    }

    /// Returns a value, and removes its entry if that has expired.
    mutating func agedValue(
        forKey key: Key, hash: UInt64, rule: AgeRule, now: Int64, isCoarse: Bool
    ) -> Found {
        let found = table.locate(key, hash: hash)
        if found == 0 {
            counts.misses &+= 1
            return Found()
        }
        var now = now
        if rule.needsStart {
            let start = starts[Int(found)]
            if isCoarse && rule.isUndecided(start: start, coarse: now, lag: SystemClock.coarseLag) {
                now = SystemClock.now()
            }
            starts[Int(found)] = rule.isSliding ? start : rule.corrected(start, now: now)
        } else if isCoarse && rule.isUndecided(start: now, coarse: now, lag: SystemClock.coarseLag) {
            now = SystemClock.now()
        }
        if isExpired(found, rule: rule, now: now) {
            counts.misses &+= 1
            counts.expirations &+= 1
            return Found(expired: remove(found))
        }
        counts.hits &+= 1
        if rule.isSliding { starts[Int(found)] = now }
        table.promote(found)
        return Found(value: table.value(at: found))
    }

    /// Returns whether an entry has expired.
    @inlinable
    func isExpired(_ index: UInt32, rule: AgeRule, now: Int64) -> Bool {
        if rule.isUnlimited { return false }
        return rule.isExpired(start: rule.needsStart ? starts[Int(index)] : now, now: now)
    }

    /// Removes a key.
    @inlinable
    mutating func removeValue(forKey key: Key, hash: UInt64, rule: AgeRule, now: Int64) -> Removed {
        if hasHolds { noteWrite(key, hash: hash) }
        var removed = Removed()
        let found = table.locate(key, hash: hash)
        if found != 0 {
            removed.isExpired = isExpired(found, rule: rule, now: now)
            removed.node = remove(found)
        }
        return removed
    }
}
