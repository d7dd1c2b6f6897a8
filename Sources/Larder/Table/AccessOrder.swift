/// The positions of records in the log: one in each node of a table, by the node's index.
///
/// Safety: the table sets the address whenever its nodes move, and asks for no index beyond them. The position is the last
/// field of a node, and raw memory is read and written, since it is used in nodes without an entry too.
@usableFromInline
struct NodePositions {
    @usableFromInline var first: UnsafeMutableRawPointer
    @usableFromInline let stride: Int

    @inlinable
    init(first: UnsafeMutableRawPointer, stride: Int) { (self.first, self.stride) = (first, stride) }

    @inlinable
    subscript(index: UInt32) -> UInt32 {
        @inline(__always) get { first.load(fromByteOffset: Int(index) &* stride, as: UInt32.self) }
        @inline(__always) nonmutating set {
            first.storeBytes(of: newValue, toByteOffset: Int(index) &* stride, as: UInt32.self)
        }
    }
}

/// The order in which the entries of a table were used last, as a log of accesses.
///
/// Each access appends the index of its entry to the log and clears the bit of the entry's earlier record, so the live
/// records are the entries from the least to the most recently used. The log is a chain of blocks of 64 records, with a
/// word of live bits for each block. A block without a live record leaves the chain at once, so the least recently
/// used entry is the first live record of the first block.
///
/// When few blocks are free, each new block also packs a share of the chain: live records move, in order, into as few
/// blocks as they need. With room for 1.5 records an entry the longest step moves about 512 records.
///
/// Index 0 is no entry: a record that was not written yet is 0, and so is the only record of block 0, the sentinel that
/// closes the chain.
///
/// Safety: the arrays belong to this value alone, which cannot be copied, and its deinitializer frees them. Between two
/// calls these hold, and `LRUTable+Invariants.swift` checks them. Therefore every index and every position is in bounds.
/// 1. `records[positions[i]]` is `i` for each entry `i`, and the bit of that position is set. No other bit is set, except
///    those of the newest block from `cursor` to its end, and the first of block 0.
/// 2. The chain holds the blocks with a set bit, and `cursor` is in its last block. All others are free.
@usableFromInline
package struct AccessOrder: ~Copyable {
    /// The positions of the entries' records, which are in the nodes.
    @usableFromInline var positions: NodePositions
    @usableFromInline var records: UnsafeMutablePointer<UInt32>
    /// The time of each record, where the owner wants to know when an entry was accessed; what it means is the owner's.
    @usableFromInline var times: UnsafeMutablePointer<UInt32>?
    /// The live bits of each block.
    @usableFromInline var live: UnsafeMutablePointer<UInt64>
    /// The next block of each block in the chain, or the next free block.
    @usableFromInline var next: UnsafeMutablePointer<UInt32>
    /// The previous block of each block in the chain.
    var previous: UnsafeMutablePointer<UInt32>
    @usableFromInline var blockCount: Int
    /// Where the next record goes.
    @usableFromInline var cursor: UInt32 = 0
    /// Where the last record went.
    @usableFromInline var newest: UInt32 = 0
    var freeBlock: UInt32 = 0
    var freeCount = 0

    // The chain up to `packed` is packed, and of that block `fill` records are used.
    var isPacking = false
    var packed: UInt32 = 0
    var fill: UInt32 = 64
    /// How many blocks of the chain were not packed yet when the pass began.
    var remaining = 0

    /// - Parameter capacity: The number of indices, with that of no entry.
    init(capacity: Int, hasTimes: Bool, _ positions: NodePositions) {
        self.positions = positions
        blockCount = Self.blockCount(capacity)
        records = TableMemory.allocate(blockCount * 64)
        times = hasTimes ? TableMemory.allocate(blockCount * 64) : nil
        live = TableMemory.allocate(blockCount)
        next = TableMemory.allocate(blockCount)
        previous = TableMemory.allocate(blockCount)
        live[0] = 1
        for block in (1..<UInt32(blockCount)).reversed() { free(block) }
        openBlock()
    }

    /// Room for 1.5 records an index.
    static func blockCount(_ capacity: Int) -> Int { (capacity * 3 / 2 + 63) / 64 + 4 }

    /// Makes room for more indices: new blocks are free, and no record moves.
    mutating func grow(capacity: Int) {
        let (old, new) = (blockCount, max(blockCount, Self.blockCount(capacity)))
        records = TableMemory.grow(records, from: old * 64, to: new * 64)
        if let array = times { times = TableMemory.grow(array, from: old * 64, to: new * 64) }
        live = TableMemory.grow(live, from: old, to: new)
        next = TableMemory.grow(next, from: old, to: new)
        previous = TableMemory.grow(previous, from: old, to: new)
        blockCount = new
        for block in (UInt32(old)..<UInt32(new)).reversed() { free(block) }
    }

    deinit {
        TableMemory.free(records, blockCount * 64)
        if let times { TableMemory.free(times, blockCount * 64) }
        TableMemory.free(live, blockCount)
        TableMemory.free(next, blockCount)
        TableMemory.free(previous, blockCount)
    }
}

