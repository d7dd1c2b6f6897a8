/// The container of an array.
struct CBORUnkeyedDecoding: UnkeyedDecodingContainer {
    let frame: CBORDecodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }
    var count: Int? { frame.elementCount }
    var isAtEnd: Bool { frame.isAtEnd }
    var currentIndex: Int { ~frame.element }

    func decodeNil() throws -> Bool {
        try frame.checkElement(Never?.self)
        guard let end = frame.endOfNull(at: frame.cursor) else { return false }
        frame.advance(to: end)
        return true
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        try read { reader throws(CBORFault) in try reader.bool() }
    }
    func decode(_ type: String.Type) throws -> String {
        try read { reader throws(CBORFault) in try reader.string() }
    }
    func decode(_ type: Double.Type) throws -> Double {
        try read { reader throws(CBORFault) in try reader.double() }
    }
    func decode(_ type: Float.Type) throws -> Float {
        try read { reader throws(CBORFault) in try reader.float() }
    }
    func decode(_ type: Int.Type) throws -> Int {
        try read { reader throws(CBORFault) in try reader.integer(Int.self) }
    }
    func decode(_ type: Int8.Type) throws -> Int8 {
        try read { reader throws(CBORFault) in try reader.integer(Int8.self) }
    }
    func decode(_ type: Int16.Type) throws -> Int16 {
        try read { reader throws(CBORFault) in try reader.integer(Int16.self) }
    }
    func decode(_ type: Int32.Type) throws -> Int32 {
        try read { reader throws(CBORFault) in try reader.integer(Int32.self) }
    }
    func decode(_ type: Int64.Type) throws -> Int64 {
        try read { reader throws(CBORFault) in try reader.integer(Int64.self) }
    }
    func decode(_ type: Int128.Type) throws -> Int128 {
        try read { reader throws(CBORFault) in try reader.integer(Int128.self) }
    }
    func decode(_ type: UInt.Type) throws -> UInt {
        try read { reader throws(CBORFault) in try reader.integer(UInt.self) }
    }
    func decode(_ type: UInt8.Type) throws -> UInt8 {
        try read { reader throws(CBORFault) in try reader.integer(UInt8.self) }
    }
    func decode(_ type: UInt16.Type) throws -> UInt16 {
        try read { reader throws(CBORFault) in try reader.integer(UInt16.self) }
    }
    func decode(_ type: UInt32.Type) throws -> UInt32 {
        try read { reader throws(CBORFault) in try reader.integer(UInt32.self) }
    }
    func decode(_ type: UInt64.Type) throws -> UInt64 {
        try read { reader throws(CBORFault) in try reader.integer(UInt64.self) }
    }
    func decode(_ type: UInt128.Type) throws -> UInt128 {
        try read { reader throws(CBORFault) in try reader.integer(UInt128.self) }
    }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try frame.checkElement(type)
        let value = try frame.state.decode(type, at: frame.cursor, in: frame)
        frame.advance(to: frame.state.end)
        return value
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try frame.checkElement(KeyedDecodingContainer<NestedKey>.self)
        let end = try endOfElement()
        let container = try frame.state.push(at: frame.cursor, in: frame).keyedContainer(type)
        frame.advance(to: end)
        return container
    }

    func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try frame.checkElement((any UnkeyedDecodingContainer).self)
        let end = try endOfElement()
        let container = try frame.state.push(at: frame.cursor, in: frame).unkeyedContainer(nil)
        frame.advance(to: end)
        return container
    }

    func superDecoder() throws -> any Decoder {
        try frame.checkElement((any Decoder).self)
        let end = try endOfElement()
        let decoder = try frame.superDecoder(at: frame.cursor)
        frame.advance(to: end)
        return decoder
    }

    private func endOfElement() throws -> Int {
        try frame.state.checkDepth(Any.self, at: frame.cursor, in: frame)
        var reader = frame.input.pointee.at(frame.cursor)
        do throws(CBORFault) { try reader.skip() } catch { throw frame.state.failure(error, Any.self, in: frame) }
        return reader.offset
    }

    @inline(__always)
    private func read<R>(_ body: (inout CBORReader) throws(CBORFault) -> R) throws -> R {
        try frame.checkElement(R.self)
        var reader = frame.input.pointee.at(frame.cursor)
        do throws(CBORFault) {
            let value = try body(&reader)
            frame.advance(to: reader.offset)
            return value
        } catch {
            throw frame.state.failure(error, R.self, in: frame)
        }
    }
}

extension CBORDecodingFrame {
    /// How many elements this array has; counted where its head does not tell.
    fileprivate var elementCount: Int? {
        if count >= 0 { return count }
        var reader = input.pointee.at(cursor)
        var total = ~element
        do throws(CBORFault) {
            while try !reader.skipStop() {
                try reader.skip()
                total += 1
            }
        } catch {
            return nil
        }
        return total
    }

    @inline(__always)
    func checkElement(_ type: Any.Type) throws {
        if isAtEnd { throw pastEnd(type) }
    }

    private func pastEnd(_ type: Any.Type) -> DecodingError {
        .valueNotFound(
            type,
            DecodingError.Context(
                codingPath: codingPath + elementPath,
                debugDescription: "The array at byte \(item) has no more elements."))
    }
}
