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

extension CBORReader {
    // MARK: Simple values

    /// Returns whether the next item is null or undefined, without reading it.
    ///
    /// A null in the form of an inner optional's nil counts only below that many single-value containers.
    func isNil(layers: Int) throws(CBORFault) -> Bool {
        let first = try peek()
        if first == CBORFormat.null || first == CBORFormat.undefined { return true }
        guard first & 0xE0 == CBORFormat.Major.tag else { return false }
        var reader = self
        var wrappings = 0
        while try reader.peek() & 0xE0 == CBORFormat.Major.tag {
            if try reader.head().number == CBORFormat.Tag.wrappedNil { wrappings += 1 }
        }
        let content = try reader.peek()
        guard content == CBORFormat.null || content == CBORFormat.undefined else { return false }
        return wrappings <= layers
    }

    /// The end of the null after the next tags, if there is one.
    var endOfTaggedNull: Int? {
        var reader = self
        do throws(CBORFault) {
            guard try reader.isNil(layers: 0) else { return nil }
            try reader.skip()
        } catch {
            return nil
        }
        return reader.offset
    }

    mutating func bool() throws(CBORFault) -> Bool {
        if try peek() & 0xE0 == CBORFormat.Major.tag { try skipTags() }
        switch try peek() {
        case CBORFormat.true: offset += 1; return true
        case CBORFormat.false: offset += 1; return false
        default: throw mismatch(at: offset)
        }
    }

    // MARK: Numbers

    @inline(__always)
    mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws(CBORFault) -> Number {
        let start = offset
        let head = try head()
        if head.major == CBORFormat.Major.unsigned {
            guard let value = Number(exactly: head.number) else { throw CBORFault(.overflow, start) }
            return value
        }
        if head.major == CBORFormat.Major.negative, let number = Int64(exactly: head.number) {
            guard let value = Number(exactly: ~number) else { throw CBORFault(.overflow, start) }
            return value
        }
        offset = start
        return try wideInteger(type)
    }

    /// Reads an integer beyond 64 bits, or with a tag.
    private mutating func wideInteger<Number: FixedWidthInteger>(_ type: Number.Type) throws(CBORFault) -> Number {
        let start = offset
        switch try magnitude() {
        case (let number, isNegative: false):
            if let value = number.exactly(type) { return value }
        case (let number, isNegative: true):
            // The number is -1 - number, which is ~number if it fits.
            if Number.isSigned, let value = number.exactly(type) { return ~value }
        }
        throw CBORFault(.overflow, start)
    }

    /// Reads an integer of up to 128 bits and a sign: `-1 - number` if it is negative.
    mutating func magnitude() throws(CBORFault) -> (CBORMagnitude, isNegative: Bool) {
        let start = offset
        let first = try peek()
        var tag: UInt64?
        while try peek() & 0xE0 == CBORFormat.Major.tag { tag = try head().number }
        let itemStart = offset
        let head = try head()
        switch head.major {
        case CBORFormat.Major.unsigned: return (CBORMagnitude(head.number), false)
        case CBORFormat.Major.negative: return (CBORMagnitude(head.number), true)
        case CBORFormat.Major.bytes where tag == CBORFormat.Tag.positiveBignum || tag == CBORFormat.Tag.negativeBignum:
            offset = itemStart
            var number = CBORMagnitude(0)
            for byte in try bytes(as: [UInt8].self) {
                guard number.append(byte) else { throw CBORFault(.overflow, start) }
            }
            return (number, tag == CBORFormat.Tag.negativeBignum)
        default:
            offset = start
            throw mismatch(at: first & 0xE0 == CBORFormat.Major.tag ? start : itemStart)
        }
    }

    /// Reads a floating-point number of any width, or an integer that `Double` holds exactly.
    @inline(__always)
    mutating func double() throws(CBORFault) -> Double {
        if try peek() == CBORFormat.double { return Double(bitPattern: try head().number) }
        return try otherDouble()
    }

    private mutating func otherDouble() throws(CBORFault) -> Double {
        try skipTagsButBignums()
        let start = offset
        let first = try peek()
        switch first {
        case CBORFormat.double: return Double(bitPattern: try head().number)
        case CBORFormat.single: return Double(Float(bitPattern: UInt32(truncatingIfNeeded: try head().number)))
        case CBORFormat.half: return CBORHalf.double(bits: UInt16(truncatingIfNeeded: try head().number))
        default:
            switch first & 0xE0 {
            case CBORFormat.Major.unsigned, CBORFormat.Major.negative, CBORFormat.Major.tag:
                let (number, isNegative) = try magnitude()
                let size = isNegative ? number.successor : number
                guard let value = size?.exactDouble else { throw CBORFault(.overflow, start) }
                return isNegative ? -value : value
            default: throw mismatch(at: start)
            }
        }
    }

    /// Reads a number as a `Float`, rounded if needed, but not to infinity.
    mutating func float() throws(CBORFault) -> Float {
        let start = offset
        if try peek() == CBORFormat.single {
            // The bits are kept, since a conversion through Double would quiet a signaling NaN.
            return Float(bitPattern: UInt32(truncatingIfNeeded: try head().number))
        }
        let wide = try double()
        let value = Float(wide)
        if value.isInfinite, wide.isFinite { throw CBORFault(.overflow, start) }
        return value
    }

    private mutating func skipTagsButBignums() throws(CBORFault) {
        while try peek() & 0xE0 == CBORFormat.Major.tag {
            let start = offset
            let tag = try head().number
            if tag == CBORFormat.Tag.positiveBignum || tag == CBORFormat.Tag.negativeBignum {
                offset = start
                return
            }
        }
    }

