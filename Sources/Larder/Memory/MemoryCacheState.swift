/// What the lock of a memory cache guards: the table, what belongs to each entry beside its value, and the limits.
///
/// Costs and the starts of ages stand in arrays of their own by the entry's index, and only once there are any, so
/// that a cache that uses neither pays neither.
@usableFromInline
struct MemoryCacheState<Key: Hashable & Sendable, Value: Sendable>: ~Copyable {
    @usableFromInline typealias Table = LRUTable<Key, Value>

    @usableFromInline var table: Table
    /// The cost of each entry; what lies beyond the end is 0.
    @usableFromInline var costs: [Int] = []
    /// When the age of each entry began, where the maximum age needs it.
    @usableFromInline var starts: [Int64] = []
    /// Wide enough for as many entries as there can be at 2^53 each.
    @usableFromInline var totalCost: Int128 = 0
    @usableFromInline var countLimit: Int
    @usableFromInline private(set) var costLimit: Int
    /// The same, but no bound at all where the limit is `Int.max`: totals may be greater than that.
    @usableFromInline var costBound: Int128
    /// Whether any entry ever had a cost since the cache was last empty.
    @usableFromInline var hasCosts = false
    /// The keys some `update` works on.
    @usableFromInline var holds: [UpdateHold<Key>] = []
    /// Whether there are any.
    @usableFromInline var hasHolds = false
    @usableFromInline var lastWalk: UInt64 = 0

    @usableFromInline
    init(seed: HashSeed, countLimit: Int, costLimit: Int) {
        table = Table(seed: seed)
        self.countLimit = countLimit
        self.costLimit = costLimit
        costBound = Self.bound(costLimit)
    }

    mutating func limitCost(to limit: Int) {
        costLimit = limit
        costBound = Self.bound(limit)
    }

    private static func bound(_ limit: Int) -> Int128 { limit == .max ? .max : Int128(limit) }

    /// The greatest cost of one entry.
    @inlinable static var maximumCost: Int { Int(clamping: Int64(1) << 53) }

    @inlinable @inline(__always)
    static func clamped(_ cost: Int) -> Int { max(0, min(cost, maximumCost)) }

    /// What `countLimit` comes to: the table has an end.
    @inlinable var effectiveCountLimit: Int {
        @inline(__always) get { min(countLimit, Table.maximumCount) }
    }

    // MARK: One entry

    /// Reads a value where no age limits it.
    @inlinable
    mutating func value(forKey key: Key, hash: UInt64) -> Value? {
        let place = table.locate(key, hash: hash)
        if place.index == 0 { return nil }
        table.promote(place.index)
        return table.value(at: place.index)
    }

    /// Sets a value where that takes out at most one entry, or gives nil and changes nothing where it takes more.
    ///
    /// What it gives back is to be released outside the lock. It holds no array, so for plain keys and values there is
    /// nothing to release.
    @inlinable @inline(__always)
    mutating func setValueQuickly(
        _ value: Value, forKey key: Key, hash: UInt64, cost: Int, start: Int64?
    ) -> Displaced<Key, Value>? {
        if hasHolds || cost > costLimit || countLimit <= 0 { return nil }
        var displaced = Displaced<Key, Value>()
        let place = table.locate(key, hash: hash)
        let index: UInt32
        if place.index != 0 {
            if (hasCosts || cost != 0) && isOverLimit(with: cost, instead: place.index) { return nil }
            index = place.index
            displaced.value = table.exchange(value, at: index)
            table.promote(index)
            if hasCosts { setNoCost(of: index) }
        } else if needsRoom(for: cost) {
            let oldest = table.leastRecent
            if table.count > effectiveCountLimit { return nil }
            if (hasCosts || cost != 0) && isOverLimit(with: cost, instead: oldest) { return nil }
            if hasCosts { setNoCost(of: oldest) }
            (displaced.key, displaced.value) = table.replaceLeastRecent(
                with: key, value, hash: hash, at: place)
            index = oldest
        } else {
            index = table.insert(key, value, hash: hash, at: place, limit: effectiveCountLimit)
        }
        if cost != 0 { setCost(cost, of: index) }
        if let start { setStart(start, of: index) }
        return displaced
    }

