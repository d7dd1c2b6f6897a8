import Foundation

// Types that are written by what they are, not by their own `encode(to:)`. Only the identity of types is asked: it costs
// a comparison, where a cast that fails costs 90 ns. `as!` after such a test cannot fail.

extension CBOREncodingState {
    /// Writes `value` if its type is one of those; the frequent ones come first.
    @inline(__always)
    func writeKnown<T: Encodable>(_ value: T) throws -> Bool {
        if T.self == Date.self { try writer.pointee.write(value as! Date); return true }
        if T.self == UUID.self { writer.pointee.write(value as! UUID); return true }
        if T.self == URL.self { try writer.pointee.write(value as! URL); return true }
        if T.self == Data.self { writer.pointee.write(value as! Data); return true }
        if T.self == String.self { try writer.pointee.write(checked: value as! String); return true }
        if T.self == Int.self { writer.pointee.write(signed: Int64(value as! Int)); return true }
        if T.self == Double.self { try writer.pointee.write(value as! Double); return true }
        return try writeKnownCollection(value)
    }

    private func writeKnownCollection<T: Encodable>(_ value: T) throws -> Bool {
        if T.self == Decimal.self { try writer.pointee.write(value as! Decimal); return true }
        if T.self == [UInt8].self {
            (value as! [UInt8]).withUnsafeBytes { writer.pointee.write(string: $0, CBORFormat.Major.bytes) }
            return true
        }
        // Where an element may be refused, the long way knows its path.
        if !rules.isEmpty { return false }
        if try writeKnownArray(value) { return true }
        return try writeKnownMap(value)
    }

    private func writeKnownArray<T: Encodable>(_ value: T) throws -> Bool {
        if T.self == [String].self { try array(value as! [String]) { try $0.write(checked: $1) }; return true }
        if T.self == [Int].self { try array(value as! [Int]) { $0.write(signed: Int64($1)) }; return true }
        if T.self == [Double].self { try array(value as! [Double]) { try $0.write($1) }; return true }
        if T.self == [Date].self { try array(value as! [Date]) { try $0.write($1) }; return true }
        if T.self == [UUID].self { try array(value as! [UUID]) { $0.write($1) }; return true }
        if T.self == [URL].self { try array(value as! [URL]) { try $0.write($1) }; return true }
        if T.self == [Data].self { try array(value as! [Data]) { $0.write($1) }; return true }
        if T.self == [Bool].self { try array(value as! [Bool]) { $0.write($1) }; return true }
        if T.self == [Float].self { try array(value as! [Float]) { try $0.write($1) }; return true }
        if T.self == [Int64].self { try array(value as! [Int64]) { $0.write(signed: $1) }; return true }
        if T.self == [UInt64].self { try array(value as! [UInt64]) { $0.write(unsigned: $1) }; return true }
        if T.self == [Int32].self { try array(value as! [Int32]) { $0.write(signed: Int64($1)) }; return true }
        if T.self == [Decimal].self { try array(value as! [Decimal]) { try $0.write($1) }; return true }
        return false
    }

    private func writeKnownMap<T: Encodable>(_ value: T) throws -> Bool {
        if T.self == [String: String].self {
            try map(value as! [String: String]) { try $0.write(checked: $1) }
            return true
        }
        if T.self == [String: Int].self {
            try map(value as! [String: Int]) { $0.write(signed: Int64($1)) }; return true
        }
        if T.self == [String: Double].self { try map(value as! [String: Double]) { try $0.write($1) }; return true }
        if T.self == [String: Bool].self { try map(value as! [String: Bool]) { $0.write($1) }; return true }
        if T.self == [String: Date].self { try map(value as! [String: Date]) { try $0.write($1) }; return true }
        if T.self == [String: URL].self { try map(value as! [String: URL]) { try $0.write($1) }; return true }
        if T.self == [String: UUID].self { try map(value as! [String: UUID]) { $0.write($1) }; return true }
        if T.self == [String: Data].self { try map(value as! [String: Data]) { $0.write($1) }; return true }
        return false
    }

    @inline(__always)
    private func array<Element>(
        _ array: [Element], _ body: (inout CBORWriter, Element) throws -> Void
    ) throws {
        try writer.pointee.write(array: array, body)
    }

    @inline(__always)
    private func map<Value>(
        _ map: [String: Value], _ body: (inout CBORWriter, Value) throws -> Void
    ) throws {
        try writer.pointee.write(map: map, body)
    }
}
