import Foundation

/// Any CBOR that our types can hold, by way of `Codable` alone: what a program with no fixed types would write.
enum CBORValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int128)
    case double(Double)
    case text(String)
    case bytes(Data)
    case array([CBORValue])
    case map([Key: CBORValue])

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
        func attempt<R>(_ body: () throws -> R) -> R? {
            do { return try body() } catch { return nil }
        }
        let single = try decoder.singleValueContainer()
        if single.decodeNil() {
            self = .null
        } else if let value = attempt({ try single.decode(Bool.self) }) {
            self = .bool(value)
        } else if let value = attempt({ try single.decode(Int128.self) }) {
            self = .integer(value)
        } else if let value = attempt({ try single.decode(Double.self) }) {
            self = .double(value)
        } else if let value = attempt({ try single.decode(String.self) }) {
            self = .text(value)
        } else if var array = attempt({ try decoder.unkeyedContainer() }) {
            var values: [CBORValue] = []
            while !array.isAtEnd { values.append(try array.decode(CBORValue.self)) }
            self = .array(values)
        } else if let value = attempt({ try single.decode(Data.self) }) {
            self = .bytes(value)
        } else {
            let map = try decoder.container(keyedBy: Key.self)
            var values: [Key: CBORValue] = [:]
            for key in map.allKeys { values[key] = try map.decode(CBORValue.self, forKey: key) }
            self = .map(values)
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .array(let values):
            var array = encoder.unkeyedContainer()
            for value in values { try array.encode(value) }
        case .map(let values):
            var map = encoder.container(keyedBy: Key.self)
            for (key, value) in values { try map.encode(value, forKey: key) }
        default:
            var single = encoder.singleValueContainer()
            switch self {
            case .null: try single.encodeNil()
            case .bool(let value): try single.encode(value)
            case .integer(let value): try single.encode(value)
            case .double(let value): try single.encode(value)
            case .text(let value): try single.encode(value)
            case .bytes(let value): try single.encode(value)
            case .array, .map: break
            }
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
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(nilLiteral: ()) { self = .null }
}

extension Data {
    /// The bytes that `hex` spells.
    init(hex: String) {
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in hex {
            guard let digit = character.hexDigitValue.map(UInt8.init) else { continue }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        self.init(bytes)
    }

    var hex: String {
        map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }
}
