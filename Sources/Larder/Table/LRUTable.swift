/// The table of every in-memory cache: nodes in one array, a hashed index of them, and the order of use in an ``AccessOrder``.
///
/// The unsafe code of the library's memory tier is here, in the `+` files, in `AccessOrder`, `TagIndex` and `TableMemory`. The
/// table knows neither costs, ages nor locks. Its owner holds the lock, and keeps an entry's other data in `Value`
/// or in arrays by the entry's index.
///
/// **Nodes** lie in one allocation. Their 32-bit indices stay good until the entry is removed or the table emptied,
/// growth included. Index 0 is no entry.
///
/// **The index** of nodes by their keys is a ``TagIndex``.
///
/// Safety: between two calls these hold, and `LRUTable+Invariants.swift` checks them.
/// 1. The nodes in the log, and only these, hold an initialized key and value. There are `count` of them.
/// 2. Every index below `highWater` but 0 is in the log or in the free list. Instead of a position, a free node has
///    `freeMark` and the next free index.
/// 3. Each entry is in the index exactly once, and nothing else is.
@usableFromInline
package struct LRUTable<Key: Hashable, Value>: ~Copyable {
    @usableFromInline package struct Node {
        @usableFromInline package var key: Key
        @usableFromInline package var value: Value
        /// The position of its record in the log; in a node without an entry, what says that there is none.
        @usableFromInline var position: UInt32 = 0

        @inlinable
        init(key: Key, value: Value) {
            self.key = key
            self.value = value
        }

        /// The offset of the position: structs are laid out in the order of their fields.
        @inlinable static var positionOffset: Int {
            let value = aligned(MemoryLayout<Key>.size, MemoryLayout<Value>.alignment)
            return aligned(value + MemoryLayout<Value>.size, MemoryLayout<UInt32>.alignment)
        }

        @inlinable
        static func aligned(_ offset: Int, _ alignment: Int) -> Int { (offset + alignment - 1) & ~(alignment - 1) }
    }

    @usableFromInline var accessOrder: AccessOrder
    @usableFromInline var nodes: UnsafeMutablePointer<Node>
    @usableFromInline var index: TagIndex
    /// The tag of each node where a key's hash is the user's code, which must not run under the owner's lock.
    @usableFromInline var tags: UnsafeMutablePointer<UInt32>?
    @usableFromInline var nodeCapacity: UInt32
    @usableFromInline var highWater: UInt32
    @usableFromInline var freeHead: UInt32
    @usableFromInline package var count: Int
    /// How many entries were removed or evicted: as long as it stands, each index is of the same entry.
    @usableFromInline var removals = 0
    @usableFromInline package let seed: HashSeed

    /// The maximum number of entries, for which the positions in the log are less than `freeMark`.
    @inlinable package static var maximumCount: Int { 1 << 30 }
    @inlinable static var freeMark: UInt32 { 1 << 31 }
    @inlinable static var keysAreIntegers: Bool { HashSeed.isInteger(Key.self) }

    /// - Parameter hasTimes: A Boolean value that indicates whether the log keeps when each entry was accessed.
    @usableFromInline
    package init(seed: HashSeed, hasTimes: Bool = false) {
        self.seed = seed
        nodeCapacity = 16
        nodes = TableMemory.allocate(16)
        accessOrder = AccessOrder(capacity: 16, hasTimes: hasTimes, Self.positions(in: nodes))
        tags = Self.keysAreIntegers ? nil : TableMemory.allocate(16)
        index = TagIndex(nodes: 16)
        highWater = 1
        freeHead = 0
        count = 0
    }

    // One call for each run of entries: the element's destructor is not specialized here, and plain elements have none.
    @inlinable
    deinit {
        var start: UInt32 = _isPOD(Node.self) ? highWater : 1
        while start < highWater {
            var end = start
            while end < highWater, isEntry(end) { end += 1 }
            (nodes + Int(start)).deinitialize(count: Int(end - start))
            start = end + 1
        }
        TableMemory.free(nodes, Int(nodeCapacity))
        if let tags { TableMemory.free(tags, Int(nodeCapacity)) }
    }
}

extension LRUTable {
    static func positions(in nodes: UnsafeMutablePointer<Node>) -> NodePositions {
        NodePositions(
            first: UnsafeMutableRawPointer(nodes) + Node.positionOffset, stride: MemoryLayout<Node>.stride)
    }

    var positions: NodePositions { Self.positions(in: nodes) }
}

// Nodes that are released outside the lock leave its isolation.
extension LRUTable.Node: Sendable where Key: Sendable, Value: Sendable {}

// Safety: a table cannot be copied, and no code outside it knows its memory, so its holder is the only one. A Mutex is
// no alternative: the owner already holds the table under its own, and a pointer is never Sendable.
extension LRUTable: @unchecked Sendable where Key: Sendable, Value: Sendable {}

