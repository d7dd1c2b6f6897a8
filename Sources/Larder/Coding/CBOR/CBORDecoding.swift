/// The `Decoder` that a value's `init(from:)` is given.
///
/// It may be kept and used when its value is long decoded: then its frame serves another value, as the serial number
/// tells, and it works with a new one.
struct CBORDecoding: Decoder {
    let frame: CBORDecodingFrame
    let item: Int
    let serial: UInt32
    let layers: UInt32

    var codingPath: [any CodingKey] { frame.serial == serial ? frame.codingPath : [] }
    var userInfo: [CodingUserInfoKey: Any] { frame.state.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try current.keyedContainer(type)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try current.unkeyedContainer()
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        CBORSingleValueDecoding(frame: current, item: item, serial: current.serial, layers: layers)
    }

    private var current: CBORDecodingFrame {
        if frame.serial == serial { return frame }
        let late = CBORDecodingFrame(state: frame.state)
        late.open(at: item, in: nil, layers: Int(layers))
        return late
    }
}

extension CBORDecodingFrame {
    /// The container for this map, one made before if there is one for this type of key.
    @inline(__always)
    func keyedContainer<Key: CodingKey>(_ type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        do throws(CBORFault) {
            try beginMap()
        } catch {
            element = Self.noStep
            throw state.failure(error, [String: Any].self, in: self)
        }
        let id = ObjectIdentifier(type)
        if let box = box(id) { return unsafeBitCast(box, to: KeyedDecodingContainer<Key>.self) }
        let container = KeyedDecodingContainer(CBORKeyedDecoding<Key>(frame: self))
        remember(id, container)
        return container
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        do throws(CBORFault) {
            return CBORUnkeyedDecoding(frame: try makeArray())
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
