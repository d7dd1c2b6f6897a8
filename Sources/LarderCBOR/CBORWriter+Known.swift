import Foundation

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
