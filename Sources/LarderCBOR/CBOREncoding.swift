/// The `Encoder` that a value's `encode(to:)` is given.
struct CBOREncoding: Encoder {
    let frame: CBOREncodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { frame.state.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        frame.writer.pointee.makers.maker(ObjectIdentifier(type)) {
            CBOREncodingMaker<Key, CBORKeyedEncoding<Key>>()
        }.container(frame.becomes(.map) ? frame : refusing)
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        CBORUnkeyedEncoding(frame: frame.becomes(.array) ? frame : refusing)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        CBORSingleValueEncoding(frame: frame)
    }

    /// A frame whose every write throws.
    private var refusing: CBOREncodingFrame { CBOREncodingFrame(state: frame.state) }
}
