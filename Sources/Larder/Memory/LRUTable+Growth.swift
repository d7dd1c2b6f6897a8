/// The growth of a table; the invariants are those of `LRUTable.swift`.
///
/// Safety: Arrays become as large as the new number of nodes or slots, in place or by a move of the used elements, and the
/// old ones are freed here. The owner's lock is held, so no other code reads either. Plain nodes are moved with all their
/// bits; others are initialized elsewhere, and keep their positions in the log, since these are fields of the node.
extension LRUTable {
    /// The maximum distance of an integer key from its home, and the length of its cluster from there, before the
    /// table assumes an attack.
    ///
    /// At the load of 4/7 a key is k slots after its home with a probability of about e to the -1.03 k: more than 40
    /// occurs once in 10^18 insertions. Clusters thin out by 0.877 a slot, so one of 320 also occurs once in 10^18.
    @inlinable static var boundOfDisplacement: Int { 40 }
    @inlinable static var boundOfCluster: Int { 320 }

    /// Returns the number of slots for so many nodes: a load of at most 4/7, which is 38 bytes for an entry of two
    /// integers.
    @inlinable
    static func slotCount(forNodes nodes: UInt32) -> UInt64 { UInt64(nodes) * 7 / 4 }

    /// The slots after the last home: as many as the bound lets a cluster exceed it, and the empty slot at the end.
    @inlinable
    static func margin(forNodes nodes: UInt32) -> Int { min(Int(nodes), boundOfCluster) + 2 }

    @inlinable @inline(__always)
    func isCrowded(home: Int, position: Int, end: Int) -> Bool {
        if end == slotEnd &- 1 { return true }
        return Self.keysAreIntegers && !isFlooded
            && (position &- home > Self.boundOfDisplacement || end &- home > Self.boundOfCluster)
    }

    /// Switches integer keys to `Hasher` if that was not done yet, or else lengthens the margin.
    @inlinable
    mutating func makeRoom() {
        if Self.keysAreIntegers && !isFlooded {
            isFlooded = true
            hashAgain()
        } else {
            layOut(slots, slotEnd, slotCount: slotCount, margin: (slotEnd - Int(slotCount)) * 2)
        }
    }

    /// Doubles the capacity up to the limit, and adds at least a sixteenth, so that the next growth is not near.
    @inlinable
    mutating func grow(limit: Int) {
        let entries = Int(nodeCapacity) - 1
        let wanted = max(min(entries * 2 + 1, limit), entries + entries / 16 + 1)
        let capacity = UInt32(min(wanted, Self.maximumCount) + 1)
        precondition(capacity > nodeCapacity, "A memory cache cannot hold more than 2^30 entries.")
        moveNodes(entries, capacity: capacity)
        layOut(
            slots, slotEnd, slotCount: Self.slotCount(forNodes: capacity),
            margin: max(Self.margin(forNodes: capacity), slotEnd - Int(slotCount)))
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
        log.positions = positions
        if new > old { log.grow(capacity: new) } else { log = log.copy(capacity: new) }
        if let array = tags { tags = TableMemory.resize(array, used: entries + 1, from: old, to: new) }
        nodeCapacity = capacity
    }

    /// Copies the slots into the new array in one iteration; they are in order already.
    @inlinable
    mutating func layOut(
        _ old: UnsafeMutablePointer<UInt64>, _ oldEnd: Int, slotCount newCount: UInt64, margin: Int
    ) {
        slotCount = newCount
        slotEnd = Int(newCount) + margin
        slots = TableMemory.allocate(slotEnd)
        var next = 0
        for position in 0..<oldEnd {
            // Half of the slots are empty, at random: they are written as if they were not, but not counted, which
            // avoids a branch that would be mispredicted.
            let slot = old[position]
            let place = slot == 0 ? next : max(next, home(of: slot >> 32))
            if place >= slotEnd - 1 {
                // Only keys with equal hashes get here: begin again with more slots at the end.
                TableMemory.free(slots, slotEnd)
                layOut(old, oldEnd, slotCount: newCount, margin: margin * 2)
                return
            }
            slots[place] = slot
            next = slot == 0 ? next : place + 1
        }
        TableMemory.free(old, oldEnd)
    }

    /// Hashes every integer key again, now through `Hasher`.
    @usableFromInline
    mutating func hashAgain() {
        let old = slots
        let oldEnd = slotEnd
        let sorted: UnsafeMutablePointer<UInt64> = TableMemory.allocate(count)
        var filled = 0
        for position in 0..<oldEnd where old[position] != 0 {
            let index = UInt32(truncatingIfNeeded: old[position])
            let tag = Self.tag(of: seed.hashThroughHasher(nodes[Int(index)].key))
            sorted[filled] = tag << 32 | UInt64(index)
            filled += 1
        }
        var all = UnsafeMutableBufferPointer(start: sorted, count: filled)
        all.sort(by: >)
        TableMemory.free(old, oldEnd)
        layOut(sorted, filled, slotCount: slotCount, margin: slotEnd - Int(slotCount))
    }
}
