import Foundation
import Larder
import Testing

/// Containers used in every order that `Encoder` allows.
struct CBORContainerTests {
    enum Key: String, CodingKey { case a, b, c, d }

    /// Encodes by a closure, decodes as whatever is there.
    struct Custom: Encodable {
        var body: @Sendable (any Encoder) throws -> Void
        init(_ body: @escaping @Sendable (any Encoder) throws -> Void) { self.body = body }
        func encode(to encoder: any Encoder) throws { try body(encoder) }
    }

    func value(_ body: @escaping @Sendable (any Encoder) throws -> Void) throws -> CBORValue {
        var encoder = CBOREncoder()
        let value = try CBORDecoder().decode(CBORValue.self, from: encoder.encode(Custom(body)))
        encoder.isDeterministic = true
        #expect(try CBORDecoder().decode(CBORValue.self, from: encoder.encode(Custom(body))) == value)
        // Once more from the middle of something, where other offsets are in play.
        let list = [Custom({ try 5.encode(to: $0) }), Custom(body), Custom({ try "end".encode(to: $0) })]
        #expect(try CBORDecoder().decode(CBORValue.self, from: encoder.encode(list)) == [5, value, "end"])
        return value
    }

    @Test func `containers never filled are empty`() throws {
        #expect(try value { _ = $0.container(keyedBy: Key.self) } == [:])
        #expect(try value { _ = $0.unkeyedContainer() } == [])
        let nested = try value { encoder in
            var container = encoder.container(keyedBy: Key.self)
            _ = container.nestedContainer(keyedBy: Key.self, forKey: .a)
            _ = container.nestedUnkeyedContainer(forKey: .b)
            _ = container.superEncoder()
            _ = container.superEncoder(forKey: .c)
        }
        #expect(nested == ["a": [:], "b": [], "super": [:], "c": [:]])
    }

