import Foundation
import LarderCBOR
import LarderTestSupport
import Testing

/// Random values; the seed in a failure's name repeats it.
struct CBORGeneratedTests {
    indirect enum Node: Codable, Equatable {
        case integer(Int)
        case wide(Int128, UInt64)
        case double(Double)
        case text(String)
        case data(Data)
        case date(Date)
        case id(UUID)
        case optional(Int??)
        case list([Node])
        case named(children: [String: Node], note: String?)
        case keyed([Int: Node])
        case record(Record)
        case nothing
    }

    struct Record: Codable, Equatable {
        var flag: Bool
        var maybe: [Node?]
        var decimal: Decimal
        var small: [UInt8]
        var next: Node?
        var pairs: [[Float]]
    }

    static func node(_ random: inout Seeded, depth: Int) -> Node {
        let kind = Int.random(in: 0..<(depth > 0 ? 13 : 8), using: &random)
        let count = Int.random(in: 0..<4, using: &random)
        switch kind {
        case 0: return .integer(Int(truncatingIfNeeded: random.next()) >> Int.random(in: 0..<64, using: &random))
        case 1: return .wide(Int128(truncatingIfNeeded: random.next()) << 60, random.next())
        case 2:
            return .double(
                Double(bitPattern: random.next() & ~(0x7FF << 52) | UInt64.random(in: 0..<2047, using: &random) << 52))
        case 3: return .text(text(&random))
        case 4: return .data(Data((0..<count * 9).map { _ in UInt8.random(in: 0...255, using: &random) }))
        case 5: return .date(Date(timeIntervalSinceReferenceDate: Double.random(in: -1e9...1e9, using: &random)))
        case 6: return .id(UUID(uuid: withUnsafeBytes(of: (random.next(), random.next())) { $0.load(as: uuid_t.self) }))
        case 7: return .optional([nil, .some(nil), .some(5)][count % 3])
        case 8: return .list((0..<count).map { _ in node(&random, depth: depth - 1) })
        case 9:
            let children = (0..<count).map { _ in (text(&random), node(&random, depth: depth - 1)) }
            return .named(
                children: Dictionary(children) { first, _ in first }, note: count % 2 == 0 ? nil : text(&random))
        case 10: return .keyed([Int(truncatingIfNeeded: random.next()): node(&random, depth: depth - 1)])
        case 11:
            return .record(
                Record(
                    flag: count % 2 == 0,
                    maybe: (0..<count).map { $0 % 2 == 0 ? nil : node(&random, depth: depth - 1) },
                    decimal: Decimal(Int(truncatingIfNeeded: random.next() >> 16)) / 1000, small: [1, 2],
                    next: count == 0 ? nil : node(&random, depth: depth - 1), pairs: [[0.5, .pi], []]))
        default: return .nothing
        }
    }

    static func text(_ random: inout Seeded) -> String {
        let alphabet = ["a", "Z", "0", " ", "\0", "ü", "e\u{301}", "漢", "😀", "\u{10FFFF}", "longer than most"]
        return (0..<Int.random(in: 0..<9, using: &random)).map { _ in
            alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
        }.joined()
    }

    @Test(arguments: 0..<300 as Range<UInt64>)
    func `a generated value comes back`(seed: UInt64) throws {
        var random = Seeded(seed)
        let value = (0..<4).map { _ in Self.node(&random, depth: 4) }
        var encoder = CBOREncoder()
        let bytes = try encoder.encode(value)
        #expect(try CBORDecoder().decode([Node].self, from: bytes) == value)
        encoder.isDeterministic = true
        let sorted = try encoder.encode(value)
        let back = try CBORDecoder().decode([Node].self, from: sorted)
        #expect(back == value)
        #expect(try encoder.encode(back) == sorted)
        // The same content, whichever way it was read.
        #expect(
            try CBORDecoder().decode(CBORValue.self, from: bytes) == CBORDecoder().decode(CBORValue.self, from: sorted))
    }
}
