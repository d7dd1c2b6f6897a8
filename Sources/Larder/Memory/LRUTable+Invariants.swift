extension LRUTable {
    /// How many slots finding this key looks at; what a flood would raise.
    package func probeCount(_ key: Key, hash: UInt64) -> Int {
        locate(key, hash: hash).position - home(of: Self.tag(of: settled(hash, of: key))) + 1
    }

    /// Traps with a sentence if the table is not in order; release builds drop it.
    ///
    /// - Complexity: O(n)
    package func checkInvariants() {
        #if DEBUG
        checkList()
        checkFreeList()
        checkSlots()
        #endif
    }

    #if DEBUG
    private func checkList() {
        var listed = 0
        var index = links(0).pointee.newer
        var older: UInt32 = 0
        while index != 0 {
            precondition(index < highWater && highWater <= nodeCapacity, "A link leads out of the nodes.")
            precondition(links(index).pointee.older == older, "The list's two directions differ.")
            precondition(position(of: index) < slotEnd - 1, "A listed node has no slot.")
            listed += 1
            precondition(listed <= count, "The list has more entries than the count, or a circle.")
            older = index
            index = links(index).pointee.newer
        }
        precondition(links(0).pointee.older == older, "The sentinel does not close the list.")
        precondition(listed == count, "The list has fewer entries than the count.")
    }

    private func checkFreeList() {
        var free = 0
        var index = freeHead
        while index != 0 {
            precondition(index < highWater, "The free list leads out of the nodes.")
            precondition(links(index).pointee.older == Self.freeMark, "A free node looks like an entry.")
            free += 1
            precondition(free < Int(highWater), "The free list has a circle.")
            index = links(index).pointee.newer
        }
        precondition(free + count + 1 == Int(highWater), "A node is neither free nor an entry.")
    }

    private func checkSlots() {
        var filled = 0
        var previous = UInt64.max
        for position in 0..<slotEnd {
            let slot = slots[position]
            if slot == 0 {
                previous = .max
                continue
            }
            let home = home(of: slot >> 32)
            precondition(slot >> 32 <= previous, "Slots of a cluster are out of order.")
            precondition(home <= position, "A slot stands before its home.")
            precondition((home..<position).allSatisfy { slots[$0] != 0 }, "A gap cuts a slot off from its home.")
            precondition(isEntry(UInt32(truncatingIfNeeded: slot)), "A slot names a free node.")
            if let tags {
                let tag = tags[Int(UInt32(truncatingIfNeeded: slot))]
                precondition(UInt64(tag) == slot >> 32, "A slot and a node differ in tag.")
            }
            previous = slot >> 32
            filled += 1
        }
        precondition(filled == count, "Slots and entries differ in number.")
        precondition(slots[slotEnd - 1] == 0, "The margin does not end in an empty slot.")
    }
    #endif
}
