internal import LarderStore

extension Cache {
    /// Evicts the entries that a closure chooses after each interval, unless they were replaced in the meantime.
    ///
    /// The closure is called on a thread of its own while no lock is held, and may use the cache. The first iteration
    /// begins after the first interval, and each later one an interval after the last has ended. It doesn't count as
    /// access, and expired entries are left out. Pinned entries can be chosen too.
    ///
    /// - Parameters:
    ///   - interval: The time between two iterations. If it is zero or less, that is reported, and nothing is
    ///     evicted.
    ///   - shouldEvict: Returns whether an entry is evicted.
    /// - Returns: The task, which ends when it is released.
    public func evict(
        every interval: Duration, where shouldEvict: @escaping @Sendable (CacheEntry<Key, Value>) -> Bool
    ) -> EvictionTask {
        evict(interval) { cache, goesOn in
            try cache.removeEntries(.decided, where: { goesOn() && shouldEvict($0) }, while: goesOn)
        }
    }

    /// Evicts the entries that a closure chooses by key and metadata after each interval; no value is read.
    ///
    /// The closure is called on a thread of its own while no lock is held, and may use the cache. The first iteration
    /// begins after the first interval, and each later one an interval after the last has ended. It doesn't count as
    /// access, and expired entries are left out. Pinned entries can be chosen too.
    ///
    /// - Parameters:
    ///   - interval: The time between two iterations. If it is zero or less, that is reported, and nothing is
    ///     evicted.
    ///   - shouldEvict: Returns whether an entry is evicted.
    /// - Returns: The task, which ends when it is released.
    public func evict(
        every interval: Duration, whereMetadata shouldEvict: @escaping @Sendable (Key, EntryMetadata) -> Bool
    ) -> EvictionTask {
        evict(interval) { cache, goesOn in
            try cache.removeEntries(.decided, whereMetadata: { goesOn() && shouldEvict($0, $1) }, while: goesOn)
        }
    }

    private func evict(
        _ interval: Duration, _ iteration: @escaping @Sendable (Cache, () -> Bool) throws -> Int
    ) -> EvictionTask {
        if interval <= .zero {
            let error = CacheError(
                .invalidConfiguration, "The interval of an eviction is \(interval). Use one that is longer than zero.")
            report(error, .writeFailed)
        }
        return EvictionTask(every: interval, manager.evictions) { [self] goesOn in
            do {
                _ = try iteration(self, goesOn)
                return true
            } catch let error as CacheError {
                if error.code == .closed || error.code == .superseded { return false }
                report(error, .writeFailed)
                return error.code != .readOnly
            } catch {
                return false
            }
        }
    }
}
