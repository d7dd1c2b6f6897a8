import Foundation

/// The numbers of RFC 8949 that both directions use.
package enum CBORFormat {
    /// The major types, shifted to their place in an item's first byte.
    package enum Major {
        package static let unsigned: UInt8 = 0 << 5
        package static let negative: UInt8 = 1 << 5
        package static let bytes: UInt8 = 2 << 5
        package static let text: UInt8 = 3 << 5
        package static let array: UInt8 = 4 << 5
        package static let map: UInt8 = 5 << 5
        package static let tag: UInt8 = 6 << 5
        package static let simple: UInt8 = 7 << 5
    }

    static let `false`: UInt8 = 0xF4
    static let `true`: UInt8 = 0xF5
    static let null: UInt8 = 0xF6
    static let undefined: UInt8 = 0xF7
    static let half: UInt8 = 0xF9
    static let single: UInt8 = 0xFA
    static let double: UInt8 = 0xFB
    static let stop: UInt8 = 0xFF
    static let emptyMap: UInt8 = 0xA0
    static let emptyArray: UInt8 = 0x80

    /// Registered tags, and three private ones that another reader may skip.
    ///
    /// The registry has no range for private use: tags from 32768 on are assigned on request. The private tags are not
    /// registered. They are in a range without known assignments, between 55800 and 65535, which is never valid. They
    /// are part of the storage format and never change their meaning. No other reader needs them.
    enum Tag {
        static let dateText: UInt64 = 0
        static let epochDate: UInt64 = 1
        static let positiveBignum: UInt64 = 2
        static let negativeBignum: UInt64 = 3
        static let decimalFraction: UInt64 = 4
        static let url: UInt64 = 32
        static let uuid: UInt64 = 37

        /// A number of seconds since 2001-01-01, for dates that a number of seconds since 1970 would change.
        static let referenceDate: UInt64 = 60161
        /// `[relative, base]`: a URL that has a base.
        static let relativeURL: UInt64 = 60162
        /// Around a null, once for each optional that is not nil itself: `.some(.none)` has one, `.none` has none.
        static let wrappedNil: UInt64 = 60163
    }

    /// The maximum depth of nested values in both directions, however large the stack is; see `CBORStack`.
    static let maximumDepth = 512

    /// The seconds from 1970 to 2001: the difference between Foundation's two ways to count a date.
    static let secondsTo2001 = 978_307_200.0
}

/// An unsigned number of up to 128 bits.
///
/// Apple's systems have `UInt128` since macOS 15 and iOS 18.
struct CBORMagnitude: Equatable {
    var high, low: UInt64

    init(_ low: UInt64) { (high, self.low) = (0, low) }

    private init(_ high: UInt64, _ low: UInt64) { (self.high, self.low) = (high, low) }

    /// Takes the lowest 128 bits of a number.
    init<Number: FixedWidthInteger>(bitsOf number: Number) {
        (high, low) = (UInt64(truncatingIfNeeded: number >> 64), UInt64(truncatingIfNeeded: number))
    }

    /// - Parameter digits: Decimal digits; nil if there are other characters, or the number has more bits.
    init?(digits: some StringProtocol) {
        self.init(0)
        for character in digits.utf8 {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) else { return nil }
            let (carry, product) = low.multipliedFullWidth(by: 10)
            let (upper, isTooLarge) = high.multipliedReportingOverflow(by: 10)
            let (sum, overflow) = product.addingReportingOverflow(UInt64(character - UInt8(ascii: "0")))
            let (top, isAbove) = upper.addingReportingOverflow(carry + (overflow ? 1 : 0))
            if isTooLarge || isAbove { return nil }
            (high, low) = (top, sum)
        }
    }

    /// Appends a byte, and returns false if it does not fit.
    mutating func append(_ byte: UInt8) -> Bool {
        if high >> 56 != 0 { return false }
        (high, low) = (high << 8 | low >> 56, low << 8 | UInt64(byte))
        return true
    }

    /// The next number; nil if there is none of 128 bits.
    var successor: CBORMagnitude? {
        let (next, overflow) = low.addingReportingOverflow(1)
        if !overflow { return CBORMagnitude(high, next) }
        return high == .max ? nil : CBORMagnitude(high + 1, 0)
    }

    /// The number before; not of zero.
    var predecessor: CBORMagnitude { CBORMagnitude(low == 0 ? high - 1 : high, low &- 1) }

    /// The number of bytes without leading zeros.
    var byteCount: Int {
        high == 0 ? 8 - low.leadingZeroBitCount / 8 : 16 - high.leadingZeroBitCount / 8
    }

    /// Returns a byte, of which the lowest one is at 0.
    func byte(at index: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: index < 8 ? low >> UInt64(index * 8) : high >> UInt64((index - 8) * 8))
    }

    /// Returns the number as another type; nil if it does not fit.
    func exactly<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
        if high == 0 { return Number(exactly: low) }
        guard Number.bitWidth > 64 else { return nil }
        let number = Number(truncatingIfNeeded: high) << 64 | Number(truncatingIfNeeded: low)
        return number >= 0 && UInt64(truncatingIfNeeded: number >> 64) == high ? number : nil
    }

    /// The same as a floating-point number; nil if it has more bits than that.
    var exactDouble: Double? {
        if high == 0 { return Double(exactly: low) }
        let zeros = low == 0 ? 64 + high.trailingZeroBitCount : low.trailingZeroBitCount
        if 128 - high.leadingZeroBitCount - zeros > 53 { return nil }
        return Double(high) * 0x1p64 + Double(low)
    }
}

