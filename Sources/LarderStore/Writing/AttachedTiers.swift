internal import LarderLocks

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
