import Foundation
import Larder

/// For each line of hexadecimal digits, decodes the CBOR in them and prints what the deterministic encoder makes of it.
///
/// With the argument `generate` and a number it prints encodings of values of its own instead, plain ones and
/// deterministic ones by turns. `Tests/Interop/cbor2_agreement.py` is at the other end.
@main
struct CBOREcho {
    static func main() throws {
        // Should a test never end it, it ends itself.
        alarm(3600)
        let arguments = CommandLine.arguments
        if arguments.count == 3, arguments[1] == "generate", let count = Int(arguments[2]) {
            var random = SystemRandomNumberGenerator()
            var encoder = CBOREncoder()
            for number in 0..<count {
                encoder.isDeterministic = number % 2 == 1
                print(hex(try encoder.encode(EchoValue.random(&random, depth: 4))))
            }
            return
        }
        var encoder = CBOREncoder()
        encoder.isDeterministic = true
        let decoder = CBORDecoder()
        while let line = readLine() {
            do {
                print(hex(try encoder.encode(try decoder.decode(EchoValue.self, from: bytes(line)))))
            } catch {
                print("error: \(error)")
            }
        }
    }

    static func hex(_ data: Data) -> String {
        data.map { String(UInt16($0) + 0x100, radix: 16).dropFirst() }.joined()
    }

    static func bytes(_ line: String) -> Data {
        let digits = line.compactMap { $0.hexDigitValue.map(UInt8.init) }
        return Data(stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] })
    }
}

/// Whatever CBOR holds that Codable has a type for.
enum EchoValue: Codable {
    case null
    case bool(Bool)
    case integer(Int128)
    case double(Double)
    case text(String)
    case bytes(Data)
    case id(UUID)
    case decimal(Decimal)
    case array([EchoValue])
    case map([String: EchoValue])

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
        } else if let value = attempt({ try single.decode(Decimal.self) }) {
            self = .decimal(value)
        } else if let value = attempt({ try single.decode([EchoValue].self) }) {
            self = .array(value)
        } else if let value = attempt({ try single.decode([String: EchoValue].self) }) {
            self = .map(value)
        } else {
            let bytes = try single.decode(Data.self)
            // A tag is not to be seen from here; the other side makes no other byte strings of this length.
            self = bytes.count == 16 ? .id(try single.decode(UUID.self)) : .bytes(bytes)
        }
    }

    func encode(to encoder: any Encoder) throws {
        var single = encoder.singleValueContainer()
        switch self {
        case .null: try single.encodeNil()
        case .bool(let value): try single.encode(value)
        case .integer(let value): try single.encode(value)
        case .double(let value): try single.encode(value)
        case .text(let value): try single.encode(value)
        case .bytes(let value): try single.encode(value)
        case .id(let value): try single.encode(value)
        case .decimal(let value): try single.encode(value)
        case .array(let value): try single.encode(value)
        case .map(let value): try single.encode(value)
        }
    }

    static func random(_ random: inout some RandomNumberGenerator, depth: Int) -> EchoValue {
        let count = Int.random(in: 0..<6, using: &random)
        func text() -> String {
            (0..<count * 5).map { _ in "aé漢😀\0z".randomElement(using: &random).map(String.init) ?? "" }.joined()
        }
        switch Int.random(in: 0..<(depth > 0 ? 12 : 9), using: &random) {
        case 0: return .null
        case 1: return .bool(count % 2 == 0)
        case 2: return .integer(Int128(Int64.random(in: .min ... .max, using: &random)) >> count * 10)
        case 3: return .integer(Int128.random(in: .min ... .max, using: &random))
        case 4: return .double(Double(bitPattern: UInt64.random(in: 0..<0x7FF0 << 48, using: &random)))
        case 5: return .double(Double(Int.random(in: -2000...2000, using: &random)) / 8)
        case 6: return .text(text())
        case 7: return .bytes(Data((0..<count * 3).map { UInt8(truncatingIfNeeded: $0 * 37) }))
        case 8: return .id(UUID())
        case 9, 10: return .array((0..<count).map { _ in .random(&random, depth: depth - 1) })
        default:
            return .map(
                Dictionary((0..<count * 2).map { ("\($0)" + text(), .random(&random, depth: depth - 1)) }) { first, _ in
                    first
                })
        }
    }
}
