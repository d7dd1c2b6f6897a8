internal import LarderLocks

/// The numbers of events of a memory cache since it was created, or since ``MemoryCache/resetStatistics()``.
public struct MemoryCacheStatistics: Sendable, Equatable {
    /// The number of reads that found a value.
    public var hits = 0

    /// The number of reads that found no value, or one that had expired.
    public var misses = 0

    /// The number of entries that were removed because a limit was exceeded.
    public var evictions = 0

    /// The number of expired entries that a read or a sweep has removed.
    public var expirations = 0

    /// The number of keys that closures were asked to make values for, whatever came of it.
    public var loads = 0

    /// The number of loads that ended with an error, those of one key or of many.
    public var loadFailures = 0

    /// The number of loads that were ended because they took too long; see ``GenerationPolicy/timeout``.
    public var loadTimeouts = 0

    /// The number of expired values that were served as a ``GenerationPolicy`` allows; their reads count as misses.
    public var staleHits = 0

    /// How long loads took that have not failed: the calls of closures, each for one key or for many.
    public var loadTimes = LoadTimes()

    /// The share of reads that found a value, from 0 to 1; nil if there was no read.
    public var hitRate: Double? { hits + misses == 0 ? nil : Double(hits) / Double(hits + misses) }

    @usableFromInline
    init() {}
}

extension MemoryCache {
    /// The numbers of hits, misses, evictions and expirations, exact for calls from any threads.
    ///
    /// The subscript and ``value(forKey:)`` count as reads.
    public var statistics: MemoryCacheStatistics {
        let loading = loads.counts
        var counts = state.withLock { $0.counts }
        (counts.loadFailures, counts.loadTimeouts) = (loading.failures, loading.timeouts)
        counts.loadTimes = loading.times
        return counts
    }

    /// Sets all numbers of ``statistics`` to 0.
    public func resetStatistics() {
        loads.counts = LoadCounts()
        state.withLock { $0.counts = MemoryCacheStatistics() }
    }

    /// A name for logs and debuggers; empty unless it is set.
    public var name: String {
        get { state.withLock { $0.name } }
        set { state.withLock { $0.name = newValue } }
    }

    /// Calls a closure for every entry after each interval, and removes the entries for which it returns true.
    ///
    /// The closure is called on a thread of its own while no lock is held, and may use the cache. An entry that was
    /// replaced in the meantime stays. The first iteration begins after the first interval, and each later one an
    /// interval after the last has ended.
    ///
    /// - Parameters:
    ///   - interval: The time between two iterations, at least a millisecond. If it is zero or less, there are none.
    ///   - shouldEvict: Returns whether to remove an entry; it doesn't count as access.
    /// - Returns: The task, which ends if it is cancelled or released.
    public func evict(
        every interval: Duration, where shouldEvict: @escaping @Sendable (Key, Value) -> Bool
    ) -> EvictionTask {
        EvictionTask(every: interval, EvictionTimers(timekeeper)) { [weak self] goesOn in
            guard let self else { return false }
            _ = removeAll(.evicted) { goesOn() && shouldEvict($0, $1) }
            return true
        }
    }
}

extension MemoryCache: CustomStringConvertible {
    /// The name, if there is one, with the number of entries.
    public var description: String {
        let name = name
        return "MemoryCache(\(name.isEmpty ? "" : "\"\(name)\", ")\(count) entries)"
    }
}