    @Test func `nested containers filled by turns get what is theirs`() throws {
        let result = try value { encoder in
            var outer = encoder.container(keyedBy: Key.self)
            var first = outer.nestedContainer(keyedBy: Key.self, forKey: .a)
            try first.encode(1, forKey: .a)
            var second = outer.nestedUnkeyedContainer(forKey: .b)
            try second.encode("x")
            try first.encode(2, forKey: .b)
            try outer.encode("between", forKey: .c)
            try second.encode(["y": 1])
            try first.encode([3, 4], forKey: .c)
            var third = first.nestedContainer(keyedBy: Key.self, forKey: .d)
            try second.encode(7.5)
            try third.encode(true, forKey: .a)
            try outer.encode("last", forKey: .d)
            try third.encodeNil(forKey: .b)
            var fourth = second.nestedUnkeyedContainer()
            try third.encode("deep", forKey: .c)
            try fourth.encode(9)
        }
        #expect(
            result == [
                "a": ["a": 1, "b": 2, "c": [3, 4], "d": ["a": true, "b": nil, "c": "deep"]],
                "b": ["x", ["y": 1], 7.5, [9]], "c": "between", "d": "last",
            ])
    }

    @Test func `late containers may grow past every length of a head`() throws {
        for count in [23, 24, 255, 256, 300] {
            let result = try value { encoder in
                var outer = encoder.unkeyedContainer()
                var one = outer.nestedUnkeyedContainer()
                var two = outer.nestedUnkeyedContainer()
                for number in 0..<count {
                    try one.encode(number)
                    try two.encode("\(number)")
                }
                try outer.encode("end")
                try two.encode("late")
            }
            let numbers = (0..<count).map { CBORValue.integer(Int128($0)) }
            let texts = (0..<count).map { CBORValue.text("\($0)") }
            #expect(result == [.array(numbers), .array(texts + ["late"]), "end"])
        }
    }

    @Test func `super encoders kept for later get what is theirs`() throws {
        let result = try value { encoder in
            var outer = encoder.container(keyedBy: Key.self)
            let first = outer.superEncoder()
            let second = outer.superEncoder(forKey: .a)
            let third = outer.superEncoder(forKey: .b)
            try outer.encode("x", forKey: .c)
            try "single".encode(to: third)
            var map = first.container(keyedBy: Key.self)
            try map.encode(1, forKey: .a)
            var array = second.unkeyedContainer()
            try array.encode("s")
            try map.encode(2, forKey: .b)
            try array.encode(contentsOf: [1, 2])
            try outer.encode(0, forKey: .d)
        }
        #expect(
            result == ["super": ["a": 1, "b": 2], "a": ["s", 1, 2], "b": "single", "c": "x", "d": 0])
    }

    @Test func `a key written twice has its last value`() throws {
        let result = try value { encoder in
            var first = encoder.container(keyedBy: Key.self)
            try first.encode(1, forKey: .a)
            try first.encode(["old"], forKey: .b)
            try first.encode(3, forKey: .a)
            var second = encoder.container(keyedBy: CBORValue.Key.self)
            try second.encode("new", forKey: "b")
            try second.encode(true, forKey: "z")
            try second.encode(false, forKey: "z")
        }
        #expect(result == ["a": 3, "b": "new", "z": false])
    }

    @Test func `what fails is not written, and the rest is`() throws {
        struct Failure: Error {}
        let result = try value { encoder in
            var outer = encoder.container(keyedBy: Key.self)
            try outer.encode(1, forKey: .a)
            #expect(throws: Failure.self) {
                try outer.encode(
                    Custom { inner in
                        var container = inner.container(keyedBy: Key.self)
                        try container.encode("gone", forKey: .a)
                        throw Failure()
                    }, forKey: .b)
            }
            try outer.encode(3, forKey: .c)
        }
        #expect(result == ["a": 1, "c": 3])
    }

    @Test func `a single value may be tried again after it failed`() throws {
        struct Failure: Error {}
        let result = try value { encoder in
            var container = encoder.singleValueContainer()
            #expect(throws: Failure.self) { try container.encode(Custom { _ in throw Failure() }) }
            try container.encode("instead")
            #expect(throws: EncodingError.self) { try container.encode("twice") }
        }
        #expect(result == "instead")
    }

    @Test func `a container kept beyond its value refuses to write`() throws {
        final class Keep: @unchecked Sendable {
            var keyed: KeyedEncodingContainer<Key>?
            var unkeyed: (any UnkeyedEncodingContainer)?
            var encoder: (any Encoder)?
        }
        let keep = Keep()
        let encoder = CBOREncoder()
        let kept = Custom { inner in
            keep.encoder = inner
            keep.keyed = inner.container(keyedBy: Key.self)
            try keep.keyed?.encode(1, forKey: .a)
            keep.unkeyed = keep.keyed?.nestedUnkeyedContainer(forKey: .b)
        }
        let later = Custom { inner in
            var container = inner.container(keyedBy: Key.self)
            try container.encode(2, forKey: .a)
            #expect(throws: EncodingError.self) { try keep.keyed?.encode(9, forKey: .c) }
            #expect(throws: EncodingError.self) { try keep.unkeyed?.encode(9) }
            var stale = keep.encoder?.container(keyedBy: Key.self)
            #expect(throws: EncodingError.self) { try stale?.encode(9, forKey: .d) }
            try container.encode(3, forKey: .b)
        }
        for _ in 0..<3 {
            let result = try CBORDecoder().decode(CBORValue.self, from: encoder.encode([kept, later]))
            #expect(result == [["a": 1, "b": []], ["a": 2, "b": 3]])
            #expect(throws: EncodingError.self) { try keep.keyed?.encode(9, forKey: .c) }
        }
    }

    @Test func `a value that encodes nothing is an error at the top and empty below`() throws {
        #expect(throws: EncodingError.self) { try CBOREncoder().encode(Custom { _ in }) }
        #expect(try CBOREncoder().encode([Custom { _ in }]).hex == "81a0")
    }

    // MARK: Classes

    class Base: Codable {
        var name: String
        var id: Int
        init(name: String, id: Int) {
            self.name = name
            self.id = id
        }
    }

    final class SharesContainer: Base {
        private enum CodingKeys: String, CodingKey { case name, extra }
        var extra: [String]
        var ownName: String
        init(name: String, id: Int, extra: [String], ownName: String) {
            self.extra = extra
            self.ownName = ownName
            super.init(name: name, id: id)
        }
        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            extra = try container.decode([String].self, forKey: .extra)
            ownName = try container.decode(String.self, forKey: .name)
            try super.init(from: decoder)
        }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(ownName, forKey: .name)
            try container.encode(extra, forKey: .extra)
            try super.encode(to: encoder)
        }
    }

    final class UsesSuper: Base {
        private enum CodingKeys: String, CodingKey { case name, extra }
        var extra = 5
        var ownName = "own"
        override init(name: String, id: Int) { super.init(name: name, id: id) }
        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            try super.init(from: container.superDecoder())
            ownName = try container.decode(String.self, forKey: .name)
            extra = try container.decode(Int.self, forKey: .extra)
        }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try super.encode(to: container.superEncoder())
            try container.encode(ownName, forKey: .name)
            try container.encode(extra, forKey: .extra)
        }
    }

    @Test func `a class hierarchy in one container comes back`() throws {
        let bytes = try CBOREncoder().encode([SharesContainer(name: "base", id: 7, extra: ["x"], ownName: "own")])
        let back = try #require(try CBORDecoder().decode([SharesContainer].self, from: bytes).first)
        // Both write "name"; the superclass did so last.
        #expect(back.name == "base" && back.ownName == "base" && back.id == 7 && back.extra == ["x"])
    }

    @Test func `a class hierarchy with a super encoder comes back`() throws {
        let bytes = try CBOREncoder().encode([UsesSuper(name: "base", id: 7)])
        let back = try #require(try CBORDecoder().decode([UsesSuper].self, from: bytes).first)
        #expect(back.name == "base" && back.ownName == "own" && back.id == 7 && back.extra == 5)
    }

    // MARK: Decoding

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
            // What comes after must not move the ground below them.
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
