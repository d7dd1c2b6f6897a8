/// The shrinking of a table; the invariants are those of `LRUTable.swift`.
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
            log.moveRecord(of: index, to: free)
            log.positions[index] = Self.freeMark
            origins[Int(free)] = index
        }
        moveNodes(count, capacity: capacity)
        highWater = end
        freeHead = 0
        layOut()
        return origins
    }
}
