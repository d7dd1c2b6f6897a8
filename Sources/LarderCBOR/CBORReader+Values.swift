import Foundation

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
