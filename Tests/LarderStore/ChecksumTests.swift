import Foundation
import LarderStore
import LarderTestSupport
import Testing

struct ChecksumTests {
    private func sum(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { Checksum.of($0) } }

    /// The numbers are in files, so they never change; no other program computes them.
    @Test func `it is what it was`() {
        let bytes = (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        #expect(sum([]) == 5_298_722_245_267_929_997)
        #expect(sum([0]) == 1_364_151_987_966_250_826)
        #expect(sum(bytes) == 10_334_535_556_943_874_104)
    }

    @Test func `each bit, each length and each place of a byte counts`() {
        var random = Seeded()
        for count in Array(0..<200) + [255, 256, 257, 1000, 4096] {
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            let whole = sum(bytes)
            #expect(sum(bytes + [0]) != whole, "\(count) bytes, seed \(random.seed)")
            for place in count < 200 ? Array(0..<count) : [0, count / 2, count - 1] {
                for bit in 0..<8 {
                    bytes[place] ^= 1 << bit
                    #expect(sum(bytes) != whole, "\(count) bytes, bit \(bit) of byte \(place), seed \(random.seed)")
                    bytes[place] ^= 1 << bit
                }
            }
        }
        #expect(Set((0..<600).map { sum([UInt8](repeating: 0, count: $0)) }).count == 600)
    }

    @Test func `it does not depend on where the bytes begin in memory`() {
        let bytes = (0..<500).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        for offset in 1..<9 {
            let moved = [UInt8](repeating: 1, count: offset) + bytes
            let sum = moved.withUnsafeBytes { Checksum.of(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            #expect(sum == self.sum(bytes))
        }
    }
}
