public import LarderStore

/// The state under the lock of a memory cache: the table, the data of each entry next to its value, and the limits.
///
/// Costs and the ends of ages are in arrays of their own by the entry's index, and only once there are any, so
/// that a cache that uses neither pays for neither.
@usableFromInline
struct BoundedTable<Key: Hashable & Sendable, Value: Sendable>: ~Copyable {
    @usableFromInline typealias Table = LRUTable<Key, Value>

    @usableFromInline var table: Table
    /// The cost of each entry; 0 for indices beyond the end.
    @usableFromInline var costs: [Int] = []
    /// The last moment at which each entry is served; `.max` for indices beyond the end.
    @usableFromInline var ends: [Int64] = []
    /// The data of a memory tier about each entry; empty if there is no tier.
    @usableFromInline var versions: [RowVersion] = []
    /// The milliseconds of each entry's age; those beyond the end have the usual one.
    ///
    /// In a memory cache the number is negative for an age that no access moves, and 0 where there is none.
    @usableFromInline var ages: [Int64] = []
    @usableFromInline var usualAge: Int64 = 0
    /// What is known about the refresh of each entry; nothing for indices beyond the end.
    @usableFromInline var hints: [RefreshHint] = []
    /// Wide enough for as many entries as there can be at 2^53 each.
    @usableFromInline var totalCost = WideSum(0)
    @usableFromInline var countLimit: Int
    @usableFromInline private(set) var costLimit: Int
    /// The cost limit, but no bound at all where the limit is `Int.max`: totals may be greater than that.
    @usableFromInline var costBound: WideSum
    /// A Boolean value that indicates whether any entry had a cost since the cache was last empty.
    @usableFromInline var hasCosts = false
    /// A Boolean value that indicates whether a write has to tell what it displaces, or to set an age.
    @usableFromInline var isFollowed = false
    var pressureResponse = PressureResponse.half
    /// The bytes of each entry outside the table, in steps of 16; 0 for indices beyond the end.
    @usableFromInline var units: [UInt32] = []
    /// Wide enough for as many entries as there can be at 2^32 each.
    @usableFromInline var totalUnits = 0
    /// A Boolean value that indicates whether any entry had such bytes since the cache was last empty.
    @usableFromInline var hasUnits = false
    @usableFromInline var byteLimit: Int
    /// The greatest number of units of one entry.
    @usableFromInline var unitLimit: Int
    /// The number of entries at which the limit on bytes is reached even if they have none outside the table.
    @usableFromInline var entryBound: Int
    /// The bytes of each entry in the table and next to it.
    @usableFromInline let overhead: Int
    /// The numbers of events since the cache was created, or since the numbers were reset.
    @usableFromInline var counts = MemoryCacheStatistics()
    /// The program's handler of memory pressure, which takes the place of what the cache does.
    var pressureHandler: (@Sendable (MemoryPressure) -> Void)?
    /// The name that the program has set.
    var name = ""
    /// The number of sweeps that are running; indices do not change until they end.
    @usableFromInline var sweeps = 0
    /// The keys that a closure of the program decides on, which may be written in the meantime.
    @usableFromInline var watches = KeyWatches<Key>()

    /// - Parameters:
    ///   - sides: The bytes of each entry in arrays next to the table that every entry has.
    ///   - isTier: A Boolean value that indicates whether the table keeps when each entry was accessed, for a memory
    ///     tier.
    @usableFromInline
    init(seed: HashSeed, countLimit: Int, costLimit: Int, byteLimit: Int, sides: Int, isTier: Bool = false) {
        table = Table(seed: seed, hasTimes: isTier)
        self.countLimit = countLimit
        self.costLimit = costLimit
        costBound = Self.bound(costLimit)
        overhead = Self.overhead(sides: sides, isTier: isTier)
        self.byteLimit = byteLimit
        (unitLimit, entryBound) = Self.bounds(byteLimit: byteLimit, overhead: overhead)
    }

    /// The bytes of each entry that does not have any outside the table.
    static func overhead(sides: Int, isTier: Bool) -> Int {
        EntryBytes.inTable(
            nodeStride: MemoryLayout<Table.Node>.stride, hasTags: !Table.keysAreIntegers, hasTimes: isTier,
            sides: sides)
    }

    mutating func limitCost(to limit: Int) {
        costLimit = limit
        costBound = Self.bound(limit)
    }

    private static func bound(_ limit: Int) -> WideSum { limit == .max ? .max : WideSum(limit) }

    /// The greatest cost of one entry.
    @inlinable static var maximumCost: Int { Int(clamping: Int64(1) << 53) }

