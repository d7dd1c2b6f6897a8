/// XXH3 with 64 bits: a fast checksum with a published definition, against damage and not against forgers.
///
/// It takes 64 bytes at a time in eight lanes, which the compiler lays into the registers for vectors.
///
/// Safety: The buffer is valid for the time of the call. Each function is called for a range of lengths and reads
/// between the start and `count` only; the secret is longer than the largest offset into it.
package enum Checksum {
    /// Returns the checksum of `bytes`.
    package static func xxh3(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        guard let start = bytes.baseAddress, bytes.count > 0 else { return empty(seed) }
        return secret.withUnsafeBytes { secret in
            let key = secret.baseAddress!
            switch bytes.count {
            case ...16: return short(start, bytes.count, key, seed)
            case ...128: return medium(start, bytes.count, key, seed)
            case ...240: return longer(start, bytes.count, key, seed)
            default: break
            }
            if seed == 0 { return long(start, bytes.count, key) }
            return withUnsafeTemporaryAllocation(byteCount: secretSize, alignment: 8) { own in
                for place in stride(from: 0, to: secretSize, by: 16) {
                    own.storeBytes(of: word(key, place) &+ seed, toByteOffset: place, as: UInt64.self)
                    own.storeBytes(of: word(key, place &+ 8) &- seed, toByteOffset: place &+ 8, as: UInt64.self)
                }
                return long(start, bytes.count, UnsafeRawPointer(own.baseAddress!))
            }
        }
    }

    // MARK: Up to 240 bytes

    private static func empty(_ seed: UInt64) -> UInt64 {
        secret.withUnsafeBytes { finish(seed ^ word($0.baseAddress!, 56) ^ word($0.baseAddress!, 64)) }
    }

    private static func short(_ start: UnsafeRawPointer, _ count: Int, _ key: UnsafeRawPointer, _ seed: UInt64)
        -> UInt64
    {
        if count > 8 {
            let low = word(start, 0) ^ ((word(key, 24) ^ word(key, 32)) &+ seed)
            let high = word(start, count &- 8) ^ ((word(key, 40) ^ word(key, 48)) &- seed)
            return mixed(UInt64(count) &+ low.byteSwapped &+ high &+ folded(low, high))
        }
        if count >= 4 {
            let seed = seed ^ UInt64(UInt32(truncatingIfNeeded: seed).byteSwapped) << 32
            let both = UInt64(half(start, count &- 4)) &+ UInt64(half(start, 0)) << 32
            var hash = both ^ ((word(key, 8) ^ word(key, 16)) &- seed)
            hash ^= rotate(hash, 49) ^ rotate(hash, 24)
            hash &*= 0x9FB2_1C65_1E98_DF25
            hash ^= (hash >> 35) &+ UInt64(count)
            hash &*= 0x9FB2_1C65_1E98_DF25
            return hash ^ hash >> 28
        }
        func byte(_ place: Int) -> UInt64 { UInt64(start.load(fromByteOffset: place, as: UInt8.self)) }
        let all = byte(0) << 16 | byte(count >> 1) << 24 | byte(count &- 1) | UInt64(count) << 8
        return finish(all ^ (UInt64(half(key, 0) ^ half(key, 4)) &+ seed))
    }

    private static func medium(_ start: UnsafeRawPointer, _ count: Int, _ key: UnsafeRawPointer, _ seed: UInt64)
        -> UInt64
    {
        var sum = UInt64(count) &* primes.0
        // From both ends to the middle.
        for pair in (0...(count &- 1) / 32).reversed() {
            sum &+= mix16(start + 16 &* pair, key + 32 &* pair, seed)
            sum &+= mix16(start + (count &- 16 &* (pair &+ 1)), key + (32 &* pair &+ 16), seed)
        }
        return mixed(sum)
    }

    private static func longer(_ start: UnsafeRawPointer, _ count: Int, _ key: UnsafeRawPointer, _ seed: UInt64)
        -> UInt64
    {
        var sum = UInt64(count) &* primes.0
        for place in 0..<8 { sum &+= mix16(start + 16 &* place, key + 16 &* place, seed) }
        sum = mixed(sum)
        for place in 8..<count / 16 { sum &+= mix16(start + 16 &* place, key + (16 &* (place &- 8) &+ 3), seed) }
        return mixed(sum &+ mix16(start + (count &- 16), key + 119, seed))
    }

    private static func mix16(_ start: UnsafeRawPointer, _ key: UnsafeRawPointer, _ seed: UInt64) -> UInt64 {
        folded(word(start, 0) ^ (word(key, 0) &+ seed), word(start, 8) ^ (word(key, 8) &- seed))
    }

    // MARK: More

    private typealias Lanes = SIMD8<UInt64>

    private static func long(_ start: UnsafeRawPointer, _ count: Int, _ key: UnsafeRawPointer) -> UInt64 {
        var lanes = Lanes(
            0xC2B2_AE3D, primes.0, primes.1, primes.2, primes.3, 0x85EB_CA77, primes.4, 0x9E37_79B1)
        let blocks = (count &- 1) / 1024
        for block in 0..<blocks {
            let block = start + block &* 1024
            for stripe in 0..<16 { add(block + stripe &* 64, key + stripe &* 8, &lanes) }
            lanes = ((lanes ^ (lanes &>> 47)) ^ (key + 128).loadUnaligned(as: Lanes.self)) &* 0x9E37_79B1
        }
        let rest = start + blocks &* 1024
        for stripe in 0..<(count &- 1 &- blocks &* 1024) / 64 { add(rest + stripe &* 64, key + stripe &* 8, &lanes) }
        add(start + (count &- 64), key + 121, &lanes)
        var sum = UInt64(count) &* primes.0
        for pair in 0..<4 {
            sum &+= folded(
                lanes[2 &* pair] ^ word(key, 11 &+ 16 &* pair), lanes[2 &* pair &+ 1] ^ word(key, 19 &+ 16 &* pair))
        }
        return mixed(sum)
    }

    /// Adds 64 bytes.
    @inline(__always)
    private static func add(_ start: UnsafeRawPointer, _ key: UnsafeRawPointer, _ lanes: inout Lanes) {
        let data = start.loadUnaligned(as: Lanes.self)
        let keyed = data ^ key.loadUnaligned(as: Lanes.self)
        lanes &+= Lanes(data[1], data[0], data[3], data[2], data[5], data[4], data[7], data[6])
        lanes &+= (keyed & 0xFFFF_FFFF) &* (keyed &>> 32)
    }

    // MARK: Steps

    private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    private static func mixed(_ sum: UInt64) -> UInt64 {
        let hash = (sum ^ sum >> 37) &* 0x1656_6791_9E37_79F9
        return hash ^ hash >> 32
    }

    private static func finish(_ sum: UInt64) -> UInt64 {
        var hash = (sum ^ sum >> 33) &* primes.1
        hash = (hash ^ hash >> 29) &* primes.2
        return hash ^ hash >> 32
    }

    private static func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 {
        value << bits | value >> (64 &- bits)
    }

    private static func word(_ start: UnsafeRawPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    private static func half(_ start: UnsafeRawPointer, _ offset: Int) -> UInt32 {
        UInt32(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    // MARK: Numbers of the definition

    private static let primes: (UInt64, UInt64, UInt64, UInt64, UInt64) = (
        0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x85EB_CA77_C2B2_AE63,
        0x27D4_EB2F_1656_67C5
    )

    private static let secretSize = 192

    /// The secret of the definition, which is public.
    private static let secret: [UInt64] = [
        0xBE4B_A423_396C_FEB8, 0x1CAD_21F7_2C81_017C, 0xDB97_9083_E96D_D4DE, 0x1F67_B3B7_A4A4_4072,
        0x78E5_C0CC_4EE6_79CB, 0x2172_FFCC_7DD0_5A82, 0x8E24_43F7_7446_08B8, 0x4C26_3A81_E690_35E0,
        0xCB00_C391_BB52_283C, 0xA32E_531B_8B65_D088, 0x4EF9_0DA2_9748_6471, 0xD8AC_DEA9_46EF_1938,
        0x3F34_9CE3_3F76_FAA8, 0x1D4F_0BC7_C7BB_DCF9, 0x3159_B4CD_4BE0_518A, 0x6473_78D9_C97E_9FC8,
        0xC3EB_D334_83AC_C5EA, 0xEB63_13FA_FFA0_81C5, 0x49DA_F0B7_51DD_0D17, 0x9E68_D429_2655_16D3,
        0xFCA1_477D_58BE_162B, 0xCE31_D07A_D1B8_F88F, 0x2804_1695_8F3A_CB45, 0x7E40_4BBB_CAFB_D7AF,
    ]
}
