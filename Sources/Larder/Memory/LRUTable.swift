/// The flat array behind every in-memory cache: a hash table and a list by recency without an object per entry.
///
/// Everything unsafe of the library's memory side is in this file, its `+Writing`, `+Growth`, `+Shrinking` and `+Walk`, and
/// the checker.
/// It knows neither costs, ages nor locks: whoever owns it holds the lock, and keeps what belongs to an entry in `Value`
/// or beside it, by the entry's index.
///
/// **Nodes** lie in one allocation and name each other by 32-bit indices, which stay good until the entry is removed
/// or the table emptied, growth included. Node 0 is the sentinel of the circular list: `older` of it is the most recent
/// entry, `newer` the least recent.
///
/// **Slots** are 8 bytes: a tag (the upper half of the hash, last bit set) above the index of the node, 0 if empty.
/// A tag's home is its share of the slots, and slots stand in falling order of tags without wrapping around. So a miss
/// stops where a hit would, growth is one pass that hashes nothing, and the last slot, always empty, ends every walk.
///
/// Safety: between two calls these hold, and `LRUTable+Invariants.swift` checks them.
/// 1. The nodes in the list, and only these, hold an initialised key and value; there are `count` of them.
/// 2. Every node below `highWater` but the sentinel is in the list or in the free list; a free one has
///    `older == freeMark`.
/// 3. Each listed node has exactly one slot, at or after the home of its tag, with no empty slot between.
/// 4. `slots[slotEnd - 1]` is 0.
@usableFromInline
package struct LRUTable<Key: Hashable, Value>: ~Copyable {
    @usableFromInline struct Links {
        @usableFromInline var newer: UInt32
        @usableFromInline var older: UInt32

        @inlinable
        init(newer: UInt32, older: UInt32) {
            self.newer = newer
            self.older = older
        }
    }

    /// The links come first, so that a pointer to a node is one to its links, also where nothing else is initialised.
    @usableFromInline package struct Node {
        @usableFromInline var links: Links
        @usableFromInline package var key: Key
        @usableFromInline package var value: Value

        @inlinable
        init(links: Links, key: Key, value: Value) {
            self.links = links
            self.key = key
            self.value = value
        }
    }

    /// Where a key is, or would be put.
    @usableFromInline package struct Place: Sendable {
        /// The entry's index, or 0 where there is none.
        @usableFromInline package var index: UInt32
        @usableFromInline var position: Int

        @inlinable
        init(index: UInt32, position: Int) {
            self.index = index
            self.position = position
        }
    }

    @usableFromInline var nodes: UnsafeMutablePointer<Node>
    @usableFromInline var slots: UnsafeMutablePointer<UInt64>
    /// The tag of each node where a key's hash is the user's code, which must not run under the owner's lock.
    @usableFromInline var tags: UnsafeMutablePointer<UInt32>?
    @usableFromInline var slotCount: UInt64
    @usableFromInline var slotEnd: Int
    @usableFromInline var nodeCapacity: UInt32
    @usableFromInline var highWater: UInt32
    @usableFromInline var freeHead: UInt32
    @usableFromInline package var count: Int
    /// Whether integer keys met each other too often, and go through `Hasher` since.
    @usableFromInline package var isFlooded: Bool
    /// How many walks are copying the order right now.
    @usableFromInline var copyingWalks: Int
    /// How many there are of `walks`.
    @usableFromInline var walkCount: Int
    @usableFromInline var walks: [Walk]
    @usableFromInline package let seed: HashSeed

    /// The most entries a table can hold.
    @inlinable package static var maximumCount: Int { 0x7FFF_FFFE }
    @inlinable static var freeMark: UInt32 { .max }
    @inlinable static var keysAreIntegers: Bool { HashSeed.isInteger(Key.self) }

    @usableFromInline
    package init(seed: HashSeed) {
        self.seed = seed
        nodeCapacity = 16
        nodes = Self.allocateNodes(16)
        tags = Self.keysAreIntegers ? nil : .allocate(capacity: 16)
        slotCount = Self.slotCount(forNodes: 16)
        slotEnd = Int(slotCount) + Self.margin(forNodes: 16)
        slots = Self.allocateSlots(slotEnd)
        highWater = 1
        freeHead = 0
        count = 0
        isFlooded = false
        copyingWalks = 0
        walkCount = 0
        walks = []
        links(0).initialize(to: Links(newer: 0, older: 0))
    }

    deinit {
        var index = links(0).pointee.older
        while index != 0 {
            let older = links(index).pointee.older
            (nodes + Int(index)).deinitialize(count: 1)
            index = older
        }
        Self.freeNodes(nodes)
        Self.freeSlots(slots)
        tags?.deallocate()
    }
}

