import Foundation
import Larder
import LarderTestSupport
import Testing

struct ValueCodecTests {
    struct Article: Codable, Equatable, Sendable {
        var title: String
        var date: Date
        var price: Decimal
        var url: URL
        var id: UUID
        var big: UInt64
        var note: String?
    }

    static func article() throws -> Article {
        Article(
            title: "Füchse 🦊", date: Date(timeIntervalSinceReferenceDate: 7.0e8 + 0.123456789),
            price: try #require(Decimal(string: "12345678901234567890.12")),
            url: try #require(URL(string: "https://example.com/a?b=c#d")), id: UUID(), big: .max, note: nil)
    }

    func roundTrip<T>(_ value: T, _ codec: ValueCodec<T>) throws -> T {
        let bytes = try codec.encode(value, cache: "c", key: "k")
        return try codec.decode(bytes, cache: "c", key: "k")
    }

    @Test func `every built-in format brings a value back`() throws {
        let article = try Self.article()
        for codec in [
            ValueCodec<Article>.cbor, .json, .propertyList, .json(encoder: JSONEncoder(), decoder: JSONDecoder()),
        ] {
            #expect(try roundTrip(article, codec) == article, "\(codec.identifier)")
        }
    }

    @Test func `every built-in format holds single values at the top`() throws {
        func check<T: Codable & Equatable & Sendable>(_ value: T) throws {
            for codec in [ValueCodec<T>.cbor, .json, .propertyList] {
                #expect(try roundTrip(value, codec) == value, "\(codec.identifier)")
            }
        }
        try check(5)
        try check("text")
        try check(true)
        try check(0.1)
        try check(UInt64.max)
        try check(Int64.min)
        try check(Date(timeIntervalSinceReferenceDate: 0.1))
        try check(UUID())
        try check(try #require(URL(string: "https://example.com")))
        try check(Data([1, 2]))
        try check(Int?.none)
        try check(Int?.some(4))
        try check([1, 2])
        try check(["larder": 1])
        try check([String: Int]())
        try check([String]())
        try check(Decimal(string: "0.1"))
    }

    @Test func `what is on disk can be read by others`() throws {
        let article = try Self.article()
        let json = try ValueCodec<Article>.json.encode(article, cache: "c", key: "k")
        #expect(try JSONDecoder().decode(Article.self, from: json) == article)
        let list = try ValueCodec<Article>.propertyList.encode(article, cache: "c", key: "k")
        #expect(list.starts(with: Data("bplist00".utf8)))
        #expect(try PropertyListDecoder().decode([String: Article].self, from: list) == ["larder.value": article])
        let scalar = try ValueCodec<Int>.propertyList.encode(7, cache: "c", key: "k")
        #expect(try PropertyListDecoder().decode([String: Int].self, from: scalar) == ["larder.value": 7])
        let cbor = try ValueCodec<Article>.cbor.encode(article, cache: "c", key: "k")
        #expect(try CBORDecoder().decode(Article.self, from: cbor) == article)
    }

    @Test func `data is stored as it is, and chosen by itself`() throws {
        let bytes = Data((0...255).map { UInt8($0) })
        #expect(ValueCodec<Data>.standard.identifier == "data")
        #expect(ValueCodec<Article>.standard.identifier == "cbor")
        #expect(ValueCodec<[UInt8]>.standard.identifier == "cbor")
        #expect(try ValueCodec<Data>.standard.encode(bytes, cache: "c", key: "k") == bytes)
        #expect(try roundTrip(bytes, .standard) == bytes)
        #expect(try roundTrip(Data(), .data) == Data())
        let large = Data(count: 1 << 20)
        #expect(try ValueCodec<[Data]>.cbor.encode([large], cache: "c", key: "k").count == large.count + 6)
    }

    @Test func `codecs are there for every codable type, sendable or not`() throws {
        let box = Box(7)
        for codec: ValueCodec<Box> in [.cbor, .json, .propertyList, .json(encoder: .init(), decoder: .init()), .chosen]
        {
            #expect(try roundTrip(box, codec).number == 7, "\(codec.identifier)")
        }
        #expect(ValueCodec<Box>.chosen.identifier == "cbor+copy")
    }

    @Test func `bytes are handed over as they are, without a copy`() throws {
        let data = Data(count: 100_000)
        let stored = try ValueCodec<Data>.standard.encode(data, cache: "c", key: "k")
        let back = try ValueCodec<Data>.standard.decode(stored, cache: "c", key: "k")
        let places = [data, stored, back].map { $0.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
        #expect(Set(places).count == 1)
    }

    // MARK: Limits

    @Test func `what a format cannot hold is an error, and never a trap`() throws {
        func refused<T: Codable & Sendable>(_ value: T, _ codec: ValueCodec<T>) {
            let error = #expect(throws: CacheError.self) { try codec.encode(value, cache: "c", key: "k") }
            #expect(error?.code == .encodingFailed)
            #expect(error?.underlying != nil)
            #expect(error.map { "\($0)".isEmpty } == false)
        }
        refused(Double.nan, .json)
        refused([Float.infinity], .json)
        refused(["x": -Double.infinity], .json)
        refused(Decimal.nan, .json)
        refused([Date(timeIntervalSince1970: .nan)], .json)
        struct Deep: Codable, Sendable { var a: Int?? }
        refused(Deep(a: .some(nil)), .json)
        refused(Deep(a: .some(nil)), .propertyList)
        refused([Int??.some(nil)], .json)
        refused(Int??.some(nil), .propertyList)
        let base = try #require(URL(string: "https://example.com/"))
        refused([try #require(URL(string: "x", relativeTo: base))], .json)
        refused("$null", .propertyList)
        refused(["$null"], .propertyList)
        refused(["deep": [["a": [1, 2], "$null": [3]]]], .propertyList)
        // And these they do hold.
        #expect(try roundTrip(Deep(a: .some(3)), .json).a == 3)
        #expect(try roundTrip([Double.infinity, -0.5], .propertyList) == [.infinity, -0.5])
        #expect(try roundTrip(Double.nan, .propertyList).isNaN)
        #expect(try roundTrip(Double.nan, .cbor).isNaN)
        let relative = try #require(URL(string: "x", relativeTo: base))
        #expect(try roundTrip([relative], .propertyList) == [relative])
    }

    @Test func `a dictionary with the key of the wrapper comes back from a property list`() throws {
        #expect(try roundTrip(["larder.value": 5], .propertyList) == ["larder.value": 5])
        #expect(try roundTrip(["larder.value": 5, "other": 6], .propertyList) == ["larder.value": 5, "other": 6])
        let nested = ["larder.value": ["larder.value": 5]]
        #expect(try roundTrip(nested, .propertyList) == nested)
        #expect(try roundTrip(["other": ["larder.value": 5]], .propertyList) == ["other": ["larder.value": 5]])
        #expect(try roundTrip(["larder.value"], .propertyList) == ["larder.value"])
        #expect(try roundTrip("larder.value", .propertyList) == "larder.value")
        // What takes a number for itself must not be taken for one.
        let tree = Tree.named(["larder.value": .number(1)])
        #expect(try roundTrip(tree, .propertyList) == tree)
        #expect(try roundTrip(Tree.number(1), .propertyList) == .number(1))
    }

    private enum Tree: Codable, Equatable, Sendable {
        case number(Int), named([String: Tree])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            do {
                self = .number(try container.decode(Int.self))
            } catch {
                self = .named(try container.decode([String: Tree].self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .number(let number): try container.encode(number)
            case .named(let parts): try container.encode(parts)
            }
        }
    }

    @Test func `a JSON encoder and decoder of one's own keep their strategies, and nothing else is checked`() throws {
        let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
        encoder.dateEncodingStrategy = .iso8601
        decoder.dateDecodingStrategy = .iso8601
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "+", negativeInfinity: "-", nan: "?")
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "+", negativeInfinity: "-", nan: "?")
        let dates = ["a": Date(timeIntervalSince1970: 0)]
        let codec = ValueCodec<[String: Date]>.json(encoder: encoder, decoder: decoder)
        let text = String(decoding: try codec.encode(dates, cache: "c", key: "k"), as: UTF8.self)
        #expect(text == #"{"a":"1970-01-01T00:00:00Z"}"#)
        #expect(try roundTrip(dates, codec) == dates)
        // The standard one refuses this.
        let numbers: [Double] = [.infinity, 1, -.infinity]
        #expect(try roundTrip(numbers, .json(encoder: encoder, decoder: decoder)) == numbers)
    }

    // MARK: Errors

    @Test func `garbage is undecodable in every format, with the cause`() throws {
        let garbage = Data("\u{1}garbage".utf8)
        for codec in [ValueCodec<Article>.cbor, .json, .propertyList] {
            let error = #expect(throws: CacheError.self) { try codec.decode(garbage, cache: "news", key: "42") }
            #expect(error?.code == .undecodable)
            #expect(error?.underlying is DecodingError)
            #expect(error?.message.contains("\"news\"") == true && error?.message.contains("42") == true)
        }
        struct Old: Codable, Sendable { var title: String }
        struct New: Codable, Sendable { var title: String; var count: Int }
        let old = try ValueCodec<Old>.cbor.encode(Old(title: "t"), cache: "c", key: "k")
        #expect(throws: CacheError.self) { try ValueCodec<New>.cbor.decode(old, cache: "c", key: "k") }
    }

    @Test func `an error of a closure arrives wrapped with cache, key and cause`() throws {
        struct Mine: Error, Equatable {}
        struct Opaque: Sendable {}
        let codec = ValueCodec<Opaque>(identifier: "mine", encode: { _ in throw Mine() }, decode: { _ in throw Mine() })
        let encoding = #expect(throws: CacheError.self) { try codec.encode(Opaque(), cache: "news", key: "42") }
        #expect(encoding?.code == .encodingFailed && encoding?.underlying is Mine)
        #expect(encoding?.message.contains("\"news\"") == true && encoding?.message.contains("42") == true)
        let decoding = #expect(throws: CacheError.self) { try codec.decode(Data(), cache: "news", key: "42") }
        #expect(decoding?.code == .undecodable && decoding?.underlying is Mine)
    }

    // MARK: Transforms

    @Test func `transforms are applied in order and undone in reverse`() throws {
        func tag(_ byte: UInt8) -> DataTransform {
            struct Wrong: Error {}
            return DataTransform(
                identifier: "tag\(byte)", apply: { $0 + Data([byte]) },
                undo: { data in
                    guard data.last == byte else { throw Wrong() }
                    return data.dropLast()
                })
        }
        let codec = ValueCodec<String>.cbor.then(tag(1)).then(tag(2))
        #expect(codec.identifier == "cbor+tag1+tag2")
        let bytes = try codec.encode("x", cache: "c", key: "k")
        #expect(bytes.hex == "61780102")
        #expect(try roundTrip("x", codec) == "x")
        let error = #expect(throws: CacheError.self) { try codec.decode(bytes.dropLast(), cache: "c", key: "k") }
        #expect(error?.code == .undecodable)
    }

    @Test func `identifiers of different chains differ`() {
        func name(_ base: String, _ transforms: String...) -> String {
            transforms.reduce(ValueCodec<Data>(identifier: base, encode: { $0 }, decode: { $0 })) {
                $0.then(DataTransform(identifier: $1, apply: { $0 }, undo: { $0 }))
            }.identifier
        }
        let names = [
            name("a", "b", "c"), name("a+b", "c"), name("a", "b+c"), name("a\\", "b"), name("a\\+b"), name("a"),
            name("a", ""),
        ]
        #expect(Set(names).count == names.count)
    }
}

/// No value to be shared between threads.
private final class Box: Codable {
    var number: Int

    init(_ number: Int) { self.number = number }
}

extension ValueCodec where Value: Codable {
    /// A codec that a user makes for all codable types.
    fileprivate static var chosen: ValueCodec {
        .cbor.then(DataTransform(identifier: "copy", apply: { $0 }, undo: { $0 }))
    }
}
