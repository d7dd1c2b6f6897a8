/// The container of a map.
struct CBORKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let frame: CBORDecodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }

    /// All keys that `Key` has a value for, in the order of the map.
    ///
    /// A map that turns out to be malformed here has none; to decode any of them then throws.
    var allKeys: [Key] {
        do throws(CBORFault) { return try frame.allKeys(Key.self) } catch { return [] }
    }

    func contains(_ key: Key) -> Bool {
        do throws(CBORFault) { return try frame.find(key) != nil } catch { return false }
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        let offset = try frame.require(key)
        return try frame.peek(key, at: offset) { reader throws(CBORFault) in try reader.isNil(layers: 0) }
    }

    @inline(__always)
    func decode<Primitive: CBORPrimitive>(_ type: Primitive.Type, forKey key: Key) throws -> Primitive {
        try frame.read(type, key)
    }

    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try frame.read(type, key) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try frame.read(type, key) }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try frame.decode(type, key, at: try frame.require(key))
    }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? {
        try frame.readIfPresent(type, key)
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let offset = try frame.locate(key) else { return nil }
        if let end = frame.endOfNull(at: offset) {
            // What is there for an optional in an optional is the inner nil: for the outer one the key would be missing.
            guard CBOROptionals.isOptional(type) else {
                frame.advance(key, to: end)
                return nil
            }
        }
        return try frame.decode(type, key, at: offset)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try frame.openNested(key).keyedContainer(type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try frame.openNested(key).unkeyedContainer(nil)
    }

    func superDecoder() throws -> any Decoder {
        guard let offset = try frame.locate(CBORPathKey.superclass) else {
            throw frame.missing(CBORPathKey.superclass)
        }
        return try frame.superDecoder(at: offset)
    }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        try frame.superDecoder(at: try frame.require(key))
    }
}

extension CBORDecodingFrame {
    /// Where the value for `key` begins, or nil.
    @inline(__always)
    func locate<Key: CodingKey>(_ key: Key) throws -> Int? {
        do throws(CBORFault) { return try find(key) } catch { throw state.failure(error, Any.self, in: self) }
    }

    /// Where the value for `key` begins.
    @inline(__always)
    func require<Key: CodingKey>(_ key: Key) throws -> Int {
        guard let offset = try locate(key) else { throw missing(key) }
        return offset
    }

    func missing(_ key: any CodingKey) -> DecodingError {
        .keyNotFound(
            key,
            DecodingError.Context(
                codingPath: codingPath,
                debugDescription: "No value for the key \"\(key.stringValue)\" in the map at byte \(item)."))
    }

    /// Where the null at `offset` ends, if one is there.
    @inline(__always)
    func endOfNull(at offset: Int) -> Int? {
        let reader = input.pointee.at(offset)
        guard offset < reader.count else { return nil }
        let byte = reader.base.load(fromByteOffset: offset, as: UInt8.self)
        if byte == CBORFormat.null || byte == CBORFormat.undefined { return offset &+ 1 }
        return byte & 0xE0 == CBORFormat.Major.tag ? reader.endOfTaggedNull : nil
    }

    /// Reads the value for `key`.
    @inline(__always)
    func read<Key: CodingKey, Primitive: CBORPrimitive>(_ type: Primitive.Type, _ key: Key) throws -> Primitive {
        try read(type, key, at: try require(key))
    }

    @inline(__always)
    func readIfPresent<Key: CodingKey, Primitive: CBORPrimitive>(
        _ type: Primitive.Type, _ key: Key
    ) throws -> Primitive? {
        guard let offset = try locate(key) else { return nil }
        if let end = endOfNull(at: offset) {
            advance(key, to: end)
            return nil
        }
        return try read(type, key, at: offset)
    }

    @inline(__always)
    private func read<Key: CodingKey, Primitive: CBORPrimitive>(
        _ type: Primitive.Type, _ key: Key, at offset: Int
    ) throws -> Primitive {
        var reader = input.pointee.at(offset)
        do throws(CBORFault) {
            let value = try type.decoded(from: &reader)
            advance(key, to: reader.offset)
            return value
        } catch {
            throw state.failure(error, type, in: self)
        }
    }

    /// Looks at the value for `key` without reading it.
    func peek<Key: CodingKey, R>(
        _ key: Key, at offset: Int, _ body: (inout CBORReader) throws(CBORFault) -> R
    ) throws -> R {
        var reader = input.pointee.at(offset)
        do throws(CBORFault) { return try body(&reader) } catch { throw state.failure(error, R.self, in: self) }
    }

    @inline(__always)
    func decode<T: Decodable, Key: CodingKey>(_ type: T.Type, _ key: Key, at offset: Int) throws -> T {
        let step = element
        let value = try state.decode(type, at: offset, in: self)
        // The value may have read on in this map, by a way of its own.
        element = step
        advance(key, to: state.end)
        return value
    }

    func openNested<Key: CodingKey>(_ key: Key) throws -> CBORDecodingFrame {
        let offset = try require(key)
        try state.checkDepth([String: Any].self, at: offset, in: self)
        return state.push(at: offset, in: self)
    }

    func superDecoder(at offset: Int) throws -> any Decoder {
        try state.checkDepth((any Decoder).self, at: offset, in: self)
        let frame = CBORDecodingFrame(state: state, slot: -1)
        frame.open(at: offset, in: self, layers: 0)
        state.mayBeKept = true
        return CBORDecoding(handle: CBORDecodingHandle(frame), item: offset, serial: frame.serial, layers: 0)
    }
}