// What is handed over on release crosses the lock.
extension LRUTable.Links: Sendable {}
extension LRUTable.Node: Sendable where Key: Sendable, Value: Sendable {}

// Safety: a table cannot be copied, and nothing outside it knows its memory, so whoever has it has it alone. A Mutex does
// not do: the owner already holds the table under its own, and a pointer is never Sendable by itself.
extension LRUTable: @unchecked Sendable where Key: Sendable, Value: Sendable {}

// MARK: Reading

extension LRUTable {
    @inlinable @inline(__always)
    func links(_ index: UInt32) -> UnsafeMutablePointer<Links> {
        UnsafeMutableRawPointer(nodes + Int(index)).assumingMemoryBound(to: Links.self)
    }

    @inlinable @inline(__always)
    static func tag(of hash: UInt64) -> UInt64 { (hash >> 32) | 1 }

    @inlinable @inline(__always)
    func home(of tag: UInt64) -> Int {
        Int(truncatingIfNeeded: ((0xFFFF_FFFF ^ tag) &* slotCount) >> 32)
    }

    /// Finds a key by the hash its owner computed with ``HashSeed/hash(_:)``, outside its lock.
    ///
    /// - Complexity: O(1) expected, whatever integers are chosen as keys; equal hash values of other keys are compared
    ///   one by one, as in a `Dictionary`.
    @inlinable @inline(__always)
    package func locate(_ key: Key, hash: UInt64) -> Place {
        let tag = Self.tag(of: settled(hash, of: key))
        var position = home(of: tag)
        while true {
            let slot = slots[position]
            if slot >> 32 <= tag {
                if slot >> 32 < tag { return Place(index: 0, position: position) }
                let index = UInt32(truncatingIfNeeded: slot)
                // Both are this node; loading them now overlaps what hides in the key, a string's bytes for one.
                let own = links(index).pointee
                let (older, newer) = (links(own.older).pointee.newer, links(own.newer).pointee.older)
                if older != index || newer != index { Self.isBroken() }
                if nodes[Int(index)].key == key { return Place(index: index, position: position) }
            }
            position &+= 1
        }
    }

    @usableFromInline @inline(never)
    static func isBroken() -> Never {
        preconditionFailure("The list of a memory cache is broken: memory was overwritten.")
    }

    /// The hash that counts: a flooded table hashes integers again, which is nobody's code but the standard library's.
    @inlinable @inline(__always)
    func settled(_ hash: UInt64, of key: Key) -> UInt64 {
        if Self.keysAreIntegers && isFlooded { return seed.hashThroughHasher(key) }
        return hash
    }

    /// The least recently used entry, or 0.
    @inlinable package var leastRecent: UInt32 { links(0).pointee.newer }

    /// The most recently used entry, or 0.
    package var mostRecent: UInt32 { links(0).pointee.older }

    /// The next less recently used entry, or 0.
    package func older(than index: UInt32) -> UInt32 { links(index).pointee.older }

    /// The next more recently used entry, or 0.
    @inlinable @inline(__always)
    package func newer(than index: UInt32) -> UInt32 { links(index).pointee.newer }

    @inlinable @inline(__always)
    package func key(at index: UInt32) -> Key { nodes[Int(index)].key }

    @inlinable @inline(__always)
    package func value(at index: UInt32) -> Value { nodes[Int(index)].value }

    /// One more than the greatest index in use; what stands beside the table by index must reach as far.
    @inlinable package var indexLimit: UInt32 { highWater }

    /// Whether an index below ``indexLimit`` is an entry now.
    @inlinable @inline(__always)
    package func isEntry(_ index: UInt32) -> Bool { index != 0 && links(index).pointee.older != Self.freeMark }
}
