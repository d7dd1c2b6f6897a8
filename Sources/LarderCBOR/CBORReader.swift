import Foundation

/// A position in untrusted bytes, and functions that read from there.
///
/// Every length is compared with the bytes that are left before it is used, and no function recurses.
///
/// Safety: The state that created the reader keeps `base` valid. Each load is preceded by a comparison with `count`,
/// and no length is used before it was compared with the bytes that are left.
struct CBORReader {
    let base: UnsafeRawPointer
    let count: Int
    var offset: Int

    /// A reader without bytes: its pointer is not a valid address, and a count of 0 prevents every load.
    static var empty: CBORReader {
        CBORReader(base: UnsafeRawPointer(nowhere), count: 0, offset: 0)
    }

    /// Returns a reader of these bytes at another position.
    @inline(__always)
    func at(_ offset: Int) -> CBORReader {
        CBORReader(base: base, count: count, offset: offset)
    }

    private static var nowhere: UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(bitPattern: 16).unsafelyUnwrapped
    }

    // MARK: Heads

    /// Returns the first byte of the next item.
    @inline(__always)
    func peek() throws(CBORFault) -> UInt8 {
        guard offset < count else { throw CBORFault(.truncated, offset) }
        return base.load(fromByteOffset: offset, as: UInt8.self)
    }

    /// The next item's first byte and its number.
    ///
    /// `isIndefinite` is true if only the end determines its length.
    struct Head {
        var first: UInt8
        var number: UInt64
        var isIndefinite: Bool

        @inline(__always)
        var major: UInt8 { first & 0xE0 }
    }

    @inline(__always)
    mutating func head() throws(CBORFault) -> Head {
        let first = try peek()
        let info = first & 0x1F
        if info < 24 {
            offset &+= 1
            return Head(first: first, number: UInt64(info), isIndefinite: false)
        }
        return try longHead(first)
    }

    private mutating func longHead(_ first: UInt8) throws(CBORFault) -> Head {
        let number: UInt64
        switch first & 0x1F {
        case 24: number = UInt64(try load(UInt8.self))
        case 25: number = UInt64(try load(UInt16.self))
        case 26: number = UInt64(try load(UInt32.self))
        case 27: number = try load(UInt64.self)
        case 31:
            switch first & 0xE0 {
            case CBORFormat.Major.bytes, CBORFormat.Major.text, CBORFormat.Major.array, CBORFormat.Major.map:
                offset += 1
                return Head(first: first, number: 0, isIndefinite: true)
            case CBORFormat.Major.simple: throw CBORFault(.strayStop, offset)
            default: throw CBORFault(.reserved, offset)
            }
        default: throw CBORFault(.reserved, offset)
        }
        // A simple value below 32 has one encoding, and it is not this one.
        if first == 0xF8, number < 32 { throw CBORFault(.reserved, offset) }
        offset += 1 + (1 << Int(first & 0x1F - 24))
        return Head(first: first, number: number, isIndefinite: false)
    }

    /// Reads the big-endian number after the first byte.
    @inline(__always)
    private func load<Number: FixedWidthInteger>(_ type: Number.Type) throws(CBORFault) -> Number {
        guard count - offset > MemoryLayout<Number>.size else { throw CBORFault(.truncated, offset) }
        return Number(bigEndian: base.loadUnaligned(fromByteOffset: offset + 1, as: Number.self))
    }

    /// Reads a length that fits into the bytes that are left.
    @inline(__always)
    func length(_ head: Head, at start: Int, itemsPerElement: UInt64 = 1) throws(CBORFault) -> Int {
        guard head.number <= UInt64(count &- offset) / itemsPerElement else { throw CBORFault(.truncated, start) }
        return Int(truncatingIfNeeded: head.number)
    }

    /// Skips any tags.
    @inline(__always)
    mutating func skipTags() throws(CBORFault) {
        while try peek() & 0xE0 == CBORFormat.Major.tag { _ = try head() }
    }

    /// Returns whether the stop code of an indefinite container is next, and skips it if so.
    mutating func skipStop() throws(CBORFault) -> Bool {
        guard try peek() == CBORFormat.stop else { return false }
        offset += 1
        return true
    }
}