// MARK: Reading

extension LRUTable {
    @inlinable @inline(__always)
    static func tag(of hash: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: hash >> 32) }

    /// The tag of an entry.
    @inlinable @inline(__always)
    func tag(of index: UInt32) -> UInt32 {
        if let tags { return tags[Int(index)] }
        let key = nodes[Int(index)].key
        return Self.tag(of: seed.hash(key))
    }

    /// Returns the index of a key by the hash its owner computed with ``HashSeed/hash(_:)``, outside its lock; 0 if there is
    /// no entry.
    ///
    /// - Complexity: O(1) expected, since the seed is a secret; equal hash values of other keys are compared
    ///   one by one, as in a `Dictionary`.
    @inlinable @inline(__always)
    package func locate(_ key: Key, hash: UInt64) -> UInt32 {
        let tag = Self.tag(of: hash)
        let (byte, home) = (TagIndex.byte(of: tag), index.home(of: tag))
        var chunk = home
        while true {
            var candidates = index.lanes(chunk, with: byte)
            while candidates != 0 {
                let found = index.index(chunk, candidates.trailingZeroBitCount)
                if nodes[Int(found)].key == key { return found }
                candidates &= candidates &- 1
            }
            if !index.isPassed(chunk) { return 0 }
            chunk = index.chunk(after: chunk)
            // In a small table all chunks may have been passed.
            if chunk == home { return 0 }
        }
    }

    /// The least recently used entry, or 0.
    @inlinable package var leastRecent: UInt32 { accessOrder.first }

    /// The most recently used entry, or 0.
    package var mostRecent: UInt32 { accessOrder.last }

    /// The next less recently used entry, or 0.
    package func older(than index: UInt32) -> UInt32 { accessOrder.older(than: index) }

    /// The entries, least recently used first.
    ///
    /// - Complexity: O(n), about a nanosecond an entry.
    package var order: [UInt32] {
        var order: [UInt32] = []
        order.reserveCapacity(count)
        accessOrder.forEach { order.append($0) }
        return order
    }

    @inlinable @inline(__always)
    package func key(at index: UInt32) -> Key { nodes[Int(index)].key }

    @inlinable @inline(__always)
    package func value(at index: UInt32) -> Value { nodes[Int(index)].value }

    /// One more than the greatest index in use; arrays next to the table by index must be as long.
    @inlinable package var indexLimit: UInt32 { highWater }

    /// Returns whether an index below ``indexLimit`` is an entry now.
    @inlinable @inline(__always)
    package func isEntry(_ index: UInt32) -> Bool { index != 0 && accessOrder.positions[index] < Self.freeMark }
}

/// The methods that change the table.
extension LRUTable {
    /// Makes an entry the most recently used.
    @inlinable @inline(__always)
    package mutating func promote(_ index: UInt32) { accessOrder.touch(index) }

    /// Makes an entry the most recently used, at a time.
    @inlinable @inline(__always)
    package mutating func promote(_ index: UInt32, at time: UInt32) { accessOrder.touch(index, at: time) }

    /// Replaces the value of an entry, and returns the old one, to be released outside the lock.
    @inlinable @inline(__always)
    package mutating func exchange(_ value: consuming Value, at index: UInt32) -> Value {
        swap(&nodes[Int(index)].value, &value)
        return value
    }

    /// Lets the owner change a value in place.
    ///
    /// The closure runs under the owner's lock, so it must not run user code.
    @inlinable
    package mutating func withValue<R>(at index: UInt32, _ body: (inout Value) -> R) -> R {
        body(&nodes[Int(index)].value)
    }

    /// Adds a key that ``locate(_:hash:)`` did not find, as the most recently used.
    ///
    /// - Parameter limit: The maximum number of entries of the owner; the table grows no further than that.
    @inlinable @inline(__always)
    package mutating func insert(_ key: Key, _ value: consuming Value, hash: UInt64, limit: Int) -> UInt32 {
        if isFull { grow(limit: limit) }
        let index: UInt32
        if freeHead != 0 {
            index = freeHead
            freeHead = accessOrder.positions[index] & ~Self.freeMark
        } else {
            index = highWater
            highWater &+= 1
        }
        (nodes + Int(index)).initialize(to: Node(key: key, value: value))
        accessOrder.append(index)
        count &+= 1
        enter(index, tag: Self.tag(of: hash))
        return index
    }

    /// Puts a key that ``locate(_:hash:)`` did not find in the place of the least recently used entry, and returns the old
    /// node.
    @inlinable @inline(__always)
    package mutating func replaceLeastRecent(
        with key: Key, _ value: consuming Value, hash: UInt64
    ) -> (key: Key, value: Value) {
        let oldest = leastRecent
        removals &+= 1
        index.leave(oldest, tag: tag(of: oldest))
        var oldKey = key
        swap(&nodes[Int(oldest)].key, &oldKey)
        swap(&nodes[Int(oldest)].value, &value)
        promote(oldest)
        enter(oldest, tag: Self.tag(of: hash))
        return (oldKey, value)
    }

