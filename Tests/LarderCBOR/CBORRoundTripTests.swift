import Foundation
import LarderCBOR
import LarderTestSupport
import Testing

/// Types as programs have them, including those known to be hard for encoders.
struct CBORRoundTripTests {
    func check<T: Codable & Equatable>(_ value: T, at location: SourceLocation = #_sourceLocation) throws {
        var encoder = CBOREncoder()
        let plain = try encoder.encode(value)
        #expect(try CBORDecoder().decode(T.self, from: plain) == value, sourceLocation: location)
        encoder.isDeterministic = true
        let sorted = try encoder.encode(value)
        #expect(try CBORDecoder().decode(T.self, from: sorted) == value, sourceLocation: location)
        // In something else, so that it is not alone.
        let pair = try encoder.encode([[value], []])
        #expect(try CBORDecoder().decode([[T]].self, from: pair) == [[value], []], sourceLocation: location)
    }

    @Test func `every integer comes back from both its limits`() throws {
        func limits<I: FixedWidthInteger & Codable>(_ type: I.Type) throws {
            try check([I.min, I.min + 1, 0, 1, I.max - 1, I.max])
            try check(I.max)
        }
        try limits(Int.self)
        try limits(Int8.self)
        try limits(Int16.self)
        try limits(Int32.self)
        try limits(Int64.self)
        try limits(Int128.self)
        try limits(UInt.self)
        try limits(UInt8.self)
        try limits(UInt16.self)
        try limits(UInt32.self)
        try limits(UInt64.self)
        try limits(UInt128.self)
    }

    @Test func `floating-point numbers come back to the bit`() throws {
        for value in [
            0.0, -0.0, 1.5, 0.1, .pi, .infinity, -.infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude,
        ] {
            let back = try CBORDecoder().decode(Double.self, from: CBOREncoder().encode(value))
            #expect(back.bitPattern == value.bitPattern)
        }
        let odd = Double(nan: 0x123, signaling: false)
        #expect(try CBORDecoder().decode(Double.self, from: CBOREncoder().encode(odd)).bitPattern == odd.bitPattern)
        try check([Float.pi, -0.0, .infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude])
        struct Both: Codable, Equatable { var a: Float; var b: Double }
        try check(Both(a: 0.1, b: 0.1))
    }

    @Test func `strings of every kind come back`() throws {
        try check(["", "a", "a\0b", "é", "e\u{301}", "日本語", "👩‍👩‍👧‍👦", String(repeating: "x", count: 70_000), "\u{10FFFF}"])
        try check(["": "empty", "k\0": "nul", String(repeating: "long", count: 30): "long"])
    }

