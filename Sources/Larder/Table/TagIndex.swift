/// The index of a table: where the node of a key is, by the tag of the key, which is the upper half of its hash.
///
/// It consists of chunks of 64 bytes, one cache line: 12 lanes, each with one byte of a tag and a 32-bit index, and the number
/// of entries that have passed the chunk because it was full. An entry is in its home, which is its tag's share of the chunks,
/// or in the first chunk after it that had a free lane. A search ends at a chunk that no entry has passed, or where it began.
///
/// A chunk is 16 words: three of tags, 0 for a free lane, the number of passed entries, and the indices.
///
/// Safety: the memory belongs to this value alone, which cannot be copied. Chunks are numbered from 0 to `chunkCount`, lanes
/// from 0 to 12. There are more lanes than entries, so a free one is found.
@usableFromInline
struct TagIndex: ~Copyable {
    @usableFromInline let words: UnsafeMutablePointer<UInt32>
    @usableFromInline let chunkCount: Int

    /// - Parameter nodes: The number of nodes, of which 5 take 8 lanes.
    @inlinable
    init(nodes: UInt32) {
        chunkCount = (Int(nodes) * 2 + 14) / 15
        words = TableMemory.allocate(chunkCount * 16)
    }

    @inlinable
    deinit { TableMemory.free(words, chunkCount * 16) }

    /// The byte of a tag that is in its lane, which is never 0.
    @inlinable @inline(__always)
    static func byte(of tag: UInt32) -> UInt32 { max(tag & 0xFF, 1) }

    @inlinable @inline(__always)
    func home(of tag: UInt32) -> Int { Int(truncatingIfNeeded: (UInt64(tag) &* UInt64(chunkCount)) >> 32) }

    @inlinable @inline(__always)
    func chunk(after chunk: Int) -> Int { chunk &+ 1 == chunkCount ? 0 : chunk &+ 1 }

    /// Returns a bit for each lane of a chunk that has a byte.
    @inlinable @inline(__always)
    func lanes(_ chunk: Int, with byte: UInt32) -> UInt32 {
        let word = words + chunk &* 16
        let pattern = UInt64(byte) &* 0x0101_0101_0101_0101
        let low = Self.bits((UInt64(word[0]) | UInt64(word[1]) << 32) ^ pattern)
        let high = Self.bits(UInt64(word[2]) ^ (pattern & 0xFFFF_FFFF))
        return low | (high & 0xF) << 8
    }

    /// Returns a bit for each byte of a word that is 0.
    @inlinable @inline(__always)
    static func bits(_ word: UInt64) -> UInt32 {
        let sevens: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
        let zeros = ~(((word & sevens) &+ sevens) | word | sevens)
        // The product brings the upper bits of all bytes together in its highest byte.
        return UInt32(truncatingIfNeeded: ((zeros >> 7) &* 0x0102_0408_1020_4080) >> 56)
    }

    @inlinable @inline(__always)
    func index(_ chunk: Int, _ lane: Int) -> UInt32 { words[chunk &* 16 &+ 4 &+ lane] }

    /// A Boolean value that indicates whether a search goes on after a chunk.
    @inlinable @inline(__always)
    func isPassed(_ chunk: Int) -> Bool { words[chunk &* 16 &+ 3] != 0 }

    /// Enters a node.
    @inlinable @inline(__always)
    mutating func enter(_ index: UInt32, tag: UInt32) {
        var chunk = home(of: tag)
        while true {
            let free = lanes(chunk, with: 0)
            if free != 0 {
                let lane = free.trailingZeroBitCount
                words[chunk &* 16 &+ lane >> 2] |= Self.byte(of: tag) << UInt32(truncatingIfNeeded: (lane & 3) << 3)
                words[chunk &* 16 &+ 4 &+ lane] = index
                return
            }
            words[chunk &* 16 &+ 3] &+= 1
            chunk = self.chunk(after: chunk)
        }
    }

    /// Takes out a node that is entered.
    @inlinable @inline(__always)
    mutating func leave(_ index: UInt32, tag: UInt32) {
        var chunk = home(of: tag)
        while true {
            if let lane = lane(of: index, tag, in: chunk) {
                words[chunk &* 16 &+ lane >> 2] &= ~(0xFF << UInt32(truncatingIfNeeded: (lane & 3) << 3))
                return
            }
            words[chunk &* 16 &+ 3] &-= 1
            chunk = self.chunk(after: chunk)
        }
    }

    @inlinable @inline(__always)
    func lane(of index: UInt32, _ tag: UInt32, in chunk: Int) -> Int? {
        var candidates = lanes(chunk, with: Self.byte(of: tag))
        while candidates != 0 {
            let lane = candidates.trailingZeroBitCount
            if self.index(chunk, lane) == index { return lane }
            candidates &= candidates &- 1
        }
        return nil
    }
}
