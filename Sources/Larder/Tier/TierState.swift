public import LarderSQLite
public import LarderStore

/// The state of a memory tier: the table of copies, and what says whether they may be served.
///
/// A copy may be served if it was valid in the present epoch of the watch. A commit of the store itself changes the copies
/// that it concerns after it, in the order of commits. What a read found on disk is kept unless a change was applied in the
/// meantime to a key with the same remainder of the hash.
@usableFromInline
struct TierState<Key: Codable & Hashable & Sendable, Value: Sendable>: ~Copyable {
    @usableFromInline typealias Memory = BoundedTable<Key, CachedValue<Value>>
    @usableFromInline typealias Node = LRUTable<Key, CachedValue<Value>>.Node

    @usableFromInline var memory: Memory
    @usableFromInline private(set) var watch: CommitWatch
    /// The watch of the open file, which takes the place of `watch` while no rows are being removed.
    private var storeWatch: CommitWatch
    /// A Boolean value that indicates whether the time is the system's, which is read here.
    @usableFromInline let isSystemTime: Bool
    /// For each remainder of a hash the number of changes that were applied.
    @usableFromInline var stamps = [UInt32](repeating: 0, count: 256)
    /// The number of requests of several keys that are on their way: nothing is offered in the meantime.
    @usableFromInline var openChanges = 0
    /// The number of commits that have removed rows whose keys are not decoded yet: no copy is known to be good.
    @usableFromInline private(set) var openRemovals = 0
    @usableFromInline var counts = CacheCounts()
    /// The counters when the statistics were reset, and when the store took them over.
    var (resetCounts, takenCounts) = (CacheCounts(), CacheCounts())
    /// The last moment that a write or a read has named, which stands for that of an access that asks no clock.
    ///
    /// It is set by ``setNow(_:)``, and by hits to the running second.
    @usableFromInline var lastMoment: Int64
    /// The moment from which the times in the log count.
    @usableFromInline var origin: Int64
    /// Those of entries that were evicted since.
    @usableFromInline var evictedAccesses: [Access] = []
    var limits: MemoryLimits
    var settings: CacheSettings
    @usableFromInline var accessGrain: Int64

    init(
        _ limits: MemoryLimits, _ settings: CacheSettings, seed: HashSeed, watch: CommitWatch, isSystemTime: Bool,
        accessGrain: Int64, now: Int64
    ) {
        let sides = EntryBytes.ofCost + EntryBytes.ofUnits + EntryBytes.ofRest
        memory = Memory(
            seed: seed, countLimit: limits.effectiveCount, costLimit: limits.effectiveCost,
            byteLimit: limits.effectiveBytes, sides: sides, isTier: true)
        (self.limits, self.settings) = (limits.counted, settings)
        (self.watch, storeWatch, self.isSystemTime) = (watch, watch, isSystemTime)
        (self.accessGrain, lastMoment, origin) = (accessGrain, now, Self.origin(at: now))
    }

    // MARK: Reading

    /// Returns the value of a key if one look tells that it may be served.
    ///
    /// A copy that expires is judged by the end of the running second, which is cheap to know, and only if the clock is the
    /// system's: the long way decides for the others.
    @inlinable @inline(__always)
    mutating func hit(_ key: Key, hash: UInt64) -> Value? {
        let index = memory.table.locate(key, hash: hash)
        if index == 0 { return nil }
        let epoch = watch.knownEpoch
        let (copyEpoch, deadline) = memory.table.withValue(at: index) { ($0.epoch, $0.deadline) }
        if copyEpoch != epoch || epoch == CommitWatch.noEpoch { return nil }
        if deadline != CachedValue<Value>.unlimited {
            if deadline & 1 != 0 || !isSystemTime { return nil }
            let second = SystemClock.second() * 1000
            if second + 999 > deadline >> 1 { return nil }
            if second > lastMoment {
                if second - origin > Self.longestTime { return nil }
                lastMoment = second
            }
        }
        memory.table.promote(index, at: time(at: lastMoment))
        counts.memoryHits &+= 1
        return memory.table.value(at: index).value
    }

    /// What memory knows of a key.
    @usableFromInline enum LookUp {
        case hit(Value)
        /// The access moves the end of the entry, so the store has to note it.
        case slid(Value, RowStamp)
        case expired
        /// The row may have changed: the value is good if the row has the revision.
        case unsure(Value, revision: Int64)
        case absent
    }

    /// Looks a key up at a moment, and returns the ticket for a later offer too.
    @inlinable
    mutating func lookUp(_ key: Key, hash: UInt64, now: Int64) -> (LookUp, ReadTicket) {
        let ticket = ticket(hash)
        return (lookUp(key, hash: hash, now: now, ticket.epoch), ticket)
    }

