/// A type that the containers of `Codable` have functions of their own for.
///
/// One generic function of ours is the witness of all those that the standard library has no default for: where the
/// compiler makes the table of witnesses, it makes it anew for each type, so nothing is looked up when it is called. A
/// default is taken before a generic function, so these are written out.
protocol CBORPrimitive: CBORKnown, Codable {
    func encode(to writer: inout CBORWriter) throws
}

extension Bool: CBORPrimitive {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Bool { try reader.bool() }

    @inline(__always)
    func encode(to writer: inout CBORWriter) { writer.write(self) }
}

extension String: CBORPrimitive {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> String { try reader.string() }

    @inline(__always)
    func encode(to writer: inout CBORWriter) throws { try writer.write(checked: self) }
}

extension Double: CBORPrimitive {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Double { try reader.double() }

    @inline(__always)
    func encode(to writer: inout CBORWriter) throws { try writer.write(self) }
}

extension Float: CBORPrimitive {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Float { try reader.float() }

    @inline(__always)
    func encode(to writer: inout CBORWriter) throws { try writer.write(self) }
}

// MARK: Integers

extension CBORPrimitive where Self: FixedWidthInteger {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Self { try reader.integer(Self.self) }

    @inline(__always)
    func encode(to writer: inout CBORWriter) { writer.write(integer: self) }
}

extension Int: CBORPrimitive {}
extension Int8: CBORPrimitive {}
extension Int16: CBORPrimitive {}
extension Int32: CBORPrimitive {}
extension Int64: CBORPrimitive {}
extension Int128: CBORPrimitive {}
extension UInt: CBORPrimitive {}
extension UInt8: CBORPrimitive {}
extension UInt16: CBORPrimitive {}
extension UInt32: CBORPrimitive {}
extension UInt64: CBORPrimitive {}
extension UInt128: CBORPrimitive {}
