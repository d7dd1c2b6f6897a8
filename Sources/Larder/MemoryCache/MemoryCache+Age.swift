internal import Foundation
public import LarderLocks
public import LarderStore

extension MemoryCache {
    /// A Boolean value that indicates whether an entry can expire.
    @inlinable var canExpire: Bool { !rule.isUnlimited || hasOwnAges.load(ordering: .relaxed) }

    /// The time, by which an entry has expired; `.min`, without a look at a clock, if no entry can.
    @usableFromInline
    func now() -> Int64 { canExpire ? moment() : .min }

    func moment() -> Int64 {
        if let clock { return SystemClock.milliseconds(of: clock()) }
        return SystemClock.coarseNow()
    }

    /// Returns the last moment at which an entry that is written now is served; nil if nothing ends it.
    @usableFromInline
    func newEnd() -> Int64? {
        if rule.isUnlimited { return nil }
        let now = now()
        return rule.end(writtenAt: now, accessedAt: now)
    }

    /// Returns a value whose age counts.
    @usableFromInline
    func agedValue(forKey key: Key, hash: UInt64) -> Value? {
        let (now, staleTime) = (now(), staleTime.load(ordering: .relaxed))
        let found = state.withLock { $0.agedValue(forKey: key, hash: hash, now: now, staleTime) }
        if let node = found.expired { tell([node], .expired) }
        return found.value
    }

    /// Sets the value of a key with an age of its own; nil removes it.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cost: The cost of the entry, as in ``setValue(_:forKey:cost:)``.
    ///   - maxAge: The age of this entry in place of the cache's, sliding or not; nil for the cache's. It lasts until the key is
    ///     written again, by an `update` too. With an age of zero or less, or of not-a-number, nothing is kept, and the key's
    ///     old entry is removed.
    public func setValue(_ value: Value?, forKey key: Key, cost: Int = 0, maxAge: MaxAge?) {
        guard let value, let maxAge else { return setValue(value, forKey: key, cost: cost) }
        let now = moment()
        let rule = maxAge.isNumber ? maxAge.rule : .sinceWrite(0)
        let end = rule.end(writtenAt: now, accessedAt: now)
        if end < now {
            removeValue(forKey: key)
        } else {
            set(value, key, cost: cost, OwnAge(rule, end: end, writtenAt: now))
        }
    }

    /// Sets a value with an age of its own.
    func set(_ value: Value, _ key: Key, cost: Int, _ own: OwnAge) {
        // Before, so that no later read takes the entry for one without an end.
        hasOwnAges.store(true, ordering: .relaxed)
        let cost = BoundedTable<Key, Value>.clamped(cost)
        let bytes = BoundedTable<Key, Value>.bytes(of: key, cost: cost) + 2 * EntryBytes.ofEnd
        setValueSlowly(value, forKey: key, hash: seed.hash(key), cost: cost, bytes: bytes, end: own.end, age: own.age)
        noteEnd(own.end)
    }

    /// Sees to it that an entry is removed soon after its end.
    @usableFromInline
    func noteEnd(_ end: Int64) {
        let end = end.addingSaturated(staleTime.load(ordering: .relaxed))
        if !timer.isNews(end) { return }
        timer.note(end: end) { [weak self] in
            guard let self, let next = sweep(keepsStale: true).nextEnd else { return }
            noteEnd(next)
        }
    }

    /// Removes every entry that has expired.
    ///
    /// - Returns: The number of removed entries.
    /// - Complexity: O(n), in batches of 1,024 under the lock.
    @discardableResult
    public func removeExpired() -> Int { sweep(keepsStale: false).count }

