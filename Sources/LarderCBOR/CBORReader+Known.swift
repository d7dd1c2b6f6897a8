import Foundation

extension CBORReader {
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