/// Text in NFC, the one spelling of canonically equal strings.
package enum CBORText {
    /// Returns `text` in NFC: itself in nearly every case, which a look at its bytes shows.
    package static func normalized(_ text: String) -> String {
        isPlain(text) ? text : text.precomposedStringWithCanonicalMapping
    }

    /// Returns whether no character of `text` could be changed by NFC, alone or by its neighbor.
    private static func isPlain(_ text: String) -> Bool {
        let isASCII = text.utf8.withContiguousStorageIfAvailable { bytes in
            var all: UInt8 = 0
            for byte in bytes { all |= byte }
            return all < 0x80
        }
        if isASCII == true { return true }
        return text.unicodeScalars.allSatisfy { isInert($0.value) }
    }

    /// Returns whether a character is in a block whose characters NFC never changes or combines with the one before.
    ///
    /// Characters of other blocks may be stable too, but take the slow path.
    package static func isInert(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0..<0x300: true  // ASCII, Latin, phonetic
        case 0x388...0x482, 0x48A...0x52F: true  // Greek without its doubles, Cyrillic without its marks
        case 0x2010...0x2027, 0x2030...0x205E: true  // dashes, quotation marks
        case 0x20A0...0x20CF: true  // currencies
        case 0x3001...0x3029, 0x3041...0x3096, 0x30A1...0x30FF: true  // Japanese
        case 0x4E00...0x9FFF, 0xAC00...0xD7A3: true  // Han, Hangul syllables
        case 0xFF01...0xFF9D: true  // full and half width
        case 0x1F300...0x1FAFF: true  // pictures
        default: false
        }
    }
}

/// The reason and the offset of unreadable bytes.
///
/// The reader throws it, because it is cheap to create and to pass on.
///
/// The containers turn it into a `DecodingError`, with the coding path.
struct CBORFault: Error {
    enum Kind {
        case truncated, reserved, strayStop, wrongChunk, invalidText, duplicateKey, tooDeep, trailing
        case mismatch, null, overflow, invalidDate, invalidURL, invalidUUID, invalidDecimal
    }

    let kind: Kind
    let offset: Int

    init(_ kind: Kind, _ offset: Int) {
        self.kind = kind
        self.offset = offset
    }

    var description: String {
        switch kind {
        case .truncated: "The data ends in the middle of an item"
        case .reserved: "The first byte of an item has a value that the format reserves"
        case .strayStop: "A stop code is in the place of an item"
        case .wrongChunk: "A string of indefinite length holds something else than strings of its kind"
        case .invalidText: "Text that is not UTF-8"
        case .duplicateKey: "A map holds a key twice"
        case .tooDeep:
            "Nested more than \(CBORFormat.maximumDepth) levels deep, or more than the stack of this thread has room for"
        case .trailing: "More data follows after the value"
        case .mismatch: "The item is of another type"
        case .null: "The item is null"
        case .overflow: "The number does not fit"
        case .invalidDate: "Not a date"
        case .invalidURL: "Not a URL"
        case .invalidUUID: "Not a UUID"
        case .invalidDecimal: "Not a decimal number, or one too large"
        }
    }
}

/// The reason why a value cannot be written.
///
/// The containers turn it into an `EncodingError`, with the coding path.
struct CBORRefusal: Error {
    let value: any Sendable
    let description: String

    init(_ value: any Sendable, _ description: String) {
        self.value = value
        self.description = description
    }

    static func tooDeep(_ type: Any.Type) -> CBORRefusal {
        CBORRefusal(
            String(describing: type),
            "Nested more than \(CBORFormat.maximumDepth) levels deep, or more than the stack of this thread has room for."
        )
    }

    static var nestedNil: CBORRefusal {
        CBORRefusal(Int?.none, "A nil inside an optional that is not nil itself would come back as the outer one.")
    }
}

/// Half precision: one sign bit, five bits of exponent, ten of fraction.
///
/// Written out because `Float16` does not exist on every platform that the library runs on.
package enum CBORHalf {
    /// Returns the number with these bits.
    package static func double(bits: UInt16) -> Double {
        let fraction = Double(bits & 0x3FF)
        let exponent = Int(bits >> 10) & 0x1F
        let magnitude: Double
        switch exponent {
        case 0: magnitude = fraction * 0x1p-24
        case 31:
            // The payload of a NaN keeps its place at the top.
            let wide: UInt64 = 0x7FF0_0000_0000_0000 | UInt64(bits & 0x3FF) << 42
            magnitude = Double(bitPattern: wide)
        default: magnitude = Double(sign: .plus, exponent: exponent - 15, significand: 1 + fraction * 0x1p-10)
        }
        return bits & 0x8000 == 0 ? magnitude : -magnitude
    }

    /// Returns the bits for `value`, if half precision holds it exactly; never for a NaN.
    static func bits(exactly value: Double) -> UInt16? {
        let sign: UInt16 = value.sign == .minus ? 0x8000 : 0
        let magnitude = value.magnitude
        if magnitude == 0 { return sign }
        if magnitude.isInfinite { return sign | 0x7C00 }
        guard magnitude <= 65504, magnitude >= 0x1p-24 else { return nil }
        if magnitude < 0x1p-14 {
            let fraction = magnitude * 0x1p24
            return fraction.rounded() == fraction ? sign | UInt16(fraction) : nil
        }
        let fraction = (magnitude.significand - 1) * 0x1p10
        guard fraction.rounded() == fraction else { return nil }
        return sign | UInt16(Int(magnitude.exponent) + 15) << 10 | UInt16(fraction)
    }
}
