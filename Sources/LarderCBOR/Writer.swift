import Foundation

/// The bytes so far, and functions that append items.
///
/// It is reached by a pointer that its state owns. Containers hold their frame, and the frame holds the state, so the
/// pointer is valid for them. A write through it costs neither a reference count nor a check for exclusive access.
///
/// Safety: `base` has room for `capacity` bytes, and `reserve` is called before bytes are stored. The buffer is freed
/// once: by `deallocate`, or by the `Data` it was given to.
struct CBORWriter {
    private(set) var base: UnsafeMutableRawPointer
    var count = 0
    private var capacity: Int
    var rules: CBOREncodingRules = []
    /// The number of open frames.
    var top = 0
    /// The frames: those below `top` are open, the others wait for the next value.
    var frames: [CBOREncodingFrame] = []
    var makers = CBORContainerMakers()
    /// Nested containers whose parent continued before they were complete: see `EncodingState+Late.swift`.
    var detached: [CBOREncodingFrame] = []
    /// A Boolean value that indicates whether a key may have been written twice, so that the last step has to keep the
    /// later one.
    var mayHaveDuplicates = false

    init() {
        capacity = Self.firstCapacity
        base = Self.room(capacity, inPlaceOf: nil)
    }

    private static let firstCapacity = 512
    /// The size up to which a buffer is kept and its bytes are copied.
    ///
    /// A larger buffer is handed over with its bytes.
    private static let largestKept = 1 << 16

    mutating func takeData() -> Data {
        guard capacity > Self.largestKept else { return Data(bytes: base, count: count) }
        let data = Data(bytesNoCopy: base, count: count, deallocator: .free)
        (base, capacity, count) = (Self.room(Self.firstCapacity, inPlaceOf: nil), Self.firstCapacity, 0)
        return data
    }

    func deallocate() {
        free(base)
    }

    // MARK: Room

    @inline(__always)
    mutating func reserve(_ more: Int) {
        if capacity &- count < more { grow(more) }
    }

    @inline(never)
    private mutating func grow(_ more: Int) {
        capacity = max(capacity * 2, count + more)
        base = Self.room(capacity, inPlaceOf: base)
    }

