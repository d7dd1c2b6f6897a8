internal import Foundation
internal import LarderLocks
internal import LarderStore

extension MemoryCache {
    /// The time, by which an entry has expired; `.min`, without a look at a clock, if no entry can.
    @usableFromInline
    func now() -> Int64 {
        if rule.isUnlimited { return .min }
        if let clock { return SystemClock.milliseconds(of: clock()) }
        return SystemClock.coarseNow()
    }

    /// Returns the last moment at which an entry that is written now is served.
    @usableFromInline
    func newEnd() -> Int64 {
        let now = now()
        return rule.end(writtenAt: now, accessedAt: now)
    }

    /// Returns a value whose age counts.
    @usableFromInline
    func agedValue(forKey key: Key, hash: UInt64) -> Value? {
        let (now, rule) = (now(), rule)
        let found = state.withLock { $0.agedValue(forKey: key, hash: hash, rule: rule, now: now) }
        return found.value
    }

    /// Sees to it that an entry is removed soon after its end.
    @usableFromInline
    func noteEnd(_ end: Int64) {
        guard let timer, timer.isNews(end) else { return }
        timer.note(end: end) { [weak self] in
            guard let self, let next = sweep().nextEnd else { return }
            noteEnd(next)
        }
    }

    /// Removes every entry that has expired.
    ///
    /// - Returns: The number of removed entries.
    /// - Complexity: O(n), in batches of 1,024 under the lock.
    @discardableResult
    public func removeExpired() -> Int { sweep().count }

    /// Removes every entry that has expired, and returns their number, and when the next one does.
    private func sweep() -> (count: Int, nextEnd: Int64?) {
        if rule.isUnlimited { return (0, nil) }
        var (next, count, nextEnd): (UInt32?, Int, Int64?) = (1, 0, nil)
        state.withLock { $0.sweeps += 1 }
        while let first = next {
            // The timer follows the exact clock, behind which a read's may lag.
            let now = clock == nil ? SystemClock.now() : now()
            var discards: [LRUTable<Key, Value>.Node] = []
            next = state.withLock { state in
                state.removeExpired(from: first, atMost: Self.entriesPerSlice, now: now, &nextEnd, into: &discards)
            }
            count += discards.count
        }
        state.withLock { state in
            state.counts.expirations += count
            state.sweeps -= 1
            state.giveBackRoom()
        }
        return (count, nextEnd)
    }
}

extension BoundedTable {
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
    mutating func agedValue(forKey key: Key, hash: UInt64, rule: AgeRule, now: Int64) -> Found {
        let found = table.locate(key, hash: hash)
        if found == 0 {
            counts.misses &+= 1
            return Found()
        }
        if isExpired(found, now: now) {
            counts.misses &+= 1
            counts.expirations &+= 1
            return Found(expired: remove(found))
        }
        counts.hits &+= 1
        if rule.slidingAge != nil { ends[Int(found)] = rule.end(writtenAt: now, accessedAt: now) }
        table.promote(found)
        return Found(value: table.value(at: found))
    }

    /// Returns whether an entry has expired.
    @inlinable
    func isExpired(_ index: UInt32, now: Int64) -> Bool { Int(index) < ends.count && now > ends[Int(index)] }

    /// Removes a key.
    @inlinable
    mutating func removeValue(forKey key: Key, hash: UInt64, now: Int64) -> Removed {
        if !watches.isEmpty { noteWrite(key, hash: hash) }
        var removed = Removed()
        let found = table.locate(key, hash: hash)
        if found != 0 {
            removed.isExpired = isExpired(found, now: now)
            removed.node = remove(found)
        }
        return removed
    }

    /// Removes the expired entries of a slice of indices, and returns where the next slice begins; nil at the end.
    ///
    /// - Parameter nextEnd: The first end of those that stay.
    mutating func removeExpired(
        from first: UInt32, atMost count: Int, now: Int64, _ nextEnd: inout Int64?, into discards: inout [Table.Node]
    ) -> UInt32? {
        let end = UInt32(min(UInt64(first) + UInt64(count), UInt64(table.indexLimit)))
        for index in first..<max(first, end) where table.isEntry(index) {
            if isExpired(index, now: now) {
                discards.append(remove(index))
            } else if Int(index) < ends.count {
                nextEnd = min(nextEnd ?? .max, ends[Int(index)])
            }
        }
        return end < table.indexLimit ? end : nil
    }
}
