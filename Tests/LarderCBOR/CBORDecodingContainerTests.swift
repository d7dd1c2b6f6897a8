import Foundation
import LarderCBOR
import LarderTestSupport
import Testing

/// Decoding containers, asked for present and missing values, now and later.
struct CBORDecodingContainerTests {
    enum Key: String, CodingKey { case a, b, c, d }

    @Test func `keys may be asked for in any order, twice and in vain`() throws {
        struct Backwards: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Key.self)
                #expect(container.allKeys.map(\.rawValue) == ["a", "b", "c"])
                #expect(try container.decode(Int.self, forKey: .c) == 3)
                #expect(try container.decode(Int.self, forKey: .a) == 1)
                #expect(try container.decode(Int.self, forKey: .a) == 1)
                #expect(try container.decodeNil(forKey: .b))
                #expect(container.contains(.b) && !container.contains(.d))
                #expect(try container.decodeIfPresent(Int.self, forKey: .b) == nil)
                #expect(try container.decodeIfPresent(Int.self, forKey: .d) == nil)
                #expect(throws: DecodingError.self) { try container.decode(Int.self, forKey: .d) }
                #expect(throws: DecodingError.self) { try container.decodeNil(forKey: .d) }
            }
        }
        _ = try CBORDecoder().decode(
            [Backwards].self, from: Data(hex: "82 a3616101 6162f6 616303 bf616101 6162f6 616303ff"))
    }

    @Test(arguments: ["82 a1616101 a1616202", "9f a1616101 a1616202 ff"])
    func `a copy of an array's container looks ahead, and has a position of its own`(bytes: String) throws {
        struct Pair: Decodable {
            let a: Int?
            let b: Int?
        }
        struct Kinds: Decodable {
            init(from decoder: any Decoder) throws {
                var probe = try decoder.unkeyedContainer()
                var items = probe
                var kinds: [String] = []
                while !probe.isAtEnd {
                    let index = probe.currentIndex
                    #expect(items.currentIndex == index && items.count == 2 && probe.count == 2)
                    kinds += try probe.nestedContainer(keyedBy: Key.self).allKeys.map(\.rawValue)
                    #expect(probe.currentIndex == index + 1 && items.currentIndex == index)
                    let pair = try items.decode(Pair.self)
                    #expect(pair.a == (index == 0 ? 1 : nil) && pair.b == (index == 0 ? nil : 2))
                }
                #expect(kinds == ["a", "b"])
                #expect(items.isAtEnd)
                var late = try decoder.unkeyedContainer()
                let start = late
                #expect(try late.decode([String: Int].self) == ["a": 1])
                late = start
                do {
                    _ = try late.decode(Int.self)
                    Issue.record("a map is no number")
                } catch DecodingError.typeMismatch(_, let context) {
                    #expect(context.codingPath.last?.intValue == 0)
                }
                #expect(try late.decode([String: Int].self) == ["a": 1])
            }
        }
        _ = try CBORDecoder().decode([Kinds].self, from: Data(hex: "82 \(bytes) \(bytes)"))
    }

    @Test func `integer keys of other encoders are found by their number`() throws {
        enum Numbered: Int, CodingKey { case first = 1, second = 2, large = 1000 }
        struct Value: Codable, Equatable {
            var first: String
            var second: Int?
            var large: Bool
            private enum CodingKeys: Int, CodingKey { case first = 1, second = 2, large = 1000 }
        }
        let value = Value(first: "x", second: 3, large: true)
        #expect(try CBORDecoder().decode(Value.self, from: Data(hex: "a3 016178 0203 1903e8f5")) == value)
        #expect(try CBORDecoder().decode(Value.self, from: Data(hex: "a3 1903e8f5 0203 016178")) == value)
        #expect(try CBORDecoder().decode(Value.self, from: CBOREncoder().encode(value)) == value)
        #expect(try CBORDecoder().decode([Int: Int].self, from: Data(hex: "a2 0102 2004")) == [1: 2, -1: 4])
        #expect(try CBORDecoder().decode([String: Int].self, from: Data(hex: "a2 0102 2004")) == ["1": 2, "-1": 4])
    }

    @Test func `a decoder kept for later still decodes`() throws {
        struct Lazy: Decodable {
            var decoder: any Decoder
            var keyed: KeyedDecodingContainer<Key>
            init(from decoder: any Decoder) throws {
                self.decoder = decoder
                keyed = try decoder.container(keyedBy: Key.self)
            }
        }
        let decoder = CBORDecoder()
        var kept: [Lazy] = []
        for number in 0..<3 {
            let bytes = try CBOREncoder().encode(["one": ["a": number, "b": number + 1], "two": ["a": 8, "b": 9]])
            kept += try decoder.decode([String: Lazy].self, from: bytes).sorted { $0.key < $1.key }.map(\.value)
            // Later allocations must not move the bytes.
            _ = try decoder.decode([String: [String: Int]].self, from: bytes)
        }
        for number in 0..<3 {
            #expect(try kept[number * 2].keyed.decode(Int.self, forKey: .a) == number)
            let late = try kept[number * 2].decoder.container(keyedBy: Key.self)
            #expect(try late.decode(Int.self, forKey: .b) == number + 1)
            #expect(
                try kept[number * 2 + 1].decoder.singleValueContainer().decode([String: Int].self) == ["a": 8, "b": 9])
        }
    }

    @Test(arguments: [1, 5])
    func `an array's container kept for later still decodes, also one of many elements`(count: Int) throws {
        struct Inner: Decodable, Equatable { var a: Int }
        struct Lazy: Decodable {
            var rest: any UnkeyedDecodingContainer
            var first: Inner
            init(from decoder: any Decoder) throws {
                rest = try decoder.unkeyedContainer()
                first = try rest.decode(Inner.self)
            }
        }
        struct Holder: Decodable {
            var values: [Lazy]
        }
        let decoder = CBORDecoder()
        var kept: [Lazy] = []
        for number in 0..<3 {
            let values = (0..<count).map { place in [["a": number], ["a": 10 * number + place]] }
            kept += try decoder.decode(Holder.self, from: CBOREncoder().encode(["values": values])).values
            // Later allocations must not move the bytes.
            let others = try decoder.decode([[Inner]].self, from: CBOREncoder().encode([[["a": 77]], [["a": 78]]]))
            #expect(others == [[Inner(a: 77)], [Inner(a: 78)]])
        }
        for (index, lazy) in kept.enumerated() {
            var rest = lazy.rest
            #expect(lazy.first == Inner(a: index / count))
            #expect(try rest.decode(Inner.self) == Inner(a: index / count * 10 + index % count))
            #expect(rest.isAtEnd)
        }
    }

    /// A value that reads its version by keys of another type before it reads itself.
    private struct Probed: Codable, Equatable {
        var note: String?
        var version: Int?
        var kind: String

        private enum ProbeKeys: String, CodingKey { case version, kind }
        private enum CodingKeys: String, CodingKey { case note, other, version, kind }

        init(note: String?, version: Int?, kind: String) {
            (self.note, self.version, self.kind) = (note, version, kind)
        }

        init(from decoder: any Decoder) throws {
            let probe = try decoder.container(keyedBy: ProbeKeys.self)
            let seen = (
                try probe.decodeIfPresent(Int.self, forKey: .version), try probe.decode(String.self, forKey: .kind)
            )
            let own = try decoder.container(keyedBy: CodingKeys.self)
            version = try own.decodeIfPresent(Int.self, forKey: .version)
            note = try own.decodeIfPresent(String.self, forKey: .note)
            kind = try own.decode(String.self, forKey: .kind)
            #expect(seen == (version, kind))
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encodeIfPresent(version, forKey: .version)
            try container.encode(kind, forKey: .kind)
            try container.encodeIfPresent(note, forKey: .note)
        }
    }

    @Test func `a map that is read through two types of keys loses none to either`() throws {
        let values = [
            Probed(note: nil, version: 2, kind: "a"), Probed(note: "n", version: 3, kind: "b"),
            Probed(note: nil, version: nil, kind: "c"), Probed(note: nil, version: 4, kind: "d"),
        ]
        let bytes = try CBOREncoder().encode(values)
        #expect(try CBORDecoder().decode([Probed].self, from: bytes) == values)
        for value in values {
            #expect(try CBORDecoder().decode(Probed.self, from: CBOREncoder().encode(value)) == value)
        }
    }

    @Test(arguments: ["a2 617801 617802", "bf 617801 617802 ff"])
    func `a key that is in a map twice is refused, though two types of keys read one each`(hex: String) throws {
        struct Twice: Decodable {
            private enum First: String, CodingKey { case x }
            private enum Second: String, CodingKey { case other, x }
            init(from decoder: any Decoder) throws {
                _ = try decoder.container(keyedBy: First.self).decode(Int.self, forKey: .x)
                _ = try decoder.container(keyedBy: Second.self).decode(Int.self, forKey: .x)
            }
        }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(Twice.self, from: Data(hex: hex)) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode([Twice].self, from: Data(hex: "81" + hex)) }
    }

    private final class Token: Sendable {}

    /// Shows whether a token is still alive.
    private final class Witness { weak var token: Token? }

    @Test func `containers kept from values within values leave nothing when they are released`() throws {
        struct Inner: Decodable {
            let container: KeyedDecodingContainer<Key>
            init(from decoder: any Decoder) throws {
                container = try decoder.container(keyedBy: Key.self)
                #expect(try container.decodeIfPresent(Int.self, forKey: .b) == nil)
            }
        }
        struct Outer: Decodable {
            let container: KeyedDecodingContainer<Key>
            let inner: Inner
            init(from decoder: any Decoder) throws {
                container = try decoder.container(keyedBy: Key.self)
                inner = try container.decode(Inner.self, forKey: .b)
            }
        }
        let (witness, key) = (Witness(), try #require(CodingUserInfoKey(rawValue: "token")))
        func decoded() throws -> [Outer] {
            // The decoded value holds the user info.
            let token = Token()
            witness.token = token
            var decoder = CBORDecoder()
            decoder.userInfo[key] = token
            return try decoder.decode(
                [Outer].self, from: Data(hex: "82 a2 616101 6162 a1616102 a2 616103 6162 a1616104"))
        }
        var kept = try decoded()
        #expect(witness.token != nil)
        #expect(try kept.map { try $0.container.decode(Int.self, forKey: .a) } == [1, 3])
        #expect(try kept.map { try $0.inner.container.decode(Int.self, forKey: .a) } == [2, 4])
        kept = []
        #expect(witness.token == nil)
    }

    @Test func `user info reaches both sides`() throws {
        let key = try #require(CodingUserInfoKey(rawValue: "unit"))
        struct Seen: Codable {
            var text: String
            init() { text = "" }
            init(from decoder: any Decoder) throws { text = decoder.userInfo.values.map { "\($0)" }.joined() }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(encoder.userInfo.values.map { "\($0)" }.joined())
            }
        }
        var encoder = CBOREncoder()
        encoder.userInfo[key] = "metres"
        #expect(try encoder.encode(Seen()) == CBOREncoder().encode("metres"))
        var decoder = CBORDecoder()
        decoder.userInfo[key] = "feet"
        #expect(try decoder.decode(Seen.self, from: Data(hex: "60")).text == "feet")
        #expect(try CBORDecoder().decode(Seen.self, from: Data(hex: "60")).text == "")
    }
}
