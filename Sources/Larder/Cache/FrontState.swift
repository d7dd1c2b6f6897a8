/// What the lock of a sub-cache's front guards: the entries in memory.
///
/// Memory never holds what the database does not: a change comes in after its commit and in the order of commits, and
/// what a read brings (an *offer*) only if its key was not written since.
@usableFromInline
struct FrontState<Key: Codable & Hashable & Sendable, Value: Sendable>: ~Copyable {
    @usableFromInline typealias Entry = FrontEntry<Value>
    @usableFromInline typealias Memory = MemoryCacheState<Key, HotEntry<Value>>
    @usableFromInline typealias Node = LRUTable<Key, HotEntry<Value>>.Node

    @usableFromInline var memory: Memory
    @usableFromInline var watch: CommitWatch

    /// The number of the database that it watches.
    var database: Int

    @usableFromInline var memoryHits = 0
    @usableFromInline var memoryEvictions = 0

    /// The last number given to a use or a write.
    @usableFromInline var lastUse: Int64

    /// Where the numbers come from that order uses and writes over all sub-caches and processes.
    @usableFromInline let revisions: RevisionSource

    /// How exactly the moment of the last access is stored.
    let grain: AccessGrain

    /// Whether somebody was asked to write down the uses.
    @usableFromInline var isFlushScheduled = false

    /// How much memory is meant to hold.
    var limits: MemoryLimits

    /// Whether memory may hold anything: not where others may commit unseen.
    let allowsCopies: Bool

    /// Uses up to this number are written down, or the ledger has them.
    var notedUse: Int64 = 0

    /// Uses of entries that memory let go of; their keys are not encoded yet, which is the user's code.
    var evictedUses: [EvictedUse<Key>] = []

    /// How many evicted uses were taken over before the first of these.
    var takenUses = 0

    /// Which results of reads may come in.
    @usableFromInline var offers = OfferStamps()

    init(seed: HashSeed, limits: MemoryLimits, present: StorePresent, revisions: RevisionSource, grain: AccessGrain) {
        memory = Memory(
            seed: seed, countLimit: present.allowsCopies ? limits.effectiveCount : 0,
            costLimit: limits.effectiveCost, byteLimit: limits.effectiveBytes, sides: Self.sides, isTier: true)
        watch = present.watch
        database = present.database
        allowsCopies = present.allowsCopies
        self.limits = limits.counted
        self.revisions = revisions
        self.grain = grain
        lastUse = revisions.next()
        notedUse = lastUse
    }

    /// The bytes next to the table of each entry, which has a cost and bytes of its own.
    private static var sides: Int { EntryBytes.ofCost + EntryBytes.ofUnits + EntryBytes.ofRest }

    /// The bytes of each entry that does not have any outside the table.
    static var overhead: Int { Memory.overhead(sides: sides, isTier: true) }

    /// Whether memory holds anything at all.
    @inlinable
    var holdsCopies: Bool { memory.countLimit > 0 }
}

/// A use of an entry that memory let go of.
struct EvictedUse<Key: Sendable>: Sendable {
    let key: Key
    let use: NotedUse
    /// The moment of the last access as the row has it.
    let storedAccess: Int64
    let age: StoredAge?
}

/// What a change put out of its place, to be released when no lock is held.
@usableFromInline
struct Displacement<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline var one = Displaced<Key, HotEntry<Value>>()
    @usableFromInline var others: [LRUTable<Key, HotEntry<Value>>.Node] = []

    @inlinable
    init() {}
}

// MARK: - Entries

extension MemoryCacheState {
    /// Everything that memory knows of an entry.
    func entry<Content>(at index: UInt32) -> FrontEntry<Content> where Value == HotEntry<Content> {
        FrontEntry(
            table.value(at: index), table.stamp(of: index), rests[Int(index)],
            ageMilliseconds: Int(index) < ages.count ? ages[Int(index)] : 0)
    }

    /// Takes over what a hit does not need of an entry.
    mutating func setRest<Content>(_ entry: FrontEntry<Content>, at index: UInt32) where Value == HotEntry<Content> {
        if Int(index) >= rests.count { Self.extend(&rests, with: EntryRest(), to: Int(table.nodeCapacity)) }
        rests[Int(index)] = entry.rest
        if entry.ageKind != 0, Int(index) >= ages.count { Self.extend(&ages, with: 0, to: Int(table.nodeCapacity)) }
        if Int(index) < ages.count { ages[Int(index)] = entry.ageMilliseconds }
        table.setStamp(entry.stamp, of: index)
    }

    /// The access of an entry that leaves memory, if it is to be written down.
    func dueUse<Content>(
        at index: UInt32, after noted: Int64, _ grain: AccessGrain
    ) -> EvictedUse<Key>? where Value == HotEntry<Content> {
        let stamp = table.stamp(of: index)
        guard stamp.number > noted, stamp.number > rests[Int(index)].revision else { return nil }
        let entry = entry(at: index)
        let isKnown = entry.accessedAt != FrontEntry<Content>.unknown
        if isKnown, !grain.isStale(entry.storedAccess, age: entry.age, at: entry.accessedAt) { return nil }
        let use = NotedUse(accessedAt: entry.accessedAt, used: entry.used)
        return EvictedUse(key: table.key(at: index), use: use, storedAccess: entry.storedAccess, age: entry.age)
    }
}

