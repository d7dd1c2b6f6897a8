internal import LarderLocks

/// An access to an entry.
@usableFromInline
package struct Access: Sendable {
    let id: Int64
    fileprivate(set) var revision: Int64
    /// Milliseconds since 1970.
    fileprivate(set) var moment: Int64
    /// The place in the order of use, once it is noted.
    ///
    /// It is on the scale of ids: an entry that was never used stands at its own id.
    fileprivate(set) var place: Int64 = 0
    /// The milliseconds by which the stored access may lag.
    fileprivate(set) var grain: Int64
    /// A Boolean value that indicates whether the entry was replaced, which is a use and keeps the id.
    var isReplacement = false
    /// A Boolean value that indicates whether memory has seen a write since.
    @usableFromInline package var isBeforeWrite = false
    fileprivate var isStamped = false

    @usableFromInline
    package init(id: Int64, revision: Int64, moment: Int64, grain: Int64) {
        (self.id, self.revision, self.moment, self.grain) = (id, revision, moment, grain)
    }
}

/// The last access of this process to each row, which is stamped later.
///
/// Reads write nothing. Upkeep leaves out what the grain allows and an eviction does not, so accesses stay here until an
/// eviction has stamped them, or until they are too many.
@usableFromInline
package final class Uses: Sendable {
    fileprivate static let capacity = 4096
    /// The bits of a place below those of an id: so many accesses stand between two new entries.
    static let placeBits: Int64 = 24
    /// The step between two accesses that memory does not serve, which leaves places for those that it does.
    fileprivate static let placeStep: Int64 = 1 << 16

    fileprivate struct State {
        var noted: [Int64: Access] = [:]
        var places = Places()
    }

    private let state = Mutex(State())

    /// Returns the id of a new entry, which is above all ids and all places that were given.
    func nextID(at moment: Int64) -> Int64 {
        state.withLock { state in
            let id = (state.places.last >> Self.placeBits) + 1
            state.places.give(id << Self.placeBits, at: moment)
            return id
        }
    }

    /// Notes a place of another store or an earlier one: later accesses come after it.
    func raise(to place: Int64) { state.withLock { $0.places.raise(to: place) } }

    /// Notes accesses that memory has served.
    ///
    /// - Parameter accesses: Those of each tier in the order of use.
    @usableFromInline
    package func note(servedByMemory accesses: [Access]) {
        let order = accesses.indices.sorted { (accesses[$0].moment, $0) < (accesses[$1].moment, $1) }
        state.withLock { state in
            for index in order {
                var access = accesses[index]
                access.place = state.places.serve(at: access.moment, isBeforeWrite: access.isBeforeWrite)
                _ = state.note(access)
            }
        }
    }

    /// Notes an access, and returns whether it is time to stamp.
    func note(_ access: Access) -> Bool {
        state.withLock { state in
            var access = access
            access.place = state.places.last + Self.placeStep
            state.places.give(access.place, at: access.moment)
            return state.note(access)
        }
    }

    /// Returns the accesses to stamp: for an eviction all, which are forgotten, or else those since the last call.
    func take(isExact: Bool) -> [Access] {
        state.withLock { state in
            let found = state.noted.values.filter { isExact || !$0.isStamped }
            for access in found { state.noted[access.id]?.isStamped = true }
            if isExact || state.noted.count >= Self.capacity { state.noted = [:] }
            return found
        }
    }

    func place(of id: Int64) -> Int64? { state.withLock { $0.noted[id]?.place } }

    var moments: [Int64: Int64] { state.withLock { $0.noted.mapValues(\.moment) } }
    var places: [Int64: Int64] { state.withLock { $0.noted.mapValues(\.place) } }

    func move(_ id: Int64, from old: Int64, to revision: Int64) {
        state.withLock { if $0.noted[id]?.revision == old { $0.noted[id]?.revision = revision } }
    }

    func lastAccess(_ id: Int64, _ revision: Int64) -> Int64? {
        state.withLock { $0.noted[id].flatMap { $0.revision == revision ? $0.moment : nil } }
    }
}

