/// The `Decoder` that a value's `init(from:)` is given.
struct CBORDecoding: Decoder {
    let frame: CBORDecodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { frame.state.userInfo }

    @inline(__always)
    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try frame.state.makers.pointee.maker(ObjectIdentifier(type)) {
            CBORDecodingMaker<Key, CBORKeyedDecoding<Key>>()
        }.container(frame.becomeMap())
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        CBORUnkeyedDecoding(frame: try frame.becomeArray())
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        CBORSingleValueDecoding(frame: frame)
    }
}
