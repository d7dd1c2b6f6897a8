internal import LarderStore

/// The counters of a cache since it was opened, which its memory guards.
@usableFromInline
struct CacheCounts: Sendable {
    @usableFromInline var (memoryHits, diskHits, misses, memoryEvictions) = (0, 0, 0, 0)
    @usableFromInline var (writes, failures, loads) = (0, 0, 0)
    var (expirations, removals) = (0, 0)
    var (countEvictions, sizeEvictions, spaceEvictions, deciderEvictions) = (0, 0, 0, 0)

    mutating func note(_ cause: RemovedRow.Cause) {
        switch cause {
        case .expired: expirations += 1
        case .evicted(.count): countEvictions += 1
        case .evicted(.size): sizeEvictions += 1
        case .evicted(.space): spaceEvictions += 1
        case .decided: deciderEvictions += 1
        case .removed: removals += 1
        case .damaged: failures += 1
        // It has counted when it was met.
        case .undecodable: break
        }
    }

    private static let all: [any WritableKeyPath<CacheCounts, Int> & Sendable] = [
        \.memoryHits, \.diskHits, \.misses, \.expirations, \.memoryEvictions, \.countEvictions, \.sizeEvictions,
        \.spaceEvictions, \.deciderEvictions, \.writes, \.removals, \.failures, \.loads,
    ]

    /// Returns what was counted since an earlier moment.
    func since(_ earlier: CacheCounts) -> CacheCounts {
        var counts = self
        for count in Self.all { counts[keyPath: count] -= earlier[keyPath: count] }
        return counts
    }

    init() {}

    /// Creates the counters from their numbers in the store.
    init(_ numbers: [Int64: Int64]) {
        for (number, count) in Self.all.enumerated() {
            self[keyPath: count] = Int(clamping: numbers[Int64(number)] ?? 0)
        }
    }

    /// The counters by their numbers in the store, those that are not zero.
    var byNumber: [Int64: Int64] {
        var numbers: [Int64: Int64] = [:]
        for (number, count) in Self.all.enumerated() where self[keyPath: count] != 0 {
            numbers[Int64(number)] = Int64(self[keyPath: count])
        }
        return numbers
    }
}
