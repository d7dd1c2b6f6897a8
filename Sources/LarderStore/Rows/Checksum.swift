/// A fast hash of 64 bits, against damage and not against forgers.
///
/// Four lanes take 16 bytes each at a time, multiply the halves to 128 bits and fold these.
///
/// Safety: The buffer is valid for the time of the call, and is read between its start and its end.
package enum Checksum {
    /// Returns the checksum of `bytes`.
    package static func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash = UInt64(bytes.count) ^ keys.0
        guard let start = bytes.baseAddress else { return hash }
        func word(_ place: Int) -> UInt64 {
            UInt64(littleEndian: start.loadUnaligned(fromByteOffset: place, as: UInt64.self))
        }
        var (place, lanes) = (0, keys)
        while place &+ 64 <= bytes.count {
            lanes.0 = folded(lanes.0 ^ word(place), keys.1 ^ word(place &+ 8))
            lanes.1 = folded(lanes.1 ^ word(place &+ 16), keys.2 ^ word(place &+ 24))
            lanes.2 = folded(lanes.2 ^ word(place &+ 32), keys.3 ^ word(place &+ 40))
            lanes.3 = folded(lanes.3 ^ word(place &+ 48), keys.0 ^ word(place &+ 56))
            place &+= 64
        }
        for lane in [lanes.0, lanes.1, lanes.2, lanes.3] where place > 0 { hash = folded(hash ^ lane, keys.1) &+ lane }
        while place &+ 8 <= bytes.count {
            hash = folded(hash ^ word(place), keys.2) &+ word(place)
            place &+= 8
        }
        var rest: UInt64 = 0
        while place < bytes.count {
            rest = rest << 8 | UInt64(bytes[place])
            place &+= 1
        }
        return folded(hash ^ rest, keys.3) &+ rest
    }

    static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    private static let keys: (UInt64, UInt64, UInt64, UInt64) = (
        0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB, 0x8EBC_6AF0_9C88_C6E3, 0x5899_65CC_7537_4CC3
    )
}