    /// Removes an entry, and returns its node, to be released outside the lock.
    @inlinable
    package mutating func remove(_ removed: UInt32) -> Node {
        removals &+= 1
        index.leave(removed, tag: tag(of: removed))
        accessOrder.remove(removed)
        count &-= 1
        let node = (nodes + Int(removed)).move()
        accessOrder.positions[removed] = Self.freeMark | freeHead
        freeHead = removed
        return node
    }

    /// Enters an entry into the index.
    @inlinable @inline(__always)
    mutating func enter(_ entry: UInt32, tag: UInt32) {
        if let tags { tags[Int(entry)] = tag }
        index.enter(entry, tag: tag)
    }
}

/// The growth of a table.
///
/// Safety: Arrays become as large as the new number of nodes, in place or by a move of the used elements, and the
/// old ones are freed here. The owner's lock is held, so no other code reads either. Plain nodes are moved with all their
/// bits; others are initialized elsewhere, and keep their positions in the log, since these are fields of the node.
extension LRUTable {
    /// Doubles the capacity up to the limit, or quadruples a small one, and adds at least a sixteenth, so that the next growth
    /// is not near.
    @inlinable
    mutating func grow(limit: Int) {
        let entries = Int(nodeCapacity) - 1
        let factor = entries < 1 << 16 ? 4 : 2
        let wanted = max(min((entries + 1) * factor - 1, limit), entries + entries / 16 + 1)
        let capacity = UInt32(min(wanted, Self.maximumCount) + 1)
        precondition(capacity > nodeCapacity, "A memory cache cannot hold more than 2^30 entries.")
        moveNodes(entries, capacity: capacity)
        layOut()
    }

    /// Moves the first so many nodes, all of them entries, with their tags and their order to arrays of another size.
    @inlinable
    mutating func moveNodes(_ entries: Int, capacity: UInt32) {
        let (old, new) = (Int(nodeCapacity), Int(capacity))
        if new > old && _isPOD(Node.self) {
            nodes = TableMemory.grow(nodes, from: old, to: new)
        } else {
            let moved: UnsafeMutablePointer<Node> = TableMemory.allocate(new)
            (moved + 1).moveInitialize(from: nodes + 1, count: entries)
            TableMemory.free(nodes, old)
            nodes = moved
        }
        moveOrder(entries, capacity: capacity)
    }

    /// Takes over that the nodes have moved.
    @usableFromInline
    mutating func moveOrder(_ entries: Int, capacity: UInt32) {
        let (old, new) = (Int(nodeCapacity), Int(capacity))
        accessOrder.positions = positions
        if new > old { accessOrder.grow(capacity: new) } else { accessOrder = accessOrder.copy(capacity: new) }
        if let array = tags { tags = TableMemory.resize(array, used: entries + 1, from: old, to: new) }
        nodeCapacity = capacity
    }

    /// Enters all entries into a new index.
    @inlinable
    mutating func layOut() {
        index = TagIndex(nodes: nodeCapacity)
        var entry: UInt32 = 1
        while entry < highWater {
            if isEntry(entry) { index.enter(entry, tag: tag(of: entry)) }
            entry &+= 1
        }
    }
}

/// The shrinking of a table.
extension LRUTable {
    /// A Boolean value that indicates whether the next new key makes the table larger.
    @inlinable @inline(__always)
    var isFull: Bool { freeHead == 0 && highWater == nodeCapacity }

    /// Shrinks the table to the capacity for so many entries, or for all entries if those are more.
    ///
    /// Entries after the new end move to free places before it. Indices change.
    ///
    /// - Returns: The old index of each entry by its new one; the same index for entries that stay, and for free
    ///   places.
    /// - Complexity: O(n)
    @inlinable
    package mutating func shrink(to entries: Int) -> [UInt32] {
        let capacity = UInt32(min(max(entries, count, 15), Self.maximumCount) + 1)
        guard capacity < nodeCapacity else { return Array(0..<min(highWater, nodeCapacity)) }
        let end = UInt32(count) + 1
        var origins = Array(0..<end)
        var free: UInt32 = 1
        for index in end..<max(end, highWater) where isEntry(index) {
            while isEntry(free) { free += 1 }
            (nodes + Int(free)).moveInitialize(from: nodes + Int(index), count: 1)
            if let tags { tags[Int(free)] = tags[Int(index)] }
            accessOrder.moveRecord(of: index, to: free)
            accessOrder.positions[index] = Self.freeMark
            origins[Int(free)] = index
        }
        moveNodes(count, capacity: capacity)
        highWater = end
        freeHead = 0
        layOut()
        return origins
    }
}
