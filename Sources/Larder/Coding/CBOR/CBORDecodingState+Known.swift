import Foundation

// The counterpart of `CBOREncodingState+Known.swift`: types that are read by what they are. What the item is has been
// looked at before, so a struct, which is a map, is compared with a handful of types only.

extension CBORDecodingState {
    /// Reads one of the known types.
    @inline(__always)
    private func read<T, Known>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?,
        _ body: (inout CBORReader) throws(CBORFault) -> Known
    ) throws -> T {
        var reader = reader(at: offset)
        do throws(CBORFault) {
            let value = try body(&reader)
            end = reader.offset
            // Called only where T is Known.
            return value as! T
        } catch {
            throw failure(error, type, in: frame)
        }
    }

    func decodeScalar<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        if T.self == Date.self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.date() }
        }
        if T.self == UUID.self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.uuid() }
        }
        if T.self == URL.self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.url() }
        }
        if T.self == Data.self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.bytes(as: Data.self) }
        }
        if T.self == String.self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.string() }
        }
        if T.self == Int.self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.integer(Int.self) }
        }
        if T.self == Double.self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.double() }
        }
        if T.self == [UInt8].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.bytes(as: [UInt8].self) }
        }
        if T.self == Decimal.self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.decimal() }
        }
        return try decodeCustom(type, at: offset, in: frame, layers: layers)
    }

    func decodeMap<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        if T.self == [String: String].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.map { r throws(CBORFault) in try r.string() }
            }
        }
        if T.self == [String: Int].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.map { r throws(CBORFault) in try r.integer(Int.self) }
            }
        }
        if T.self == [String: Double].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.map { r throws(CBORFault) in try r.double() }
            }
        }
        if T.self == [String: Bool].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.map { r throws(CBORFault) in try r.bool() }
            }
        }
        if T.self == [String: Date].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.map { r throws(CBORFault) in try r.date() }
            }
        }
        if T.self == [String: URL].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.map { r throws(CBORFault) in try r.url() }
            }
        }
        if T.self == [String: UUID].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.map { r throws(CBORFault) in try r.uuid() }
            }
        }
        if T.self == [String: Data].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.map { r throws(CBORFault) in try r.bytes(as: Data.self) }
            }
        }
        return try decodeCustom(type, at: offset, in: frame, layers: layers)
    }

    func decodeArray<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        if T.self == [String].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.array { r throws(CBORFault) in try r.string() }
            }
        }
        if T.self == [Int].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.array { r throws(CBORFault) in try r.integer(Int.self) }
            }
        }
        if T.self == [Double].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.array { r throws(CBORFault) in try r.double() }
            }
        }
        if T.self == [Date].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.array { r throws(CBORFault) in try r.date() }
            }
        }
        if T.self == [UUID].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.array { r throws(CBORFault) in try r.uuid() }
            }
        }
        if T.self == [URL].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.array { r throws(CBORFault) in try r.url() }
            }
        }
        if T.self == [Data].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.array { r throws(CBORFault) in try r.bytes(as: Data.self) }
            }
        }
        if T.self == [Bool].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.array { r throws(CBORFault) in try r.bool() }
            }
        }
        if T.self == [Float].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in
                try r.array { r throws(CBORFault) in try r.float() }
            }
        }
        if T.self == [UInt8].self {
            return try read(type, at: offset, in: frame) { r throws(CBORFault) in try r.bytes(as: [UInt8].self) }
        }
        // Not a type we know by name: an array of something else, or a type that reads an array by itself.
        if let array = T.self as? any CBORArray.Type { return try array.read(self, at: offset, in: frame) as! T }
        return try decodeCustom(type, at: offset, in: frame, layers: layers)
    }
}

extension CBORReader {
    /// No more elements are made room for at once than fit here: a short array may say it is long.
    private static let reservedBytes = 1 << 16

    @inline(__always)
    fileprivate mutating func array<Element>(
        _ body: (inout CBORReader) throws(CBORFault) -> Element
    ) throws(CBORFault) -> [Element] {
        var values: [Element] = []
        try elements(reserving: { values.reserveCapacity(Self.capacity($0, of: Element.self)) }) {
            (reader: inout CBORReader) throws(CBORFault) in
            values.append(try body(&reader))
        }
        return values
    }

    @inline(__always)
    fileprivate mutating func map<Value>(
        _ body: (inout CBORReader) throws(CBORFault) -> Value
    ) throws(CBORFault) -> [String: Value] {
        var values: [String: Value] = [:]
        try pairs(reserving: { values.reserveCapacity(Self.capacity($0, of: (String, Value).self)) }) {
            (key: String, offset: Int, reader: inout CBORReader) throws(CBORFault) in
            let value = try body(&reader)
            guard values.updateValue(value, forKey: key) == nil else { throw CBORFault(.duplicateKey, offset) }
        }
        return values
    }

    static func capacity<Element>(_ count: Int, of type: Element.Type) -> Int {
        min(count, max(reservedBytes / max(MemoryLayout<Element>.stride, 1), 16))
    }
}

/// An array of any elements, read in one loop.
private protocol CBORArray {
    static func read(_ state: CBORDecodingState, at offset: Int, in frame: CBORDecodingFrame?) throws -> Any
}

extension Array: CBORArray where Element: Decodable {
    fileprivate static func read(
        _ state: CBORDecodingState, at offset: Int, in frame: CBORDecodingFrame?
    ) throws -> Any {
        let array = try state.openArray(at: offset, in: frame)
        var values: [Element] = []
        values.reserveCapacity(CBORReader.capacity(Swift.max(array.remaining, 0), of: Element.self))
        while !array.isAtEnd {
            values.append(try state.decode(Element.self, at: array.cursor, in: array))
            array.advance(to: state.end)
        }
        state.end = try state.endOfArray(array)
        return values
    }
}

extension CBORDecodingState {
    /// The frame of the array at `offset`.
    fileprivate func openArray(at offset: Int, in frame: CBORDecodingFrame?) throws -> CBORDecodingFrame {
        if let frame { try checkDepth([Any].self, at: offset, in: frame) }
        let item = CBORDecodingFrame(state: self, slot: -1)
        item.open(at: offset, in: frame, layers: 0)
        do throws(CBORFault) {
            return try item.makeArray(nil)
        } catch {
            throw failure(error, [Any].self, in: frame)
        }
    }

    fileprivate func endOfArray(_ array: CBORDecodingFrame) throws -> Int {
        do throws(CBORFault) {
            return try array.endOfArray()
        } catch {
            throw failure(error, [Any].self, in: array)
        }
    }
}