    @inlinable @inline(__always)
    static func clamped(_ cost: Int) -> Int { max(0, min(cost, maximumCost)) }

    /// The effective `countLimit`: the table has a maximum, and every entry takes some bytes.
    @inlinable var effectiveCountLimit: Int {
        @inline(__always) get { min(countLimit, entryBound, Table.maximumCount) }
    }

    // MARK: One entry

    /// Returns a value if no age limits it.
    @inlinable
    mutating func value(forKey key: Key, hash: UInt64) -> Value? {
        let found = table.locate(key, hash: hash)
        if found == 0 {
            counts.misses &+= 1
            return nil
        }
        counts.hits &+= 1
        table.promote(found)
        return table.value(at: found)
    }

    /// Sets a value if that removes at most one entry; else returns nil and changes nothing.
    ///
    /// The result is to be released outside the lock. It holds no array, so for plain keys and values there is
    /// nothing to release.
    @inlinable @inline(__always)
    mutating func setValueQuickly(
        _ value: Value, forKey key: Key, hash: UInt64, cost: Int, bytes: Int, end: Int64?
    ) -> Displaced<Key, Value>? {
        let units = EntryBytes.units(bytes)
        if isFollowed || !watches.isEmpty || cost > costLimit || Int(units) > unitLimit || countLimit <= 0 {
            return nil
        }
        var displaced = Displaced<Key, Value>()
        let found = table.locate(key, hash: hash)
        let index: UInt32
        if found != 0 {
            if isOverLimit(with: cost, units, instead: found) { return nil }
            index = found
            displaced.value = table.exchange(value, at: index)
            table.promote(index)
            setNothingBeside(index)
        } else if needsRoom(for: cost, units) {
            let oldest = table.leastRecent
            if table.count > effectiveCountLimit || table.count == 0 { return nil }
            if isOverLimit(with: cost, units, instead: oldest) { return nil }
            setNothingBeside(oldest)
            counts.evictions &+= 1
            (displaced.key, displaced.value) = table.replaceLeastRecent(
                with: key, value, hash: hash)
            index = oldest
        } else {
            let room = table.isFull ? wantedRoom : 0
            index = table.insert(key, value, hash: hash, limit: room)
        }
        setBeside(index, cost, units, end)
        return displaced
    }

    /// Sets a value, evicts entries over the limits, and returns the objects to release outside the lock.
    ///
    /// - Parameters:
    ///   - age: The entry's own age, as in `ages`; nil for the usual one.
    ///   - beside: Called with the index of the entry when it is in the table.
    ///   - willEvict: Called with the index of each entry that is evicted for it.
    @inlinable
    mutating func setValue(
        _ value: Value, forKey key: Key, hash: UInt64, cost: Int, bytes: Int, end: Int64?, age: Int64? = nil,
        into discards: inout [Table.Node], beside: (inout Self, UInt32) -> Void = { _, _ in },
        willEvict: (borrowing Self, UInt32) -> Void = { _, _ in }
    ) -> Displaced<Key, Value> {
        if !watches.isEmpty { noteWrite(key, hash: hash) }
        var displaced = Displaced<Key, Value>()
        let found = table.locate(key, hash: hash)
        let units = EntryBytes.units(bytes)
        if cost > costLimit || Int(units) > unitLimit || countLimit <= 0 {
            if found != 0 {
                let old = remove(found)
                (displaced.key, displaced.value) = (old.key, old.value)
            }
            return displaced
        }
        let index: UInt32
        if found != 0 {
            index = found
            displaced.value = table.exchange(value, at: index)
            table.promote(index)
            setNothingBeside(index)
        } else {
            if needsRoom(for: cost, units) {
                while table.count > 0 && needsRoom(for: cost, units) {
                    willEvict(self, table.leastRecent)
                    counts.evictions &+= 1
                    discards.append(remove(table.leastRecent))
                }
                giveBackRoom()
            }
            let room = table.isFull ? wantedRoom : 0
            index = table.insert(key, value, hash: hash, limit: room)
        }
        setBeside(index, cost, units, end ?? (ends.isEmpty ? nil : .max))
        if age != nil, Int(index) >= ages.count {
            Self.extend(&ages, with: usualAge, to: index, within: table.nodeCapacity)
        }
        if Int(index) < ages.count { ages[Int(index)] = age ?? usualAge }
        beside(&self, index)
        // Only an entry that was replaced by a costlier one is over a limit now, and it is the last to be evicted.
        if isOverLimit {
            while isOverLimit {
                willEvict(self, table.leastRecent)
                counts.evictions &+= 1
                discards.append(remove(table.leastRecent))
            }
            giveBackRoom()
        }
        return displaced
    }

