internal import LarderSQLite
internal import Synchronization

/// What a store does when the disk is full, before a write fails.
extension Store {
    /// How often a write is tried again; each time twice as much is evicted.
    private static let rounds = 4

    /// Runs a write, and again after an eviction where the disk is full.
    ///
    /// The caller holds nothing, since an eviction is a write too.
    ///
    /// - Parameters:
    ///   - size: The bytes that are to be written.
    ///   - isAllowed: Whether the cache that is written allows it.
    package func evictingOnFullDisk<R>(
        _ size: Int, isAllowed: Bool, _ write: () throws(CacheError) -> R
    ) throws(CacheError) -> R {
        var wanted = max(Int64(size) * 2, 1 << 18)
        for _ in 0..<Self.rounds {
            do throws(CacheError) {
                return try write()
            } catch {
                guard error.code == .storageFull, isAllowed, !inside.containCurrent, try evict(bytes: wanted) else {
                    throw error
                }
                wanted *= 2
            }
        }
        return try write()
    }

    /// Evicts expired entries, or else the least recently used, of the caches in use that allow it, and gives their space back.
    ///
    /// - Returns: Whether any was evicted.
    private func evict(bytes: Int64) throws(CacheError) -> Bool {
        let ledgers = live.all.filter { !$0.isSuperseded && $0.evictsOnFullDisk.load(ordering: .relaxed) }
        var count = 0
        for ledger in ledgers { count += try unlessSuperseded { () throws(CacheError) in try ledger.sweep() } }
        if count == 0 { count = try evictLeastUsed(of: ledgers, bytes: bytes) }
        if count > 0 { try giveBackSpace() }
        return count > 0
    }

    private func evictLeastUsed(of ledgers: [RowLedger], bytes: Int64) throws(CacheError) -> Int {
        var candidates: [(ledger: RowLedger, candidate: TrimCandidate)] = []
        let now = timekeeper.now()
        for ledger in ledgers {
            let rule = AgeRule.loosest(ledger.liveRules, at: now).first
            candidates += try ledger.leastUsed(rule, and: nil, now: now, atLeast: 1000).map { (ledger, $0) }
        }
        candidates.sort { $0.candidate.used < $1.candidate.used }
        var rest = bytes
        var victims: [ObjectIdentifier: [RowVictim]] = [:]
        for (ledger, candidate) in candidates where rest > 0 {
            rest -= max(candidate.facts.size, 1)
            victims[ledger.identity, default: []].append(
                RowVictim(candidate.key, candidate.facts, used: candidate.used, isExpired: candidate.isExpired))
        }
        var count = 0
        for ledger in ledgers {
            guard let own = victims[ledger.identity] else { continue }
            count += try unlessSuperseded { () throws(CacheError) in try ledger.remove(own, .freeSpace).count }
        }
        return count
    }
}
