/// The flat array behind every in-memory cache: a hash table and a list by recency without an object per entry.
///
/// Everything unsafe of the library's memory side is in this file and `LRUTable+Growth.swift`. It knows neither costs, ages nor locks: whoever owns
/// it holds the lock, and keeps what belongs to an entry in `Value` or beside it, by the entry's index.
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

// Safety: a table cannot be copied, and nothing outside it knows its memory, so whoever has it has it alone.
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

// MARK: Writing

extension LRUTable {
    /// Makes an entry the most recently used.
    @inlinable @inline(__always)
    package mutating func promote(_ index: UInt32) {
        let front = links(0).pointee.older
        if front == index { return }
        if copyingWalks != 0 { keepOrder(around: index) }
        let own = links(index).pointee
        links(own.older).pointee.newer = own.newer
        links(own.newer).pointee.older = own.older
        links(index).pointee = Links(newer: 0, older: front)
        links(front).pointee.newer = index
        links(0).pointee.older = index
    }

    /// Puts another value in an entry's place, and gives back the old one, to be released outside the lock.
    @inlinable @inline(__always)
    package mutating func exchange(_ value: consuming Value, at index: UInt32) -> Value {
        if walkCount != 0 { noteReplacement(of: index) }
        swap(&nodes[Int(index)].value, &value)
        return value
    }

    /// Lets the owner change a value where it lies.
    ///
    /// The closure runs under the owner's lock, so no user code may.
    @inlinable
    package mutating func withValue<R>(at index: UInt32, _ body: (inout Value) -> R) -> R {
        body(&nodes[Int(index)].value)
    }

    /// Adds a key that ``locate(_:hash:)`` did not find just now, as the most recently used.
    ///
    /// - Parameter limit: How many entries the owner will ever keep; the table grows no further than that.
    @inlinable @inline(__always)
    package mutating func insert(
        _ key: Key, _ value: consuming Value, hash: UInt64, at place: Place, limit: Int
    ) -> UInt32 {
        var position = place.position
        if freeHead == 0 && highWater == nodeCapacity {
            grow(limit: limit)
            position = locate(key, hash: hash).position
        }
        let index: UInt32
        if freeHead != 0 {
            index = freeHead
            freeHead = links(index).pointee.newer
        } else {
            index = highWater
            highWater &+= 1
        }
        let front = links(0).pointee.older
        if copyingWalks != 0 { keepOrder(of: front) }
        (nodes + Int(index)).initialize(to: Node(links: Links(newer: 0, older: front), key: key, value: value))
        links(front).pointee.newer = index
        links(0).pointee.older = index
        count &+= 1
        openSlot(at: position, for: index, tag: Self.tag(of: settled(hash, of: key)))
        return index
    }

    /// Puts a key that ``locate(_:hash:)`` did not find just now in the place of the least recently used entry, and gives
    /// back what that held.
    @inlinable @inline(__always)
    package mutating func replaceLeastRecent(
        with key: Key, _ value: consuming Value, hash: UInt64, at place: Place
    ) -> (key: Key, value: Value) {
        let index = leastRecent
        let tag = Self.tag(of: settled(hash, of: key))
        if walkCount != 0 { noteRemoval(of: index) }
        var position = place.position
        let closed = self.position(of: index)
        let end = closeSlot(at: closed)
        // What changed behind the new key's place, or before its home, leaves its place where it is.
        if closed < position && end >= home(of: tag) { position = locate(key, hash: hash).position }
        var oldKey = key
        swap(&nodes[Int(index)].key, &oldKey)
        swap(&nodes[Int(index)].value, &value)
        promote(index)
        openSlot(at: position, for: index, tag: tag)
        return (oldKey, value)
    }

    /// Takes an entry out, and gives back what it held, to be released outside the lock.
    @inlinable
    package mutating func remove(_ index: UInt32) -> Node {
        remove(Place(index: index, position: position(of: index)))
    }

    /// Takes an entry out that ``locate(_:hash:)`` found just now.
    @inlinable
    package mutating func remove(_ place: Place) -> Node {
        let index = place.index
        if walkCount != 0 { noteRemoval(of: index) }
        _ = closeSlot(at: place.position)
        let node = (nodes + Int(index)).move()
        links(node.links.older).pointee.newer = node.links.newer
        links(node.links.newer).pointee.older = node.links.older
        links(index).initialize(to: Links(newer: freeHead, older: Self.freeMark))
        freeHead = index
        count &-= 1
        return node
    }

    /// Puts an entry's slot at a position, and moves those that stand there, without a gap, one on.
    @inlinable @inline(__always)
    mutating func openSlot(at position: Int, for index: UInt32, tag: UInt64) {
        if let tags { tags[Int(index)] = UInt32(truncatingIfNeeded: tag) }
        var carried = tag << 32 | UInt64(index)
        var end = position
        while true {
            let next = slots[end]
            slots[end] = carried
            if next == 0 { break }
            carried = next
            end &+= 1
        }
        // The last slot ends every walk, so this loop too; if it was filled now, there is no room any more.
        if isCrowded(home: home(of: tag), position: position, end: end) { makeRoom() }
    }

    /// Moves the slots behind one back over it, as far as they stand behind their homes.
    ///
    /// - Returns: The last slot that changed.
    @inlinable @inline(__always)
    mutating func closeSlot(at position: Int) -> Int {
        var hole = position
        while true {
            let next = slots[hole &+ 1]
            if next == 0 || home(of: next >> 32) == hole &+ 1 { break }
            slots[hole] = next
            hole &+= 1
        }
        slots[hole] = 0
        return hole
    }

    /// Finds the slot of an entry without comparing keys.
    @inlinable @inline(__always)
    func position(of index: UInt32) -> Int {
        let tag: UInt64
        if let tags {
            tag = UInt64(tags[Int(index)])
        } else {
            let key = nodes[Int(index)].key
            tag = Self.tag(of: isFlooded ? seed.hashThroughHasher(key) : seed.hash(key))
        }
        let wanted = tag << 32 | UInt64(index)
        var position = home(of: tag)
        while slots[position] != wanted { position &+= 1 }
        return position
    }
}
