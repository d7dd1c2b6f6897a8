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

/// The container of a value that is one item.
struct CBORSingleValueEncoding: SingleValueEncodingContainer {
    let frame: CBOREncodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }

    func encodeNil() throws {
        let layers = frame.layers
        try write { try $0.writeNil(layers: layers) }
    }

    @inline(__always)
    func encode<Primitive: CBORPrimitive>(_ value: Primitive) throws {
        try write { try value.encode(to: &$0) }
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func encode(_ value: Int128) throws { try write { $0.write(integer: value) } }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func encode(_ value: UInt128) throws { try write { $0.write(integer: value) } }

    func encode<T: Encodable>(_ value: T) throws {
        let layers = frame.layers + 1
        try perform { try $0.encode(value, layers: layers) }
    }

    @inline(__always)
    private func write(_ body: (inout CBORWriter) throws -> Void) throws {
        try perform { try body(&$0.writer.pointee) }
    }

    @inline(__always)
    private func perform(_ body: (CBOREncodingState) throws -> Void) throws {
        let state = frame.state
        guard frame.isOpen else { throw state.lateUseError() }
        guard frame.form == .undecided, frame.isInnermost || frame.isDetached else { throw state.alreadyEncoded(frame) }
        guard !frame.isDetached else { return try state.replaceAside(frame, body) }
        frame.form = .single
        do {
            try body(state)
        } catch {
            let converted = state.errorWithPath(error)
            // Another try, in another form, may follow.
            state.close(downTo: frame.slot + 1)
            state.count = frame.header
            frame.form = .undecided
            throw converted
        }
    }
}

/// A keyed container that is created for a frame.
protocol CBORFrameContainer {
    associatedtype Frame: AnyObject
    init(frame: Frame)
}

extension CBORKeyedEncoding: CBORFrameContainer {}
extension CBORKeyedDecoding: CBORFrameContainer {}

/// Creates the encoding containers for one type of key.
///
/// The type of the container is part of the maker's own type. Without it, each container looks up that type and one of
/// its conformances in the tables of the runtime. Together that takes a tenth of the time of a small struct.
final class CBOREncodingMaker<Key, Container: KeyedEncodingContainerProtocol & CBORFrameContainer>
where Container.Key == Key, Container.Frame == CBOREncodingFrame {
    @inline(never)
    func container(_ frame: CBOREncodingFrame) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Container(frame: frame))
    }
}

/// Creates the decoding containers for one type of key; see `CBOREncodingMaker`.
final class CBORDecodingMaker<Key, Container: KeyedDecodingContainerProtocol & CBORFrameContainer>
where Container.Key == Key, Container.Frame == CBORDecodingFrame {
    @inline(never)
    func container(_ frame: CBORDecodingFrame) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Container(frame: frame))
    }
}

/// The makers that a coder used last, by the type of the key.
///
/// Safety: A maker is stored by the identity of its type of key, and each coder creates makers by one function alone.
/// So a stored maker has the requested type.
struct CBORContainerMakers {
    private var makers: [(key: ObjectIdentifier?, maker: AnyObject?)] = Array(repeating: (nil, nil), count: 32)

    /// Returns the maker for keys of the type `key`, created by `create` if there is none.
    @inline(__always)
    mutating func maker<Maker: AnyObject>(_ key: ObjectIdentifier, _ create: () -> Maker) -> Maker {
        let address = UInt(bitPattern: key)
        let place = Int(truncatingIfNeeded: (address >> 4 ^ address >> 9) & 31)
        if makers[place].key == key, let maker = makers[place].maker { return unsafeDowncast(maker, to: Maker.self) }
        let maker = create()
        makers[place] = (key, maker)
        return maker
    }
}
