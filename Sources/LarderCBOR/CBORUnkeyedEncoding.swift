/// The container of an array.
struct CBORUnkeyedEncoding: UnkeyedEncodingContainer {
    let frame: CBOREncodingFrame
    let serial: UInt32

    init(frame: CBOREncodingFrame, serial: UInt32) {
        self.frame = frame
        self.serial = serial
    }

    /// A container inside another one.
    init(nested frame: CBOREncodingFrame) {
        if frame.isOpen {
            if frame.form == .undecided { frame.beginArray() }
            frame.isShared = true
        }
        self.init(frame: frame, serial: frame.serial)
    }

    /// A container whose every write throws.
    init(refusing state: CBOREncodingState) {
        self.init(frame: CBOREncodingFrame(state: state, slot: -1), serial: 0)
    }

    var codingPath: [any CodingKey] { frame.serial == serial ? frame.codingPath : [] }
    var count: Int { frame.serial == serial ? frame.count : 0 }

    func encodeNil() throws { try write { try $0.writeNil(layers: 0) } }

    @inline(__always)
    func encode<Primitive: CBORPrimitive>(_ value: Primitive) throws {
        try write { try value.encode(to: &$0) }
    }

    func encode(_ value: Int128) throws { try write { $0.write(wide: value) } }
    func encode(_ value: UInt128) throws { try write { $0.write(wide: value) } }

    func encode<T: Encodable>(_ value: T) throws {
        guard try begin({ try $0.encode(value) }) else { return }
        do {
            try frame.state.encode(value, in: frame)
        } catch {
            throw frame.undo(error)
        }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        let child = openNested()
        if child.isOpen {
            child.beginMap()
            child.keyType = ObjectIdentifier(keyType)
        }
        return child.keyedContainer(keyType)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        CBORUnkeyedEncoding(nested: openNested())
    }

    func superEncoder() -> any Encoder {
        let child = openNested()
        child.isShared = true
        return CBOREncoding(frame: child, serial: child.serial)
    }

    private func openNested() -> CBOREncodingFrame {
        guard frame.serial == serial else { return CBOREncodingFrame(state: frame.state, slot: -1) }
        return frame.openNested(key: nil, noting: CBORPathKey.superclass)
    }

    /// Makes room for an element; false where it was written aside, by `other`.
    @inline(__always)
    private func begin(_ other: (CBOREncodingState) throws -> Void) throws -> Bool {
        guard frame.serial == serial else { throw frame.state.outlived() }
        guard frame.openSlot == frame.writer.pointee.top &- 1 else {
            try frame.state.writeAside(frame, key: nil, other)
            return false
        }
        frame.element = frame.writer.pointee.count
        frame.count &+= 1
        return true
    }

    @inline(__always)
    private func write(_ body: (inout CBORWriter) throws -> Void) throws {
        guard try begin({ try body(&$0.writer.pointee) }) else { return }
        do {
            try body(&frame.writer.pointee)
        } catch {
            throw frame.undo(error)
        }
    }
}
