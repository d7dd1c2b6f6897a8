import Foundation
import Larder
import LarderTestSupport

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
                print(try encoder.encode(EchoValue.random(&random, depth: 4)).hex)
            }
            return
        }
        var encoder = CBOREncoder()
        encoder.isDeterministic = true
        let decoder = CBORDecoder()
        while let line = readLine() {
            do {
                print(try encoder.encode(try decoder.decode(EchoValue.self, from: Data(hex: line))).hex)
            } catch {
                print("error: \(error)")
            }
        }
    }
}

/// Whatever CBOR holds that Codable has a type for.
enum EchoValue: Codable {
    case scalar(CBORScalar)
    case bytes(Data)
    case id(UUID)
    case decimal(Decimal)
    case array([EchoValue])
    case map([String: EchoValue])

    init(from decoder: any Decoder) throws {
        let single = try decoder.singleValueContainer()
        if let scalar = CBORScalar(single) {
            self = .scalar(scalar)
        } else if let value = single.attempt(Decimal.self) {
            self = .decimal(value)
        } else if let value = single.attempt([EchoValue].self) {
            self = .array(value)
        } else if let value = single.attempt([String: EchoValue].self) {
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
        case .scalar(let value): try value.encode(to: &single)
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
        case 0: return .scalar(.null)
        case 1: return .scalar(.bool(count % 2 == 0))
        case 2: return .scalar(.integer(Int128(Int64.random(in: .min ... .max, using: &random)) >> count * 10))
        case 3: return .scalar(.integer(Int128.random(in: .min ... .max, using: &random)))
        case 4: return .scalar(.double(Double(bitPattern: UInt64.random(in: 0..<0x7FF0 << 48, using: &random))))
        case 5: return .scalar(.double(Double(Int.random(in: -2000...2000, using: &random)) / 8))
        case 6: return .scalar(.text(text()))
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
