/// The container of a map.
struct CBORKeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let frame: CBOREncodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }

    func encodeNil(forKey key: Key) throws { try write(key) { try $0.writeNil(layers: 0) } }

    @inline(__always)
    func encode<Primitive: CBORPrimitive>(_ value: Primitive, forKey key: Key) throws {
        try write(key) { try value.encode(to: &$0) }
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func encode(_ value: Int128, forKey key: Key) throws { try write(key) { $0.write(integer: value) } }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func encode(_ value: UInt128, forKey key: Key) throws { try write(key) { $0.write(integer: value) } }

    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        guard frame.isInnermost else { return try writeAside(key) { try $0.encode(value) } }
        frame.begin(key)
        do {
            try frame.state.encode(value, in: frame)
        } catch {
            throw frame.undo(error)
        }
    }

    func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
        guard let value else { return }
        // An optional in an optional: the outer one is not nil, so the key is present. Only CBOR can express that.
        if frame.writer.pointee.rules.imitates, CBOROptionals.isNil(value) {
            return try write(key) { _ in throw CBORRefusal.nestedNil }
        }
        try encode(value, forKey: key)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        CBOREncoding(frame: frame.openNested(key: key.stringValue, as: .map)).container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        CBOREncoding(frame: frame.openNested(key: key.stringValue, as: .array)).unkeyedContainer()
    }

    func superEncoder() -> any Encoder {
        CBOREncoding(frame: frame.openNested(key: CBORPathKey.superclass.stringValue))
    }

    func superEncoder(forKey key: Key) -> any Encoder {
        CBOREncoding(frame: frame.openNested(key: key.stringValue))
    }

    /// Writes one pair.
    @inline(__always)
    private func write(_ key: Key, _ body: (inout CBORWriter) throws -> Void) throws {
        guard frame.isInnermost else { return try writeAside(key) { try body(&$0.writer.pointee) } }
        frame.begin(key)
        do {
            try body(&frame.writer.pointee)
        } catch {
            throw frame.undo(error)
        }
    }

    @inline(never)
    private func writeAside(_ key: Key, _ body: (CBOREncodingState) throws -> Void) throws {
        frame.writer.pointee.mayHaveDuplicates = true
        try frame.state.writeAside(frame, key: key.stringValue, body)
    }
}
