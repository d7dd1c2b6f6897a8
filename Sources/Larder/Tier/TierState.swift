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
    @usableFromInline var changeCounts = [UInt32](repeating: 0, count: 256)
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
    /// The moment from which the times in the order of accesses count.
    @usableFromInline var origin: Int64
    /// Those of entries that were evicted since.
    @usableFromInline var evictedAccesses: [Access] = []
    var limits: MemoryLimits
    var settings: CacheSettings
    @usableFromInline var accessGrain: Int64
    /// The milliseconds for which a copy is used before it is compared with its row; `.max` for any.
    @usableFromInline private(set) var memoryAge = Int64.max
    /// When and why keys have left.
    var removals: RemovalRing
    /// How many of the entries that were used last are noted; nil for none.
    var warms: WarmStart?
    /// The ids that the note had when it was read or written last; nil until it was read.
    var notedIDs: [Int64]?

    init(
        _ limits: MemoryLimits, _ settings: CacheSettings, seed: HashSeed, watch: CommitWatch, isSystemTime: Bool,
        accessGrain: Int64, remembersRemovals: Int, now: Int64
    ) {
        let sides = EntryBytes.ofCost + EntryBytes.ofUnits + EntryBytes.ofVersion
        memory = Memory(
            seed: seed, countLimit: limits.effectiveCount, costLimit: limits.effectiveCost,
            byteLimit: limits.effectiveBytes, sides: sides, isTier: true)
        (self.limits, self.settings) = (limits.counted, settings)
        (self.watch, storeWatch, self.isSystemTime) = (watch, watch, isSystemTime)
        (self.accessGrain, lastMoment, origin) = (accessGrain, now, Self.origin(at: now))
        removals = RemovalRing(limit: remembersRemovals)
        setMemoryAge(limits.effectiveAge)
    }

    // MARK: Reading

    /// Returns the value of a key if one look tells that it may be served.
    ///
    /// A copy that expires is judged by the end of the running second, which is cheap to know, and only if the clock is the
    /// system's: the long way decides for the others.
    ///
    /// - Parameter ticket: Set if there is no copy.
    @inlinable @inline(__always)
    mutating func hit(_ key: Key, hash: UInt64, _ ticket: inout ReadTicket?) -> Value? {
        let index = memory.table.locate(key, hash: hash)
        if index == 0 {
            ticket = self.ticket(hash)
            return nil
        }
        if memoryAge != .max && !isRecentThisSecond(index) { return nil }
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
        case slid(Value, RowSummary)
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
        let rest = memory.versions[Int(index)]
        if copy.epoch != epoch || epoch == CommitWatch.noEpoch || !isRecent(index, now) {
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
            copy.value,
            RowSummary(
                id: rest.id, revision: rest.revision, end: end, slidingAge: age, writtenAt: now,
                refresh: memory.hint(of: index)))
    }

    /// Returns what says when a copy is to be loaded again.
    func refreshTimes(of key: Key, hash: UInt64) -> RefreshTimes? {
        let index = memory.table.locate(key, hash: hash)
        if index == 0 { return nil }
        return RefreshTimes(
            end: memory.table.value(at: index).end, age: memory.age(of: index), hint: memory.hint(of: index))
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
            if copy.epoch != epoch || copy.end < now || copy.slides || !isRecent(index, now) { return nil }
        }
        return keys.compactMap { key, hash in
            if case .hit(let value) = lookUp(key, hash: hash, now: now, epoch) { value } else { nil }
        }
    }

    /// Returns the ticket of a look-up that is done now, for a later offer.
    @inlinable
    func ticket(_ hash: UInt64) -> ReadTicket {
        ReadTicket(changeCount: changeCounts[Int(truncatingIfNeeded: hash & 255)], epoch: epoch())
    }

    /// The current epoch; none while the store removes rows.
    @inlinable
    func epoch() -> UInt32 { openRemovals == 0 ? watch.epoch() : CommitWatch.noEpoch }

    /// Notes an access to a row that was seen on the disk, and returns whether memory has a copy of it.
    ///
    /// - Parameter ticket: That of the look-up before; nil if the copy is not known to be valid.
    @inlinable
    mutating func noteAccess(
        to key: Key, hash: UInt64, _ row: RowSummary, at now: Int64, confirming ticket: ReadTicket? = nil
    ) -> Bool {
        let index = memory.table.locate(key, hash: hash)
        guard index != 0, memory.versions[Int(index)].revision == row.revision else { return false }
        setNow(now)
        memory.table.promote(index, at: time(at: lastMoment))
        memory.table.withValue(at: index) { $0.slide(to: row.end) }
        guard let ticket, ticket.epoch != CommitWatch.noEpoch,
            changeCounts[Int(truncatingIfNeeded: hash & 255)] == ticket.changeCount
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
        _ copy: NewCopy<Key, Value>, _ row: RowSummary, at now: Int64, _ ticket: ReadTicket,
        _ deferred: inout Deferred
    ) -> Bool {
        guard openChanges == 0, changeCounts[Int(truncatingIfNeeded: copy.hash & 255)] == ticket.changeCount,
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
        return Self.moment(of: memory.table.accessOrder.time(of: index), since: origin)
    }
}

