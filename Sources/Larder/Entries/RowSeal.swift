package import Foundation

/// A checksum that is built up value by value: of the columns of a row, without its payload.
///
/// Each value is folded in by a multiplication of 64 by 64 bits, text and bytes by their XXH3. Against damage, not against
/// forgers.
///
/// Safety: Bytes are read inside the call that got them and are not kept.
struct RowSeal {
    private var state: UInt64 = 0x9E37_79B9_7F4A_7C15

    /// Adds a number.
    @inline(__always)
    mutating func add(_ number: Int64) {
        let product = (state ^ UInt64(bitPattern: number)).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        // The product of 0 would forget all that came before.
        state = (product.high ^ product.low) &+ (state << 23 | state >> 41) &+ 0xA076_1D64_78BD_642F
    }

    /// Adds bytes.
    mutating func add(_ bytes: UnsafeRawBufferPointer) { add(Self.checksum(bytes)) }

    /// Adds a text.
    mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
    }

    /// Adds a key.
    mutating func add(_ key: StoredKey) {
        switch key {
        case .integer(let number):
            add(3 as Int64)
            add(number)
        case .text(let text):
            add(4 as Int64)
            add(text)
        case .blob(let bytes):
            add(5 as Int64)
            bytes.withUnsafeBytes { add($0) }
        case .foreign(.number(let number)):
            add(6 as Int64)
            add(Int64(bitPattern: number.bitPattern))
        case .foreign(.text(let bytes)):
            add(7 as Int64)
            bytes.withUnsafeBytes { add($0) }
        }
    }

    /// The checksum of everything that was added.
    var checksum: Int64 {
        var hash = (state ^ state >> 33) &* 0xC2B2_AE3D_27D4_EB4F
        hash = (hash ^ hash >> 29) &* 0x1656_67B1_9E37_79F9
        return Int64(bitPattern: hash ^ hash >> 32)
    }

    /// The checksum of bytes alone: XXH3 of 64 bits.
    static func checksum(_ bytes: UnsafeRawBufferPointer) -> Int64 { Int64(bitPattern: Checksum.xxh3(bytes)) }
}

/// The columns of an entry that its checksum is about, but for the payload.
///
/// The column `checksum` of a row is the one of these columns, combined by XOR with the one of the payload, wherever that is.
/// So the checksum that a payload must have follows from the other columns of its row, and another age or other extended data
/// need no look at the payload.
package struct SealedColumns: Sendable {
    var cache: Int64
    var key: StoredKey
    package internal(set) var size: Int64
    package var writtenAt: Int64
    package var age: StoredAge?
    package var isPinned: Bool
    var cost: Int64?
    var file: String?
    package var extended: Data? {
        didSet { size += Int64(extended?.count ?? 0) - Int64(oldValue?.count ?? 0) }
    }

    /// The checksum of these columns.
    var checksum: Int64 {
        var seal = RowSeal()
        seal.add(cache)
        seal.add(key)
        seal.add(size)
        seal.add(writtenAt)
        // One number says which of the others are there.
        let (hasAge, hasCost): (Int64, Int64) = (age == nil ? 0 : 1, cost == nil ? 0 : 2)
        let (hasFile, hasExtended): (Int64, Int64) = (file == nil ? 0 : 4, extended == nil ? 0 : 8)
        seal.add(hasAge | hasCost | hasFile | hasExtended)
        if let age {
            seal.add(age.kind)
            seal.add(age.milliseconds)
        }
        if let cost { seal.add(cost) }
        if let file { seal.add(file) }
        if let extended { extended.withUnsafeBytes { seal.add($0) } }
        return isPinned ? seal.checksum ^ Self.pin : seal.checksum
    }

    /// What a pin changes in a checksum: an upsert that keeps the pin knows both.
    static let pin: Int64 = 0x2545_F491_4F6C_DD1D
}
