/// The container of an array.
struct CBORUnkeyedEncoding: UnkeyedEncodingContainer {
    let frame: CBOREncodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }
    var count: Int { frame.isOpen ? frame.count : 0 }

    func encodeNil() throws { try write { try $0.writeNil(layers: 0) } }

    @inline(__always)
    func encode<Primitive: CBORPrimitive>(_ value: Primitive) throws {
        try write { try value.encode(to: &$0) }
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func encode(_ value: Int128) throws { try write { $0.write(integer: value) } }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func encode(_ value: UInt128) throws { try write { $0.write(integer: value) } }

    func encode<T: Encodable>(_ value: T) throws {
        try perform { try $0.encode(value, in: frame) }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        CBOREncoding(frame: frame.openNested(key: nil)).container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        CBOREncoding(frame: frame.openNested(key: nil)).unkeyedContainer()
    }

    func superEncoder() -> any Encoder {
        CBOREncoding(frame: frame.openNested(key: nil))
    }

    @inline(__always)
    private func write(_ body: (inout CBORWriter) throws -> Void) throws {
        try perform { try body(&$0.writer.pointee) }
    }

    /// Writes one element.
    @inline(__always)
    private func perform(_ body: (CBOREncodingState) throws -> Void) throws {
        guard frame.isInnermost else { return try frame.state.writeAside(frame, key: nil, body) }
        frame.element = frame.writer.pointee.count
        frame.count &+= 1
        do {
            try body(frame.state)
        } catch {
            throw frame.undo(error)
        }
    }
}
