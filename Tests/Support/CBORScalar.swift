/// One item of CBOR that holds no others, by way of `Codable` alone: what a program with no fixed types would read.
package enum CBORScalar: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int128)
    case double(Double)
    case text(String)

    /// Reads the item; nil if it is none of these.
    package init?(_ container: any SingleValueDecodingContainer) {
        if container.decodeNil() {
            self = .null
        } else if let value = container.attempt(Bool.self) {
            self = .bool(value)
        } else if let value = container.attempt(Int128.self) {
            self = .integer(value)
        } else if let value = container.attempt(Double.self) {
            self = .double(value)
        } else if let value = container.attempt(String.self) {
            self = .text(value)
        } else {
            return nil
        }
    }

    package func encode(to container: inout any SingleValueEncodingContainer) throws {
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        }
    }
}

extension SingleValueDecodingContainer {
    /// The item as `type`; nil if it is another.
    package func attempt<Value: Decodable>(_ type: Value.Type) -> Value? {
        do { return try decode(type) } catch { return nil }
    }
}
