/// The `Encoder` that a value's `encode(to:)` is given.
struct CBOREncoding: Encoder {
    let frame: CBOREncodingFrame
    let serial: UInt32

    var codingPath: [any CodingKey] { frame.serial == serial ? frame.codingPath : [] }
    var userInfo: [CodingUserInfoKey: Any] { frame.state.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        guard frame.serial == serial, frame.isOpen else { return refusing() }
        switch frame.form {
        case .undecided:
            guard frame.isInnermost else { return refusing() }
            frame.beginMap()
            frame.keyType = ObjectIdentifier(type)
        case .map:
            if frame.keyType != ObjectIdentifier(type) {
                // A class and its superclass: which keys they share is looked at when everything is written.
                frame.writer.pointee.mayHaveDuplicates = true
                frame.openedKeys = .max
            }
        case .single, .array:
            return refusing()
        }
        return frame.keyedContainer(type)
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        guard frame.serial == serial, frame.isOpen else { return CBORUnkeyedEncoding(refusing: frame.state) }
        switch frame.form {
        case .undecided:
            guard frame.isInnermost else { return CBORUnkeyedEncoding(refusing: frame.state) }
            frame.beginArray()
        case .array: break
        case .single, .map: return CBORUnkeyedEncoding(refusing: frame.state)
        }
        return CBORUnkeyedEncoding(frame: frame, serial: serial)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        CBORSingleValueEncoding(frame: frame, serial: serial)
    }

    private func refusing<Key: CodingKey>() -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(CBORKeyedEncoding(frame: CBOREncodingFrame(state: frame.state, slot: -1)))
    }
}

extension CBOREncodingFrame {
    /// Whether an undecided frame can still decide: nothing has been opened above it.
    var isInnermost: Bool { isDetached || openSlot == writer.pointee.top - 1 }

    /// The container for this map, one made before if there is one for this type of key.
    @inline(__always)
    func keyedContainer<Key: CodingKey>(_ type: Key.Type) -> KeyedEncodingContainer<Key> {
        let id = ObjectIdentifier(type)
        if let box = box(id) { return unsafeBitCast(box, to: KeyedEncodingContainer<Key>.self) }
        let container = KeyedEncodingContainer(CBORKeyedEncoding<Key>(frame: self))
        // A frame that is none of its state's is not used again, and nobody would part it from its boxes.
        if slot >= 0 { remember(id, container) }
        return container
    }
}