    @inlinable
    mutating func lookUp(_ key: Key, hash: UInt64, now: Int64, _ epoch: UInt32) -> LookUp {
        setNow(now)
        let index = memory.table.locate(key, hash: hash)
        if index == 0 { return .absent }
        let copy = memory.table.value(at: index)
        let rest = memory.rests[Int(index)]
        if copy.epoch != epoch || epoch == CommitWatch.noEpoch {
            return .unsure(copy.value, revision: rest.revision)
        }
        if now > copy.end { return .expired }
        counts.memoryHits += 1
        memory.table.promote(index, at: time(at: lastMoment))
        guard copy.slides else { return .hit(copy.value) }
        let age = memory.age(of: index)
        let end = max(copy.end, now.addingSaturated(age))
        memory.table.withValue(at: index) { $0.slide(to: end) }
        return .slid(
            copy.value, RowStamp(id: rest.id, revision: rest.revision, end: end, slidingAge: age, writtenAt: now))
    }

    /// Returns the end of a copy, and the time from its write or last access to it.
    func age(of key: Key, hash: UInt64) -> (end: Int64, length: Int64)? {
        let index = memory.table.locate(key, hash: hash)
        if index == 0 { return nil }
        return (memory.table.value(at: index).end, memory.age(of: index))
    }

    /// Returns the values of keys, in their order, if memory may serve all of them.
    mutating func values(_ keys: [(key: Key, hash: UInt64)], now: Int64) -> [Value]? {
        let epoch = epoch()
        // A change of several keys may have come in half.
        if openChanges > 0 || epoch == CommitWatch.noEpoch { return nil }
        for (key, hash) in keys {
            let index = memory.table.locate(key, hash: hash)
            if index == 0 { return nil }
            let copy = memory.table.value(at: index)
            if copy.epoch != epoch || copy.end < now || copy.slides { return nil }
        }
        return keys.compactMap { key, hash in
            if case .hit(let value) = lookUp(key, hash: hash, now: now, epoch) { value } else { nil }
        }
    }

    /// Returns the ticket of a look-up that is done now, for a later offer.
    @inlinable
    func ticket(_ hash: UInt64) -> ReadTicket {
        ReadTicket(stamp: stamps[Int(truncatingIfNeeded: hash & 255)], epoch: epoch())
    }

    /// The current epoch; none while the store removes rows.
    @inlinable
    func epoch() -> UInt32 { openRemovals == 0 ? watch.epoch() : CommitWatch.noEpoch }

    /// Notes an access to a row that was seen on the disk, and returns whether memory has a copy of it.
    ///
    /// - Parameter ticket: That of the look-up before; nil if the copy is not known to be valid.
    @inlinable
    mutating func noteAccess(
        to key: Key, hash: UInt64, _ row: RowStamp, at now: Int64, confirming ticket: ReadTicket? = nil
    ) -> Bool {
        let index = memory.table.locate(key, hash: hash)
        guard index != 0, memory.rests[Int(index)].revision == row.revision else { return false }
        setNow(now)
        memory.table.promote(index, at: time(at: lastMoment))
        memory.table.withValue(at: index) { $0.slide(to: row.end) }
        guard let ticket, ticket.epoch != CommitWatch.noEpoch,
            stamps[Int(truncatingIfNeeded: hash & 255)] == ticket.stamp
        else { return true }
        let copy = memory.table.value(at: index)
        setAge(row, at: index)
        memory.table.withValue(at: index) { now in
            // Another read may have moved the end in the meantime.
            if copy.epoch == ticket.epoch && copy.slides { now.slide(to: copy.end) }
            now.epoch = ticket.epoch
        }
        return true
    }

    /// Keeps what a read found after a look-up, and returns false if a change came in between.
    @inlinable
    mutating func offer(
        _ copy: NewCopy<Key, Value>, _ row: RowStamp, at now: Int64, _ ticket: ReadTicket,
        _ deferred: inout Deferred
    ) -> Bool {
        guard openChanges == 0, stamps[Int(truncatingIfNeeded: copy.hash & 255)] == ticket.stamp,
            ticket.epoch != CommitWatch.noEpoch,
            memory.admits(cost: copy.cost, bytes: copy.bytes)
        else { return false }
        setNow(now)
        keep(copy, row, ticket.epoch, time(at: lastMoment), &deferred)
        return true
    }

    // MARK: Removals by the store

    /// Serves no copy without a comparison with its row until ``endRemoval()``.
    mutating func beginRemoval() {
        openRemovals += 1
        watch = .unsure
    }

    mutating func endRemoval() {
        openRemovals -= 1
        if openRemovals == 0 { watch = storeWatch }
    }

    /// Serves copies as the watch of the open file says.
    mutating func follow(_ watch: CommitWatch) {
        // The file may have been closed in the meantime.
        if watch.isUnsure { return }
        storeWatch = watch
        if openRemovals == 0 { self.watch = watch }
    }

    /// Returns the moment of the last access to a key that memory knows of.
    func accessedAt(_ key: Key, hash: UInt64) -> Int64? {
        let index = memory.table.locate(key, hash: hash)
        if index == 0 { return nil }
        return Self.moment(of: memory.table.log.time(of: index), since: origin)
    }
}