// MARK: - Accesses

extension AccessOrder {
    /// Adds an index without a record as the most recently used.
    @inlinable @inline(__always)
    mutating func append(_ index: UInt32) {
        records[Int(cursor)] = index
        positions[index] = cursor
        newest = cursor
        cursor &+= 1
        if cursor & 63 == 0 { openBlock() }
    }

    /// Makes an entry the most recently used.
    @inlinable @inline(__always)
    mutating func touch(_ index: UInt32) {
        if positions[index] == newest { return }
        remove(index)
        append(index)
    }

    /// Makes an entry the most recently used, at a time.
    @inlinable @inline(__always)
    mutating func touch(_ index: UInt32, at time: UInt32) {
        if positions[index] != newest {
            remove(index)
            // Written before the record, since a full block may be packed at once.
            times?[Int(cursor)] = time
            append(index)
        } else {
            times?[Int(newest)] = time
        }
    }

    /// The time of an entry's record; 0 if the log has no times.
    @inlinable
    func time(of index: UInt32) -> UInt32 { times?[Int(positions[index])] ?? 0 }

    /// Changes the time of an entry's record, and not its place in the order.
    @inlinable
    func setTime(_ time: UInt32, of index: UInt32) { times?[Int(positions[index])] = time }

    /// Changes the times of all records.
    func changeTimes(_ change: (UInt32) -> UInt32) {
        guard let times else { return }
        for record in 0..<blockCount * 64 { times[record] = change(times[record]) }
    }

    /// Takes an entry's record out.
    @inlinable @inline(__always)
    mutating func remove(_ index: UInt32) {
        let position = positions[index]
        let block = Int(position >> 6)
        live[block] &= ~(1 &<< UInt64(position))
        if live[block] == 0 { unchain(UInt32(truncatingIfNeeded: block)) }
    }

    /// Gives the record of an entry to another index.
    @usableFromInline
    mutating func moveRecord(of index: UInt32, to other: UInt32) {
        positions[other] = positions[index]
        records[Int(positions[other])] = other
    }
}

// MARK: - The order

extension AccessOrder {
    /// The least recently used entry, or 0.
    @inlinable @inline(__always)
    var first: UInt32 { lowest(of: next[0]) }

    /// The most recently used entry, or 0.
    var last: UInt32 { before(cursor) }

    func older(than index: UInt32) -> UInt32 { before(positions[index]) }

    private func before(_ position: UInt32) -> UInt32 {
        var block = position >> 6
        var rest = live[Int(block)] & ((1 &<< UInt64(position)) &- 1)
        if rest == 0 {
            block = previous[Int(block)]
            rest = live[Int(block)]
        }
        return records[Int(block << 6) + 63 - rest.leadingZeroBitCount]
    }

    @inlinable @inline(__always)
    func lowest(of block: UInt32) -> UInt32 { records[Int(block << 6) + live[Int(block)].trailingZeroBitCount] }

    /// Visits the entries, least recently used first.
    @inline(__always)
    func forEach(_ body: (UInt32) -> Void) {
        var block = next[0]
        while block != 0 {
            var rest = live[Int(block)]
            while rest != 0 {
                let index = records[Int(block << 6) + rest.trailingZeroBitCount]
                if index == 0 { return }
                body(index)
                rest &= rest &- 1
            }
            block = next[Int(block)]
        }
    }

    /// A log of another capacity with the same order.
    func copy(capacity: Int) -> AccessOrder {
        var copy = AccessOrder(capacity: capacity, hasTimes: times != nil, positions)
        forEach { index in
            if let times { copy.times?[Int(copy.cursor)] = times[Int(positions[index])] }
            copy.append(index)
        }
        return copy
    }
}

// MARK: - Blocks

extension AccessOrder {
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