    @Test func `a date comes back to the last bit`() throws {
        var random = Seeded()
        var dates = [
            Date(), .distantPast, .distantFuture, Date(timeIntervalSince1970: 0), Date(timeIntervalSince1970: -0.5),
        ]
        dates += (0..<2_000).map { _ in Date(timeIntervalSinceReferenceDate: .random(in: -1e10...1e10, using: &random))
        }
        dates += (0..<200).map { _ in Date(timeIntervalSinceReferenceDate: .random(in: -1...1, using: &random)) }
        for date in dates {
            let back = try CBORDecoder().decode(Date.self, from: CBOREncoder().encode(date))
            #expect(
                back.timeIntervalSinceReferenceDate.bitPattern == date.timeIntervalSinceReferenceDate.bitPattern,
                "seed \(random.seed), \(date.timeIntervalSinceReferenceDate)")
        }
        try check(dates)
        #expect(try CBOREncoder().encode(Date(timeIntervalSince1970: 1_363_896_240)).hex == "c11a514b67b0")
    }

    @Test func `a decimal comes back`() throws {
        let texts = [
            "0", "1", "-1", "0.1", "-123.4500", "3.14159265358979323846264338327950288419", "1e127", "1e-128",
            "340282366920938463463374607431768211455", "-340282366920938463463374607431768211455e20", "100000",
        ]
        let decimals = try texts.map { try #require(Decimal(string: $0)) }
        for decimal in decimals { try check(decimal) }
        try check(decimals)
        #expect(try CBORDecoder().decode(Decimal.self, from: CBOREncoder().encode(Decimal.nan)).isNaN)
        #expect(try CBOREncoder().encode(#require(Decimal(string: "273.15"))).hex == "c48221196ab3")
    }

    @Test func `a URL comes back, with its base`() throws {
        let base = try #require(URL(string: "https://example.com/a/"))
        try check(base)
        try check(try #require(URL(string: "b?c=d#e", relativeTo: base)))
        try check(URL(fileURLWithPath: "/tmp/a b/ü"))
        let middle = URL(string: "y/", relativeTo: base)
        try check([try #require(URL(string: "../x", relativeTo: middle))])
    }

    @Test func `Foundation's other values come back`() throws {
        try check(UUID())
        try check([UUID(), UUID()])
        try check(Data((0...255).map { UInt8($0) }))
        try check(Data())
        try check([UInt8](repeating: 7, count: 300))
        try check([Data([1]), Data()])
        try check(IndexSet([1, 2, 5, 9]))
        try check(DateComponents(year: 2026, month: 11))
        try check(1..<5)
        try check(["a": UUID()])
        try check(["a": Date(timeIntervalSinceReferenceDate: 0.1)])
        try check(["a": URL(fileURLWithPath: "/x")])
        try check(["a": Data([1, 2])])
        try check(["a": true])
        try check(["a": 1.25])
    }

    // MARK: Optionals

    @Test func `a nested optional comes back`() throws {
        struct Deep: Codable, Equatable {
            var a: Int?
            var b: Int??
            var c: Int???
        }
        for c: Int??? in [.none, .some(.none), .some(.some(.none)), .some(.some(.some(3)))] {
            for b: Int?? in [.none, .some(.none), .some(.some(2))] {
                try check(Deep(a: nil, b: b, c: c))
                try check([b])
                try check(b)
                try check(["x": c])
            }
            try check(c)
            try check([[c], []])
        }
    }

    @Test func `an optional in a wrapper comes back`() throws {
        struct Wrapper: Codable, Equatable {
            var value: Int?
            init(_ value: Int?) { self.value = value }
            init(from decoder: any Decoder) throws { value = try decoder.singleValueContainer().decode(Int?.self) }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(value)
            }
        }
        struct Holder: Codable, Equatable {
            var wrapper: Wrapper
            var optional: Wrapper?
        }
        try check(Wrapper(nil))
        try check([Wrapper(nil), Wrapper(1), nil])
        for optional in [nil, Wrapper(nil), Wrapper(4)] { try check(Holder(wrapper: Wrapper(nil), optional: optional)) }
        // Another program writes a plain null for it.
        #expect(try CBORDecoder().decode(Wrapper.self, from: Data(hex: "f6")) == Wrapper(nil))
    }

    @Test func `a type with a nil of its own comes back from an optional`() throws {
        enum JSON: Codable, Equatable {
            case null, number(Int)
            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                self = container.decodeNil() ? .null : .number(try container.decode(Int.self))
            }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                switch self {
                case .null: try container.encodeNil()
                case .number(let number): try container.encode(number)
                }
            }
        }
        try check([JSON.null, .number(1)])
        try check([JSON?.none, .some(.null), .some(.number(2))])
        try check(["a": JSON.null])
    }

    // MARK: Enums, dictionaries, sets

    enum Suit: String, Codable { case hearts, spades }
    enum Level: Int, Codable { case low = -1, high = 900 }
    indirect enum Tree: Codable, Equatable {
        case leaf
        case value(Int)
        case node(left: Tree, right: Tree)
        case pair(Int, String?)
    }

    @Test func `enums of every kind come back`() throws {
        try check([Suit.hearts, .spades])
        try check(Level.low)
        try check([Tree.leaf, .value(3), .pair(1, nil), .pair(2, "x")])
        try check(Tree.node(left: .node(left: .leaf, right: .value(1)), right: .pair(5, "five")))
        try check([Suit.hearts: Level.high])
    }

    @Test func `dictionaries with any keys and sets come back`() throws {
        struct Point: Codable, Hashable { var x: Int; var y: Int }
        try check([1: "one", -2: "minus two", .max: "max"])
        try check(["a": Point(x: 1, y: 2), "b": Point(x: 3, y: 4)])
        try check([Point(x: 1, y: 2): "p", Point(x: 0, y: 0): "o"])
        try check([UUID(): [Point(x: 1, y: 1): [true]]])
        try check(Set(["a", "b", "c"]))
        try check(Set([Point(x: 1, y: 2), Point(x: 2, y: 1)]))
        try check(Dictionary(uniqueKeysWithValues: (0..<500).map { ("key \($0)", Point(x: $0, y: -$0)) }))
        try check(["1": Point(x: 1, y: 1), "01": Point(x: 2, y: 2), "+1": Point(x: 3, y: 3)])
    }
}
