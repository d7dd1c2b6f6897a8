/// Tells which results of reads may still come into memory.
///
/// A read that began before a change of its key may bring an old value, and one that runs beside the commit of several keys
/// may bring values that never were together. Keys share a stamp by their hash: a value that is refused for another key's
/// sake is read again.
@usableFromInline
struct OfferStamps: Sendable {
    /// Rises with each change.
    @usableFromInline private(set) var sequence: UInt64 = 0

    /// For each remainder of a hash the last change, and in the low 16 bits how many commits are on their way.
    @usableFromInline private(set) var stamps = [UInt64](repeating: 0, count: 256)

    @usableFromInline
    init() {}

    /// Refuses what reads that began before now bring for a key.
    @inlinable
    mutating func noteChange(_ hash: UInt64) {
        sequence += 1
        let index = Int(truncatingIfNeeded: hash & 255)
        stamps[index] = sequence << 16 | stamps[index] & 0xFFFF
    }

    /// Refuses what reads that began before now bring for any key.
    mutating func noteChangeOfAll() {
        sequence += 1
        for index in stamps.indices { stamps[index] = sequence << 16 | stamps[index] & 0xFFFF }
    }

    /// Refuses what reads bring for these keys until ``endCommit(_:)``.
    mutating func beginCommit(_ hashes: Set<UInt8>) {
        for hash in hashes { stamps[Int(hash)] += 1 }
    }

    /// Allows it again: memory has learned of the commit, or there was none.
    mutating func endCommit(_ hashes: Set<UInt8>) {
        for hash in hashes { stamps[Int(hash)] -= 1 }
    }

    /// A Boolean value that indicates whether a read that began at `sequence` may bring a value for a key.
    func admits(_ hash: UInt64, since sequence: UInt64) -> Bool {
        let stamp = stamps[Int(truncatingIfNeeded: hash & 255)]
        return stamp & 0xFFFF == 0 && stamp >> 16 <= sequence
    }
}
