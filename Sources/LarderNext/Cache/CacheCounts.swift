internal import LarderStore

/// The counters of a cache, which its memory guards.
@usableFromInline
struct CacheCounts: Sendable {
    @usableFromInline var memoryHits = 0
    var (diskHits, misses, expirations, memoryEvictions) = (0, 0, 0, 0)
    var (countEvictions, sizeEvictions, spaceEvictions, deciderEvictions) = (0, 0, 0, 0)
    var (writes, removals, failures) = (0, 0, 0)

    mutating func note(_ cause: RemovedRow.Cause) {
        switch cause {
        case .expired: expirations += 1
        case .evicted(.count): countEvictions += 1
        case .evicted(.size): sizeEvictions += 1
        case .evicted(.space): spaceEvictions += 1
        case .removed: removals += 1
        case .damaged: failures += 1
        // It has counted when it was met.
        case .undecodable: break
        }
    }
}