extension Uses.State {
    /// Notes an access that has its place.
    mutating func note(_ access: Access) -> Bool {
        var access = access
        if let old = noted[access.id] {
            if old.revision == access.revision {
                (access.moment, access.place) = (max(access.moment, old.moment), max(access.place, old.place))
                access.grain = min(access.grain, old.grain)
                access.isReplacement = access.isReplacement || old.isReplacement
            } else if !access.isReplacement
                && (old.moment > access.moment || (old.moment == access.moment && old.isReplacement))
            {
                // The row that was written again is the later one.
                return false
            }
        }
        if noted.count >= 4 * Uses.capacity { noted.removeAll(keepingCapacity: true) }
        let isNew = noted.updateValue(access, forKey: access.id) == nil
        return isNew && noted.count % Uses.capacity == 0
    }
}

/// The places in the order of use that writes and reads of the disk were given, and when.
///
/// Memory only knows the millisecond in which it has served an entry, and whether it has seen a write since. That access
/// stands behind the places until then.
fileprivate struct Places: Sendable {
    private struct Mark {
        let moment: Int64
        /// The place that was given last, and the one before.
        let before: Int64
        var place: Int64
        /// The number of accesses of memory behind it.
        var served: Int64 = 0
    }

    private(set) var last: Int64 = 0
    /// The last places of each of the latest moments, and of fewer and fewer of the earlier ones.
    private var marks = [Mark(moment: .min, before: 0, place: 0)]
    private static let markCount = 1024

    mutating func give(_ place: Int64, at moment: Int64) {
        let latest = marks[marks.count - 1].moment
        // A write may have waited for its turn.
        let moment = moment < latest && moment > latest - 60_000 ? latest : moment
        // The clock may have been set back.
        while let mark = marks.last, mark.moment >= moment { marks.removeLast() }
        marks.append(Mark(moment: moment, before: last, place: place))
        last = place
        if marks.count <= Self.markCount { return }
        marks = marks.enumerated().filter { $0.offset % 2 == 0 || $0.offset > Self.markCount / 2 }.map { $0.element }
    }

    mutating func raise(to place: Int64) {
        last = max(last, place)
        marks[marks.count - 1].place = last
    }

    /// Returns the next place of an access that memory has served at a moment.
    mutating func serve(at moment: Int64, isBeforeWrite: Bool) -> Int64 {
        var (low, high) = (0, marks.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if marks[middle].moment <= moment { low = middle } else { high = middle }
        }
        marks[low].served = min(marks[low].served + 1, Uses.placeStep - 1)
        let isBefore = isBeforeWrite && marks[low].moment == moment
        return (isBefore ? marks[low].before : marks[low].place) + marks[low].served
    }
}

/// The memory tier of a cache, as the store calls it.
package protocol CacheMemory: AnyObject, Sendable {
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
    /// Called under the writer's lock when entries with a tag are removed: loads that run are not to store results with it.
    ///
    /// It takes a leaf lock alone.
    func overtakeLoads(tagged tag: String)
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

/// The caches that a process has open, with the memories in front of them.
final class Memories: Sendable {
    private struct AnyCacheCore {
        var memories: [any CacheMemory] = []
        var handleCount = 0

        var isOpen: Bool { handleCount > 0 || !memories.isEmpty }
    }

    private let byCache = Mutex<[CacheIdentity: AnyCacheCore]>([:])
    let loadCount = LoadCount()

    func attach(_ memory: any CacheMemory, to cache: CacheIdentity) { change(cache) { $0.memories.append(memory) } }

    func detach(_ memory: any CacheMemory, from cache: CacheIdentity) {
        change(cache) { $0.memories.removeAll { $0 === memory } }
    }

    /// Notes that there is a handle more, or one less.
    func countHandle(of cache: CacheIdentity, _ difference: Int) { change(cache) { $0.handleCount += difference } }

    private func change(_ cache: CacheIdentity, _ body: (inout AnyCacheCore) -> Void) {
        // Released outside the lock.
        let old = byCache.withLock { caches in
            let old = caches[cache]
            var open = old ?? AnyCacheCore()
            body(&open)
            caches[cache] = open.isOpen ? open : nil
            return old
        }
        withExtendedLifetime(old) {}
    }

    subscript(cache: CacheIdentity) -> [any CacheMemory] { byCache.withLock { $0[cache]?.memories ?? [] } }
    var all: [CacheIdentity: [any CacheMemory]] { byCache.withLock { $0.mapValues(\.memories) } }
    /// The names of the caches that are open.
    var names: Set<ExactName> { byCache.withLock { Set($0.keys.map(\.name)) } }
    /// The number of caches that are open.
    var count: Int { byCache.withLock { $0.count } }
}
