import Foundation
import Larder
import LarderStore
import LarderTestSupport
import Testing

struct KeyCodecTests {
    func stored<Key: Codable & Hashable & Sendable>(_ key: Key) throws -> StoredKey {
        let codec = KeyCodec<Key>()
        let form = try codec.stored(key, cache: "c")
        #expect(try codec.key(form, cache: "c") == key)
        return form
    }

    enum Suit: String, Codable { case hearts }
    enum Level: Int, Codable { case high = 900 }
    enum Place: Codable, Hashable { case home, at(x: Int, y: Int) }
    struct Point: Codable, Hashable { var b: Int; var a: String }
    struct Name: Codable, Hashable {
        var text: String
        init(_ text: String) { self.text = text }
        init(from decoder: any Decoder) throws { text = try decoder.singleValueContainer().decode(String.self) }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
    }

    @Test func `text and integers are stored as such, whatever their type`() throws {
        #expect(try stored("a") == .text("a"))
        #expect(try stored("") == .text(""))
        #expect(try stored(5) == .integer(5))
        #expect(try stored(Int.min) == .integer(.min))
        #expect(try stored(UInt8(200)) == .integer(200))
        #expect(try stored(Int64.max) == .integer(.max))
        #expect(try stored(UInt64(7)) == .integer(7))
        #expect(try stored(Suit.hearts) == .text("hearts"))
        #expect(try stored(Level.high) == .integer(900))
        #expect(try stored(Name("n")) == .text("n"))
        #expect(try stored("1") != .integer(1))
    }

