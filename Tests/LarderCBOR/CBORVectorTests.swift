import Foundation
import LarderCBOR
import LarderTestSupport
import Testing

/// Every example of RFC 8949, Appendix A.
struct CBORVectorTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        var hex: String
        var value: CBORValue
        /// A Boolean value that indicates whether the deterministic encoder writes these very bytes for the value.
        var isOurs = true
        var testDescription: String { hex }

        init(_ hex: String, _ value: CBORValue, isOurs: Bool = true) {
            self.hex = hex
            self.value = value
            self.isOurs = isOurs
        }
    }

    static let numbers: [Vector] = [
        Vector("00", 0), Vector("01", 1), Vector("0a", 10), Vector("17", 23), Vector("1818", 24), Vector("1819", 25),
        Vector("1864", 100), Vector("1903e8", 1000), Vector("1a000f4240", 1_000_000),
        Vector("1b000000e8d4a51000", 1_000_000_000_000), Vector("1bffffffffffffffff", 18_446_744_073_709_551_615),
        Vector("c249010000000000000000", 18_446_744_073_709_551_616),
        Vector("3bffffffffffffffff", -18_446_744_073_709_551_616),
        Vector("c349010000000000000000", -18_446_744_073_709_551_617), Vector("20", -1), Vector("29", -10),
        Vector("3863", -100), Vector("3903e7", -1000), Vector("f90000", 0.0), Vector("f98000", .double(-0.0)),
        Vector("f93c00", 1.0), Vector("fb3ff199999999999a", 1.1), Vector("f93e00", 1.5), Vector("f97bff", 65504.0),
        Vector("fa47c35000", 100000.0), Vector("fa7f7fffff", .double(3.4028234663852886e+38)),
        Vector("fb7e37e43c8800759c", 1.0e+300), Vector("f90001", 5.960464477539063e-8),
        Vector("f90400", 0.00006103515625), Vector("f9c400", -4.0), Vector("fbc010666666666666", -4.1),
        Vector("f97c00", .double(.infinity)), Vector("f9fc00", .double(-.infinity)),
        Vector("fa7f800000", .double(.infinity), isOurs: false),
        Vector("faff800000", .double(-.infinity), isOurs: false),
        Vector("fb7ff0000000000000", .double(.infinity), isOurs: false),
        Vector("fbfff0000000000000", .double(-.infinity), isOurs: false),
    ]

    static let others: [Vector] = [
        Vector("f4", false), Vector("f5", true), Vector("f6", nil), Vector("f7", nil, isOurs: false),
        // Tags that this type does not ask for; `CBORHostileTests` reads them as dates and URLs.
        Vector("c074323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z", isOurs: false),
        Vector("c11a514b67b0", 1_363_896_240, isOurs: false),
        Vector("c1fb41d452d9ec200000", 1_363_896_240.5, isOurs: false),
        Vector("d74401020304", .bytes(Data([1, 2, 3, 4])), isOurs: false),
        Vector("d818456449455446", .bytes(Data(hex: "6449455446")), isOurs: false),
        Vector("d82076687474703a2f2f7777772e6578616d706c652e636f6d", "http://www.example.com", isOurs: false),
        Vector("40", .bytes(Data())), Vector("4401020304", .bytes(Data([1, 2, 3, 4]))), Vector("60", ""),
        Vector("6161", "a"), Vector("6449455446", "IETF"), Vector("62225c", "\"\\"), Vector("62c3bc", "\u{fc}"),
        Vector("63e6b0b4", "\u{6c34}"), Vector("64f0908591", "\u{10151}"), Vector("80", []),
        Vector("83010203", [1, 2, 3]),
        Vector("8301820203820405", [1, [2, 3], [4, 5]]),
        Vector(
            "98190102030405060708090a0b0c0d0e0f101112131415161718181819", .array((1...25).map { .integer(Int128($0)) })),
        Vector("a0", [:]),
        // Maps with integer keys can be read, but keys are always written as text.
        Vector("a201020304", .map([.init(intValue: 1): 2, .init(intValue: 3): 4]), isOurs: false),
        Vector("a26161016162820203", ["a": 1, "b": [2, 3]]), Vector("826161a161626163", ["a", ["b": "c"]]),
        Vector(
            "a56161614161626142616361436164614461656145", ["a": "A", "b": "B", "c": "C", "d": "D", "e": "E"]),
        Vector("5f42010243030405ff", .bytes(Data([1, 2, 3, 4, 5])), isOurs: false),
        Vector("7f657374726561646d696e67ff", "streaming", isOurs: false), Vector("9fff", [], isOurs: false),
        Vector("9f018202039f0405ffff", [1, [2, 3], [4, 5]], isOurs: false),
        Vector("9f01820203820405ff", [1, [2, 3], [4, 5]], isOurs: false),
        Vector("83018202039f0405ff", [1, [2, 3], [4, 5]], isOurs: false),
        Vector("83019f0203ff820405", [1, [2, 3], [4, 5]], isOurs: false),
        Vector(
            "9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff", .array((1...25).map { .integer(Int128($0)) }),
            isOurs: false),
        Vector("bf61610161629f0203ffff", ["a": 1, "b": [2, 3]], isOurs: false),
        Vector("826161bf61626163ff", ["a", ["b": "c"]], isOurs: false),
        Vector("bf6346756ef563416d7421ff", ["Fun": true, "Amt": -2], isOurs: false),
    ]

    @Test(arguments: numbers + others)
    func `an example of the RFC decodes as the value next to it`(vector: Vector) throws {
        #expect(try CBORDecoder().decode(CBORValue.self, from: Data(hex: vector.hex)) == vector.value)
    }

    @Test(arguments: (numbers + others).filter(\.isOurs))
    func `the deterministic encoder writes the RFC's bytes`(vector: Vector) throws {
        var encoder = CBOREncoder()
        encoder.isDeterministic = true
        #expect(try encoder.encode(vector.value).hex == vector.hex)
    }

    @Test(arguments: ["f97e00", "fa7fc00000", "fb7ff8000000000000"])
    func `a NaN of any width is a NaN`(hex: String) throws {
        #expect(try CBORDecoder().decode(Double.self, from: Data(hex: hex)).isNaN)
        var encoder = CBOREncoder()
        encoder.isDeterministic = true
        #expect(try encoder.encode(Double.nan).hex == "f97e00")
    }

    /// Swift has no type for these two, so they are not values here, but can be skipped.
    @Test(arguments: ["f0", "f8ff"])
    func `a simple value without a meaning is skipped, and nothing else`(hex: String) throws {
        struct Known: Codable, Equatable { var a: Int }
        let bytes = Data(hex: "a2 6178 \(hex) 6161 05")
        #expect(try CBORDecoder().decode(Known.self, from: bytes) == Known(a: 5))
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(CBORValue.self, from: Data(hex: hex)) }
    }
}