extension FrontState {
    /// Everything that memory knows of an entry.
    func entry(at index: UInt32) -> Entry { memory.entry(at: index) }

    /// Lets `body` change what memory knows of an entry.
    mutating func withEntry<R>(at index: UInt32, _ body: (inout Entry) -> R) -> R {
        var entry = memory.entry(at: index)
        defer {
            let hot = entry.hot
            memory.table.withValue(at: index) { $0 = hot }
            memory.setRest(entry, at: index)
        }
        return body(&entry)
    }
}

// MARK: - Hits

extension FrontState {
    /// The value of a key where one look is enough to know that it may be served.
    ///
    /// It may say nil of one that is there: then the long way decides.
    ///
    /// The system's clock is read in here, by nobody's code but ours: the processor does that while it waits for memory.
    ///
    /// - Parameter moment: What an injected clock says; nil to read the system's.
    @inlinable @inline(__always)
    mutating func hit(_ key: Key, hash: UInt64, rule: AgeRule, moment: Int64?) -> Value? {
        let place = memory.table.locate(key, hash: hash)
        if place.index == 0 || !isFlushScheduled || !watch.isQuiet { return nil }
        let round = watch.knownRound
        let isUnlimited = rule.isUnlimited
        let stamp = SystemClock.coarseNow()
        let now = isUnlimited ? 0 : moment ?? stamp
        let used = useNumber(at: stamp)
        let latest = moment == nil ? now &+ SystemClock.coarseLag : now
        let isServed = memory.table.withValue(at: place.index) { entry -> Bool in
            if entry.round != round || entry.ageKind != 0 { return false }
            return isUnlimited || rule.surelyServes(start: entry.writtenAt, from: now, to: latest)
        }
        if !isServed { return nil }
        lastUse = used
        memory.table.promote(place.index, AccessStamp(number: used, moment: isUnlimited ? Entry.unknown : now))
        memoryHits &+= 1
        return memory.table.value(at: place.index).value
    }
}

// MARK: - The order of use

extension FrontState {
    /// A number for a use that comes after everything here, and after what was written elsewhere before.
    @inlinable @inline(__always)
    func useNumber(at stamp: Int64) -> Int64 { max(lastUse &+ 1, revisions.ofUse(at: stamp)) }
}

// MARK: - Changes, in the order of commits

extension FrontState {
    /// Takes in what a read found on disk, unless the key was changed since the read began.
    mutating func offer(
        _ key: Key, hash: UInt64, _ entry: Entry, cost: Int, bytes: Int, since sequence: UInt64
    ) -> Displacement<Key, Value>? {
        guard offers.admits(hash, since: sequence) else { return nil }
        return keep(key, hash: hash, entry, cost: cost, bytes: bytes)
    }

    /// Puts an entry into memory, and notes the accesses of those that are evicted for it.
    @usableFromInline
    mutating func keep(
        _ key: Key, hash: UInt64, _ entry: Entry, cost: Int, bytes: Int
    ) -> Displacement<Key, Value> {
        var displacement = Displacement<Key, Value>()
        var (evictions, uses): (Int, [EvictedUse<Key>]) = (0, [])
        let (notedUse, grain) = (notedUse, grain)
        displacement.one = memory.setValue(
            entry.hot, forKey: key, hash: hash, cost: cost, bytes: bytes, start: nil, into: &displacement.others
        ) { memory, index in
            memory.setRest(entry, at: index)
        } willEvict: { memory, index in
            if memory.table.key(at: index) == key { return }
            evictions += 1
            if let use = memory.dueUse(at: index, after: notedUse, grain) { uses.append(use) }
        }
        memoryEvictions += evictions
        if !uses.isEmpty { evictedUses += uses }
        return displacement
    }

    /// A key was removed.
    mutating func remove(_ key: Key, hash: UInt64) -> Node? {
        offers.noteChange(hash)
        let place = memory.table.locate(key, hash: hash)
        return place.index == 0 ? nil : memory.remove(place)
    }

    /// Everything was removed, or is another cache's now.
    mutating func clear(_ discards: inout Discards) {
        offers.noteChangeOfAll()
        takenUses += evictedUses.count
        evictedUses = []
        discards.add(EmptiedTable(memory.removeAll()))
    }

    /// Releases all copies, which the disk still has.
    mutating func releaseAll(_ discards: inout Discards) {
        offers.noteChangeOfAll()
        for index in memory.table.order { noteUse(at: index) }
        discards.add(EmptiedTable(memory.removeAll()))
    }

    /// Lets go of one entry's copy, which the disk still has.
    ///
    /// - Parameter round: One that was confirmed in this round stays.
    mutating func drop(_ key: Key, hash: UInt64, unlessConfirmed round: UInt32? = nil) -> Node? {
        let place = memory.table.locate(key, hash: hash)
        if place.index == 0 || memory.table.value(at: place.index).round == round { return nil }
        noteUse(at: place.index)
        return memory.remove(place)
    }
}

/// The entries that a front had, until they are released where no lock is held.
final class EmptiedTable<Key: Hashable & Sendable, Entry: Sendable>: Sendable {
    private let table: LRUTable<Key, Entry>

    init(_ table: consuming LRUTable<Key, Entry>) {
        self.table = table
    }
}
