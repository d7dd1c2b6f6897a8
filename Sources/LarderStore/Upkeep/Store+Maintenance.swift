internal import LarderSQLite

/// The result of a maintenance.
package struct MaintenanceReport: Hashable, Sendable {
    /// The rows that were expired, over a limit or of a retired incarnation, and the files that no row named.
    package var (expired, trimmed, reclaimed, orphans) = (0, 0, 0, 0)
    /// The bytes that the main file gave back.
    package var freedBytes: Int64 = 0
}

/// What is known of a cache.
package struct CacheSummary: Sendable {
    package let declaration: CacheDeclaration
    /// The entries that have not expired.
    package let count: Int64
    /// The bytes of all entries.
    package let size: Int64
    package let openedAt: Int64
    package let limits: Limits
    /// What the counters have gained in ninety days, by their numbers, as far as it is written.
    package let activity: [Int64: Int64]
    /// Who has opened the store last, for this cache or another one.
    package let opener: StoreOpener?
}

extension Connection {
    fileprivate mutating func caches(at now: Int64, _ accesses: AccessBook) throws(SQLiteError) -> [CacheSummary] {
        var caches: [CacheSummary] = []
        let opener = try opener()
        for cache in try liveIncarnations().values.sorted(by: { $0.cache.name < $1.cache.name }) {
            let totals = try count(of: cache, accesses)
            let count = now <= totals.firstEnd ? totals.totals.count : try count(at: now, in: cache, accesses)
            caches.append(
                CacheSummary(
                    declaration: cache.cache, count: count, size: totals.totals.size,
                    openedAt: try number(.openedAt, cache.id) ?? 0, limits: cache.limits,
                    activity: try activity(of: cache, since: now / 86_400_000 - 90), opener: opener))
        }
        return caches
    }
}

extension Store {
    /// Does all upkeep now: afterwards nothing is left that was expired, over a limit or retired at its start.
    ///
    /// Files that no row names are deleted if they are an hour old.
    @discardableResult
    package func maintain() throws(StoreError) -> MaintenanceReport {
        if isReadOnly { throw .readOnly }
        return try upkeep.doChores(isWhole: true)
    }

    /// Sets the limits of the store, and holds them.
    package func setLimits(_ limits: StoreLimits) throws(StoreError) {
        try writer.retrying { () throws(StoreError) in
            let isSet = try writer.read { state in
                try state.lookUpLimits()
                return state.limiter.storeLimits == limits
            }
            if isSet { return }
            try writer.runBatch { if $0.limiter.storeLimits != limits { try $0.setLimits(limits) } }
        }
    }

    /// Stores the accesses, as far as the grain asks for it.
    package func flush() throws(StoreError) {
        if isReadOnly { throw .readOnly }
        try upkeep.storeAccesses()
    }

    /// Removes all entries of all caches.
    package func removeAll() throws(StoreError) { try writer.runBatch { try $0.clearAll() } }

    /// Returns what is known of each cache, by name.
    package func caches() throws(StoreError) -> [CacheSummary] {
        let now = time.now()
        if isClosed { throw .closed }
        return try writer.retrying { () throws(StoreError) in
            try StoreError.translating { try writer.readAlone { try $0.caches(at: now, accesses) } }
        }
    }

    /// Returns the version of the live cache of a name; nil if there is none.
    func liveVersion(of name: ExactName) throws(StoreError) -> String? {
        if isClosed { throw .closed }
        return try writer.retrying { () throws(StoreError) in
            try StoreError.translating { try writer.readAlone { try $0.liveIncarnations()[name]?.cache.version } }
        }
    }

    /// Removes a cache, whose handles are superseded.
    ///
    /// - Returns: The number of caches that were opened or removed before, in the order of commits.
    package func removeCache(named name: String) throws(StoreError) -> Int {
        try writer.runBatch { state in
            try state.removeCache(named: name)
            return state.openingCount
        }
    }

    /// Removes a cache if it still has the declaration.
    package func removeCache(_ declaration: CacheDeclaration) throws(StoreError) {
        try writer.runBatch { state in
            if state.incarnation(of: declaration) == nil { throw StoreError.superseded }
            try state.removeCache(named: declaration.name)
        }
    }

    /// Removes the entries of all caches that have a tag, and returns their number.
    @discardableResult
    package func removeAll(tagged tag: String) throws(StoreError) -> Int {
        try writer.removeAll(tagged: tag, in: nil)
    }
}
