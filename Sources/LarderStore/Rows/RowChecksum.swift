internal import Foundation

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
