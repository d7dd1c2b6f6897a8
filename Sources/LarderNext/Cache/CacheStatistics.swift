/// What happened to a sub-cache in this process since it was opened, or since ``Cache/resetStatistics()``.
///
/// The numbers are exact, whichever threads the calls come from.
public struct CacheStatistics: Sendable, Equatable {
    /// Reads that memory answered.
    public let memoryHits: Int

    /// Reads that the disk answered.
    public let diskHits: Int

    /// Reads that memory or the disk answered.
    public var hits: Int { memoryHits + diskHits }

    /// Reads that found no usable value.
    public let misses: Int

    /// Entries that were found to be over: each is counted once, by the read or the sweep that met it first.
    public let expirations: Int

    /// Entries that a limit, a trim or a decider took from the disk.
    public var evictions: Int { countEvictions + sizeEvictions + spaceEvictions + deciderEvictions }

    /// Those of them that a number of entries was exceeded by.
    public let countEvictions: Int

    /// Those of them that a number of bytes was exceeded by.
    public let sizeEvictions: Int

    /// Those of them that went because the volume was short of space.
    public let spaceEvictions: Int

    /// Those of them that a decider chose, see ``Cache/evict(every:where:)``.
    public let deciderEvictions: Int

    /// Entries that memory let go of for its limits; they are still on disk.
    public let memoryEvictions: Int

    /// Entries written.
    public let writes: Int

    /// Entries removed by calls, but not by `removeAll()`, which does not look at what it clears.
    public let removals: Int

    /// Failures: values that could not be read or written, and failed calls of the subscript.
    public let failures: Int

    init(_ counts: CacheCounts) {
        (memoryHits, memoryEvictions) = (counts.memoryHits, counts.memoryEvictions)
        (diskHits, misses, expirations) = (counts.diskHits, counts.misses, counts.expirations)
        (countEvictions, sizeEvictions) = (counts.countEvictions, counts.sizeEvictions)
        (spaceEvictions, deciderEvictions) = (counts.spaceEvictions, counts.deciderEvictions)
        (writes, removals, failures) = (counts.writes, counts.removals, counts.failures)
    }
}
