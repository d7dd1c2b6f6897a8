/// The `Decoder` that a value's `init(from:)` is given.
///
/// It may be kept and used when its value is long decoded: then its frame serves another value, as the serial number
/// tells, and it works with a new one.
struct CBORDecoding: Decoder {
    let handle: CBORDecodingHandle
    let item: Int
    let serial: UInt32
    let layers: UInt32

    var codingPath: [any CodingKey] { handle.frame.serial == serial ? handle.frame.codingPath : [] }
    var userInfo: [CodingUserInfoKey: Any] { handle.frame.state.userInfo }

    @inline(__always)
    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard handle.frame.serial == serial else { return try lateFrame().keyedContainer(type) }
        return try handle.frame.keyedContainer(type)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let handle = current
        return try handle.frame.unkeyedContainer(handle)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        let handle = current
        return CBORSingleValueDecoding(handle: handle, item: item, serial: handle.frame.serial, layers: layers)
    }

    private var current: CBORDecodingHandle {
        handle.frame.serial == serial ? handle : CBORDecodingHandle(lateFrame())
    }

    private func lateFrame() -> CBORDecodingFrame {
        let state = handle.frame.state
        state.mayBeKept = true
        let late = CBORDecodingFrame(state: state, slot: -1)
        late.open(at: item, in: nil, layers: Int(layers))
        return late
    }
}

extension CBORDecodingFrame {
    /// The container for this map, one made before if there is one for this type of key.
    @inline(__always)
    func keyedContainer<Key: CodingKey>(_ type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let id = ObjectIdentifier(type)
        do throws(CBORFault) {
            try beginMap(keys: id)
        } catch {
            element = Self.noStep
            throw state.failure(error, [String: Any].self, in: self)
        }
        if let box = box(id) { return unsafeBitCast(box, to: KeyedDecodingContainer<Key>.self) }
        let container = KeyedDecodingContainer(CBORKeyedDecoding<Key>(frame: self))
        // A frame that is none of its state's is not used again, and nobody would part it from its boxes.
        if slot >= 0 { remember(id, container) }
        return container
    }

    /// The container for this array; `handle` is what its decoder holds, if it was asked from one.
    func unkeyedContainer(_ handle: CBORDecodingHandle?) throws -> any UnkeyedDecodingContainer {
        if handle == nil { state.mayBeKept = true }
        do throws(CBORFault) {
            return CBORUnkeyedDecoding(frame: try makeArray(handle))
        } catch {
            element = Self.noStep
            throw state.failure(error, [Any].self, in: self)
        }
    }

    // MARK: Paths

    /// What led to this value or container, read back from the bytes.
    var codingPath: [any CodingKey] {
        var path: [any CodingKey] = []
        var frame = self
        while let parent = frame.parent {
            if let key = frame.key(of: frame.step) { path.append(key) }
            frame = parent
        }
        return path.reversed()
    }

    /// The step to the element that is being read.
    var elementPath: [any CodingKey] {
        key(of: element).map { [$0] } ?? []
    }

    private func key(of step: Int) -> CBORPathKey? {
        if step == Self.noStep { return nil }
        if step < 0 { return CBORPathKey(index: ~step) }
        return input.pointee.at(step).pathKey
    }
}
