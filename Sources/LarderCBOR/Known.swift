package import Foundation

/// A type that the coder reads and writes as an item of CBOR, without its `init(from:)` and `encode(to:)`.
protocol CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Self
    func encode(to writer: inout CBORWriter) throws
}

/// A type for which the containers of `Codable` have their own functions.
///
/// One generic function implements the functions without a default in the standard library. A default is preferred to a
/// generic function, so the others are written out.
protocol CBORPrimitive: CBORKnown, Codable {}

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
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Int128: CBORPrimitive {}
extension UInt: CBORPrimitive {}
extension UInt8: CBORPrimitive {}
extension UInt16: CBORPrimitive {}
extension UInt32: CBORPrimitive {}
extension UInt64: CBORPrimitive {}
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension UInt128: CBORPrimitive {}

// MARK: Foundation

extension Date: CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Date { try reader.date() }
    func encode(to writer: inout CBORWriter) throws { try writer.write(self) }
}

extension UUID: CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> UUID { try reader.uuid() }
    func encode(to writer: inout CBORWriter) { writer.write(self) }
}

extension URL: CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> URL { try reader.url() }
    func encode(to writer: inout CBORWriter) throws { try writer.write(self) }
}

extension Data: CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Data { try reader.bytes(as: Data.self) }
    func encode(to writer: inout CBORWriter) { writer.write(self) }
}

extension Decimal: CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Decimal { try reader.decimal() }
    func encode(to writer: inout CBORWriter) throws { try writer.write(self) }
}

// MARK: Collections

extension Array: CBORKnown where Element: CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> [Element] {
        var values: [Element] = []
        try reader.elements(reserving: { values.reserveCapacity(CBORReader.capacity($0, of: Element.self)) }) {
            (reader: inout CBORReader) throws(CBORFault) in
            values.append(try Element.decoded(from: &reader))
        }
        return values
    }

    func encode(to writer: inout CBORWriter) throws {
        writer.write(head: CBORFormat.Major.array, UInt64(count))
        for element in self { try element.encode(to: &writer) }
    }
}

extension Dictionary: CBORKnown where Key == String, Value: CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> [String: Value] {
        var values: [String: Value] = [:]
        try reader.pairs(reserving: { values.reserveCapacity(CBORReader.capacity($0, of: (String, Value).self)) }) {
            (key: String, offset: Int, reader: inout CBORReader) throws(CBORFault) in
            let value = try Value.decoded(from: &reader)
            guard values.updateValue(value, forKey: key) == nil else { throw CBORFault(.duplicateKey, offset) }
        }
        return values
    }

    func encode(to writer: inout CBORWriter) throws {
        writer.write(head: CBORFormat.Major.map, UInt64(count))
        for (key, value) in self {
            writer.write(key)
            try value.encode(to: &writer)
        }
    }
}

extension CBORReader {
    /// The maximum number of bytes that are reserved at once: a short array may claim to be long.
    private static let reservedBytes = 1 << 16

    static func capacity<Element>(_ count: Int, of type: Element.Type) -> Int {
        min(count, max(reservedBytes / max(MemoryLayout<Element>.stride, 1), 16))
    }
}

// MARK: - By type

// Only the identity of types is compared: a failing cast costs 90 ns. `as!` after such a comparison cannot fail.

extension CBOREncodingState {
    /// Writes `value` if its type is known.
    ///
    /// - Returns: False if the value has to write itself.
    @inline(__always)
    func writeKnown<T: Encodable>(_ value: T) throws -> Bool {
        try write(value, as: String.self) || write(value, as: Int.self) || write(value, as: Double.self)
            || write(value, as: Date.self) || write(value, as: UUID.self) || write(value, as: URL.self)
            || write(value, as: Data.self) || writeKnownCollection(value)
    }

    private func writeKnownCollection<T: Encodable>(_ value: T) throws -> Bool {
        if try write(value, as: Decimal.self) { return true }
        if T.self == [UInt8].self {
            (value as! [UInt8]).withUnsafeBytes { writer.pointee.write(string: $0, CBORFormat.Major.bytes) }
            return true
        }
        // If an element may be refused, it has to be encoded with a path.
        guard rules.isEmpty else { return false }
        return try write(value, as: [String].self) || write(value, as: [Int].self) || write(value, as: [Double].self)
            || write(value, as: [String: String].self) || write(value, as: [String: Int].self)
    }

    @inline(__always)
    private func write<T, Known: CBORKnown>(_ value: T, as type: Known.Type) throws -> Bool {
        guard T.self == Known.self else { return false }
        try (value as! Known).encode(to: &writer.pointee)
        return true
    }
}

