import Larder
import Testing

struct ChecksumTests {
    // The values are those of the reference implementation.
    @Test(
        arguments: [
            ("", 0, 0xEF46_DB37_51D8_E999), ("a", 0, 0xD24E_C4F1_A98C_6E5B), ("abc", 0, 0x44BC_2CF5_AD77_0999),
            ("Nobody inspects the spammish repetition", 0, 0xFBCE_A83C_8A37_8BF1),
            ("abc", 0x9E37_79B9_7F4A_7C15, 0x2ED0_F59D_6B43_AC8B),
        ] as [(String, UInt64, UInt64)])
    func `it agrees with the reference`(text: String, seed: UInt64, expected: UInt64) {
        #expect(Array(text.utf8).withUnsafeBytes { Checksum.xxh64($0, seed: seed) } == expected)
    }

    @Test func `it agrees with the reference over more than a lane, with a seed`() {
        #expect((0...100).map(UInt8.init).withUnsafeBytes { Checksum.xxh64($0, seed: 7) } == 0xE878_E979_1DBC_64FA)
    }

    @Test func `every flipped bit changes it, at every length around the lanes`() {
        for length in [1, 3, 4, 7, 8, 31, 32, 33, 63, 64, 100] {
            var bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            let sum = bytes.withUnsafeBytes { Checksum.xxh64($0) }
            for bit in 0..<length * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8)
                #expect(bytes.withUnsafeBytes { Checksum.xxh64($0) } != sum)
                bytes[bit / 8] ^= 1 << (bit % 8)
            }
        }
    }
}