extension TierState {
    /// A copy with the revision of its row.
    struct SeenCopy {
        let value: Value
        let end: Int64
        /// True if no comparison with the row is needed.
        let isKnown: Bool
        let revision: Int64
    }

    /// Returns the copy of a key, which does not count as access.
    func copy(of key: Key, hash: UInt64, at now: Int64) -> SeenCopy? {
        let (index, epoch) = (memory.table.locate(key, hash: hash), epoch())
        if index == 0 { return nil }
        let copy = memory.table.value(at: index)
        return SeenCopy(
            value: copy.value, end: copy.end,
            isKnown: copy.epoch == epoch && epoch != CommitWatch.noEpoch && isRecent(index, now),
            revision: memory.versions[Int(index)].revision)
    }
}

/// Changes, in the order of commits.
extension TierState {
    /// Refuses what reads that began earlier offer for a key.
    @inlinable
    mutating func noteChange(_ hash: UInt64) { changeCounts[Int(truncatingIfNeeded: hash & 255)] &+= 1 }

    /// Refuses what reads that began earlier offer for any key.
    mutating func noteChangeOfAll() { for index in changeCounts.indices { changeCounts[index] &+= 1 } }

    @inlinable
    mutating func wrote(
        _ copy: NewCopy<Key, Value>, _ row: RowSummary, at moment: Int64, _ epoch: UInt32,
        _ deferred: inout Deferred
    ) {
        noteChange(copy.hash)
        setNow(moment)
        keep(copy, row, epoch, Self.writtenOnly, &deferred)
    }

    /// Notes that a row has other attributes.
    mutating func changed(_ key: Key, hash: UInt64, _ row: RowSummary, _ epoch: UInt32) -> Node? {
        noteChange(hash)
        let index = memory.table.locate(key, hash: hash)
        if index == 0 { return nil }
        let isSame = memory.versions[Int(index)].id == row.id
        memory.versions[Int(index)].revision = row.revision
        // A copy of an earlier epoch may be that of another row.
        guard memory.table.value(at: index).epoch == epoch else {
            if isSame { keepAccess(at: index) }
            return remove(key, hash: hash)
        }
        setAge(row, at: index)
        return nil
    }

    /// Removes the copy of a key.
    ///
    /// - Parameter revision: The revision of the removed row; nil if the copy is removed in any case.
    mutating func remove(_ key: Key, hash: UInt64, revision: Int64? = nil) -> Node? {
        noteChange(hash)
        let found = memory.table.locate(key, hash: hash)
        if found == 0 { return nil }
        if let revision, memory.versions[Int(found)].revision != revision { return nil }
        return memory.remove(found)
    }

    /// Notes that another process or manager has changed the row of a copy, if one has committed since the copy was seen to be good.
    mutating func noteForeign(_ key: Key, hash: UInt64, at now: Int64) {
        let (index, epoch) = (memory.table.locate(key, hash: hash), epoch())
        if index == 0 || epoch == CommitWatch.noEpoch || memory.table.value(at: index).epoch == epoch { return }
        removals.note(hash, .changedElsewhere, at: now)
    }

    /// Removes a copy that has another revision than its row; what is read is kept in its place.
    mutating func dropOutdated(_ key: Key, hash: UInt64, revision: Int64) -> Node? {
        let index = memory.table.locate(key, hash: hash)
        return index == 0 || memory.versions[Int(index)].revision != revision ? nil : memory.remove(index)
    }

    /// Removes all copies, to be released outside the lock.
    mutating func removeAll() -> EmptiedTable<Key, CachedValue<Value>> {
        noteChangeOfAll()
        return EmptiedTable(memory.removeAll())
    }

    @inlinable
    mutating func keep(
        _ copy: NewCopy<Key, Value>, _ row: RowSummary, _ epoch: UInt32, _ time: UInt32,
        _ deferred: inout Deferred
    ) {
        let value = CachedValue(copy.value, end: row.end, epoch: epoch, slides: row.slidingAge != nil)
        var (discards, evicted, accesses): ([Node], Int, [Access]) = ([], 0, [])
        let (origin, accessGrain, recentUntil) = (origin, accessGrain, recentUntil)
        let replaced = memory.setValue(
            value, forKey: copy.key, hash: copy.hash, cost: copy.cost,
            bytes: copy.bytes + (row.refresh.isNone ? 0 : EntryBytes.ofHint), end: nil, into: &discards
        ) { memory, index in
            if Int(index) >= memory.versions.count {
                Memory.extend(&memory.versions, with: RowVersion.none, to: index, within: memory.table.nodeCapacity)
            }
            memory.versions[Int(index)] = RowVersion(id: row.id, revision: row.revision)
            memory.table.accessOrder.setTime(time, of: index)
            memory.setAge(row.age, at: index)
            memory.setHint(row.refresh, at: index)
            if let recentUntil { Self.setRecent(&memory, index, until: recentUntil) }
        } willEvict: { memory, index in
            evicted += 1
            if let access = memory.access(at: index, since: origin, accessGrain) { accesses.append(access) }
        }
        counts.memoryEvictions += evicted
        evictedAccesses += accesses
        if !replaced.isEmpty { deferred.add(replaced) }
        if !discards.isEmpty { deferred.add(discards) }
    }

