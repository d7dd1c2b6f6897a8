internal import LarderLocks

extension MemoryCache {
    /// The number of entries, including expired ones that no read or sweep has removed yet.
    public var count: Int { state.withLock { $0.table.count } }

    /// A Boolean value that indicates whether there is no entry.
    public var isEmpty: Bool { count == 0 }

    /// The total cost of the entries; `Int.max` if it is more.
    public var totalCost: Int { state.withLock { $0.totalCost.clamped } }

    /// The maximum number of entries; a lower limit takes effect before the setter returns.
    ///
    /// A negative number counts as 0, at which nothing is kept.
    public var countLimit: Int {
        get { state.withLock { $0.countLimit } }
        set {
            state.withLock { $0.countLimit = Swift.max(0, newValue) }
            trim(.evicted, counts: true) { $0.isOverLimit }
        }
    }

    /// The maximum total cost of the entries; a lower limit takes effect before the setter returns.
    ///
    /// A negative number counts as 0, at which only entries without a cost are kept.
    public var costLimit: Int {
        get { state.withLock { $0.costLimit } }
        set {
            state.withLock { $0.limitCost(to: Swift.max(0, newValue)) }
            trim(.evicted, counts: true) { $0.isOverLimit }
        }
    }

    /// The number of bytes of memory that the entries take; `Int.max` if it is more.
    ///
    /// An entry takes its share of the table, in which its key and its value are inline. In addition it takes the
    /// bytes of a key that is a `String` or `Data` and does not fit inline, and its cost. In a cache with a
    /// ``byteLimit``, give the bytes that a value has outside of `MemoryLayout<Value>.stride` as its cost. Without a
    /// cost only the inline size of the value counts.
    public var totalBytes: Int { state.withLock { $0.totalBytes.clamped } }

    /// The maximum number of bytes that the entries take, as ``totalBytes`` counts them; `Int.max`, the default, is
    /// no limit.
    ///
    /// A lower limit takes effect before the setter returns. A negative number counts as 0, at which nothing is kept.
    public var byteLimit: Int {
        get { state.withLock { $0.byteLimit } }
        set {
            state.withLock { $0.limitBytes(to: Swift.max(0, newValue)) }
            trim(.evicted, counts: true) { $0.isOverLimit }
        }
    }

    /// Removes the least recently used entries until at most `count` are left; a negative number counts as 0.
    public func trim(toCount count: Int) {
        trim(.evicted) { $0.table.count > Swift.max(0, count) }
    }

    /// Removes the least recently used entries, whatever they cost, until the total cost is at most `cost`.
    public func trim(toCost cost: Int) {
        trim(.evicted) { $0.totalCost > WideSum(Swift.max(0, cost)) }
    }

    /// The maximum number of entries for which a sweep or a trim holds the lock at a time.
    static var entriesPerSlice: Int { 1024 }

    /// Removes from the least recent end while a condition is true, in batches, and releases outside the lock.
    ///
    /// - Parameter counts: A Boolean value that indicates whether a limit is the reason, which the statistics count.
    func trim(
        _ cause: RemovalCause, counts: Bool = false,
        while isTooMuch: @Sendable (borrowing BoundedTable<Key, Value>) -> Bool
    ) {
        var isDone = false
        while !isDone {
            var discards: [LRUTable<Key, Value>.Node] = []
            isDone = state.withLock { state in
                for _ in 0..<Self.entriesPerSlice {
                    guard state.table.count > 0, isTooMuch(state) else {
                        state.giveBackRoom()
                        return true
                    }
                    discards.append(state.remove(state.table.leastRecent))
                    if counts { state.counts.evictions += 1 }
                }
                return false
            }
            tell(discards, cause)
        }
    }
}
