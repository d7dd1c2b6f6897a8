/// A sum of more numbers than `Int` holds.
///
/// Apple's systems have `Int128` since macOS 15 and iOS 18.
@usableFromInline
@frozen
struct WideSum: Comparable, Sendable {
    @usableFromInline var high: Int
    @usableFromInline var low: UInt

    @inlinable
    init(high: Int, low: UInt) { (self.high, self.low) = (high, low) }

    @inlinable @inline(__always)
    init(_ number: Int) { (high, low) = (number >> (Int.bitWidth - 1), UInt(bitPattern: number)) }

    @inlinable
    init(_ number: Int, times factor: Int) { (high, low) = number.multipliedFullWidth(by: factor) }

    @inlinable static var max: WideSum { WideSum(high: .max, low: .max) }

    @inlinable @inline(__always)
    static func + (a: WideSum, b: WideSum) -> WideSum {
        let (low, carry) = a.low.addingReportingOverflow(b.low)
        return WideSum(high: a.high &+ b.high &+ (carry ? 1 : 0), low: low)
    }

    @inlinable @inline(__always)
    static func - (a: WideSum, b: WideSum) -> WideSum {
        let (low, borrow) = a.low.subtractingReportingOverflow(b.low)
        return WideSum(high: a.high &- b.high &- (borrow ? 1 : 0), low: low)
    }

    @inlinable @inline(__always)
    static func < (a: WideSum, b: WideSum) -> Bool { a.high == b.high ? a.low < b.low : a.high < b.high }

    /// Half of it, rounded down.
    var half: WideSum { WideSum(high: high >> 1, low: low >> 1 | UInt(bitPattern: high) << (UInt.bitWidth - 1)) }

    /// The number, or the nearest one that `Int` holds.
    var clamped: Int {
        if high == Int(bitPattern: low) >> (Int.bitWidth - 1) { return Int(bitPattern: low) }
        return high < 0 ? .min : .max
    }

    /// About the same as a floating-point number.
    @usableFromInline var double: Double {
        Double(high) * Double(sign: .plus, exponent: UInt.bitWidth, significand: 1) + Double(low)
    }
}