    /// Sets a value, evicts what no longer fits, and gives back what is to be released outside the lock.
    @usableFromInline
    mutating func setValue(
        _ value: Value, forKey key: Key, hash: UInt64, cost: Int, start: Int64?, into discards: inout [Table.Node]
    ) -> Displaced<Key, Value> {
        if hasHolds { noteWrite(key, hash: hash) }
        var displaced = Displaced<Key, Value>()
        var place = table.locate(key, hash: hash)
        if cost > costLimit || countLimit <= 0 {
            if place.index != 0 { discards.append(remove(place)) }
            return displaced
        }
        let index: UInt32
        if place.index != 0 {
            index = place.index
            displaced.value = table.exchange(value, at: index)
            table.promote(index)
            if hasCosts { setNoCost(of: index) }
        } else {
            if needsRoom(for: cost) {
                while table.count > 0 && needsRoom(for: cost) { discards.append(remove(table.leastRecent)) }
                place = table.locate(key, hash: hash)
            }
            index = table.insert(key, value, hash: hash, at: place, limit: effectiveCountLimit)
        }
        if cost != 0 { setCost(cost, of: index) }
        if let start { setStart(start, of: index) }
        // Only what was replaced by something costlier is over a limit now, and it is the last to go.
        while isOverLimit { discards.append(remove(table.leastRecent)) }
        return displaced
    }

    /// Takes an entry out together with what stands beside it.
    @inlinable
    mutating func remove(_ place: Table.Place) -> Table.Node {
        if hasCosts { setNoCost(of: place.index) }
        return table.remove(place)
    }

    /// Takes an entry out by its index.
    @inlinable
    mutating func remove(_ index: UInt32) -> Table.Node {
        if hasCosts { setNoCost(of: index) }
        return table.remove(index)
    }

    // MARK: Limits

    @inlinable var isOverLimit: Bool {
        table.count > effectiveCountLimit || (hasCosts && totalCost > costBound)
    }

    @inlinable @inline(__always)
    func needsRoom(for cost: Int) -> Bool {
        if table.count >= effectiveCountLimit { return true }
        return hasCosts && totalCost + Int128(cost) > costBound
    }

    /// Whether the costs would come to too much with one entry more, of this cost, and another less.
    @inlinable @inline(__always)
    func isOverLimit(with cost: Int, instead index: UInt32) -> Bool {
        totalCost - Int128(self.cost(of: index)) + Int128(cost) > costBound
    }

    // MARK: Beside the table

    @inlinable @inline(__always)
    func cost(of index: UInt32) -> Int { Int(index) < costs.count ? costs[Int(index)] : 0 }

    /// Notes a cost whose predecessor is no longer in the total.
    @inlinable
    mutating func setCost(_ cost: Int, of index: UInt32) {
        if Int(index) >= costs.count {
            if cost == 0 { return }
            extendCosts()
        }
        costs[Int(index)] = cost
        totalCost += Int128(cost)
        hasCosts = true
    }

    @inlinable @inline(__always)
    mutating func setNoCost(of index: UInt32) {
        if Int(index) < costs.count {
            totalCost -= Int128(costs[Int(index)])
            costs[Int(index)] = 0
        }
    }

    @inlinable
    mutating func setStart(_ start: Int64, of index: UInt32) {
        if Int(index) >= starts.count { extendStarts() }
        starts[Int(index)] = start
    }

    @usableFromInline
    mutating func extendCosts() {
        costs.append(contentsOf: repeatElement(0, count: Int(table.nodeCapacity) - costs.count))
    }

    @usableFromInline
    mutating func extendStarts() {
        starts.append(contentsOf: repeatElement(0, count: Int(table.nodeCapacity) - starts.count))
    }

    /// Puts an empty table in place of this one, which is to be released outside the lock.
    mutating func removeAll() -> Table {
        var fresh = Table(seed: table.seed)
        fresh.adoptWalks(of: &table)
        swap(&fresh, &table)
        costs = []
        starts = []
        totalCost = 0
        hasCosts = false
        for hold in holds.indices { holds[hold].isOverwritten = true }
        return fresh
    }
}

/// What a write puts out of its place, kept until the lock is let go: its release may run user code.
@usableFromInline
struct Displaced<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline var key: Key?
    @usableFromInline var value: Value?

    @inlinable
    init() {}
}
