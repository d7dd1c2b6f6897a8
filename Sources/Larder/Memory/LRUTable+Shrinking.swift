/// How a table gets smaller; the invariants are those of `LRUTable.swift`.
extension LRUTable {
    /// A Boolean value that indicates whether the next new key makes the table larger.
    @inlinable @inline(__always)
    var isFull: Bool { freeHead == 0 && highWater == nodeCapacity }

    /// Makes the table smaller, with room for so many entries, or for all that it has if those are more.
    ///
    /// Entries behind the new end move to free places before it. A second table next to the first one would leave a hole
    /// in the allocator's memory. Indices change, so no walk may be under way.
    ///
    /// - Returns: The old index of each entry by its new one; the index itself for those that stay, and for free places.
    /// - Complexity: O(n)
    @usableFromInline
    mutating func shrink(to entries: Int) -> [UInt32] {
        precondition(walkCount == 0, "A memory cache that is iterated over cannot be rearranged.")
        let capacity = UInt32(min(max(entries, count, 15), Self.maximumCount) + 1)
        guard capacity < nodeCapacity else { return Array(0..<min(highWater, nodeCapacity)) }
        let end = UInt32(count) + 1
        var origins = Array(0..<end)
        var places = [UInt32](repeating: 0, count: Int(highWater))
        var free: UInt32 = 1
        for index in 1..<max(1, highWater) where isEntry(index) {
            if index < end {
                places[Int(index)] = index
                continue
            }
            while isEntry(free) { free += 1 }
            move(index, to: free)
            (places[Int(index)], origins[Int(free)]) = (free, index)
        }
        nodes = Self.grow(nodes, holding: count, to: Int(capacity))
        moveSlots(to: places, capacity: capacity)
        nodeCapacity = capacity
        highWater = end
        freeHead = 0
        return origins
    }

    /// Moves an entry to the place of a free node.
    private mutating func move(_ index: UInt32, to place: UInt32) {
        (nodes + Int(place)).moveInitialize(from: nodes + Int(index), count: 1)
        let own = links(place).pointee
        links(own.older).pointee.newer = place
        links(own.newer).pointee.older = place
        links(index).initialize(to: Links(newer: 0, older: Self.freeMark))
    }

    /// Lays the slots out for so many nodes, each with the new index of its entry; tags move with them.
    private mutating func moveSlots(to places: [UInt32], capacity: UInt32) {
        let sorted = Self.allocateSlots(max(count, 1))
        var filled = 0
        for position in 0..<slotEnd where slots[position] != 0 {
            let place = places[Int(UInt32(truncatingIfNeeded: slots[position]))]
            sorted[filled] = (slots[position] & ~0xFFFF_FFFF) | UInt64(place)
            filled += 1
        }
        if let old = tags {
            let fresh = UnsafeMutablePointer<UInt32>.allocate(capacity: Int(capacity))
            for slot in 0..<filled {
                fresh[Int(UInt32(truncatingIfNeeded: sorted[slot]))] = UInt32(truncatingIfNeeded: sorted[slot] >> 32)
            }
            old.deallocate()
            tags = fresh
        }
        let margin = max(Self.margin(forNodes: capacity), slotEnd - Int(slotCount))
        Self.freeSlots(slots)
        layOut(sorted, filled, slotCount: Self.slotCount(forNodes: capacity), margin: margin)
    }
}
