import Foundation

// The counterpart of `CBOREncodingState+Known.swift`: types that are read by what they are. What the item is has been
// looked at before, so a struct, which is a map, is compared with a handful of types only.

extension CBORDecodingState {
    /// Reads one of the known types.
    ///
    /// No closure takes part: in a function that is generic over another type it would not be made anew for this one.
    @inline(__always)
    private func read<T, Known: CBORKnown>(
        _ known: Known.Type, as type: T.Type, at offset: Int, in frame: CBORDecodingFrame?
    ) throws -> T {
        var reader = reader(at: offset)
        do throws(CBORFault) {
            let value = try Known.decoded(from: &reader)
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
        if T.self == Date.self { return try read(Date.self, as: type, at: offset, in: frame) }
        if T.self == UUID.self { return try read(UUID.self, as: type, at: offset, in: frame) }
        if T.self == URL.self { return try read(URL.self, as: type, at: offset, in: frame) }
        if T.self == Data.self { return try read(Data.self, as: type, at: offset, in: frame) }
        if T.self == String.self { return try read(String.self, as: type, at: offset, in: frame) }
        if T.self == Int.self { return try read(Int.self, as: type, at: offset, in: frame) }
        if T.self == Double.self { return try read(Double.self, as: type, at: offset, in: frame) }
        if T.self == [UInt8].self { return try read([UInt8].self, as: type, at: offset, in: frame) }
        if T.self == Decimal.self { return try read(Decimal.self, as: type, at: offset, in: frame) }
        return try decodeCustom(type, at: offset, in: frame, layers: layers)
    }

    func decodeMap<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        if T.self == [String: String].self { return try read([String: String].self, as: type, at: offset, in: frame) }
        if T.self == [String: Int].self { return try read([String: Int].self, as: type, at: offset, in: frame) }
        if T.self == [String: Double].self { return try read([String: Double].self, as: type, at: offset, in: frame) }
        if T.self == [String: Bool].self { return try read([String: Bool].self, as: type, at: offset, in: frame) }
        if T.self == [String: Date].self { return try read([String: Date].self, as: type, at: offset, in: frame) }
        if T.self == [String: URL].self { return try read([String: URL].self, as: type, at: offset, in: frame) }
        if T.self == [String: UUID].self { return try read([String: UUID].self, as: type, at: offset, in: frame) }
        if T.self == [String: Data].self { return try read([String: Data].self, as: type, at: offset, in: frame) }
        return try decodeCustom(type, at: offset, in: frame, layers: layers)
    }

    /// Whether `decodeMap` knows the type.
    fileprivate static func isKnownMap(_ type: Any.Type) -> Bool {
        type == [String: String].self || type == [String: Int].self || type == [String: Double].self
            || type == [String: Bool].self || type == [String: Date].self || type == [String: URL].self
            || type == [String: UUID].self || type == [String: Data].self
    }

    fileprivate func isMap(at offset: Int) -> Bool {
        offset < count && base.load(fromByteOffset: offset, as: UInt8.self) & 0xE0 == CBORFormat.Major.map
    }

    func decodeArray<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        if T.self == [String].self { return try read([String].self, as: type, at: offset, in: frame) }
        if T.self == [Int].self { return try read([Int].self, as: type, at: offset, in: frame) }
        if T.self == [Double].self { return try read([Double].self, as: type, at: offset, in: frame) }
        if T.self == [Date].self { return try read([Date].self, as: type, at: offset, in: frame) }
        if T.self == [UUID].self { return try read([UUID].self, as: type, at: offset, in: frame) }
        if T.self == [URL].self { return try read([URL].self, as: type, at: offset, in: frame) }
        if T.self == [Data].self { return try read([Data].self, as: type, at: offset, in: frame) }
        if T.self == [Bool].self { return try read([Bool].self, as: type, at: offset, in: frame) }
        if T.self == [Float].self { return try read([Float].self, as: type, at: offset, in: frame) }
        if T.self == [UInt8].self { return try read([UInt8].self, as: type, at: offset, in: frame) }
        // Not a type we know by name: an array of something else, or a type that reads an array by itself.
        if let array = T.self as? any CBORArray.Type { return try array.read(self, at: offset, in: frame) as! T }
        return try decodeCustom(type, at: offset, in: frame, layers: layers)
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
        // Which types are known is asked once for all elements: for a small struct it took a tenth of the time.
        let readsItself = !CBORDecodingState.isKnownMap(Element.self)
        while !array.isAtEnd {
            let cursor = array.cursor
            values.append(
                readsItself && state.isMap(at: cursor)
                    ? try state.decodeCustom(Element.self, at: cursor, inside: array, layers: 0)
                    : try state.decode(Element.self, at: cursor, in: array))
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
