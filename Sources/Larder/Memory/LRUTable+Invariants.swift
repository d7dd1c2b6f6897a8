extension LRUTable {
    /// Returns the number of slots that finding this key looks at, which an attack would raise.
    package func probeCount(_ key: Key, hash: UInt64) -> Int {
        locate(key, hash: hash).position - home(of: Self.tag(of: settled(hash, of: key))) + 1
    }

    /// Traps with a message if an invariant does not hold; release builds omit the check.
    ///
    /// - Complexity: O(n)
    package func checkInvariants() {
        #if DEBUG
        checkOrder()
        checkFreeList()
        checkSlots()
        #endif
    }

    #if DEBUG
    private func checkOrder() {
        precondition(highWater <= nodeCapacity, "Nodes are used that are not there.")
        precondition(
            log.blockCount >= AccessLog.blockCount(Int(nodeCapacity)) && log.positions.first == positions.first,
            "The log is of another size.")
        log.checkInvariants(count: count)
        log.forEach { index in
            precondition(index < highWater && isEntry(index), "A record in the log names no entry.")
            precondition(position(of: index) < slotEnd - 1, "A listed node has no slot.")
        }
    }

    private func checkFreeList() {
        var free = 0
        var index = freeHead
        while index != 0 {
            precondition(index < highWater, "The free list leads out of the nodes.")
            precondition(!isEntry(index), "A free node looks like an entry.")
            free += 1
            precondition(free < Int(highWater), "The free list has a circle.")
            index = log.positions[index] & ~Self.freeMark
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

#if DEBUG
extension AccessLog {
    fileprivate func checkInvariants(count: Int) {
        var (chained, filled) = (0, 0)
        var (last, block) = (UInt32(0), next[0])
        while block != 0 {
            precondition(previous[Int(block)] == last, "The two directions of the chain differ.")
            precondition(live[Int(block)] != 0, "A block without a live record is in the chain.")
            chained += 1
            precondition(chained + freeCount < blockCount, "The chain has a circle, or a block is free and in it.")
            for bit in 0..<UInt32(64) where live[Int(block)] & (1 << bit) != 0 {
                let position = block << 6 | bit
                if block == cursor >> 6 && position >= cursor {
                    precondition(records[Int(position)] == 0, "A record was written behind the newest.")
                } else {
                    precondition(positions[records[Int(position)]] == position, "A live record is of no entry.")
                    filled += 1
                }
            }
            (last, block) = (block, next[Int(block)])
        }
        precondition(previous[0] == last && last == cursor >> 6, "The newest block is not the last.")
        precondition(live[0] == 1 && records[0] == 0, "The sentinel is broken.")
        precondition(filled == count, "Live records and entries differ in number.")
        var free = 0
        block = freeBlock
        while block != 0 {
            free += 1
            block = next[Int(block)]
        }
        precondition(free == freeCount && free + chained + 1 == blockCount && free > 0, "A block is lost.")
    }
}
#endif
