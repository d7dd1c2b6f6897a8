/// The checksum of a write-ahead log, which runs on from its header through all frames.
///
/// Each step takes two words of 32 bits: the first is added to the first sum with the second sum, the second to the
/// second sum with the new first one.
///
/// Safety: The bytes are read only inside the call that got them, by `loadUnaligned`, which the buffer checks against
/// its bounds in debug builds. Callers pass whole words only.
struct LogChecksum: Equatable {
    var first: UInt32 = 0
    var second: UInt32 = 0

    /// The order of the bytes in a word, which the log's header names.
    enum ByteOrder {
        case little, big

        func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
            let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return self == .little ? UInt32(littleEndian: word) : UInt32(bigEndian: word)
        }

        /// The four bytes of `word`.
        func bytes(_ word: UInt32) -> [UInt8] {
            withUnsafeBytes(of: self == .little ? word.littleEndian : word.bigEndian) { Array($0) }
        }
    }

    /// Takes in the bytes `range`, whose length is a multiple of eight.
    mutating func add(_ bytes: [UInt8], _ range: Range<Int>, _ order: ByteOrder) {
        bytes.withUnsafeBytes { bytes in
            var (a, b) = (first, second)
            for offset in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
                a = a &+ order.word(bytes, offset) &+ b
                b = b &+ order.word(bytes, offset &+ 4) &+ a
            }
            (first, second) = (a, b)
        }
    }

    /// A word among those that were taken in, and the amount that is missing in it.
    struct Mistake: Equatable {
        /// The number of words after it.
        let wordsAfter: Int
        let missing: UInt32
    }

    /// The words any one of which, changed, turns this sum of `count` words into `expected`.
    ///
    /// A difference in one word grows by a fixed matrix with each step, so it is walked back from the end. That other damage
    /// looks like one word has a chance of one in four million for a frame. The sums forget where a high bit was, so there
    /// are several words for one of those.
    func mistakes(before expected: LogChecksum, words count: Int) -> [Mistake] {
        var (a, b) = (expected.first &- first, expected.second &- second)
        guard a != 0 || b != 0 else { return [] }
        var found: [Mistake] = []
        for pair in 0..<count / 2 {
            if a == b { found.append(Mistake(wordsAfter: 2 &* pair &+ 1, missing: a)) }
            if a == 0 { found.append(Mistake(wordsAfter: 2 &* pair, missing: b)) }
            (a, b) = (a &+ a &- b, b &- a)
        }
        return found
    }
}

extension Array where Element == UInt8 {
    /// The number of four bytes at `offset`, most significant first; 0 where they are not all there.
    func word(_ offset: Int) -> UInt32 {
        guard offset >= 0, offset <= count - 4 else { return 0 }
        return UInt32(self[offset]) << 24 | UInt32(self[offset + 1]) << 16 | UInt32(self[offset + 2]) << 8
            | UInt32(self[offset + 3])
    }

    /// The number of two bytes at `offset`; 0 where they are not both there.
    func half(_ offset: Int) -> Int {
        guard offset >= 0, offset <= count - 2 else { return 0 }
        return Int(self[offset]) << 8 | Int(self[offset + 1])
    }
}
