import Foundation

/// Text and bytes.
///
/// Safety: A length is compared with the bytes that are left before a buffer is created from it. `isEqual` loads words
/// inside the `count` bytes that both of its callers have checked.
extension CBORReader {
    @inline(__always)
    mutating func string() throws(CBORFault) -> String {
        let start = offset
        let head = try head()
        guard head.major == CBORFormat.Major.text, !head.isIndefinite else {
            offset = start
            return try otherString()
        }
        let length = try length(head, at: start)
        let text = try Self.text(UnsafeRawBufferPointer(start: base + offset, count: length), at: start)
        offset &+= length
        return text
    }

    /// Reads text after tags, or in pieces.
    private mutating func otherString() throws(CBORFault) -> String {
        try skipTags()
        let start = offset
        guard try peek() & 0xE0 == CBORFormat.Major.text else { throw mismatch(at: start) }
        let head = try head()
        guard head.isIndefinite else {
            offset = start
            return try string()
        }
        var whole = ""
        try pieces(of: CBORFormat.Major.text) { (piece, start) throws(CBORFault) in
            // Each piece is text of its own: a character never spans two.
            whole += try Self.text(piece, at: start)
        }
        return whole
    }

    /// Returns the text of the bytes.
    ///
    /// `String(decoding:)` repairs bytes that are not UTF-8, so its result is compared with the bytes.
    @inline(__always)
    private static func text(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(CBORFault) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        let isSame = text.utf8.withContiguousStorageIfAvailable { utf8 in
            guard utf8.count == bytes.count else { return false }
            guard let ours = utf8.baseAddress, let theirs = bytes.baseAddress else { return true }
            return isEqual(ours, theirs, bytes.count)
        }
        guard isSame ?? text.utf8.elementsEqual(bytes) else { throw CBORFault(.invalidText, offset) }
        return text
    }

    /// Returns whether `count` bytes are equal, without a call of `memcmp`, since they are few.
    @inline(__always)
    static func isEqual(_ one: UnsafeRawPointer, _ other: UnsafeRawPointer, _ count: Int) -> Bool {
        if count >= 8 {
            guard count <= 64 else { return memcmp(one, other, count) == 0 }
            var offset = 0
            while offset &+ 8 <= count {
                if load(one, offset, UInt64.self) != load(other, offset, UInt64.self) { return false }
                offset &+= 8
            }
            return load(one, count &- 8, UInt64.self) == load(other, count &- 8, UInt64.self)
        }
        if count >= 4 {
            return load(one, 0, UInt32.self) == load(other, 0, UInt32.self)
                && load(one, count &- 4, UInt32.self) == load(other, count &- 4, UInt32.self)
        }
        for offset in 0..<count where load(one, offset, UInt8.self) != load(other, offset, UInt8.self) { return false }
        return true
    }

    @inline(__always)
    private static func load<Number: FixedWidthInteger>(
        _ base: UnsafeRawPointer, _ offset: Int, _ type: Number.Type
    ) -> Number {
        base.loadUnaligned(fromByteOffset: offset, as: type)
    }

    /// Reads a byte string, or an array of numbers that are bytes.
    mutating func bytes<Bytes: RangeReplaceableCollection>(as type: Bytes.Type) throws(CBORFault) -> Bytes
    where Bytes.Element == UInt8 {
        try skipTags()
        let start = offset
        let head = try head()
        switch head.major {
        case CBORFormat.Major.bytes where !head.isIndefinite:
            let length = try length(head, at: start)
            defer { offset += length }
            return Bytes(UnsafeRawBufferPointer(start: base + offset, count: length))
        case CBORFormat.Major.bytes:
            var whole = Bytes()
            try pieces(of: CBORFormat.Major.bytes) { (piece, _) throws(CBORFault) in whole.append(contentsOf: piece) }
            return whole
        case CBORFormat.Major.array:
            offset = start
            var whole = Bytes()
            try elements { (reader: inout CBORReader) throws(CBORFault) in whole.append(try reader.integer(UInt8.self))
            }
            return whole
        default: throw mismatch(at: start)
        }
    }

    /// Calls `body` with each piece of a string of indefinite length, and with the offset of the piece.
    private mutating func pieces(
        of major: UInt8, _ body: (UnsafeRawBufferPointer, Int) throws(CBORFault) -> Void
    ) throws(CBORFault) {
        while try !skipStop() {
            let start = offset
            let head = try head()
            guard head.major == major, !head.isIndefinite else { throw CBORFault(.wrongChunk, start) }
            let length = try length(head, at: start)
            try body(UnsafeRawBufferPointer(start: base + offset, count: length), start)
            offset += length
        }
    }

