internal import LarderSQLite

/// What the writer knows of limits, and the evictions that hold them.
///
/// Removing rows needs the connection, the counts and the incarnations too: see `WriterState+Limits.swift`.
struct Limiter {
    private(set) var storeLimits = StoreLimits()
    /// Whether the limits of the store were looked up since the incarnations were.
    private(set) var isCurrent = false
    private(set) var hasLimits = false
    /// The evictions that have begun, by the ids of incarnations; 0 for that of the store, and ``ofFreeSpace``.
    var evictions: [Int64: Eviction] = [:]
    /// What ended evictions have chosen and not needed.
    private var spareVictims: [Int64: Eviction.Spare] = [:]
    var waits = LimitWaits()
    /// The free bytes of the disk when the running eviction for its floor began.
    var spaceBefore: Int64 = 0
    /// The row that was written last, which no limit removes.
    private(set) var lastWrittenID: Int64?

    /// The key of the eviction that frees space of the disk.
    static let ofFreeSpace: Int64 = -1

    // MARK: Limits

    /// Sets the limits of the store, and notes whether there are any.
    mutating func set(_ limits: StoreLimits, _ incarnations: LiveIncarnations) {
        (storeLimits, isCurrent) = (limits, true)
        noteLimits(of: incarnations)
    }

    /// Notes whether there are limits.
    mutating func noteLimits(of incarnations: LiveIncarnations) {
        hasLimits = storeLimits != StoreLimits() || incarnations.values.contains { $0.limits != Limits() }
    }

    /// Notes that another store may have changed its limits.
    mutating func noteNewEpoch() { isCurrent = false }

    /// Refuses an entry that is larger than a whole size limit.
    func check(_ size: Int64, in cache: Incarnation) throws(StoreError) {
        guard hasLimits else { return }
        if let limit = cache.limits.size, size > limit { throw .exceeds(limit, of: "its cache", size: size) }
        if let limit = storeLimits.size, size > limit { throw .exceeds(limit, of: "the store", size: size) }
    }

    /// The caches with limits, and the store if it has one, with the keys of their evictions.
    func limited(_ incarnations: LiveIncarnations) -> [(id: Int64, cache: Incarnation?, limits: Limits)] {
        var found = incarnations.values.filter { $0.limits != Limits() }.map {
            ($0.id, Incarnation?.some($0), $0.limits)
        }
        if let size = storeLimits.size { found.append((0, nil, Limits(size: size))) }
        return found
    }

    /// Returns whether a limit depends on rows that were not counted, or not since another store has committed.
    func needsCount(_ incarnations: LiveIncarnations, _ counts: RowCounts) -> Bool {
        hasLimits
            && incarnations.values.contains {
                (storeLimits.size != nil || $0.limits != Limits()) && counts[$0.id]?.isExact != true
            }
    }

    // MARK: Evictions

    /// Notes the row that was written last; nil lets any row go.
    mutating func noteWrite(_ id: Int64?) { lastWrittenID = id }

    /// Forgets what limits wait for, which row was written last, and the evictions.
    ///
    /// - Parameter keepsSpares: A Boolean value that indicates whether what was chosen and not needed is kept.
    mutating func forgetWaits(keepsSpares: Bool = false) {
        waits.forget()
        (evictions, lastWrittenID) = ([:], nil)
        if !keepsSpares { spareVictims = [:] }
    }

    /// Begins again with another file.
    mutating func reset() { (waits, evictions) = (LimitWaits(), [:]) }

    /// Lets limits look again at once: a row that was pinned may be what they wait for.
    mutating func notePinGone() {
        waits.forgetSearch()
        for id in evictions.keys { evictions[id]?.noteLeftOut() }
    }

    /// Returns an eviction and its spare victims, to be restored if the transaction is undone.
    func saved(_ id: Int64) -> SavedEviction { SavedEviction(id: id, eviction: evictions[id], spare: spareVictims[id]) }

    mutating func restore(_ saved: SavedEviction) {
        (evictions[saved.id], spareVictims[saved.id]) = (saved.eviction, saved.spare)
    }

    /// Takes out the spare victims of an eviction.
    mutating func takeSpare(_ id: Int64) -> Eviction.Spare? { spareVictims.removeValue(forKey: id) }

    /// Keeps an eviction that goes on, and notes the end of one that does not.
    ///
    /// - Returns: True if its limit cannot be held, and that is to be reported.
    mutating func end(_ eviction: Eviction, _ id: Int64, at now: Int64) -> Bool {
        guard let isHeld = eviction.isHeld else {
            evictions[id] = eviction
            return false
        }
        if isHeld {
            waits.unmet.remove(id)
            spareVictims[id] = eviction.spare
            return false
        }
        waits.search.begin(at: now)
        return id != Self.ofFreeSpace && waits.unmet.insert(id).inserted
    }
}

/// An eviction as it was before a transaction.
struct SavedEviction {
    let id: Int64
    fileprivate let eviction: Eviction?
    fileprivate let spare: Eviction.Spare?
}