    /// Removes an entry together with its elements next to the table.
    @inlinable
    mutating func remove(_ index: UInt32) -> Table.Node {
        setNothingBeside(index)
        return table.remove(index)
    }

    // MARK: Limits

    @inlinable var isOverLimit: Bool {
        table.count > effectiveCountLimit || (hasCosts && totalCost > costBound)
            || (hasUnits && totalUnits > unitBound(count: table.count))
    }

    @inlinable @inline(__always)
    func needsRoom(for cost: Int, _ units: UInt32) -> Bool {
        if table.count >= effectiveCountLimit { return true }
        if hasCosts && totalCost + WideSum(cost) > costBound { return true }
        return (hasUnits || units != 0) && totalUnits + Int(units) > unitBound(count: table.count &+ 1)
    }

    /// Returns whether costs or bytes would exceed a limit with one more entry of these and without another.
    @inlinable @inline(__always)
    func isOverLimit(with cost: Int, _ units: UInt32, instead index: UInt32) -> Bool {
        if hasCosts || cost != 0, totalCost - WideSum(self.cost(of: index)) + WideSum(cost) > costBound { return true }
        return (hasUnits || units != 0)
            && totalUnits - Int(self.units(of: index)) + Int(units) > unitBound(count: table.count)
    }

    // MARK: Next to the table

    @inlinable @inline(__always)
    func cost(of index: UInt32) -> Int { Int(index) < costs.count ? costs[Int(index)] : 0 }

    /// Subtracts an entry from the totals.
    @inlinable @inline(__always)
    mutating func setNothingBeside(_ index: UInt32) {
        if hasCosts && Int(index) < costs.count {
            totalCost = totalCost - WideSum(costs[Int(index)])
            costs[Int(index)] = 0
        }
        if hasUnits && Int(index) < units.count {
            totalUnits &-= Int(units[Int(index)])
            units[Int(index)] = 0
        }
        if Int(index) < hints.count { hints[Int(index)] = .none }
    }

    /// Records the data of an entry that is in no total.
    @inlinable @inline(__always)
    mutating func setBeside(_ index: UInt32, _ cost: Int, _ units: UInt32, _ end: Int64?) {
        if cost != 0 {
            if Int(index) >= costs.count { Self.extend(&costs, with: 0, to: index, within: table.nodeCapacity) }
            costs[Int(index)] = cost
            totalCost = totalCost + WideSum(cost)
            hasCosts = true
        }
        if units != 0 {
            if Int(index) >= self.units.count {
                Self.extend(&self.units, with: 0, to: index, within: table.nodeCapacity)
            }
            self.units[Int(index)] = units
            totalUnits &+= Int(units)
            hasUnits = true
        }
        if let end {
            if Int(index) >= ends.count { Self.extend(&ends, with: .max, to: index, within: table.nodeCapacity) }
            ends[Int(index)] = end
        }
    }

    /// Puts an empty table in place of this one, which is to be released outside the lock.
    mutating func removeAll() -> Table {
        var fresh = Table(seed: table.seed, hasTimes: table.accessOrder.times != nil)
        fresh.removals = table.removals &+ 1
        swap(&fresh, &table)
        costs = []
        units = []
        ends = []
        versions = []
        ages = []
        hints = []
        totalCost = WideSum(0)
        totalUnits = 0
        hasCosts = false
        hasUnits = false
        watches.noteRemovalOfAll()
        return fresh
    }
}

/// The bytes that the entries take, and the limit on them.
///
/// An entry takes a fixed share of the table, ``overhead``, and the bytes that its owner reports outside of it.
extension BoundedTable {
    /// The bytes of all entries.
    @inlinable var totalBytes: WideSum { WideSum(totalUnits, times: 16) + WideSum(table.count, times: overhead) }

    /// The bytes that an entry has outside the table, and in the arrays that only some entries need.
    @inlinable @inline(__always)
    static func bytes(of key: Key, cost: Int) -> Int {
        let outside = cost + EntryBytes.ofKey(key, encodedCount: 0)
        return outside == 0 ? 0 : outside + EntryBytes.ofCost + EntryBytes.ofUnits
    }

    /// The bytes that an entry takes.
    func bytes(of index: UInt32) -> Int { overhead + Int(units(of: index)) * 16 }

    /// A Boolean value that indicates whether an entry of this cost and these bytes is kept at all.
    @inlinable
    func admits(cost: Int, bytes: Int) -> Bool {
        cost <= costLimit && Int(EntryBytes.units(bytes)) <= unitLimit && countLimit > 0
    }