    @Test func `other keys are blobs of deterministic CBOR`() throws {
        func hex(_ form: StoredKey) -> String? { if case .blob(let bytes) = form { bytes.hex } else { nil } }
        #expect(try hex(stored(Point(b: 1, a: "x"))) == "a261616178616201")
        #expect(try hex(stored(true)) == "f5")
        #expect(try hex(stored(1.0)) == "f93c00")
        #expect(try hex(stored(Data([1, 2]))) == "420102")
        #expect(try hex(stored([UInt8]([1, 2]))) == "420102")
        #expect(
            try hex(stored(try #require(UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))))
                == "d82550e621e1f8c36c495a93fc0c247a3e6e5f")
        #expect(
            try hex(stored(try #require(URL(string: "http://www.example.com"))))
                == "d82076687474703a2f2f7777772e6578616d706c652e636f6d")
        #expect(try hex(stored(Date(timeIntervalSince1970: 1_363_896_240))) == "c11a514b67b0")
        #expect(try hex(stored(Place.at(x: 1, y: 2))) == "a1626174a26178016179" + "02")
        #expect(try hex(stored(Place.home)) == "a164686f6d65a0")
        #expect(try hex(stored(Int?.none)) == "f6")
        #expect(try stored(Int?.some(3)) == .integer(3))
        #expect(try hex(stored(Decimal(string: "1.10"))) == hex(stored(Decimal(string: "1.1"))))
    }

    @Test func `large integers are blobs in the order of their values`() throws {
        let numbers: [UInt128] = [
            1 << 63, 1 << 63 + 1, UInt128(UInt64.max), 1 << 64, 1 << 64 + 1, 1 << 72, 1 << 120, .max,
        ]
        let blobs = try numbers.map { number in
            guard case .blob(let bytes) = try stored(number) else { return Data() }
            return bytes
        }
        #expect(blobs[0].hex == "1b8000000000000000")
        for (less, greater) in zip(blobs, blobs.dropFirst()) { #expect(less.lexicographicallyPrecedes(greater)) }
        #expect(try stored(UInt64.max) == .blob(blobs[2]))
        #expect(try stored(UInt64(Int64.max)) == .integer(.max))
    }

    @Test func `canonically equal text is one key, at any depth`() throws {
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        #expect(try stored(composed) == .text(composed))
        guard case .text(let text) = try stored(decomposed) else {
            Issue.record("not text")
            return
        }
        #expect(Array(text.utf8) == Array(composed.utf8))
        #expect(try stored(Point(b: 1, a: composed)) == stored(Point(b: 1, a: decomposed)))
        #expect(try stored([decomposed: [Name(decomposed)]]) == stored([composed: [Name(composed)]]))
        #expect(try stored(Name(decomposed)) == .text(composed))
        #expect(try stored(["a\u{323}\u{307}"]) == stored(["a\u{307}\u{323}"]))
        #expect(try stored("\u{212B}") == .text("\u{C5}"))
    }

    @Test func `keys that differ stay apart`() throws {
        let large = String(repeating: "x", count: 1 << 20)
        let keys = ["a\0b", "a\0c", "a", "", "\0", large, large + "y", "\u{FEFF}", "e", "é", "ﬁ", "fi", "ａ"]
        #expect(Set(try keys.map(stored)).count == keys.count)
        let points = [Point(b: 1, a: "1"), Point(b: 11, a: ""), Point(b: 1, a: "1\0"), Point(b: -1, a: "1")]
        #expect(Set(try points.map(stored)).count == points.count)
        #expect(Set(try [Place.home, .at(x: 1, y: 2), .at(x: 2, y: 1)].map(stored)).count == 3)
    }

    @Test func `every scalar in a block that is passed unseen is its own NFC, alone and after any letter`() {
        for value in 0...0x10FFFF as ClosedRange<UInt32> where CBORText.isInert(value) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            for before in ["", "a", "\u{1100}", "\u{AC00}", "\u{3046}"] {
                let text = before + String(Character(scalar))
                if text.precomposedStringWithCanonicalMapping.utf8.elementsEqual(text.utf8) { continue }
                Issue.record("U+\(String(value, radix: 16)) after \"\(before)\"")
            }
        }
    }

    @Test func `zero has no sign, and a NaN is refused`() throws {
        #expect(try stored(-0.0) == stored(0.0))
        #expect(try stored([Float(-0.0)]) == stored([Float(0)]))
        #expect(try stored(["x": -0.0]) == stored(["x": 0.0]))
        for key in [["x": Double.nan], ["y": .infinity]] {
            let codec = KeyCodec<[String: Double]>()
            if key["x"] == nil {
                #expect(throws: Never.self) { try codec.stored(key, cache: "c") }
            } else {
                let error = #expect(throws: CacheError.self) { try codec.stored(key, cache: "measures") }
                #expect(error?.code == .encodingFailed)
                #expect(error?.message.contains("\"measures\"") == true)
                let cause = try #require(error?.underlying as? EncodingError)
                guard case .invalidValue(_, let context) = cause else { return }
                #expect(context.codingPath.map(\.stringValue) == ["x"])
            }
        }
        #expect(throws: CacheError.self) { try KeyCodec<Double>().stored(.nan, cache: "c") }
        #expect(throws: CacheError.self) {
            try KeyCodec<[Date]>().stored([Date(timeIntervalSince1970: .nan)], cache: "c")
        }
        #expect(throws: CacheError.self) { try KeyCodec<Decimal>().stored(.nan, cache: "c") }
    }

    @Test func `a key that does not decode says so`() {
        let error = #expect(throws: CacheError.self) { try KeyCodec<Point>().key(.text("x"), cache: "places") }
        #expect(error?.code == .undecodable)
        #expect(error?.message.contains("places") == true)
        #expect(throws: CacheError.self) { try KeyCodec<Int8>().key(.integer(300), cache: "c") }
        #expect(throws: CacheError.self) { try KeyCodec<Int>().key(.text("5"), cache: "c") }
        #expect(throws: CacheError.self) { try KeyCodec<String>().key(.integer(5), cache: "c") }
        #expect(throws: CacheError.self) { try KeyCodec<Point>().key(.blob(Data()), cache: "c") }
    }

    @Test func `a stored key describes itself`() {
        #expect(StoredKey.text("a").name == "a")
        #expect(StoredKey.integer(-5).name == "-5")
        #expect(StoredKey.blob(Data([0, 0x1F, 0xFF])).name == "001fff")
    }
}