    /// Takes over when a copy expires.
    @inlinable
    mutating func setAge(_ row: RowSummary, at index: UInt32) {
        memory.table.withValue(at: index) { $0.setEnd(row.end, slides: row.slidingAge != nil) }
        memory.setAge(row.age, at: index)
        memory.setHint(row.refresh, at: index)
        if let recentUntil { Self.setRecent(&memory, index, until: recentUntil) }
    }
}

/// An age of memory alone: a copy is used for so long, then compared with its row.
///
/// The moment until which each copy is used is in `memory.ends`, whose other use is in memory caches.
extension TierState {
    /// Sets the milliseconds for which a copy is used; `.max` for any.
    mutating func setMemoryAge(_ age: Int64) {
        if age == memoryAge { return }
        memoryAge = age
        // What is there is compared first.
        memory.ends = age == .max ? [] : Array(repeating: .min, count: Int(memory.table.nodeCapacity))
    }

    /// The last moment at which a copy is used that is compared now; nil for any.
    @inlinable var recentUntil: Int64? { memoryAge == .max ? nil : lastMoment.addingSaturated(memoryAge) }

    @inlinable
    static func setRecent(_ memory: inout Memory, _ index: UInt32, until end: Int64) {
        if Int(index) >= memory.ends.count {
            Memory.extend(&memory.ends, with: .min, to: index, within: memory.table.nodeCapacity)
        }
        memory.ends[Int(index)] = end
    }

    /// Returns whether a copy may be used to the end of the running second, which is cheap to know if the clock is the system's.
    @inlinable
    func isRecentThisSecond(_ index: UInt32) -> Bool {
        isSystemTime && isRecent(index, SystemClock.second() * 1000 + 999)
    }

    /// Returns whether a copy may be used without a comparison, as far as its age in memory tells.
    @inlinable
    func isRecent(_ index: UInt32, _ now: Int64) -> Bool {
        memoryAge == .max || Int(index) < memory.ends.count && now <= memory.ends[Int(index)]
    }
}

extension BoundedTable {
    /// Takes over the milliseconds of the age of an entry; most entries of a cache have the same.
    @inlinable
    mutating func setAge(_ age: Int64, at index: UInt32) {
        if usualAge == 0 { usualAge = age }
        if age > 0, age != usualAge, Int(index) >= ages.count {
            Self.extend(&ages, with: usualAge, to: index, within: table.nodeCapacity)
        }
        if Int(index) < ages.count { ages[Int(index)] = age }
    }
}

/// The entries that a table had, until they are released outside the lock.
final class EmptiedTable<Key: Hashable & Sendable, Entry: Sendable>: Sendable {
    private let table: LRUTable<Key, Entry>

    init(_ table: consuming LRUTable<Key, Entry>) { self.table = table }

    /// Calls a closure for each entry, least recently used first.
    func forEach(_ body: (Key, Entry) -> Void) {
        for index in table.order { body(table.key(at: index), table.value(at: index)) }
    }
}

/// The accesses that memory serves, whose times the store writes later.
///
/// The order keeps a time for each record: the milliseconds since ``origin`` and 1 more, 0 for an entry that was only written,
/// and a bit that says whether the store has not taken the access yet. Records with that bit are its last ones.
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
        memory.table.accessOrder.changeTimes { time in
            let (old, isNew) = (Int64(time & ~Self.isNew), time & Self.isNew)
            let moved = old.addingSaturated(difference)
            return old == 0 || !(1...Self.longestTime + 1).contains(moved) ? isNew : UInt32(moved) | isNew
        }
    }

    /// Returns the accesses since the last call, the oldest first.
    mutating func takeAccesses(at now: Int64) -> [Access] {
        var found: [Access] = []
        var index = memory.table.mostRecent
        while index != 0, memory.table.accessOrder.time(of: index) & Self.isNew != 0 {
            if let access = memory.access(at: index, since: origin, accessGrain) { found.append(access) }
            memory.table.accessOrder.setTime(memory.table.accessOrder.time(of: index) & ~Self.isNew, of: index)
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
        let (time, rest) = (table.accessOrder.time(of: index), versions[Int(index)])
        guard time & State.isNew != 0, let moment = State.moment(of: time, since: origin) else { return nil }
        let slides = table.value(at: index).slides
        let age = slides ? self.age(of: index) : .max
        return Access(
            id: rest.id, revision: rest.revision, moment: moment, grain: min(grain, age / 16), slides: slides)
    }
}
