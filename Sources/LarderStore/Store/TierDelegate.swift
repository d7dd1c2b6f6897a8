internal import LarderLocks
package import LarderSQLite

/// The memory tier of a cache, as the store calls it.
package protocol TierDelegate: AnyObject, Sendable {
    /// Called under the writer's lock after a commit that removed rows, before reads agree with it: until
    /// ``rowsWereRemoved(_:)``, whose keys are decoded outside the lock, no copy is served that was not compared with its row.
    ///
    /// It takes a leaf lock alone.
    func rowsAreRemoved()
    /// Called after the commit that removed rows, outside all locks but for that of a running body.
    func rowsWereRemoved(_ rows: [RemovedRow])
    /// Returns the accesses since the last call, the oldest first.
    ///
    /// It is called under the writer's lock, so it takes a leaf lock alone and calls nothing of the store.
    ///
    /// - Parameter now: The moment of later accesses that read no clock.
    func takeAccesses(at now: Int64) -> [Access]
    /// Called when it is attached and after the file was opened again, outside all locks but for that of a running body.
    ///
    /// - Parameter watch: The watch of the open file.
    func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool)
    /// Returns what the counters have gained since the last call, by their numbers.
    func takeActivity() -> [Int64: Int64]
    /// Called under the writer's lock for what is written or removed, in the transaction or after its commit: loads that run are not to store
    /// their results.
    ///
    /// It takes a leaf lock alone.
    func overtakeLoads(_ loads: Overtaken)
}

/// A row that the store removed by age, limit or tag.
package struct RemovedRow: Sendable {
    package enum Cause: Hashable, Sendable {
        case expired, removed, damaged
        /// By a closure of the program that evicts.
        case decided
        /// By the typed side, because it does not decode.
        case undecodable
        case evicted(by: Shortage)
    }

    /// What there was too little of for a row to stay.
    package enum Shortage: Sendable { case count, size, space }

    package let key: StoredKey
    package let id: Int64
    package let revision: Int64
    package let cause: Cause
}

/// The caches that a process has open, with the tiers in front of them.
final class AttachedTiers: Sendable {
    private struct Attachment {
        var tiers: [any TierDelegate] = []
        var handleCount = 0

        var isOpen: Bool { handleCount > 0 || !tiers.isEmpty }
    }

    private let byCache = Mutex<[CacheIdentity: Attachment]>([:])
    let loadCount = LoadCount()

    func attach(_ memory: any TierDelegate, to cache: CacheIdentity) { change(cache) { $0.tiers.append(memory) } }

    func detach(_ memory: any TierDelegate, from cache: CacheIdentity) {
        change(cache) { $0.tiers.removeAll { $0 === memory } }
    }

    /// Notes that there is a handle more, or one less.
    func countHandle(of cache: CacheIdentity, _ difference: Int) { change(cache) { $0.handleCount += difference } }

    private func change(_ cache: CacheIdentity, _ body: (inout Attachment) -> Void) {
        // Released outside the lock.
        let old = byCache.withLock { caches in
            let old = caches[cache]
            var open = old ?? Attachment()
            body(&open)
            caches[cache] = open.isOpen ? open : nil
            return old
        }
        withExtendedLifetime(old) {}
    }

    subscript(cache: CacheIdentity) -> [any TierDelegate] { byCache.withLock { $0[cache]?.tiers ?? [] } }
    var all: [CacheIdentity: [any TierDelegate]] { byCache.withLock { $0.mapValues(\.tiers) } }
    /// The names of the caches that are open.
    var names: Set<ExactName> { byCache.withLock { Set($0.keys.map(\.name)) } }
}

/// The number of memory tiers of a store that a write may concern: loads run, or keys are known to be absent.
package final class LoadCount: Sendable {
    private let number = Atomic(0)

    package init() {}

    package var isZero: Bool { number.load(ordering: .sequentiallyConsistent) == 0 }

    package func change(by difference: Int) { number.add(difference, ordering: .sequentiallyConsistent) }
}
