/// XXH64, by which files were checked before schema 2: their rows still hold it.
extension Checksum {
    /// The checksum of `bytes`, with the seed 0.
    package static func xxh64(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var rest = bytes
        func take() -> UInt64 {
            defer { rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(8)) }
            return UInt64(littleEndian: rest.loadUnaligned(as: UInt64.self))
        }
        var hash = fifth
        if bytes.count >= 32 {
            var lanes = SIMD4(first &+ second, second, 0, 0 &- first)
            while rest.count >= 32 {
                for lane in 0..<4 { lanes[lane] = mixed(lanes[lane], take()) }
            }
            hash = turned(lanes[0], 1) &+ turned(lanes[1], 7) &+ turned(lanes[2], 12) &+ turned(lanes[3], 18)
            for lane in 0..<4 { hash = (hash ^ mixed(0, lanes[lane])) &* first &+ fourth }
        }
        hash &+= UInt64(bytes.count)
        while rest.count >= 8 { hash = turned(hash ^ mixed(0, take()), 27) &* first &+ fourth }
        if rest.count >= 4 {
            let half = UInt32(littleEndian: rest.loadUnaligned(as: UInt32.self))
            hash = turned(hash ^ UInt64(half) &* first, 23) &* second &+ third
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(4))
        }
        for byte in rest { hash = turned(hash ^ UInt64(byte) &* fifth, 11) &* first }
        hash = (hash ^ hash >> 33) &* second
        hash = (hash ^ hash >> 29) &* third
        return hash ^ hash >> 32
    }

    private static var first: UInt64 { 0x9E37_79B1_85EB_CA87 }
    private static var second: UInt64 { 0xC2B2_AE3D_27D4_EB4F }
    private static var third: UInt64 { 0x1656_67B1_9E37_79F9 }
    private static var fourth: UInt64 { 0x85EB_CA77_C2B2_AE63 }
    private static var fifth: UInt64 { 0x27D4_EB2F_1656_67C5 }

    private static func mixed(_ lane: UInt64, _ input: UInt64) -> UInt64 {
        turned(lane &+ input &* second, 31) &* first
    }

    private static func turned(_ value: UInt64, _ bits: UInt64) -> UInt64 { value << bits | value >> (64 &- bits) }
}
