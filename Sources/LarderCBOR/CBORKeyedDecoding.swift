/// The container of a map.
struct CBORKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let frame: CBORDecodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }

    /// All keys that `Key` has a value for, in the order of the map.
    ///
    /// A malformed map has none here; decoding any of them throws.
    var allKeys: [Key] {
        do throws(CBORFault) { return try frame.allKeys(Key.self) } catch { return [] }
    }

    func contains(_ key: Key) -> Bool {
        do throws(CBORFault) { return try frame.find(key) != nil } catch { return false }
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        let reader = frame.input.pointee.at(try frame.require(key))
        do throws(CBORFault) {
            return try reader.isNil(layers: 0)
        } catch {
            throw frame.state.failure(error, Any?.self, in: frame)
        }
    }

    @inline(__always)
    func decode<Primitive: CBORPrimitive>(_ type: Primitive.Type, forKey key: Key) throws -> Primitive {
        try frame.read(type, key)
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try frame.read(type, key) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try frame.read(type, key) }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try frame.decode(type, at: try frame.require(key))
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
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try frame.readIfPresent(type, key) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? {
        try frame.readIfPresent(type, key)
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let offset = try frame.locate(key) else { return nil }
        if let end = frame.endOfNull(at: offset) {
            // A value for an optional in an optional is the inner nil: for the outer one, the key would be missing.
            guard CBOROptionals.isOptional(type) else {
                frame.advance(to: end)
                return nil
            }
        }
        return try frame.decode(type, at: offset)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try frame.openNested(frame.require(key)).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try frame.openNested(frame.require(key)).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        try frame.openNested(frame.require(CBORPathKey.superclass))
    }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        try frame.openNested(frame.require(key))
    }
}

extension CBORDecodingFrame {
    /// Returns the offset of the value for `key`, or nil.
    @inline(__always)
    func locate<Key: CodingKey>(_ key: Key) throws -> Int? {
        do throws(CBORFault) { return try find(key) } catch { throw state.failure(error, Any.self, in: self) }
    }

    /// Returns the offset of the value for `key`.
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

    /// Returns the end of the null at `offset`, if there is one.
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
        try read(type, at: try require(key))
    }

    @inline(__always)
    func readIfPresent<Key: CodingKey, Primitive: CBORPrimitive>(
        _ type: Primitive.Type, _ key: Key
    ) throws -> Primitive? {
        guard let offset = try locate(key) else { return nil }
        if let end = endOfNull(at: offset) {
            advance(to: end)
            return nil
        }
        return try read(type, at: offset)
    }

    @inline(__always)
    private func read<Primitive: CBORPrimitive>(_ type: Primitive.Type, at offset: Int) throws -> Primitive {
        var reader = input.pointee.at(offset)
        do throws(CBORFault) {
            let value = try type.decoded(from: &reader)
            advance(to: reader.offset)
            return value
        } catch {
            throw state.failure(error, type, in: self)
        }
    }

    @inline(__always)
    func decode<T: Decodable>(_ type: T.Type, at offset: Int) throws -> T {
        let step = element
        let value = try state.decode(type, at: offset, in: self)
        // The value may have read on in this map, through a decoder of its own.
        element = step
        advance(to: state.end)
        return value
    }

    /// Returns a decoder for the value at `offset`.
    func openNested(_ offset: Int) throws -> CBORDecoding {
        CBORDecoding(frame: try state.push((any Decoder).self, at: offset, in: self))
    }
}