extension CBORDecodingState {
    /// Reads an item that is neither an array nor a map.
    func decodeScalar<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        if T.self == String.self { return try read(String.self, as: type, at: offset, in: frame) }
        if T.self == Int.self { return try read(Int.self, as: type, at: offset, in: frame) }
        if T.self == Double.self { return try read(Double.self, as: type, at: offset, in: frame) }
        if T.self == Date.self { return try read(Date.self, as: type, at: offset, in: frame) }
        if T.self == UUID.self { return try read(UUID.self, as: type, at: offset, in: frame) }
        if T.self == URL.self { return try read(URL.self, as: type, at: offset, in: frame) }
        if T.self == Data.self { return try read(Data.self, as: type, at: offset, in: frame) }
        if T.self == Decimal.self { return try read(Decimal.self, as: type, at: offset, in: frame) }
        if T.self == [UInt8].self { return try readBytes(as: type, at: offset, in: frame) }
        return try decodeCustom(type, at: offset, in: frame, layers: layers)
    }

    /// Reads an item that is a map.
    @inline(__always)
    func decodeMap<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        if T.self == [String: String].self { return try read([String: String].self, as: type, at: offset, in: frame) }
        if T.self == [String: Int].self { return try read([String: Int].self, as: type, at: offset, in: frame) }
        return try decodeCustom(type, at: offset, in: frame, layers: layers)
    }

    /// Reads an item that is an array.
    func decodeArray<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        if T.self == [String].self { return try read([String].self, as: type, at: offset, in: frame) }
        if T.self == [Int].self { return try read([Int].self, as: type, at: offset, in: frame) }
        if T.self == [Double].self { return try read([Double].self, as: type, at: offset, in: frame) }
        if T.self == URL.self { return try read(URL.self, as: type, at: offset, in: frame) }
        if T.self == Data.self { return try read(Data.self, as: type, at: offset, in: frame) }
        if T.self == [UInt8].self { return try readBytes(as: type, at: offset, in: frame) }
        // Another array, or a type that reads an array itself.
        if let array = T.self as? any CBORArray.Type { return try array.read(self, at: offset, in: frame) as! T }
        return try decodeCustom(type, at: offset, in: frame, layers: layers)
    }

    private func readBytes<T>(as type: T.Type, at offset: Int, in frame: CBORDecodingFrame?) throws -> T {
        var reader = input.pointee.at(offset)
        do throws(CBORFault) {
            let bytes = try reader.bytes(as: [UInt8].self)
            end = reader.offset
            return bytes as! T
        } catch {
            throw failure(error, type, in: frame)
        }
    }

    @inline(__always)
    private func read<T, Known: CBORKnown>(
        _ known: Known.Type, as type: T.Type, at offset: Int, in frame: CBORDecodingFrame?
    ) throws -> T {
        var reader = input.pointee.at(offset)
        do throws(CBORFault) {
            let value = try Known.decoded(from: &reader)
            end = reader.offset
            return value as! T
        } catch {
            throw failure(error, type, in: frame)
        }
    }
}

/// An array of any elements, read in one loop.
private protocol CBORArray {
    static func read(_ state: CBORDecodingState, at offset: Int, in frame: CBORDecodingFrame?) throws -> Any
}

extension Array: CBORArray where Element: Decodable {
    fileprivate static func read(
        _ state: CBORDecodingState, at offset: Int, in parent: CBORDecodingFrame?
    ) throws -> Any {
        try state.withFrame([Element].self, at: offset, in: parent) { frame in
            var cursor = try frame.becomeArray().first
            var values: [Element] = []
            values.reserveCapacity(CBORReader.capacity(Swift.max(frame.count, 0), of: Element.self))
            while !frame.isAtEnd(after: values.count, at: cursor) {
                frame.element = ~values.count
                values.append(try state.decode(Element.self, at: cursor, in: frame))
                cursor = state.end
                frame.noteRead(values.count, to: cursor)
            }
            return values
        }
    }
}

/// Questions to a value, or a type, that may be an optional.
private protocol CBOROptional {
    var isNil: Bool { get }
}

extension Optional: CBOROptional {
    fileprivate var isNil: Bool {
        if case .none = self { return true }
        return false
    }
}

enum CBOROptionals {
    /// Returns whether `value` is an optional, and nil.
    ///
    /// A failing cast is slow, so call it only if the case is rare.
    static func isNil<T>(_ value: T) -> Bool {
        (value as? any CBOROptional)?.isNil ?? false
    }

    /// Returns whether `type` is an optional's.
    ///
    /// A failing cast is slow, so call it only if the case is rare.
    static func isOptional(_ type: Any.Type) -> Bool {
        type is any CBOROptional.Type
    }
}

/// An item that fills some bytes completely, and that needs no decoder.
package enum CBORPlainItem: Sendable {
    case text(String)
    case integer(Int64)

    /// - Returns: Nil if the bytes are another item, or an integer that is wider.
    package init?(_ bytes: Data) {
        let scalar = bytes.withUnsafeBytes { buffer -> CBORPlainItem? in
            guard let base = buffer.baseAddress else { return nil }
            var reader = CBORReader(base: base, count: buffer.count, offset: 0)
            do throws(CBORFault) {
                switch try reader.peek() & 0xE0 {
                case CBORFormat.Major.text: return .text(try reader.string())
                case CBORFormat.Major.unsigned, CBORFormat.Major.negative:
                    return .integer(try reader.integer(Int64.self))
                default: return nil
                }
            } catch {
                return nil
            }
        }
        guard let scalar else { return nil }
        self = scalar
    }
}
