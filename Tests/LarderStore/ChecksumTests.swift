import LarderStore
import Testing

struct ChecksumTests {
    private static let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 / 251) }

    // The values are those of the reference implementation, at the lengths where it goes another way.
    @Test(
        arguments: [
            (0, 0x2D06_8005_38D3_94C2),
            (1, 0xC44B_DFF4_074E_ECDB),
            (2, 0x9093_381C_8763_D62E),
            (3, 0xC348_9259_E968_AD9E),
            (4, 0xD3D6_0C15_1901_4E89),
            (5, 0x5599_35C0_F3F7_327F),
            (8, 0xB88D_EE77_F6BF_6980),
            (9, 0x0368_8DCA_D730_D826),
            (16, 0x9DA2_3836_ADF2_BE1E),
            (17, 0xF34C_3C9C_F5A1_12D1),
            (32, 0x99CB_9AD0_F1A1_1FBE),
            (33, 0xC077_B454_92D2_9CDE),
            (64, 0x6EFB_76FF_16F3_7561),
            (65, 0x2640_848E_9137_156B),
            (96, 0x764D_2D5D_B929_42DF),
            (97, 0x077A_CB7E_5F4F_D940),
            (128, 0x65F3_C2C0_0FA9_3185),
            (129, 0x2806_5C6E_C25F_5B25),
            (143, 0x2A0C_ABB0_C54E_9CA6),
            (144, 0x600E_8D34_5FF9_620D),
            (240, 0x4917_A75C_0EF8_EED7),
            (241, 0x541B_1922_6F00_52E8),
            (1024, 0xBA46_4919_C6BB_3CCD),
            (1025, 0x2AA0_034E_7827_EE42),
            (1088, 0x6120_D502_33C9_C660),
            (1089, 0x6465_773A_48EE_4306),
            (2048, 0x956F_98BE_A321_0C05),
            (5000, 0xE69C_7C10_FE60_1E8D),
        ] as [(Int, UInt64)])
    func `the checksum agrees with the reference`(length: Int, expected: UInt64) {
        Self.bytes[..<length].withUnsafeBytes { bytes in
            #expect(Checksum.xxh3(bytes) == expected)
        }
    }

    @Test func `every flipped bit changes it, at every length around the lanes`() {
        for length in [1, 3, 4, 8, 9, 16, 17, 64, 128, 129, 240, 241, 1025] {
            var bytes = Array(Self.bytes[..<length])
            let sum = bytes.withUnsafeBytes { Checksum.xxh3($0) }
            for bit in 0..<length * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8)
                #expect(bytes.withUnsafeBytes { Checksum.xxh3($0) } != sum)
                bytes[bit / 8] ^= 1 << (bit % 8)
            }
        }
    }
}