    // MARK: Errors

    /// Returns the fault of an item that has another type than requested.
    func mismatch(at start: Int) -> CBORFault {
        guard start < count else { return CBORFault(.truncated, start) }
        let first = base.load(fromByteOffset: start, as: UInt8.self)
        if first == CBORFormat.stop { return CBORFault(.strayStop, start) }
        let isNull = first == CBORFormat.null || first == CBORFormat.undefined
        return CBORFault(isNull ? .null : .mismatch, start)
    }
}

/// Arrays and maps.
extension CBORReader {
    /// Reads each element of the next array.
    @inline(__always)
    mutating func elements(
        reserving: (Int) -> Void = { _ in }, _ body: (inout CBORReader) throws(CBORFault) -> Void
    ) throws(CBORFault) {
        try skipTags()
        let start = offset
        let head = try head()
        guard head.major == CBORFormat.Major.array else { throw mismatch(at: start) }
        if head.isIndefinite {
            while try !skipStop() { try body(&self) }
        } else {
            let length = try length(head, at: start)
            reserving(length)
            for _ in 0..<length { try body(&self) }
        }
    }

    /// Reads each pair of the next map; `body` reads the value.
    @inline(__always)
    mutating func pairs(
        reserving: (Int) -> Void = { _ in }, _ body: (String, Int, inout CBORReader) throws(CBORFault) -> Void
    ) throws(CBORFault) {
        try skipTags()
        let start = offset
        let head = try head()
        guard head.major == CBORFormat.Major.map else { throw mismatch(at: start) }
        var left = head.isIndefinite ? -1 : try length(head, at: start, itemsPerElement: 2)
        reserving(max(left, 0))
        while left != 0 {
            if head.isIndefinite {
                if try skipStop() { return }
            } else {
                left &-= 1
            }
            let keyStart = offset
            try body(try key(), keyStart, &self)
        }
    }

    /// Reads a map's key as text: an integer becomes its digits.
    @inline(__always)
    private mutating func key() throws(CBORFault) -> String {
        if try peek() & 0xE0 == CBORFormat.Major.text { return try string() }
        return try otherKey()
    }

    private mutating func otherKey() throws(CBORFault) -> String {
        try skipTags()
        switch try peek() & 0xE0 {
        case CBORFormat.Major.unsigned: return String(try head().number)
        case CBORFormat.Major.negative:
            // -1 - number, of which one has 65 bits.
            let (digits, isWide) = try head().number.addingReportingOverflow(1)
            return isWide ? "-18446744073709551616" : "-\(digits)"
        default: return try string()
        }
    }

    /// The numbers of missing items for a container of indefinite length.
    private enum Open {
        static let array = -1
        static let mapBeforeKey = -2
        static let mapBeforeValue = -3
    }

    /// Returns the end of the item at `offset`.
    func endOfItem(at offset: Int) throws(CBORFault) -> Int {
        var reader = at(offset)
        try reader.skip()
        return reader.offset
    }

    /// Skips the next item, with all its contents.
    @inline(__always)
    mutating func skip() throws(CBORFault) {
        // Most items are short: a small number, a short string, a simple value.
        let first = try peek()
        if first & 0x1F < 24 {
            switch first & 0xE0 {
            case CBORFormat.Major.unsigned, CBORFormat.Major.negative, CBORFormat.Major.simple:
                offset &+= 1
                return
            case CBORFormat.Major.bytes, CBORFormat.Major.text:
                let end = offset &+ 1 &+ Int(first & 0x1F)
                guard end <= count else { throw CBORFault(.truncated, offset) }
                offset = end
                return
            default: break
            }
        }
        try skipAny()
    }

    /// Skips the next item without recursion.
    private mutating func skipAny() throws(CBORFault) {
        // Each item takes a byte, so the number of missing items may never exceed the bytes that are left.
        var missing = 1
        // The missing items of the containers around the current one.
        var outer: [Int] = []
        while true {
            while missing == 0 {
                guard let last = outer.popLast() else { return }
                missing = last
            }
            if missing < 0, try skipStop() {
                guard missing != Open.mapBeforeValue, let last = outer.popLast() else {
                    throw CBORFault(.strayStop, offset - 1)
                }
                missing = last
                continue
            }
            try skipTags()
            switch missing {
            case Open.array: break
            case Open.mapBeforeKey: missing = Open.mapBeforeValue
            case Open.mapBeforeValue: missing = Open.mapBeforeKey
            default: missing -= 1
            }
            let start = offset
            let head = try head()
            switch head.major {
            case CBORFormat.Major.bytes, CBORFormat.Major.text:
                if head.isIndefinite {
                    try skipChunks(head.major)
                } else {
                    offset += try length(head, at: start)
                }
            case CBORFormat.Major.array, CBORFormat.Major.map:
                let isMap = head.major == CBORFormat.Major.map
                if head.isIndefinite {
                    outer.append(missing)
                    missing = isMap ? Open.mapBeforeKey : Open.array
                } else {
                    let items = try length(head, at: start, itemsPerElement: isMap ? 2 : 1) * (isMap ? 2 : 1)
                    if missing < 0 {
                        outer.append(missing)
                        missing = items
                    } else {
                        guard missing + items <= count - offset else { throw CBORFault(.truncated, start) }
                        missing += items
                    }
                }
            default: break
            }
        }
    }

    private mutating func skipChunks(_ major: UInt8) throws(CBORFault) {
        while try !skipStop() {
            let start = offset
            let chunk = try head()
            guard chunk.major == major, !chunk.isIndefinite else { throw CBORFault(.wrongChunk, start) }
            offset += try length(chunk, at: start)
        }
    }
}
