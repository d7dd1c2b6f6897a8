import Foundation

/// Safety: The list is searched inside `withUnsafeBytes`, and each place is compared with the end before bytes are
/// read.
extension ValueCodec where Value: Codable {
    /// A binary property list.
    ///
    /// A property list is a container at the top, so a value that is a single item, a number or a text for instance, is
    /// stored in a dictionary under the key `larder.value`, and so is a value that has this very key at its top.
    /// Property lists have no nil: Foundation writes the text `$null` for it. So that very text is refused with
    /// `.encodingFailed`, and so is a nil inside an optional that is not nil itself. The check encodes the value by the
    /// rules of ``ValueCodec/cbor`` first: `encode(to:)` is called twice, for what has to be wrapped three times, and the bounds
    /// of depth are the same.
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
            // Its own key would be taken for the wrapper's.
            return try hasKeyOfWrapper(data) ? encoder.encode(PropertyListItem(value: value)) : data
        } catch EncodingError.invalidValue(_, let context) where context.codingPath.isEmpty {
            return try encoder.encode(PropertyListItem(value: value))
        }
    }

    func decode(_ data: Data) throws -> Value {
        try PropertyListDecoder().decode(PropertyListItem<Value>.self, from: data).value
    }
}

/// Whether these bytes are a dictionary with the key of the wrapper.
///
/// - Complexity: A search for one byte, a six-hundredth of what the encoding of a small value takes; only bytes that
///   hold the key's text somewhere are read as a list.
private func hasKeyOfWrapper(_ data: Data) throws -> Bool {
    guard holdsTextOfKey(data) else { return false }
    return try PropertyListDecoder().decode(PropertyListProbe.self, from: data).hasKey
}

/// Whether the text `larder.value` is among these bytes, as a binary property list has it: behind a byte that says
/// ASCII and its length.
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

/// Looks for the key of the wrapper at the top, and at nothing else.
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

/// A value that is no container, in one; decodes as well from a value that is.
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
