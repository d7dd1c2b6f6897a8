/// The table of every in-memory cache: nodes in one array, a hashed index of them, and the order of use in an ``AccessLog``.
///
/// The unsafe code of the library's memory tier is here, in the `+` files, in `AccessLog`, `TagIndex` and `TableMemory`. The
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

    @usableFromInline var log: AccessLog
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
        log = AccessLog(capacity: 16, hasTimes: hasTimes, Self.positions(in: nodes))
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
    @inlinable package var leastRecent: UInt32 { log.first }

    /// The most recently used entry, or 0.
    package var mostRecent: UInt32 { log.last }

    /// The next less recently used entry, or 0.
    package func older(than index: UInt32) -> UInt32 { log.older(than: index) }

    /// The entries, least recently used first.
    ///
    /// - Complexity: O(n), about a nanosecond an entry.
    package var order: [UInt32] {
        var order: [UInt32] = []
        order.reserveCapacity(count)
        log.forEach { order.append($0) }
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
    package func isEntry(_ index: UInt32) -> Bool { index != 0 && log.positions[index] < Self.freeMark }
}