    /// Reads a date in any of its forms: the two that this library writes, and the text of tag 0 that other encoders
    /// write.
    mutating func date() throws(CBORFault) -> Date {
        let start = offset
        var tag: UInt64?
        while try peek() & 0xE0 == CBORFormat.Major.tag {
            let number = try head().number
            switch number {
            case CBORFormat.Tag.dateText, CBORFormat.Tag.epochDate, CBORFormat.Tag.referenceDate: tag = number
            default: break
            }
        }
        switch tag {
        case CBORFormat.Tag.epochDate:
            return Date(timeIntervalSinceReferenceDate: try double() - CBORFormat.secondsTo2001)
        case CBORFormat.Tag.referenceDate:
            return Date(timeIntervalSinceReferenceDate: try double())
        case CBORFormat.Tag.dateText:
            let text = try string()
            for strategy in [Date.ISO8601FormatStyle(), Date.ISO8601FormatStyle(includingFractionalSeconds: true)] {
                if let date = Self.attempt({ try strategy.parse(text) }) { return date }
            }
            throw CBORFault(.invalidDate, start)
        default:
            // A bare number could count from 1970 or from 2001, and a wrong guess is off by 31 years.
            throw mismatch(at: offset)
        }
    }

    private static func attempt<R>(_ body: () throws -> R) -> R? {
        do { return try body() } catch { return nil }
    }

    /// Reads 16 bytes, or the text that other encoders write.
    mutating func uuid() throws(CBORFault) -> UUID {
        try skipTags()
        let start = offset
        if try peek() & 0xE0 == CBORFormat.Major.text {
            guard let uuid = UUID(uuidString: try string()) else { throw CBORFault(.invalidUUID, start) }
            return uuid
        }
        let head = try head()
        guard head.major == CBORFormat.Major.bytes, !head.isIndefinite else { throw mismatch(at: start) }
        guard try length(head, at: start) == 16 else { throw CBORFault(.invalidUUID, start) }
        let uuid = base.loadUnaligned(fromByteOffset: offset, as: uuid_t.self)
        offset += 16
        return UUID(uuid: uuid)
    }

    /// Reads text, or `[relative, base]` for a URL that has a base.
    mutating func url(depth: Int = 0) throws(CBORFault) -> URL {
        try skipTags()
        let start = offset
        guard try peek() & 0xE0 == CBORFormat.Major.array else {
            guard let url = URL(string: try string()) else { throw CBORFault(.invalidURL, start) }
            return url
        }
        guard depth < 8 else { throw CBORFault(.tooDeep, start) }
        let head = try head()
        guard !head.isIndefinite, head.number == 2 else { throw CBORFault(.invalidURL, start) }
        let relative = try string()
        let base = try url(depth: depth + 1)
        guard let url = URL(string: relative, relativeTo: base) else { throw CBORFault(.invalidURL, start) }
        return url
    }

    /// Reads tag 4, or a number.
    mutating func decimal() throws(CBORFault) -> Decimal {
        let start = offset
        var reader = self
        var isFraction = false
        while try reader.peek() & 0xE0 == CBORFormat.Major.tag {
            let tag = try reader.head().number
            if tag == CBORFormat.Tag.positiveBignum || tag == CBORFormat.Tag.negativeBignum { break }
            isFraction = tag == CBORFormat.Tag.decimalFraction
            self = reader
        }
        if isFraction {
            let head = try head()
            guard head.major == CBORFormat.Major.array, !head.isIndefinite, head.number == 2 else {
                throw CBORFault(.invalidDecimal, start)
            }
            let exponent = try integer(Int64.self)
            let (digits, isNegative) = try magnitude()
            return try Self.decimal(digits, isNegative, exponent: exponent, at: start)
        }
        switch try peek() {
        case CBORFormat.half, CBORFormat.single, CBORFormat.double:
            let value = try double()
            if value.isNaN { return .nan }
            guard value.isFinite, value.magnitude < 1e127 else { throw CBORFault(.invalidDecimal, start) }
            return Decimal(value)
        default:
            let (digits, isNegative) = try magnitude()
            return try Self.decimal(digits, isNegative, exponent: 0, at: start)
        }
    }

    private static func decimal(
        _ number: CBORMagnitude, _ isNegative: Bool, exponent: Int64, at offset: Int
    ) throws(CBORFault) -> Decimal {
        guard CBORDecimal.exponents.contains(Int(clamping: exponent)) else { throw CBORFault(.invalidDecimal, offset) }
        guard let digits = isNegative ? number.successor : number else { throw CBORFault(.invalidDecimal, offset) }
        let (low, high) = (Decimal(digits.low), Decimal(digits.high))
        let magnitude = high == 0 ? low : high * twoTo64 + low
        let value = Decimal(sign: isNegative ? .minus : .plus, exponent: Int(exponent), significand: magnitude)
        guard value.isFinite else { throw CBORFault(.invalidDecimal, offset) }
        return value
    }

    private static let twoTo64 = Decimal(UInt64.max) + 1
}
