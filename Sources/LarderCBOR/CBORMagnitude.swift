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