    /// Memory of the C library, which can usually extend a large buffer in place.
    private static func room(_ size: Int, inPlaceOf old: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer {
        guard let room = realloc(old, size) else { preconditionFailure("There is no memory for \(size) bytes.") }
        return room
    }

    // MARK: Heads

    @inline(__always)
    mutating func write(byte: UInt8) {
        reserve(1)
        base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    /// Writes the first byte of an item, and its number in the shortest form.
    @inline(__always)
    mutating func write(head major: UInt8, _ number: UInt64) {
        if number < 24 {
            write(byte: major | UInt8(truncatingIfNeeded: number))
        } else {
            writeLong(head: major, number)
        }
    }

    private mutating func writeLong(head major: UInt8, _ number: UInt64) {
        if number <= 0xFF {
            write(byte: major | 24)
            write(byte: UInt8(truncatingIfNeeded: number))
        } else if number <= 0xFFFF {
            write(byte: major | 25)
            write(bigEndian: UInt16(truncatingIfNeeded: number))
        } else if number <= 0xFFFF_FFFF {
            write(byte: major | 26)
            write(bigEndian: UInt32(truncatingIfNeeded: number))
        } else {
            write(byte: major | 27)
            write(bigEndian: number)
        }
    }

    @inline(__always)
    mutating func write<Number: FixedWidthInteger>(bigEndian number: Number) {
        let size = MemoryLayout<Number>.size
        reserve(size)
        base.storeBytes(of: number.bigEndian, toByteOffset: count, as: Number.self)
        count &+= size
    }

    /// Returns the length of a head for `number`.
    static func headLength(_ number: Int) -> Int {
        if number < 24 { return 1 }
        if number <= 0xFF { return 2 }
        if number <= 0xFFFF { return 3 }
        return number <= 0xFFFF_FFFF ? 5 : 9
    }

    // MARK: Scalars

    /// Writes an integer of any width.
    @inline(__always)
    mutating func write<Number: FixedWidthInteger>(integer value: Number) {
        switch (Number.isSigned, Number.bitWidth <= 64) {
        case (true, true): write(signed: Int64(truncatingIfNeeded: value))
        case (false, true): write(unsigned: UInt64(truncatingIfNeeded: value))
        case (_, false): write(CBORMagnitude(bitsOf: value < 0 ? ~value : value), isNegative: value < 0)
        }
    }

    @inline(__always)
    mutating func write(signed value: Int64) {
        if value >= 0 {
            write(head: CBORFormat.Major.unsigned, UInt64(bitPattern: value))
        } else {
            write(head: CBORFormat.Major.negative, UInt64(bitPattern: ~value))
        }
    }

    @inline(__always)
    mutating func write(unsigned value: UInt64) {
        write(head: CBORFormat.Major.unsigned, value)
    }

    /// Writes an integer of up to 128 bits and a sign: `-1 - number` if it is negative.
    mutating func write(_ number: CBORMagnitude, isNegative: Bool) {
        if number.high == 0 {
            return write(head: isNegative ? CBORFormat.Major.negative : CBORFormat.Major.unsigned, number.low)
        }
        write(
            head: CBORFormat.Major.tag, isNegative ? CBORFormat.Tag.negativeBignum : CBORFormat.Tag.positiveBignum)
        write(head: CBORFormat.Major.bytes, UInt64(number.byteCount))
        for index in (0..<number.byteCount).reversed() { write(byte: number.byte(at: index)) }
    }

    mutating func write(_ value: Bool) {
        write(byte: value ? CBORFormat.true : CBORFormat.false)
    }

    /// Writes a null; below `layers` single-value containers it has another form.
    mutating func writeNil(layers: Int) throws {
        if layers > 0 {
            if rules.imitates { throw CBORRefusal.nestedNil }
            for _ in 0..<layers { write(head: CBORFormat.Major.tag, CBORFormat.Tag.wrappedNil) }
        }
        write(byte: CBORFormat.null)
    }

    mutating func write(_ value: Double) throws {
        if !rules.isEmpty { return try writeByRules(value) }
        let narrow = Float(value)
        // Bits are compared and not numbers: a NaN keeps its payload, and zero its sign.
        if Double(narrow).bitPattern == value.bitPattern {
            write(byte: CBORFormat.single)
            write(bigEndian: narrow.bitPattern)
        } else {
            write(byte: CBORFormat.double)
            write(bigEndian: value.bitPattern)
        }
    }

    mutating func write(_ value: Float) throws {
        if !rules.isEmpty { return try writeByRules(Double(value)) }
        write(byte: CBORFormat.single)
        write(bigEndian: value.bitPattern)
    }

    private mutating func writeByRules(_ value: Double) throws {
        var value = value
        if rules.contains(.likeJSON), !value.isFinite {
            throw CBORRefusal(value, "JSON has no number for \(value).")
        }
        if rules.contains(.identity) {
            if value.isNaN {
                throw CBORRefusal(value, "A NaN equals nothing, itself included, so it cannot be part of a key.")
            }
            if value == 0 { value = 0 }
        }
        if value.isNaN {
            write(byte: CBORFormat.half)
            write(bigEndian: 0x7E00 as UInt16)
        } else if let bits = CBORHalf.bits(exactly: value) {
            write(byte: CBORFormat.half)
            write(bigEndian: bits)
        } else if Double(Float(value)) == value {
            write(byte: CBORFormat.single)
            write(bigEndian: Float(value).bitPattern)
        } else {
            write(byte: CBORFormat.double)
            write(bigEndian: value.bitPattern)
        }
    }

    // MARK: Text and bytes

    @inline(__always)
    mutating func write(_ text: String) {
        if rules.contains(.identity) { return writeText(CBORText.normalized(text)) }
        writeText(text)
    }

    /// Writes text that is a value, not a key.
    @inline(__always)
    mutating func write(checked text: String) throws {
        if rules.contains(.likePropertyList), text == "$null" {
            throw CBORRefusal(text, "A property list holds this text in the place of nil.")
        }
        write(text)
    }

    @inline(__always)
    mutating func writeText(_ text: String) {
        let done: Void? = text.utf8.withContiguousStorageIfAvailable { utf8 in
            write(string: UnsafeRawBufferPointer(utf8), CBORFormat.Major.text)
        }
        if done == nil { writeForeign(text) }
    }

    /// Writes text in the memory of another runtime.
    @inline(never)
    private mutating func writeForeign(_ text: String) {
        var text = text
        text.withUTF8 { write(string: UnsafeRawBufferPointer($0), CBORFormat.Major.text) }
    }

    @inline(__always)
    mutating func write(string bytes: UnsafeRawBufferPointer, _ major: UInt8) {
        reserve(bytes.count &+ 9)
        write(head: major, UInt64(truncatingIfNeeded: bytes.count))
        if let start = bytes.baseAddress {
            append(start, bytes.count)
            count &+= bytes.count
        }
    }

    /// Copies bytes into reserved room.
    ///
    /// Keys and short texts take two loads that overlap. A call of the C library for each would be a twentieth of the
    /// time of a small struct.
    @inline(__always)
    private func append(_ start: UnsafeRawPointer, _ length: Int) {
        switch length {
        case 8...16: copyEnds(start, length, UInt64.self)
        case 4..<8: copyEnds(start, length, UInt32.self)
        default: (base + count).copyMemory(from: start, byteCount: length)
        }
    }

    @inline(__always)
    private func copyEnds<Word: FixedWidthInteger>(_ start: UnsafeRawPointer, _ length: Int, _ type: Word.Type) {
        let last = length &- MemoryLayout<Word>.size
        let end = start.loadUnaligned(fromByteOffset: last, as: type)
        base.storeBytes(of: start.loadUnaligned(as: type), toByteOffset: count, as: type)
        base.storeBytes(of: end, toByteOffset: count &+ last, as: type)
    }
}

extension CBORWriter {
    mutating func write(_ value: Data) {
        value.withUnsafeBytes { write(string: $0, CBORFormat.Major.bytes) }
    }

    mutating func write(_ value: UUID) {
        write(head: CBORFormat.Major.tag, CBORFormat.Tag.uuid)
        withUnsafeBytes(of: value.uuid) { write(string: $0, CBORFormat.Major.bytes) }
    }

    /// Writes tag 1 with the seconds since 1970 if that gives the date back; else the number that a `Date` holds.
    ///
    /// A date counts from 2001. Counting from 1970 rounds away the last bits of about half of all dates.
    mutating func write(_ value: Date) throws {
        let seconds = value.timeIntervalSinceReferenceDate
        let epoch = seconds + CBORFormat.secondsTo2001
        guard epoch - CBORFormat.secondsTo2001 == seconds else {
            if rules.contains(.identity), seconds.isNaN {
                // The number and not the date: Foundation traps when it describes a date that is NaN.
                throw CBORRefusal(seconds, "A date that is NaN cannot be part of a key.")
            }
            write(head: CBORFormat.Major.tag, CBORFormat.Tag.referenceDate)
            return try write(seconds)
        }
        write(head: CBORFormat.Major.tag, CBORFormat.Tag.epochDate)
        if let whole = Int64(exactly: epoch), whole.magnitude < 1 << 53 {
            write(signed: whole)
        } else {
            try write(epoch)
        }
    }

    mutating func write(_ value: URL) throws {
        guard let base = value.baseURL else {
            write(head: CBORFormat.Major.tag, CBORFormat.Tag.url)
            return write(value.relativeString)
        }
        if rules.contains(.likeJSON) { throw CBORRefusal(value, "JSON holds a URL without its base.") }
        write(head: CBORFormat.Major.tag, CBORFormat.Tag.relativeURL)
        write(head: CBORFormat.Major.array, 2)
        write(value.relativeString)
        try write(base)
    }

    /// Writes tag 4: the exponent of ten and the digits, without trailing zeros, so that equal numbers are equal bytes.
    mutating func write(_ value: Decimal) throws {
        var digits = value.significand.magnitude.description[...]
        var exponent = digits == "0" ? 0 : value.exponent
        while digits != "0", exponent < CBORDecimal.exponents.upperBound, digits.last == "0" {
            digits.removeLast()
            exponent += 1
        }
        guard value.isFinite, let number = CBORMagnitude(digits: digits) else {
            if rules.contains(.identity) || rules.contains(.likeJSON) {
                throw CBORRefusal(value, "A decimal that is not a number cannot be encoded here.")
            }
            write(byte: CBORFormat.half)
            return write(bigEndian: 0x7E00 as UInt16)
        }
        write(head: CBORFormat.Major.tag, CBORFormat.Tag.decimalFraction)
        write(head: CBORFormat.Major.array, 2)
        write(signed: Int64(exponent))
        let isNegative = value.isSignMinus && digits != "0"
        write(isNegative ? number.predecessor : number, isNegative: isNegative)
    }
}

/// The kinds of a `Decimal`.
enum CBORDecimal {
    static let exponents = -128...127
}
