import Foundation
import LarderTestSupport

/// Any CBOR that Swift types can hold, through `Codable` alone: as a program without fixed types would write it.
enum CBORValue: Hashable, Sendable {
    case scalar(CBORScalar)
    case bytes(Data)
    case array([CBORValue])
    case map([Key: CBORValue])

    static func integer(_ value: Int128) -> Self { .scalar(.integer(value)) }
    static func double(_ value: Double) -> Self { .scalar(.double(value)) }
    static func text(_ value: String) -> Self { .scalar(.text(value)) }

    struct Key: CodingKey, Hashable, ExpressibleByStringLiteral {
        var stringValue: String
        var intValue: Int?
        init(stringValue: String) { self.stringValue = stringValue }
        init(intValue: Int) {
            self.intValue = intValue
            stringValue = "\(intValue)"
        }
        init(stringLiteral value: String) { self.init(stringValue: value) }
    }
}

extension CBORValue: Codable {
    init(from decoder: any Decoder) throws {
        let single = try decoder.singleValueContainer()
        if let scalar = CBORScalar(single) {
            self = .scalar(scalar)
        } else if var array = Self.array(decoder) {
            var values: [CBORValue] = []
            while !array.isAtEnd { values.append(try array.decode(CBORValue.self)) }
            self = .array(values)
        } else if let value = single.attempt(Data.self) {
            self = .bytes(value)
        } else {
            let map = try decoder.container(keyedBy: Key.self)
            var values: [Key: CBORValue] = [:]
            for key in map.allKeys { values[key] = try map.decode(CBORValue.self, forKey: key) }
            self = .map(values)
        }
    }

    private static func array(_ decoder: any Decoder) -> (any UnkeyedDecodingContainer)? {
        do { return try decoder.unkeyedContainer() } catch { return nil }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .scalar(let scalar):
            var single = encoder.singleValueContainer()
            try scalar.encode(to: &single)
        case .bytes(let data):
            var single = encoder.singleValueContainer()
            try single.encode(data)
        case .array(let values):
            var array = encoder.unkeyedContainer()
            for value in values { try array.encode(value) }
        case .map(let values):
            var map = encoder.container(keyedBy: Key.self)
            for (key, value) in values { try map.encode(value, forKey: key) }
        }
    }
}

extension CBORValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral
{
    init(stringLiteral value: String) { self = .text(value) }
    init(integerLiteral value: Int128) { self = .integer(value) }
    init(floatLiteral value: Double) { self = .double(value) }
    init(arrayLiteral elements: CBORValue...) { self = .array(elements) }
    init(dictionaryLiteral elements: (Key, CBORValue)...) { self = .map(Dictionary(uniqueKeysWithValues: elements)) }
    init(booleanLiteral value: Bool) { self = .scalar(.bool(value)) }
    init(nilLiteral: ()) { self = .scalar(.null) }
}
