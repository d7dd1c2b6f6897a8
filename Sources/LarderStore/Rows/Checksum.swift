internal import Foundation

/// A fast hash of 64 bits, against damage and not against forgers.
///
/// Four lanes take 16 bytes each at a time, multiply the halves to 128 bits and fold these.
///
/// Safety: The buffer is valid for the time of the call, and is read between its start and its end.
package enum Checksum {
    /// Returns the checksum of `bytes`.
    package static func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var pieces = Pieces(count: bytes.count)
        let rest = pieces.add(bytes)
        return pieces.finish(UnsafeRawBufferPointer(rebasing: bytes[rest...]))
    }

    /// The checksum of bytes that come in pieces.
    struct Pieces {
        private var hash: UInt64
        private var lanes = keys
        private var hasBlocks = false

        /// - Parameter count: The number of all bytes.
        @inline(__always)
        init(count: Int) { hash = UInt64(count) ^ keys.0 }

        /// Takes in whole blocks of 64 bytes, and returns where the rest begins, which is to come again.
        @inline(__always)
        mutating func add(_ bytes: UnsafeRawBufferPointer) -> Int {
            guard let start = bytes.baseAddress, bytes.count >= 64 else { return 0 }
            func word(_ place: Int) -> UInt64 { Checksum.word(start, place) }
            var (place, lanes) = (0, lanes)
            while place &+ 64 <= bytes.count {
                lanes.0 = folded(lanes.0 ^ word(place), keys.1 ^ word(place &+ 8))
                lanes.1 = folded(lanes.1 ^ word(place &+ 16), keys.2 ^ word(place &+ 24))
                lanes.2 = folded(lanes.2 ^ word(place &+ 32), keys.3 ^ word(place &+ 40))
                lanes.3 = folded(lanes.3 ^ word(place &+ 48), keys.0 ^ word(place &+ 56))
                place &+= 64
            }
            (self.lanes, hasBlocks) = (lanes, true)
            return place
        }

        /// Takes in the last bytes, less than 64, and returns the checksum.
        @inline(__always)
        consuming func finish(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
            if hasBlocks {
                for lane in [lanes.0, lanes.1, lanes.2, lanes.3] { hash = folded(hash ^ lane, keys.1) &+ lane }
            }
            // Of no bytes there is one checksum, with or without an address.
            guard let start = bytes.baseAddress else { return folded(hash, keys.3) }
            var place = 0
            while place &+ 8 <= bytes.count {
                let word = Checksum.word(start, place)
                hash = folded(hash ^ word, keys.2) &+ word
                place &+= 8
            }
            var rest: UInt64 = 0
            while place < bytes.count {
                rest = rest << 8 | UInt64(bytes[place])
                place &+= 1
            }
            return folded(hash ^ rest, keys.3) &+ rest
        }
    }

    @inline(__always)
    private static func word(_ start: UnsafeRawPointer, _ place: Int) -> UInt64 {
        UInt64(littleEndian: start.loadUnaligned(fromByteOffset: place, as: UInt64.self))
    }

    static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    private static let keys: (UInt64, UInt64, UInt64, UInt64) = (
        0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB, 0x8EBC_6AF0_9C88_C6E3, 0x5899_65CC_7537_4CC3
    )
}

/// The checksum of a row, against damage and not against forgers.
///
/// It is the hash of the payload combined by XOR with the hash of the other columns, so that other attributes need no look
/// at the payload. Stamps of accesses are outside it.
///
/// Safety: Bytes are read inside the call that lends them, and are not kept.
enum RowChecksum {
    static func ofPayload(_ payload: Data) -> Int64 {
        Int64(bitPattern: payload.withUnsafeBytes { Checksum.of($0) })
    }

    static func ofColumns(
        cache: Int64, key: StoredKey, writtenAt: Int64, expiresAt: Int64?, meta: Data?
    ) -> Int64 {
        var hash = folded(UInt64(bitPattern: cache), into: 0x9E37_79B9_7F4A_7C15)
        hash = folded(UInt64(bitPattern: writtenAt), into: hash)
        // NULL is not the same as any number.
        hash = folded(UInt64(bitPattern: expiresAt ?? 0), into: hash &+ (expiresAt == nil ? 0 : 1))
        switch key {
        case .integer(let number): hash = folded(UInt64(bitPattern: number), into: hash &+ 1)
        case .text(let text):
            var text = text
            hash = folded(text.withUTF8 { Checksum.of(UnsafeRawBufferPointer($0)) }, into: hash &+ 2)
        case .blob(let bytes): hash = folded(bytes.withUnsafeBytes { Checksum.of($0) }, into: hash &+ 3)
        }
        if let meta { hash = folded(meta.withUnsafeBytes { Checksum.of($0) }, into: hash) }
        return Int64(bitPattern: hash)
    }

    /// Returns the checksum of texts and numbers.
    static func of(_ texts: [String], _ numbers: [Int64?]) -> Int64 {
        var hash: UInt64 = 0x9E37_79B9_7F4A_7C15
        for var text in texts { hash = folded(text.withUTF8 { Checksum.of(UnsafeRawBufferPointer($0)) }, into: hash) }
        for number in numbers {
            // NULL is not the same as any number.
            hash = folded(UInt64(bitPattern: number ?? 0), into: hash &+ (number == nil ? 1 : 0))
        }
        return Int64(bitPattern: hash)
    }

    private static func folded(_ number: UInt64, into hash: UInt64) -> UInt64 {
        let product = (hash ^ number).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        return (product.high ^ product.low) &+ (hash << 23 | hash >> 41) &+ 0xA076_1D64_78BD_642F
    }
}
