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

    @inline(__always)
    func decode<Primitive: CBORPrimitive>(_ type: Primitive.Type) throws -> Primitive {
        try read(type)
    }

    func decode(_ type: Int128.Type) throws -> Int128 { try read(type) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try read(type) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try frame.checkElement(type)
        let value = try frame.state.decode(type, at: frame.cursor, in: frame)
        frame.advance(to: frame.state.end)
        return value
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try nested { try frame.state.push(at: frame.cursor, in: frame).keyedContainer(type) }
    }

    func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try nested { try frame.state.push(at: frame.cursor, in: frame).unkeyedContainer(nil) }
    }

    func superDecoder() throws -> any Decoder {
        try nested { try frame.superDecoder(at: frame.cursor) }
    }

    /// What `open` makes of the element at the cursor, which counts as read, whatever is read from it.
    private func nested<Inner>(_ open: () throws -> Inner) throws -> Inner {
        try frame.checkElement(Inner.self)
        let end = try endOfElement()
        let opened = try open()
        frame.advance(to: end)
        return opened
    }

    private func endOfElement() throws -> Int {
        try frame.state.checkDepth(Any.self, at: frame.cursor, in: frame)
        var reader = frame.input.pointee.at(frame.cursor)
        do throws(CBORFault) { try reader.skip() } catch { throw frame.state.failure(error, Any.self, in: frame) }
        return reader.offset
    }

    @inline(__always)
    private func read<Primitive: CBORPrimitive>(_ type: Primitive.Type) throws -> Primitive {
        try frame.checkElement(type)
        var reader = frame.input.pointee.at(frame.cursor)
        do throws(CBORFault) {
            let value = try type.decoded(from: &reader)
            frame.advance(to: reader.offset)
            return value
        } catch {
            throw frame.state.failure(error, type, in: frame)
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
