import Foundation
import LarderCBOR
import LarderTestSupport
import Testing

/// Encoding containers, used in every order that `Encoder` allows.
struct CBORContainerTests {
    enum Key: String, CodingKey { case a, b, c, d }

    /// Encodes by a closure, and decodes any value.
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
        // Again from the middle of something, with other offsets.
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

    @Test func `nested containers filled in turns get their own values`() throws {
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

    @Test func `super encoders kept for later get their own values`() throws {
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

    private static let openedTwice: [Custom] = [
        Custom { encoder in
            var outer = encoder.container(keyedBy: Key.self)
            var one = outer.nestedContainer(keyedBy: Key.self, forKey: .a)
            try one.encode(1, forKey: .a)
            try outer.encode("between", forKey: .b)
            var two = outer.nestedContainer(keyedBy: CBORValue.Key.self, forKey: .a)
            try two.encode(2, forKey: "b")
            try one.encode(3, forKey: .c)
            try two.encode(4, forKey: "a")
            try outer.encode("behind", forKey: .c)
        },
        Custom { encoder in
            var outer = encoder.container(keyedBy: CBORValue.Key.self)
            for round in 0..<3 {
                for key in 0..<100 {
                    var list = outer.nestedUnkeyedContainer(forKey: .init(stringLiteral: "\(key)"))
                    try list.encode(round)
                    if round == 1 { try list.encode(contentsOf: Array(repeating: "x", count: 30)) }
                }
            }
        },
        Custom { encoder in
            var outer = encoder.container(keyedBy: Key.self)
            for number in 0..<3 {
                var one = outer.nestedContainer(keyedBy: Key.self, forKey: .a)
                var two = one.nestedContainer(keyedBy: Key.self, forKey: .b)
                var three = two.nestedUnkeyedContainer(forKey: .c)
                try three.encode(number)
                var four = three.nestedContainer(keyedBy: Key.self)
                try four.encode(number, forKey: .d)
            }
        },
        // As a class and its superclass do.
        Custom { encoder in
            enum Other: String, CodingKey { case d, c, b, a }
            var mine = encoder.container(keyedBy: Key.self)
            var one = mine.nestedContainer(keyedBy: Key.self, forKey: .a)
            try one.encode(1, forKey: .a)
            var theirs = encoder.container(keyedBy: Other.self)
            var two = theirs.nestedContainer(keyedBy: Other.self, forKey: .a)
            try two.encode(2, forKey: .b)
            var again = mine.nestedContainer(keyedBy: Key.self, forKey: .a)
            try again.encode(3, forKey: .c)
        },
        Custom { encoder in
            var outer = encoder.container(keyedBy: Key.self)
            _ = outer.nestedUnkeyedContainer(forKey: .b)
            try outer.encode(6, forKey: .b)
        },
        Custom { encoder in
            var outer = encoder.unkeyedContainer()
            var first = outer.nestedContainer(keyedBy: Key.self)
            try outer.encode(0)
            // It has ended, and still takes elements.
            for number in 0..<3 {
                var one = first.nestedContainer(keyedBy: CBORValue.Key.self, forKey: .a)
                try one.encode(number, forKey: .init(stringLiteral: "\(number)"))
                var two = first.nestedUnkeyedContainer(forKey: .b)
                try two.encode(number)
            }
        },
    ]

    @Test(arguments: 0..<6)
    func `a container that is opened twice is one, as with the encoders of Foundation`(number: Int) throws {
        let body = Self.openedTwice[number]
        #expect(try value(body.body) == JSONDecoder().decode(CBORValue.self, from: JSONEncoder().encode(body)))
    }

    @Test func `a failed element is not written, and the rest is`() throws {
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
}
