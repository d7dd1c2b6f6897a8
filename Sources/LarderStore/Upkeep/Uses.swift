public import Synchronization

/// An access to an entry.
@usableFromInline
package struct Access: Sendable {
    let id: Int64
    fileprivate(set) var revision: Int64
    /// Milliseconds since 1970.
    fileprivate(set) var moment: Int64
    /// The place in the order of use.
    ///
    /// It is on the scale of ids: an entry that was never used stands at its own id.
    fileprivate(set) var place: Int64
    /// The milliseconds by which the stored access may lag.
    fileprivate(set) var grain: Int64
    /// A Boolean value that indicates whether the entry was replaced, which is a use and keeps the id.
    var isReplacement = false
    fileprivate var isStamped = false

    @usableFromInline
    package init(id: Int64, revision: Int64, moment: Int64, place: Int64, grain: Int64) {
        (self.id, self.revision, self.moment, self.place, self.grain) = (id, revision, moment, place, grain)
    }
}

/// The last access of this process to each row, which is stamped later.
///
/// Reads write nothing. Upkeep leaves out what the grain allows and an eviction does not, so accesses stay here until an
/// eviction has stamped them, or until they are too many.
@usableFromInline
package final class Uses: Sendable {
    private static let capacity = 4096
    /// The bits of a place below those of an id: so many accesses stand between two new entries.
    static let placeBits: Int64 = 24
    /// The step between two accesses that memory does not serve, which leaves places for those that it does.
    private static let placeStep: Int64 = 1 << 16

    private let noted = Mutex<[Int64: Access]>([:])
    @usableFromInline let lastPlace = Atomic<Int64>(0)

    /// The place of the last access or write, for accesses that memory serves.
    @inlinable @inline(__always)
    package var latestPlace: Int64 { lastPlace.load(ordering: .relaxed) }

    @usableFromInline
    package func nextPlace() -> Int64 { lastPlace.add(Self.placeStep, ordering: .relaxed).newValue }

    /// Returns the id of a new entry, which is above all ids and places.
    func nextID() -> Int64 {
        let id = (lastPlace.load(ordering: .relaxed) >> Self.placeBits) + 1
        raise(to: id << Self.placeBits)
        return id
    }

    /// Notes a place of another store or an earlier one: later accesses come after it.
    @usableFromInline
    package func raise(to place: Int64) { _ = lastPlace.max(place, ordering: .relaxed) }

    /// Notes accesses that memory has served.
    @usableFromInline
    package func note(servedByMemory accesses: [Access]) { for access in accesses { _ = note(access) } }

    /// Notes an access, and returns whether it is time to stamp.
    func note(_ access: Access) -> Bool {
        noted.withLock { noted in
            var access = access
            if let old = noted[access.id] {
                if old.revision == access.revision {
                    (access.moment, access.place) = (max(access.moment, old.moment), max(access.place, old.place))
                    access.grain = min(access.grain, old.grain)
                    access.isReplacement = access.isReplacement || old.isReplacement
                } else if old.place > access.place {
                    return false
                }
            }
            if noted.count >= 4 * Self.capacity { noted.removeAll(keepingCapacity: true) }
            let isNew = noted.updateValue(access, forKey: access.id) == nil
            return isNew && noted.count % Self.capacity == 0
        }
    }

    /// Returns the accesses to stamp: for an eviction all, which are forgotten, or else those since the last call.
    func take(isExact: Bool) -> [Access] {
        noted.withLock { noted in
            let found = noted.values.filter { isExact || !$0.isStamped }
            for access in found { noted[access.id]?.isStamped = true }
            if isExact || noted.count >= Self.capacity { noted = [:] }
            return found
        }
    }

    var moments: [Int64: Int64] { noted.withLock { $0.mapValues(\.moment) } }
    var places: [Int64: Int64] { noted.withLock { $0.mapValues(\.place) } }

    func move(_ id: Int64, from old: Int64, to revision: Int64) {
        noted.withLock { if $0[id]?.revision == old { $0[id]?.revision = revision } }
    }

    func lastAccess(_ id: Int64, _ revision: Int64) -> Int64? {
        noted.withLock { $0[id].flatMap { $0.revision == revision ? $0.moment : nil } }
    }
}

/// The memory tier of a cache, as the store calls it.
package protocol CacheMemory: AnyObject, Sendable {
    /// Called after the commit that removed rows, outside all locks but for that of a running body.
    func rowsWereRemoved(_ rows: [RemovedRow])
    /// Returns the accesses since the last call, the oldest first.
    ///
    /// It is called under the writer's lock, so it takes a leaf lock alone and calls nothing of the store.
    ///
    /// - Parameter now: The moment of later accesses that read no clock.
    func takeAccesses(at now: Int64) -> [Access]
    /// Called after the file was opened again, outside all locks but for that of a running body.
    func storeWasReplaced()
    /// Returns what the counters have gained since the last call, by their numbers.
    func takeActivity() -> [Int64: Int64]
    /// Called under the writer's lock for a write or a removal of keys: loads that run for them are not to store their
    /// results.
    ///
    /// It takes a leaf lock alone.
    ///
    /// - Parameter keys: The keys; nil for all.
    func overtakeLoads(of keys: [StoredKey]?)
}

/// The number of memory tiers of a store that a write may concern: loads run, or keys are known to be absent.
package final class LoadCount: Sendable {
    private let number = Atomic(0)

    package var isZero: Bool { number.load(ordering: .sequentiallyConsistent) == 0 }

    package func change(by difference: Int) { number.add(difference, ordering: .sequentiallyConsistent) }
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

/// The memories in front of the caches of a store, by their caches.
final class Memories: Sendable {
    private let byCache = Mutex<[CacheIdentity: [any CacheMemory]]>([:])
    let loadCount = LoadCount()

    func attach(_ memory: any CacheMemory, to cache: CacheIdentity) {
        byCache.withLock { $0[cache, default: []].append(memory) }
    }

    func detach(_ memory: any CacheMemory, from cache: CacheIdentity) {
        // Released outside the lock.
        let old = byCache.withLock { memories in
            let old = memories[cache]
            memories[cache]?.removeAll { $0 === memory }
            return old
        }
        withExtendedLifetime(old) {}
    }

    subscript(cache: CacheIdentity) -> [any CacheMemory] { byCache.withLock { $0[cache] ?? [] } }
    var all: [CacheIdentity: [any CacheMemory]] { byCache.withLock { $0 } }
}
