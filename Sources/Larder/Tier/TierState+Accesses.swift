public import LarderStore

/// The accesses that memory serves, which the store stamps later.
///
/// The log keeps a time for each record: the milliseconds since ``origin`` and 1 more, 0 for an entry that was only written,
/// and a bit that says whether the store has not taken the access yet. Records with that bit are the last ones of the log.
extension TierState {
    @inlinable static var isNew: UInt32 { 1 << 31 }
    @inlinable static var writtenOnly: UInt32 { isNew }
    /// The greatest number of milliseconds since the origin.
    @inlinable static var longestTime: Int64 { 1 << 31 - 2 }

    /// Returns an origin that leaves twelve days before a moment, and twelve after it.
    @inlinable
    static func origin(at moment: Int64) -> Int64 { moment.addingSaturated(-(1 << 30)) }

    /// Returns the time of an access at a moment within ``longestTime``.
    @inlinable @inline(__always)
    func time(at moment: Int64) -> UInt32 {
        (UInt32(truncatingIfNeeded: moment &- origin) &+ 1) | Self.isNew
    }

    /// Returns the moment of an access; nil if the entry was only written.
    @inlinable
    static func moment(of time: UInt32, since origin: Int64) -> Int64? {
        time & ~isNew == 0 ? nil : origin.addingSaturated(Int64(time & ~isNew) - 1)
    }

    /// Notes what time it is.
    ///
    /// A moment of up to a second before the last one is that of a write that has waited, or of a coarser clock.
    @inlinable
    mutating func setNow(_ moment: Int64) {
        if moment < lastMoment && moment > lastMoment.addingSaturated(-1000) { return }
        lastMoment = moment
        if moment < origin || moment.subtractingSaturated(origin) > Self.longestTime { moveOrigin() }
    }

    /// Counts the times from another origin: after twelve days, or if the clock was set.
    ///
    /// Accesses that are out of its range are forgotten.
    @usableFromInline
    mutating func moveOrigin() {
        let difference = origin.subtractingSaturated(Self.origin(at: lastMoment))
        origin = Self.origin(at: lastMoment)
        memory.table.log.changeTimes { time in
            let (old, isNew) = (Int64(time & ~Self.isNew), time & Self.isNew)
            let moved = old.addingSaturated(difference)
            return old == 0 || !(1...Self.longestTime + 1).contains(moved) ? isNew : UInt32(moved) | isNew
        }
    }

    /// Returns the accesses since the last call, the oldest first.
    mutating func takeAccesses(at now: Int64) -> [Access] {
        var found: [Access] = []
        var index = memory.table.mostRecent
        while index != 0, memory.table.log.time(of: index) & Self.isNew != 0 {
            if let access = memory.access(at: index, since: origin, accessGrain) { found.append(access) }
            memory.table.log.setTime(memory.table.log.time(of: index) & ~Self.isNew, of: index)
            index = memory.table.older(than: index)
        }
        setNow(isSystemTime ? SystemClock.coarseNow() : max(lastMoment, now))
        defer { evictedAccesses = [] }
        return evictedAccesses + found.reversed()
    }

    /// Keeps the access to an entry that leaves memory.
    mutating func keepAccess(at index: UInt32) {
        if let access = memory.access(at: index, since: origin, accessGrain) { evictedAccesses.append(access) }
    }

    /// Returns the accesses of entries that were evicted since the last call.
    @inlinable
    mutating func takeEvictedAccesses() -> [Access] {
        if evictedAccesses.isEmpty { return [] }
        defer { evictedAccesses = [] }
        return evictedAccesses
    }

    /// Evicts the least recently used entries of a slice while a condition holds, and returns whether it holds no more.
    mutating func trim(
        atMost count: Int, isEviction: Bool, _ discards: inout [Node], while isTooMuch: (borrowing Memory) -> Bool
    ) -> Bool {
        for _ in 0..<count {
            guard memory.table.count > 0, isTooMuch(memory) else {
                memory.giveBackRoom()
                return true
            }
            let oldest = memory.table.leastRecent
            keepAccess(at: oldest)
            if isEviction { counts.memoryEvictions += 1 }
            discards.append(memory.remove(oldest))
        }
        return false
    }
}

extension BoundedTable {
    /// Returns the milliseconds of the age of an entry that expires.
    @inlinable
    func age(of index: UInt32) -> Int64 { Int(index) < ages.count ? ages[Int(index)] : usualAge }

    /// Returns the access to an entry that the store has not taken yet; nil if there was none.
    @inlinable
    func access<Content>(
        at index: UInt32, since origin: Int64, _ grain: Int64
    ) -> Access? where Value == CachedValue<Content>, Key: Codable {
        typealias State = TierState<Key, Content>
        let (time, rest) = (table.log.time(of: index), rests[Int(index)])
        guard time & State.isNew != 0, let moment = State.moment(of: time, since: origin) else { return nil }
        let slides = table.value(at: index).slides
        let age = slides ? self.age(of: index) : .max
        return Access(
            id: rest.id, revision: rest.revision, moment: moment, grain: min(grain, age / 16), slides: slides)
    }
}
