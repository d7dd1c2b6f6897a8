/// XXH64: a fast 64-bit checksum with a published definition, against damage and not against forgers.
package enum Checksum {
    private static let primes: (UInt64, UInt64, UInt64, UInt64, UInt64) = (
        0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x85EB_CA77_C2B2_AE63,
        0x27D4_EB2F_1656_67C5
    )

    /// The checksum of `bytes`.
    package static func xxh64(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        let count = bytes.count
        var offset = 0
        var hash: UInt64
        if count >= 32 {
            var (a, b, c, d) = (seed &+ primes.0 &+ primes.1, seed &+ primes.1, seed, seed &- primes.0)
            while offset &+ 32 <= count {
                a = round(a, word(bytes, offset))
                b = round(b, word(bytes, offset &+ 8))
                c = round(c, word(bytes, offset &+ 16))
                d = round(d, word(bytes, offset &+ 24))
                offset &+= 32
            }
            hash = rotate(a, 1) &+ rotate(b, 7) &+ rotate(c, 12) &+ rotate(d, 18)
            for lane in [a, b, c, d] { hash = (hash ^ round(0, lane)) &* primes.0 &+ primes.3 }
        } else {
            hash = seed &+ primes.4
        }
        hash &+= UInt64(count)
        while offset &+ 8 <= count {
            hash = rotate(hash ^ round(0, word(bytes, offset)), 27) &* primes.0 &+ primes.3
            offset &+= 8
        }
        if offset &+ 4 <= count {
            let half = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
            hash = rotate(hash ^ (UInt64(half) &* primes.0), 23) &* primes.1 &+ primes.2
            offset &+= 4
        }
        while offset < count {
            hash = rotate(hash ^ (UInt64(bytes[offset]) &* primes.4), 11) &* primes.0
            offset &+= 1
        }
        hash = (hash ^ (hash >> 33)) &* primes.1
        hash = (hash ^ (hash >> 29)) &* primes.2
        return hash ^ (hash >> 32)
    }

    private static func round(_ lane: UInt64, _ input: UInt64) -> UInt64 {
        rotate(lane &+ input &* primes.1, 31) &* primes.0
    }

    private static func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 {
        value << bits | value >> (64 &- bits)
    }

    private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}
