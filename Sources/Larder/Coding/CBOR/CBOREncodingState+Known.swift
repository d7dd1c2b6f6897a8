import Foundation

// Types that are written by what they are, not by their own `encode(to:)`. Only the identity of types is asked: it costs
// a comparison, where a cast that fails costs 90 ns. `as!` after such a test cannot fail.

extension CBOREncodingState {
    /// Writes `value` if its type is one of those; the frequent ones come first.
    @inline(__always)
    func writeKnown<T: Encodable>(_ value: T) throws -> Bool {
        let id = ObjectIdentifier(T.self)
        if top > 0, frames[top - 1].customType == id { return false }
        if T.self == Date.self { try write(value as! Date); return true }
        if T.self == UUID.self { write(value as! UUID); return true }
        if T.self == URL.self { try write(value as! URL); return true }
        if T.self == Data.self { write(value as! Data); return true }
        if T.self == String.self { try write(checked: value as! String); return true }
        if T.self == Int.self { write(signed: Int64(value as! Int)); return true }
        if T.self == Double.self { try write(value as! Double); return true }
        if try writeKnownCollection(value) { return true }
        if top > 0 { frames[top - 1].customType = id }
        return false
    }

    private func writeKnownCollection<T: Encodable>(_ value: T) throws -> Bool {
        if T.self == Decimal.self { try write(value as! Decimal); return true }
        if T.self == [UInt8].self {
            (value as! [UInt8]).withUnsafeBytes { write(string: $0, CBORFormat.Major.bytes) }
            return true
        }
        // Where an element may be refused, the long way knows its path.
        if !rules.isEmpty { return false }
        if T.self == [String].self { try write(array: value as! [String]) { try write(checked: $0) }; return true }
        if T.self == [String: String].self { try write(map: value as! [String: String]) { try write(checked: $0) }; return true }
        if T.self == [Int].self { write(array: value as! [Int]) { write(signed: Int64($0)) }; return true }
        if T.self == [Double].self { try write(array: value as! [Double]) { try write($0) }; return true }
        if T.self == [String: Int].self { write(map: value as! [String: Int]) { write(signed: Int64($0)) }; return true }
        if T.self == [String: Double].self { try write(map: value as! [String: Double]) { try write($0) }; return true }
        if T.self == [String: Bool].self { write(map: value as! [String: Bool]) { write($0) }; return true }
        if T.self == [String: Date].self { try write(map: value as! [String: Date]) { try write($0) }; return true }
        if T.self == [String: URL].self { try write(map: value as! [String: URL]) { try write($0) }; return true }
        if T.self == [String: UUID].self { write(map: value as! [String: UUID]) { write($0) }; return true }
        if T.self == [String: Data].self { write(map: value as! [String: Data]) { write($0) }; return true }
        if T.self == [Date].self { try write(array: value as! [Date]) { try write($0) }; return true }
        if T.self == [UUID].self { write(array: value as! [UUID]) { write($0) }; return true }
        if T.self == [URL].self { try write(array: value as! [URL]) { try write($0) }; return true }
        if T.self == [Data].self { write(array: value as! [Data]) { write($0) }; return true }
        if T.self == [Bool].self { write(array: value as! [Bool]) { write($0) }; return true }
        if T.self == [Float].self { try write(array: value as! [Float]) { try write($0) }; return true }
        if T.self == [Int64].self { write(array: value as! [Int64]) { write(signed: $0) }; return true }
        if T.self == [UInt64].self { write(array: value as! [UInt64]) { write(unsigned: $0) }; return true }
        if T.self == [Int32].self { write(array: value as! [Int32]) { write(signed: Int64($0)) }; return true }
        if T.self == [Decimal].self { try write(array: value as! [Decimal]) { try write($0) }; return true }
        return false
    }

    @inline(__always)
    private func write<Element>(array: [Element], _ body: (Element) throws -> Void) rethrows {
        write(head: CBORFormat.Major.array, UInt64(array.count))
        for element in array { try body(element) }
    }

    @inline(__always)
    private func write<Value>(map: [String: Value], _ body: (Value) throws -> Void) rethrows {
        write(head: CBORFormat.Major.map, UInt64(map.count))
        for (key, value) in map {
            write(key)
            try body(value)
        }
    }

    // MARK: Foundation's values

    func write(_ value: Data) {
        value.withUnsafeBytes { write(string: $0, CBORFormat.Major.bytes) }
    }

    func write(_ value: UUID) {
        write(head: CBORFormat.Major.tag, CBORFormat.Tag.uuid)
        withUnsafeBytes(of: value.uuid) { write(string: $0, CBORFormat.Major.bytes) }
    }

    /// Tag 1, seconds since 1970, where that comes back as the same date; else the number that a `Date` holds.
    ///
    /// A date counts from 2001. To count it from 1970 rounds away the last bits of about half of all dates.
    func write(_ value: Date) throws {
        let seconds = value.timeIntervalSinceReferenceDate
        let epoch = seconds + CBORFormat.secondsTo2001
        guard epoch - CBORFormat.secondsTo2001 == seconds else {
            if rules.contains(.identity), seconds.isNaN { throw error(value, "A date that is NaN cannot be part of a key.") }
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

    func write(_ value: URL) throws {
        guard let base = value.baseURL else {
            write(head: CBORFormat.Major.tag, CBORFormat.Tag.url)
            return write(value.relativeString)
        }
        if rules.contains(.likeJSON) { throw error(value, "JSON holds a URL without its base.") }
        write(head: CBORFormat.Major.tag, CBORFormat.Tag.relativeURL)
        write(head: CBORFormat.Major.array, 2)
        write(value.relativeString)
        try write(base)
    }

    /// Tag 4: the exponent of ten and the digits, without zeros at their end, so that equal numbers are equal bytes.
    func write(_ value: Decimal) throws {
        guard value.isFinite, var digits = UInt128(value.significand.magnitude.description) else {
            if rules.contains(.identity) || rules.contains(.likeJSON) {
                throw error(value, "A decimal that is not a number cannot be encoded here.")
            }
            write(byte: CBORFormat.half)
            return write(bigEndian: 0x7E00 as UInt16)
        }
        var exponent = digits == 0 ? 0 : value.exponent
        while digits != 0, exponent < CBORDecimal.exponents.upperBound, digits.isMultiple(of: 10) {
            digits /= 10
            exponent += 1
        }
        write(head: CBORFormat.Major.tag, CBORFormat.Tag.decimalFraction)
        write(head: CBORFormat.Major.array, 2)
        write(signed: Int64(exponent))
        if value.isSignMinus {
            if digits <= UInt128(Int128.max) {
                write(wide: -Int128(digits))
            } else {
                write(bignum: digits - 1, tag: CBORFormat.Tag.negativeBignum)
            }
        } else {
            write(wide: digits)
        }
    }
}

/// What a `Decimal` can be.
enum CBORDecimal {
    static let exponents = -128...127
}
