internal import LarderStore

/// The counters of a cache since it was opened, or since ``Cache/resetStatistics()``.
///
/// The handles of one manager on one cache share the counters. They count the calls of these handles and the rows that
/// this manager deletes. The numbers are exact, from whatever threads the calls come.
public struct CacheStatistics: Hashable, Sendable {
    /// The number of reads that memory answered.
    public let memoryHits: Int

    /// The number of reads that the disk answered.
    public let diskHits: Int

    /// The number of reads that memory or the disk answered.
    public var hits: Int { memoryHits + diskHits }

    /// The number of reads that found no value that may be served.
    public let misses: Int

    /// The share of reads that memory or the disk answered, from 0 to 1; nil if there was no read.
    public var hitRate: Double? { hits + misses == 0 ? nil : Double(hits) / Double(hits + misses) }

    /// The number of keys that closures were asked to make values for, whatever came of it.
    ///
    /// All callers that wait for one load count as one.
    public let loads: Int

    /// The number of loads that ended with an error, those of one key or of many.
    ///
    /// Loads that were cancelled or have taken too long don't count.
    public let loadFailures: Int

    /// The number of loads that were ended because they took too long; see ``GenerationPolicy/timeout``.
    public let loadTimeouts: Int

    /// The number of expired values that were served as a ``GenerationPolicy`` allows; they count as ``hits`` too.
    public let staleHits: Int

    /// How long loads took that have not failed: the calls of closures, each for one key or for many.
    ///
    /// For a shared cache that includes the answer of the tier.
    public let loadTimes: LoadTimes

    /// The number of entries that were deleted because they had expired.
    ///
    /// An expired entry counts when its row is deleted. A read that finds it before that counts as a miss.
    public let expirations: Int

    /// The number of entries that limits, trims and eviction closures deleted from the disk.
    public var evictions: Int { countEvictions + sizeEvictions + spaceEvictions + deciderEvictions }

    /// The number of evictions because there were too many entries.
    public let countEvictions: Int

    /// The number of evictions because the entries had too many bytes.
    public let sizeEvictions: Int

    /// The number of evictions because the disk was short of space.
    public let spaceEvictions: Int

    /// The number of evictions that a closure chose; see ``Cache/evict(every:where:)``.
    public let deciderEvictions: Int

    /// The number of entries that left memory because of its limits; they are still on disk.
    public let memoryEvictions: Int

    /// The number of entries that were written.
    ///
    /// Calls that change only extended data, an age or a pin don't count.
    public let writes: Int

    /// The number of entries that calls removed by key, by predicate or by tag.
    ///
    /// Entries that are removed by `removeAll()` or `clear(progress:)` don't count.
    public let removals: Int

    /// The number of failures: values that did not decode, damaged entries, and failures of calls that cannot throw.
    ///
    /// The subscript is such a call. A damaged entry counts when its row is deleted, in the background.
    public let failures: Int

    /// Creates the statistics from counters by their numbers in the store.
    package init(activity: [Int64: Int64]) { self.init(CacheCounts(activity)) }

    init(_ counts: CacheCounts) {
        (memoryHits, memoryEvictions) = (counts.memoryHits, counts.memoryEvictions)
        (diskHits, misses, expirations) = (counts.diskHits, counts.misses, counts.expirations)
        (countEvictions, sizeEvictions) = (counts.countEvictions, counts.sizeEvictions)
        (spaceEvictions, deciderEvictions) = (counts.spaceEvictions, counts.deciderEvictions)
        (writes, removals, failures, loads) = (counts.writes, counts.removals, counts.failures, counts.loads)
        staleHits = counts.staleHits
        // Those of loads are read first, and the counters may be reset in the meantime.
        (loadFailures, loadTimeouts) = (max(0, counts.loading.failures), max(0, counts.loading.timeouts))
        var times = counts.loading.times
        times.counts = times.counts.map { max(0, $0) }
        times.total = max(.zero, times.total)
        loadTimes = times
    }
}

/// The counters of a cache since it was opened, which its memory guards.
@usableFromInline
struct CacheCounts: Sendable {
    @usableFromInline var (memoryHits, diskHits, misses, memoryEvictions) = (0, 0, 0, 0)
    @usableFromInline var (writes, failures, loads) = (0, 0, 0)
    var staleHits = 0
    /// What the loads have counted, which is added when the counters are read.
    var loading = LoadCounts()
    var (expirations, removals) = (0, 0)
    var (countEvictions, sizeEvictions, spaceEvictions, deciderEvictions) = (0, 0, 0, 0)

    mutating func note(_ cause: RemovedRow.Cause) {
        switch cause {
        case .expired: expirations += 1
        case .evicted(.count): countEvictions += 1
        case .evicted(.size): sizeEvictions += 1
        case .evicted(.space): spaceEvictions += 1
        case .decided: deciderEvictions += 1
        case .removed, .tagged: removals += 1
        case .damaged: failures += 1
        // It has counted when it was met.
        case .undecodable: break
        }
    }

    private static let all: [any WritableKeyPath<CacheCounts, Int> & Sendable] = [
        \.memoryHits, \.diskHits, \.misses, \.expirations, \.memoryEvictions, \.countEvictions, \.sizeEvictions,
        \.spaceEvictions, \.deciderEvictions, \.writes, \.removals, \.failures, \.loads, \.staleHits,
        \.loading.failures, \.loading.timeouts, \.loading.times.microseconds,
    ]
    /// The number in the store of the first class of load times.
    private static let firstTime = 64

    func with(_ loading: LoadCounts) -> CacheCounts {
        var counts = self
        counts.loading = loading
        return counts
    }

    /// Returns what was counted since an earlier moment.
    func since(_ earlier: CacheCounts) -> CacheCounts {
        var counts = self
        for count in Self.all { counts[keyPath: count] -= earlier[keyPath: count] }
        for place in counts.loading.times.counts.indices {
            counts.loading.times.counts[place] -= earlier.loading.times.counts[place]
        }
        return counts
    }

    init() {}

    /// Creates the counters from their numbers in the store.
    init(_ numbers: [Int64: Int64]) {
        for (number, count) in Self.all.enumerated() {
            self[keyPath: count] = Int(clamping: numbers[Int64(number)] ?? 0)
        }
        for place in loading.times.counts.indices {
            loading.times.counts[place] = Int(clamping: numbers[Int64(Self.firstTime + place)] ?? 0)
        }
    }

    /// The counters by their numbers in the store, those that are not zero.
    var byNumber: [Int64: Int64] {
        var numbers: [Int64: Int64] = [:]
        for (number, count) in Self.all.enumerated() where self[keyPath: count] != 0 {
            numbers[Int64(number)] = Int64(self[keyPath: count])
        }
        for (place, count) in loading.times.counts.enumerated() where count != 0 {
            numbers[Int64(Self.firstTime + place)] = Int64(count)
        }
        return numbers
    }
}
