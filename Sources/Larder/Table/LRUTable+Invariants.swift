extension LRUTable {
    /// Returns the number of chunks that finding this key looks at, which an attack would raise.
    package func probeCount(_ key: Key, hash: UInt64) -> Int {
        let (tag, entry) = (Self.tag(of: hash), locate(key, hash: hash))
        var (chunk, count) = (index.home(of: tag), 1)
        while index.isPassed(chunk), count < index.chunkCount,
            entry == 0 || index.lane(of: entry, tag, in: chunk) == nil
        {
            (chunk, count) = (index.chunk(after: chunk), count + 1)
        }
        return count
    }

    /// Traps with a message if an invariant does not hold; release builds omit the check.
    ///
    /// - Complexity: O(n)
    package func checkInvariants() {
        #if DEBUG
        checkOrder()
        checkFreeList()
        checkIndex()
        #endif
    }

    #if DEBUG
    private func checkOrder() {
        precondition(highWater <= nodeCapacity, "Nodes are used that are not there.")
        precondition(
            accessOrder.blockCount >= AccessOrder.blockCount(Int(nodeCapacity))
                && accessOrder.positions.first == positions.first,
            "The log is of another size.")
        accessOrder.checkInvariants(count: count)
        accessOrder.forEach { index in
            precondition(index < highWater && isEntry(index), "A record in the log names no entry.")
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
            index = accessOrder.positions[index] & ~Self.freeMark
        }
        precondition(free + count + 1 == Int(highWater), "A node is neither free nor an entry.")
    }

    private func checkIndex() {
        var (entered, passed) = (0, [Int](repeating: 0, count: index.chunkCount))
        for entry in 1..<max(1, highWater) where isEntry(entry) {
            var (chunk, steps) = (index.home(of: tag(of: entry)), 0)
            while index.lane(of: entry, tag(of: entry), in: chunk) == nil {
                passed[chunk] += 1
                (chunk, steps) = (index.chunk(after: chunk), steps + 1)
                precondition(steps < index.chunkCount, "An entry is not in the index.")
            }
            entered += 1
        }
        precondition(entered == count, "The log and the nodes differ in number.")
        let free = (0..<index.chunkCount).reduce(0) { $0 + index.lanes($1, with: 0).nonzeroBitCount }
        precondition(free + entered == index.chunkCount * 12, "The index names a node that is not an entry.")
        for chunk in passed.indices {
            precondition(
                Int(index.words[chunk * 16 + 3]) == passed[chunk], "A chunk counts other entries than passed it.")
        }
    }
    #endif
}

#if DEBUG
extension AccessOrder {
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
