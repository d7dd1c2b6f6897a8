internal import LarderStore

/// The open caches of a manager, each with those who have opened it under one declaration.
///
/// The references are weak. Those of released caches are removed when the table has doubled, so an opening takes the same
/// time however many caches are open. What a method returns is to be released outside the lock: it may be the last
/// reference to a cache.
struct OpenCaches: Sendable {
    private struct WeakCache: Sendable {
        weak var cache: (any AnyCacheCore)?
        /// The place of the latest opening in the order of commits.
        var openingCount: Int
    }

    private var byName: [ExactName: [CacheIdentity: WeakCache]] = [:]
    /// The number of references, and the one at which those of released caches are removed.
    private(set) var count = 0
    private var countLimit = 16

    /// Returns the open cache of a declaration; nil if no handle is live.
    func cache(_ identity: CacheIdentity) -> (any AnyCacheCore)? { byName[identity.name]?[identity]?.cache }

    var all: [any AnyCacheCore] { byName.values.flatMap { $0.values.compactMap(\.cache) } }

    /// Adds a cache, and returns the caches that it has looked at.
    mutating func add(_ cache: any AnyCacheCore, _ identity: CacheIdentity) -> [any AnyCacheCore] {
        let old = byName[identity.name, default: [:]].updateValue(
            WeakCache(cache: cache, openingCount: 0), forKey: identity)
        if old == nil { count += 1 }
        return count > countLimit ? removeReleased() : []
    }

    private mutating func removeReleased() -> [any AnyCacheCore] {
        var live: [any AnyCacheCore] = []
        byName = byName.compactMapValues { caches in
            let caches = caches.filter { entry in
                guard let cache = entry.value.cache else { return false }
                live.append(cache)
                return true
            }
            return caches.isEmpty ? nil : caches
        }
        count = live.count
        countLimit = max(16, 2 * count)
        return live
    }

    /// Notes an opening, and returns the caches of the same name that were opened before it under other declarations.
    ///
    /// - Parameters:
    ///   - identity: The declaration; nil if the cache was removed.
    ///   - openingCount: The place of the opening or removal in the order of commits. Calls come in any order.
    mutating func supersede(
        _ name: ExactName, by identity: CacheIdentity?, _ openingCount: Int
    ) -> [any AnyCacheCore] {
        if let identity, let old = byName[name]?[identity]?.openingCount {
            byName[name]?[identity]?.openingCount = max(old, openingCount)
        }
        return byName[name, default: [:]].filter { $0.key != identity && $0.value.openingCount < openingCount }
            .compactMap(\.value.cache)
    }
}
