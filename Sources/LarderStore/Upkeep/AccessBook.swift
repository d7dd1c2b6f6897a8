internal import LarderLocks

/// An access to an entry.
@usableFromInline
package struct Access: Sendable {
    let id: Int64
    package let revision: Int64
    /// Milliseconds since 1970.
    package fileprivate(set) var moment: Int64
    /// The milliseconds by which the stored access may lag.
    fileprivate(set) var grain: Int64
    /// A Boolean value that indicates whether the entry ends some time after its last access.
    let slides: Bool
    /// The last access, or the write, that the disk has for certain.
    fileprivate var stored = Int64.min
    fileprivate var isTaken = false

    @usableFromInline
    package init(id: Int64, revision: Int64, moment: Int64, grain: Int64, slides: Bool = false) {
        (self.id, self.revision, self.moment, self.grain) = (id, revision, moment, grain)
        self.slides = slides
    }

    /// An access to a row that was read.
    init(to row: RowSummary, moment: Int64, grain: Int64) {
        self.init(id: row.id, revision: row.revision, moment: moment, grain: grain, slides: row.slidingAge != nil)
        if grain > 0 && !slides { stored = row.writtenAt }
    }

    /// A Boolean value that indicates whether it is to be stored: the disk lags by the grain, as far as is known here.
    fileprivate var waits: Bool { !isTaken && stored < moment && stored <= moment.subtractingSaturated(grain) }

    /// Returns the place of an access in the order of use, in which a write has twice its moment.
    static func order(at moment: Int64) -> Int64 { moment.addingSaturated(moment).addingSaturated(1) }
}

/// The last access of this process to each row, which is stored later.
///
/// Reads write nothing. An access that is within the grain of the row's write, or of an access that was stored, is not stored, and no
/// look-up is spent on it if this process knows that. It stays here for the order of use, as those do that were taken to be
/// stored: the grain may have left them out. Too many are dropped, the oldest first. A store without upkeep, as one
/// that is only read, drops them as they are noted, but for those of entries whose end follows the last access.
@usableFromInline
package final class AccessBook: Sendable {
    /// The number of new accesses after which it is time to store them.
    fileprivate static let batchSize = 4096
    /// The number of accesses above which the oldest half of them is dropped.
    fileprivate static let capacity = 64 * batchSize

    fileprivate struct State {
        var accesses: [Int64: Access] = [:]
        /// The number of accesses since the last call that are to be stored.
        var newCount = 0
        /// A Boolean value that indicates whether upkeep takes them.
        var hasUpkeep = false
        /// The number of accesses at which the oldest are dropped next.
        var bound = AccessBook.capacity
    }

    private let state = Mutex(State())

    package init() {}

    /// Notes that upkeep takes the accesses.
    func noteUpkeep() { state.withLock { $0.hasUpkeep = true } }

    /// Notes accesses that memory has served.
    @usableFromInline
    package func note(servedByMemory served: [Access]) {
        state.withLock { state in
            for access in served { _ = state.note(access) }
        }
    }

    /// Notes the accesses that memory has served, of a cache or of all, and returns the tiers, to be released outside locks.
    @discardableResult
    func note(servedBy tiers: AttachedTiers, of cache: CacheIdentity?, at now: Int64) -> [any TierDelegate] {
        let asked = cache.map { tiers[$0] } ?? Array(tiers.all.values.joined())
        for tier in asked { note(servedByMemory: tier.takeAccesses(at: now)) }
        return asked
    }

    /// Notes an access, and returns whether it is time to store them.
    package func note(_ access: Access) -> Bool { state.withLock { $0.note(access) } }

    /// Returns the accesses since the last call.
    package func take() -> [Access] {
        state.withLock { state in
            // Those that were taken before are stored by now.
            if state.accesses.count > Self.capacity { state.dropOldest(keeping: \.waits) }
            let found = state.accesses.values.filter(\.waits)
            for access in found { state.accesses[access.id]?.isTaken = true }
            state.newCount = 0
            return found
        }
    }

    /// Notes that an access was stored.
    package func noteStored(_ access: Access) {
        state.withLock { state in
            guard let known = state.accesses[access.id], known.revision == access.revision else { return }
            state.accesses[access.id]?.stored = max(known.stored, access.moment)
        }
    }

    /// Takes accesses back that could not be stored.
    package func putBack(_ accesses: [Access]) {
        state.withLock { state in
            for access in accesses where state.accesses[access.id]?.revision == access.revision {
                state.accesses[access.id]?.isTaken = false
            }
        }
    }

    /// The moments of the accesses, by the ids of rows.
    var moments: [Int64: Int64] { state.withLock { $0.accesses.mapValues(\.moment) } }

    package func lastAccess(_ id: Int64, _ revision: Int64) -> Int64? {
        state.withLock { $0.accesses[id].flatMap { $0.revision == revision ? $0.moment : nil } }
    }
}

extension AccessBook.State {
    fileprivate mutating func note(_ access: Access) -> Bool {
        let isNew = Self.note(access, at: &accesses[access.id])
        if isNew { newCount += 1 }
        if accesses.count >= bound {
            let hasUpkeep = hasUpkeep
            dropOldest { $0.waits && (hasUpkeep || $0.slides) }
            bound = max(AccessBook.capacity, 2 * accesses.count)
        }
        return isNew && newCount % AccessBook.batchSize == 0
    }

    /// Notes an access at its place, and returns whether there is one to be stored now where there was none.
    private static func note(_ access: Access, at place: inout Access?) -> Bool {
        var new = access
        if let old = place, old.revision == access.revision {
            (new.moment, new.grain) = (max(access.moment, old.moment), min(access.grain, old.grain))
            new.stored = max(access.stored, old.stored)
        } else if let old = place, old.moment > access.moment {
            return false
        }
        defer { place = new }
        return new.waits && place?.waits != true
    }

    /// Drops the oldest accesses until half the capacity is left, but for those that have to stay.
    fileprivate mutating func dropOldest(keeping hasToStay: (Access) -> Bool) {
        let moments = accesses.values.filter { !hasToStay($0) }.map(\.moment).sorted(by: >)
        let kept = AccessBook.capacity / 2
        guard moments.count > kept else { return }
        // Of those of one moment some stay.
        var rest = moments.prefix(kept).reversed().prefix { $0 == moments[kept] }.count
        accesses = accesses.filter { _, access in
            if access.moment > moments[kept] || hasToStay(access) { return true }
            guard access.moment == moments[kept], rest > 0 else { return false }
            rest -= 1
            return true
        }
    }
}
