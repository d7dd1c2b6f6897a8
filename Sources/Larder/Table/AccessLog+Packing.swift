extension AccessLog {
    /// Chains a free block for the newest records, and packs a share of the others if few are free.
    @usableFromInline
    mutating func openBlock() {
        let block = freeBlock
        freeBlock = next[Int(block)]
        freeCount -= 1
        link(previous[0], block)
        link(block, 0)
        live[Int(block)] = .max
        (records + Int(block << 6)).update(repeating: 0, count: 64)
        cursor = block << 6
        if isPacking || freeCount * 8 < blockCount { pack() }
    }

    /// Takes a block without a live record out of the chain.
    @usableFromInline
    mutating func unchain(_ block: UInt32) {
        link(previous[Int(block)], next[Int(block)])
        if packed == block { (packed, fill) = (previous[Int(block)], 64) }
        free(block)
    }

    func link(_ block: UInt32, _ follower: UInt32) {
        next[Int(block)] = follower
        previous[Int(follower)] = block
    }

    mutating func free(_ block: UInt32) {
        next[Int(block)] = freeBlock
        freeBlock = block
        freeCount += 1
    }

    /// Packs so many blocks that the pass ends before the last free block is used.
    private mutating func pack() {
        if !isPacking { beginPacking() }
        var share = max(0, remaining) / max(1, freeCount - 1) + 1
        while share > 0 || freeCount == 0 {
            let source = next[Int(packed)]
            if source == cursor >> 6 {
                isPacking = false
                // A table of few blocks may have none left, because records died in blocks that were packed.
                if freeCount > 0 { return }
                beginPacking()
            } else {
                pack(source)
                share -= 1
                remaining -= 1
            }
        }
    }

    private mutating func beginPacking() {
        isPacking = true
        (packed, fill) = (0, 64)
        remaining = blockCount - 1 - freeCount
    }

    /// Moves the live records of a block behind those that are packed, from where that is full to its own start.
    private mutating func pack(_ source: UInt32) {
        var rest = live[Int(source)]
        if fill == 64 && rest == .max {
            packed = source
            return
        }
        live[Int(source)] = 0
        while rest != 0 {
            if fill == 64 { (packed, fill) = (source, 0) }
            let old = Int(source << 6) + rest.trailingZeroBitCount
            let index = records[old]
            rest &= rest &- 1
            let position = packed << 6 | fill
            records[Int(position)] = index
            if let times { times[Int(position)] = times[old] }
            positions[index] = position
            live[Int(packed)] |= 1 &<< UInt64(fill)
            fill += 1
        }
        if live[Int(source)] == 0 { unchain(source) }
    }
}
