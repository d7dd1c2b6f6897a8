import Foundation

extension ValueCodec where Value: Codable & Sendable {
    /// A binary property list.
    ///
    /// A property list is a container at the top, so a value that is a single item, a number or a text for instance, is
    /// stored in a dictionary under the key `larder.value`. Property lists have no nil: Foundation writes the text
    /// `$null` for it. So that very text is refused with `.encodingFailed`, and so is a nil inside an optional that is
    /// not nil itself.
    public static var propertyList: ValueCodec {
        let limits = CBOREncoder()
        return ValueCodec(
            identifier: "plist",
            encode: { value in
                try limits.check(value, .likePropertyList)
                let encoder = PropertyListEncoder()
                encoder.outputFormat = .binary
                do {
                    return try encoder.encode(value)
                } catch EncodingError.invalidValue(_, let context) where context.codingPath.isEmpty {
                    return try encoder.encode(PropertyListItem(value: value))
                }
            },
            decode: { data in
                try PropertyListDecoder().decode(PropertyListItem<Value>.self, from: data).value
            })
    }
}

/// A value that is no container, in one; decodes as well from a value that is.
private struct PropertyListItem<Value: Codable & Sendable>: Codable {
    let value: Value

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case value = "larder.value"
    }

    init(value: Value) {
        self.value = value
    }

    init(from decoder: any Decoder) throws {
        if let container = Self.ownContainer(decoder) {
            value = try container.decode(Value.self, forKey: .value)
        } else {
            // By way of a container, which knows the types that a property list has itself.
            value = try decoder.singleValueContainer().decode(Value.self)
        }
    }

    private static func ownContainer(_ decoder: any Decoder) -> KeyedDecodingContainer<CodingKeys>? {
        do {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            return container.contains(.value) ? container : nil
        } catch {
            // An array.
            return nil
        }
    }
}
