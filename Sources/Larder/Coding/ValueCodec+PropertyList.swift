import Foundation

extension ValueCodec where Value: Codable {
    /// A codec that writes a binary property list.
    ///
    /// A property list has a container at its top. So each value is stored in a dictionary under the key `larder.value`.
    /// Property lists have no nil: Foundation writes the text `$null` for it. So this text, and a nil inside a non-nil
    /// optional, throw `.encodingFailed`.
    ///
    /// The check encodes the value by the rules of ``ValueCodec/cbor`` first. So `encode(to:)` is called twice, and the
    /// limits of depth of ``ValueCodec/cbor`` apply.
    public static var propertyList: ValueCodec { ValueCodec(identifier: "plist", PropertyListValues<Value>()) }
}

private struct PropertyListValues<Value: Codable>: ValueFormat {
    private struct Item: Codable {
        let value: Value

        private enum CodingKeys: String, CodingKey {
            case value = "larder.value"
        }
    }

    private let limits = CBOREncoder()

    func encode(_ value: Value) throws -> Data {
        try limits.check(value, .likePropertyList)
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return try encoder.encode(Item(value: value))
    }

    func decode(_ data: Data) throws -> Value { try PropertyListDecoder().decode(Item.self, from: data).value }
}
