/// The growth of a table; the invariants are those of `LRUTable.swift`.
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
        log.positions = positions
        if new > old { log.grow(capacity: new) } else { log = log.copy(capacity: new) }
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