    /// Removes every entry that has expired, and returns their number, and when the next one does.
    ///
    /// - Parameter keepsStale: A Boolean value that indicates whether those stay that generators may still serve.
    private func sweep(keepsStale: Bool) -> (count: Int, nextEnd: Int64?) {
        if !canExpire { return (0, nil) }
        var (next, count, nextEnd): (UInt32?, Int, Int64?) = (1, 0, nil)
        state.withLock { $0.sweeps += 1 }
        while let first = next {
            // The timer follows the exact clock, behind which a read's may lag.
            let exact = clock == nil ? SystemClock.now() : now()
            let now = keepsStale ? exact.subtractingSaturated(staleTime.load(ordering: .relaxed)) : exact
            var discards: [LRUTable<Key, Value>.Node] = []
            next = state.withLock { state in
                state.removeExpired(from: first, atMost: Self.entriesPerSlice, now: now, &nextEnd, into: &discards) {
                    Int($1) < $0.ends.count ? $0.ends[Int($1)] : .max
                }
            }
            count += discards.count
            tell(discards, .expired)
        }
        state.withLock { state in
            state.counts.expirations += count
            state.sweeps -= 1
            state.giveBackRoom()
        }
        return (count, nextEnd)
    }
}

/// When an entry ends that has an age of its own.
struct OwnAge: Sendable {
    var end: Int64
    /// The milliseconds, as in `BoundedTable.ages`.
    var age: Int64
}

extension OwnAge {
    init(_ rule: AgeRule, end: Int64, writtenAt now: Int64) {
        // Unlike the 0 of an entry without an own age.
        let fixed = end == .max ? .min : min(-1, now.subtractingSaturated(end))
        self.init(end: end, age: rule.slidingAge ?? fixed)
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
        /// A Boolean value that indicates whether streams, loads or the program hear of it.
        @usableFromInline var isFollowed = false

        @inlinable
        init() {}
    }

    /// Returns a value, and removes its entry if that has expired and is not kept to be served stale.
    ///
    /// - Parameter staleTime: The milliseconds for which an expired entry is kept.
    mutating func agedValue(forKey key: Key, hash: UInt64, now: Int64, _ staleTime: Int64) -> Found {
        let found = table.locate(key, hash: hash)
        if found == 0 {
            counts.misses &+= 1
            return Found()
        }
        if isExpired(found, now: now) {
            counts.misses &+= 1
            if !isExpired(found, now: now.subtractingSaturated(staleTime)) { return Found() }
            counts.expirations &+= 1
            return Found(expired: remove(found))
        }
        counts.hits &+= 1
        let age = age(of: found)
        if age > 0 { ends[Int(found)] = now.addingSaturated(age) }
        table.promote(found)
        return Found(value: table.value(at: found))
    }

    /// Returns whether an entry has expired.
    @inlinable
    func isExpired(_ index: UInt32, now: Int64) -> Bool { Int(index) < ends.count && now > ends[Int(index)] }

    /// Removes a key.
    @inlinable
    mutating func removeValue(forKey key: Key, hash: UInt64, now: Int64) -> Removed {
        var removed = Removed()
        removed.isFollowed = isFollowed || !watches.isEmpty
        if !watches.isEmpty { noteWrite(key, hash: hash) }
        let found = table.locate(key, hash: hash)
        if found != 0 {
            removed.isExpired = isExpired(found, now: now)
            removed.node = remove(found)
        }
        return removed
    }

    /// Removes the expired entries of a slice of indices, and returns where the next slice begins; nil at the end.
    ///
    /// - Parameters:
    ///   - nextEnd: The first end of those that stay.
    ///   - endOf: Returns the last moment at which an entry is served.
    mutating func removeExpired(
        from first: UInt32, atMost count: Int, now: Int64, _ nextEnd: inout Int64?, into discards: inout [Table.Node],
        endOf: (borrowing Self, UInt32) -> Int64
    ) -> UInt32? {
        let end = UInt32(min(UInt64(first) + UInt64(count), UInt64(table.indexLimit)))
        for index in first..<max(first, end) where table.isEntry(index) {
            let end = endOf(self, index)
            if end < now { discards.append(remove(index)) } else { nextEnd = min(nextEnd ?? .max, end) }
        }
        return end < table.indexLimit ? end : nil
    }
}
