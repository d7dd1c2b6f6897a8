import Larder
import Testing

/// The hash of snapshots and build stamps.
struct ChecksumTests {
    private static let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 / 251) }

    // The values are those of the reference implementation, at the lengths where it takes another path.
    @Test(
        arguments: [
            (0, 0x2D06_8005_38D3_94C2, 0x602B_0E2C_D666_2C8B),
            (1, 0xC44B_DFF4_074E_ECDB, 0x062B_185E_4E01_441A),
            (2, 0x9093_381C_8763_D62E, 0x8629_7CE7_4957_599A),
            (3, 0xC348_9259_E968_AD9E, 0x71A5_F088_B9BF_6B14),
            (4, 0xD3D6_0C15_1901_4E89, 0x7255_45A3_F200_14CE),
            (5, 0x5599_35C0_F3F7_327F, 0xB0DD_05EA_F365_6BB3),
            (8, 0xB88D_EE77_F6BF_6980, 0x3F5D_A5B7_AD25_6DE3),
            (9, 0x0368_8DCA_D730_D826, 0xC332_DEB8_9710_5A63),
            (16, 0x9DA2_3836_ADF2_BE1E, 0x6C54_2998_420C_A675),
            (17, 0xF34C_3C9C_F5A1_12D1, 0x215D_8E2B_47EB_92DB),
            (32, 0x99CB_9AD0_F1A1_1FBE, 0xFB3F_4B8D_28EE_EE3E),
            (33, 0xC077_B454_92D2_9CDE, 0xC8A6_F70C_35A2_6C32),
            (64, 0x6EFB_76FF_16F3_7561, 0x480C_38D0_A89B_E795),
            (65, 0x2640_848E_9137_156B, 0xF9D2_E523_A54C_1A71),
            (96, 0x764D_2D5D_B929_42DF, 0xCF27_355E_271B_5644),
            (97, 0x077A_CB7E_5F4F_D940, 0xB8C0_285F_5FFA_2A77),
            (128, 0x65F3_C2C0_0FA9_3185, 0x65C2_E94E_A7B7_9257),
            (129, 0x2806_5C6E_C25F_5B25, 0x17F7_05A2_6996_F1C9),
            (143, 0x2A0C_ABB0_C54E_9CA6, 0x118C_519B_7896_A9E4),
            (144, 0x600E_8D34_5FF9_620D, 0xA85B_7824_2118_10CF),
            (240, 0x4917_A75C_0EF8_EED7, 0xF906_157A_86B7_EAC3),
            (241, 0x541B_1922_6F00_52E8, 0x6EC6_D698_1958_7A84),
            (1024, 0xBA46_4919_C6BB_3CCD, 0xF3F4_521D_7523_07DF),
            (1025, 0x2AA0_034E_7827_EE42, 0x4E72_27CB_FEF4_A99A),
            (1088, 0x6120_D502_33C9_C660, 0x9550_8667_B685_8373),
            (1089, 0x6465_773A_48EE_4306, 0x46DF_9C45_F57A_26A8),
            (2048, 0x956F_98BE_A321_0C05, 0x0F6F_1454_5700_E89D),
            (5000, 0xE69C_7C10_FE60_1E8D, 0xE7CD_A562_A277_6BA1),
        ] as [(Int, UInt64, UInt64)])
    func `it agrees with the reference, without a seed and with one`(length: Int, plain: UInt64, seeded: UInt64) {
        Self.bytes[..<length].withUnsafeBytes { bytes in
            #expect(Checksum.xxh3(bytes) == plain)
            #expect(Checksum.xxh3(bytes, seed: 0x9E37_79B9_7F4A_7C15) == seeded)
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
