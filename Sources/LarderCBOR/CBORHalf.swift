/// Half precision: one sign bit, five bits of exponent, ten of fraction.
///
/// Written out because `Float16` does not exist on every platform that the library runs on.
enum CBORHalf {
    /// Returns the number with these bits.
    static func double(bits: UInt16) -> Double {
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