    /// Changes the maximum number of bytes that the entries take; `Int.max` is no limit.
    mutating func limitBytes(to limit: Int) {
        byteLimit = limit
        (unitLimit, entryBound) = Self.bounds(byteLimit: limit, overhead: overhead)
    }

    /// Returns the greatest number of units of one entry, and the greatest number of entries, that a limit allows.
    static func bounds(byteLimit: Int, overhead: Int) -> (unitLimit: Int, entryBound: Int) {
        byteLimit == .max ? (.max, .max) : ((byteLimit - overhead) >> 4, byteLimit / overhead)
    }

    /// Returns the greatest total number of units of so many entries.
    @inlinable @inline(__always)
    func unitBound(count: Int) -> Int { byteLimit == .max ? .max : (byteLimit &- count &* overhead) >> 4 }

    @inlinable @inline(__always)
    func units(of index: UInt32) -> UInt32 { Int(index) < units.count ? units[Int(index)] : 0 }

    /// Lengthens an array by index so that it has an index: at most to twice that, and to the capacity of the table.
    // Inlinable: without specialization it took most of the time of a new entry with a String key.
    @inlinable
    static func extend<Element>(
        _ array: inout [Element], with nothing: Element, to index: UInt32, within capacity: UInt32
    ) {
        let count = min(Int(capacity), max(16, Int(index) * 2))
        var extended = [Element](repeating: nothing, count: count)
        for index in array.indices { extended[index] = array[index] }
        array = extended
    }

    /// Notes what is known of the refresh of an entry; most have no such note.
    @inlinable @inline(__always)
    mutating func setHint(_ hint: RefreshHint, at index: UInt32) {
        if hints.isEmpty && hint.isNone { return }
        if Int(index) >= hints.count { Self.extend(&hints, with: .none, to: index, within: table.nodeCapacity) }
        hints[Int(index)] = hint
    }

    @inlinable
    func hint(of index: UInt32) -> RefreshHint { Int(index) < hints.count ? hints[Int(index)] : .none }

    // MARK: The capacity of the table

    /// The number of entries for which the table should have capacity, estimated from the present ones.
    ///
    /// A table that doubled its capacity at nine tenths of a limit would take almost twice as much as the limit counts.
    @usableFromInline var wantedRoom: Int {
        guard hasUnits, byteLimit != .max, table.count > 0 else { return effectiveCountLimit }
        let average = totalBytes.double / Double(table.count)
        // A share of 1/32 more, since the next entries may be smaller.
        return min(effectiveCountLimit, Int(Double(byteLimit) / average * (33.0 / 32.0)))
    }

    /// Shrinks the table if much of it is empty: more than half, or more than a sixteenth of the limit on bytes.
    ///
    /// - Complexity: O(n) where it does, after a number of removals that grows with n.
    // Inlinable, as what it calls: all keys are hashed again, which is slow if it is not specialized.
    @inlinable
    mutating func giveBackRoom() {
        let empty = Int(table.nodeCapacity) - 1 - table.count
        guard empty > 1024, sweeps == 0 else { return }
        let isMuch = byteLimit != .max && empty > byteLimit / 16 / overhead
        guard isMuch || empty > table.count else { return }
        let origins = table.shrink(to: table.count + table.count / 32)
        Self.rearrange(&costs, 0, origins, to: Int(table.nodeCapacity))
        Self.rearrange(&units, 0, origins, to: Int(table.nodeCapacity))
        Self.rearrange(&ends, .max, origins, to: Int(table.nodeCapacity))
        Self.rearrange(&versions, RowVersion.none, origins, to: Int(table.nodeCapacity))
        Self.rearrange(&ages, usualAge, origins, to: Int(table.nodeCapacity))
        Self.rearrange(&hints, .none, origins, to: Int(table.nodeCapacity))
    }

    /// Moves each entry's elements to the entry's new index.
    @inlinable
    static func rearrange<Element>(
        _ array: inout [Element], _ nothing: Element, _ origins: [UInt32], to count: Int
    ) {
        if array.isEmpty { return }
        var arranged: [Element] = []
        arranged.reserveCapacity(count)
        for origin in origins { arranged.append(Int(origin) < array.count ? array[Int(origin)] : nothing) }
        arranged.append(contentsOf: repeatElement(nothing, count: count - arranged.count))
        array = arranged
    }
}

/// The objects that a write replaced, kept until the lock is released: their release may run user code.
@usableFromInline
struct Displaced<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline var key: Key?
    @usableFromInline var value: Value?

    @inlinable
    init() {}

    @inlinable var isEmpty: Bool {
        if case .some = key { return false }
        if case .some = value { return false }
        return true
    }
}
