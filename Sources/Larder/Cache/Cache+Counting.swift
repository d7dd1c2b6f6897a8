internal import Synchronization

extension Cache {
    /// How many entries are served now.
    ///
    /// - Complexity: O(n), over an index alone where the age is unlimited.
    public var count: Int {
        get throws(CacheError) {
            _ = try manager.store()
            return try ledger.count(terms.age)
        }
    }

    /// Whether no entry is served now.
    public var isEmpty: Bool {
        get throws(CacheError) {
            _ = try manager.store()
            return try ledger.isEmpty(terms.age)
        }
    }

    /// Payloads and extended data of all entries in bytes, of those that are over too until a sweep meets them.
    public var sizeOnDisk: Int64 {
        get throws(CacheError) {
            _ = try manager.store()
            return try ledger.sizeOnDisk()
        }
    }

    /// Removes every entry that is over for all live handles, those that something was to keep for later included.
    ///
    /// - Returns: How many went.
    @discardableResult
    public func removeExpired() throws(CacheError) -> Int {
        try checkCurrent("remove what is expired")
        return try ledger.removeExpired { () throws(CacheError) in
            (try ledger.sweepTerms().rules, 0, ledger.store.sweepClock.moment(at: terms.now()))
        }
    }

    /// Removes what is over, then the least recently used, until at most so many entries are on disk.
    ///
    /// Pinned entries stay. A negative number counts as 0.
    ///
    /// - Returns: How many went.
    @discardableResult
    public func trim(toCount count: Int) throws(CacheError) -> Int {
        try checkCurrent("trim")
        return try ledger.trim(toCount: count, terms.age)
    }

    /// Removes what is over, then the least recently used, until the entries come to at most so many bytes.
    ///
    /// Pinned entries stay. A negative number counts as 0.
    ///
    /// - Returns: How many went.
    @discardableResult
    public func trim(toSize size: Int64) throws(CacheError) -> Int {
        try checkCurrent("trim")
        return try ledger.trim(toSize: size, terms.age)
    }

    /// What happened so far, in this process.
    public var statistics: CacheStatistics {
        let (hits, evictions) = core.front.withLock { ($0.memoryHits, $0.memoryEvictions) }
        return CacheStatistics(ledger.counts, memoryHits: hits, memoryEvictions: evictions)
    }

    /// Begins to count anew.
    public func resetStatistics() {
        core.front.withLock { ($0.memoryHits, $0.memoryEvictions) = (0, 0) }
        ledger.count { $0 = LedgerCounts() }
    }
}
