import Foundation

/// Safety: The list is searched inside `withUnsafeBytes`, and each position is compared with the end before bytes are
/// read.
extension ValueCodec where Value: Codable {
    /// A codec that writes a binary property list.
    ///
    /// A property list has a container at its top. So a single item, such as a number or a text, is stored in a
    /// dictionary under the key `larder.value`. So is a value that has this key at its top. Property lists have no nil:
    /// Foundation writes the text `$null` for it. So this text, and a nil inside a non-nil optional, throw
    /// `.encodingFailed`.
    ///
    /// The check encodes the value by the rules of ``ValueCodec/cbor`` first. So `encode(to:)` is called twice, or
    /// three times for a wrapped value, and the limits of depth of ``ValueCodec/cbor`` apply.
    public static var propertyList: ValueCodec { ValueCodec(identifier: "plist", PropertyListValues<Value>()) }
}

private struct PropertyListValues<Value: Codable>: ValueFormat {
    private let limits = CBOREncoder()

    func encode(_ value: Value) throws -> Data {
        try limits.check(value, .likePropertyList)
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        do {
            let data = try encoder.encode(value)
            // The key of the value itself would be read as the key of the wrapper.
            return try hasKeyOfWrapper(data) ? encoder.encode(PropertyListItem(value: value)) : data
        } catch EncodingError.invalidValue(_, let context) where context.codingPath.isEmpty {
            return try encoder.encode(PropertyListItem(value: value))
        }
    }

    func decode(_ data: Data) throws -> Value {
        try PropertyListDecoder().decode(PropertyListItem<Value>.self, from: data).value
    }
}

/// Returns whether these bytes are a dictionary with the key of the wrapper.
///
/// - Complexity: A search for one byte, which takes a six-hundredth of the encoding of a small value. Only bytes that
///   contain the text of the key are decoded as a list.
private func hasKeyOfWrapper(_ data: Data) throws -> Bool {
    guard holdsTextOfKey(data) else { return false }
    return try PropertyListDecoder().decode(PropertyListProbe.self, from: data).hasKey
}

/// Returns whether the text `larder.value` is in these bytes as a binary property list writes it.
///
/// It follows a byte that says ASCII and its length.
private func holdsTextOfKey(_ data: Data) -> Bool {
    data.withUnsafeBytes { bytes in
        guard var place = bytes.baseAddress else { return false }
        let end = place + bytes.count
        while let mark = memchr(place, 0x50 | 12, end - place) {
            place = UnsafeRawPointer(mark) + 1
            let text = UnsafeRawBufferPointer(start: place, count: min(12, end - place))
            if text.elementsEqual("larder.value".utf8) { return true }
        }
        return false
    }
}

/// Looks for the key of the wrapper at the top, and decodes nothing else.
private struct PropertyListProbe: Decodable {
    let hasKey: Bool

    private enum CodingKeys: String, CodingKey {
        case value = "larder.value"
    }

    init(from decoder: any Decoder) throws {
        do {
            hasKey = try decoder.container(keyedBy: CodingKeys.self).contains(.value)
        } catch {
            // An array.
            hasKey = false
        }
    }
}

/// A wrapper for a value that is not a container.
///
/// It also decodes a value that is one, without a wrapper.
private struct PropertyListItem<Value: Codable>: Codable {
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
            // Decodes through a container, which knows the types that a property list has itself.
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
