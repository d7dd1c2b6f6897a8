import Foundation
import LarderCBOR
import LarderTestSupport
import Testing

/// Bytes from an untrusted source.
struct CBORHostileTests {
    func decodingError<T: Decodable>(_ type: T.Type, _ hex: String) -> DecodingError.Context? {
        do {
            _ = try CBORDecoder().decode(type, from: Data(hex: hex))
        } catch DecodingError.dataCorrupted(let context), DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context), DecodingError.keyNotFound(_, let context)
        {
            return context
        } catch {}
        return nil
    }

    @Test(arguments: [
        "", "18", "19ff", "1aff", "1bffffffffffffff", "1c", "1f", "3f", "41", "5bffffffffffffffff", "5f", "5f41",
        "5f6161ff",
        "5f5f4100ffff", "61", "63e6b0", "7f", "7f4161ff", "81", "8201",
        "9bffffffffffffffff", "9f", "9f01", "a1", "a16161", "bbffffffffffffffff", "bf", "bf6161", "bf6161ff", "c1",
        "df",
        "f8", "f800", "f81f", "f9", "f900", "fa00", "fb00", "fc", "ff", "0000", "8181", "d9", "dbffffffffffffffff",
        "9a7fffffff00", "ba7fffffff616100",
    ])
    func `malformed bytes are an error`(hex: String) {
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(CBORValue.self, from: Data(hex: hex)) }
        // Also if no type decodes them.
        struct Empty: Decodable {}
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(Empty.self, from: Data(hex: hex)) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode([String].self, from: Data(hex: hex)) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode([String: Int].self, from: Data(hex: hex)) }
    }

    @Test(arguments: ["61ff", "62c080", "63eda080", "64f4908080", "61e6", "7f61e662b0b4ff"])
    func `text that is not UTF-8 is an error if a type decodes it`(hex: String) {
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(String.self, from: Data(hex: hex)) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode([String].self, from: Data(hex: "81" + hex)) }
        #expect(throws: DecodingError.self) {
            try CBORDecoder().decode([String: Int].self, from: Data(hex: "a1\(hex)00"))
        }
    }

    struct Item: Codable, Equatable {
        var a: Int
        var b: String?
    }

    @Test(arguments: [
        "a2 616101 616102", "a3 616101 6162f6 616103", "a3 616101 6178 00 6178 01", "bf 616101 616102 ff",
        "a2 616101 78016102", "a2 616101 7f6161ff02", "a3 6162f6 616101 6162f6",
    ])
    func `a key that a map holds twice is an error with its place`(hex: String) throws {
        let context = try #require(decodingError([Item].self, "81" + hex))
        #expect(context.codingPath.map(\.stringValue).first == "Index 0")
        #expect(context.debugDescription.contains("twice") && context.debugDescription.contains("at byte"))
        #expect(decodingError(CBORValue.self, hex) != nil)
    }

    @Test func `keys twice are found in dictionaries of any size`() throws {
        #expect(decodingError([String: Int].self, "a2 616101 616102") != nil)
        #expect(decodingError([Int: Int].self, "a2 0101 0102") != nil)
        #expect(decodingError([Int: Item].self, "a2 01a1616101 1801a1616101") != nil)
        let pairs = (0..<100).map { "63" + Data(String(100 + $0).utf8).hex + "a1616100" }
        let bytes = "b8 64" + pairs.joined()
        #expect(try CBORDecoder().decode([String: Item].self, from: Data(hex: bytes)).count == 100)
        #expect(decodingError([String: Item].self, "b8 65" + pairs.joined() + pairs[50]) != nil)
    }

    @Test func `trailing bytes are an error with their place`() throws {
        let context = try #require(decodingError(Int.self, "0500"))
        #expect(context.debugDescription.contains("at byte 1 of 2"))
        #expect(decodingError([Item].self, "80 80") != nil)
    }

    @Test(arguments: ["8201", "826178", "81f5", "811bffffffffffffffff", "8000", "9f01", "81f6", "811c", "8161"])
    func `whatever is wrong, the error names the byte`(hex: String) throws {
        let context = try #require(decodingError([Int].self, hex))
        #expect(context.debugDescription.contains("at byte"), "\(context.debugDescription)")
    }

    @Test func `errors name the path`() throws {
        struct Outer: Codable {
            var list: [Item]
            var byName: [String: [Item]]
            var pair: Pair
            enum Pair: Codable { case both(left: Int, right: Item) }
        }
        func path(_ hex: String) -> String? {
            decodingError(Outer.self, hex)?.codingPath.map(\.stringValue).joined(separator: ".")
        }
        let list = "646c697374"
        let byName = "6662794e616d65"
        let pair = "6470616972"
        let (both, left, right) = ("64626f7468", "646c656674", "657269676874")
        #expect(path("a3 \(list) 82 a1616101 a161616178") == "list.Index 1.a")
        #expect(path("a3 \(list) 82 a1616101 a16161 6178") == "list.Index 1.a")
        #expect(path("a3 \(list) 81 a1616205") == "list.Index 0")
        #expect(path("a3 \(list) 80 \(byName) a1 6178 81 a2616101616203") == "byName.x.Index 0.b")
        #expect(
            path("a3 \(list) 80 \(byName) a0 \(pair) a1 \(both) a2 \(left) 01 \(right) a16161f5") == "pair.both.right.a"
        )
        #expect(
            path("a3 \(list) 80 \(byName) a0 \(pair) a1 \(both) a2 \(left) f4 \(right) a1616101") == "pair.both.left")
        #expect(path("a3 \(list) 80 \(byName) 05") == "byName")
        #expect(path("05") == "")
        // The keys in another order than requested.
        #expect(
            path("a3 \(pair) a1 \(both) a2 \(right) a1616101 \(left) 6178 \(list) 80 \(byName) a0") == "pair.both.left")
    }

    @Test func `errors of the encoder name the path`() throws {
        struct Bad: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(1)
                // The second one is one too many.
                try container.encode(2)
            }
        }
        do {
            _ = try CBOREncoder().encode(["list": ["x": [Bad()]]])
            Issue.record("No error")
        } catch EncodingError.invalidValue(_, let context) {
            #expect(context.codingPath.map(\.stringValue) == ["list", "x", "Index 0"])
            #expect(context.codingPath.last?.intValue == 0)
        }
    }

    @Test func `values of another kind are a mismatch, null is a missing value`() {
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(Int.self, from: Data(hex: "f93c00")) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(Int8.self, from: Data(hex: "1880")) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(UInt.self, from: Data(hex: "20")) }
        #expect(throws: DecodingError.self) {
            try CBORDecoder().decode(Double.self, from: Data(hex: "1b0020000000000001"))
        }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(Date.self, from: Data(hex: "05")) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(UUID.self, from: Data(hex: "d8254101")) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(URL.self, from: Data(hex: "d82060")) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(Decimal.self, from: Data(hex: "c482190100 01")) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(Item.self, from: Data(hex: "a16161f6")) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode([Item].self, from: Data(hex: "a0")) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(Item.self, from: Data(hex: "80")) }
    }

    @Test func `forms of other encoders are read`() throws {
        let decoder = CBORDecoder()
        #expect(try decoder.decode(Double.self, from: Data(hex: "1864")) == 100)
        #expect(try decoder.decode(Double.self, from: Data(hex: "3bffffffffffffffff")) == -18_446_744_073_709_551_616)
        #expect(try decoder.decode(Float.self, from: Data(hex: "fb3fb999999999999a")) == 0.1)
        #expect(try decoder.decode(Int.self, from: Data(hex: "1b0000000000000005")) == 5)
        #expect(try decoder.decode(Int.self, from: Data(hex: "c24105")) == 5)
        #expect(try decoder.decode(Int.self, from: Data(hex: "d9d9f705")) == 5)
        #expect(try decoder.decode([Int].self, from: Data(hex: "d9d9f79f01d9d9f702ff")) == [1, 2])
        #expect(try decoder.decode([Item].self, from: Data(hex: "d9d9f79fd9d9f7bf6161d9d9f701ffff")) == [Item(a: 1)])
        #expect(try decoder.decode(Item.self, from: Data(hex: "a2 d9d9f7 6162 d9d9f7f6 6161 02")) == Item(a: 2))
        #expect(
            try decoder.decode(Date.self, from: Data(hex: "c074323031332d30332d32315432303a30343a30305a"))
                == Date(timeIntervalSince1970: 1_363_896_240))
        #expect(
            try decoder.decode(Date.self, from: Data(hex: "c1fb41d452d9ec200000"))
                == Date(timeIntervalSince1970: 1_363_896_240.5))
        let text = Data(hex: "c07818323031332d30332d32315432303a30343a30302e3530305a")
        #expect(try decoder.decode(Date.self, from: text) == Date(timeIntervalSince1970: 1_363_896_240.5))
        #expect(
            try decoder.decode(URL.self, from: Data(hex: "d82076687474703a2f2f7777772e6578616d706c652e636f6d"))
                == URL(string: "http://www.example.com"))
        #expect(
            try decoder.decode(UUID.self, from: CBOREncoder().encode("E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
                == UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
        #expect(try decoder.decode(Decimal.self, from: Data(hex: "c48221196ab3")) == Decimal(string: "273.15"))
        #expect(try decoder.decode(Decimal.self, from: Data(hex: "f93e00")) == Decimal(string: "1.5"))
        #expect(try decoder.decode([UInt8].self, from: Data(hex: "9f0118ffff")) == [1, 255])
        #expect(try decoder.decode(Data.self, from: Data(hex: "83010203")) == Data([1, 2, 3]))
    }

    // MARK: Depth, length, time

    struct Chain: Codable {
        var next: [Chain]
    }

    @Test func `depth is bounded, both ways`() throws {
        func nested(_ depth: Int) -> Data {
            Data(Array(repeating: [0xA1, 0x64, 0x6E, 0x65, 0x78, 0x74, 0x81], count: depth).flatMap { $0 })
                + Data([0xA1, 0x64, 0x6E, 0x65, 0x78, 0x74, 0x80])
        }
        #expect(throws: Never.self) { try CBORDecoder().decode(Chain.self, from: nested(200)) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(Chain.self, from: nested(100_000)) }
        #expect(throws: DecodingError.self) { try CBORDecoder().decode(CBORValue.self, from: nested(100_000)) }
        var chain = Chain(next: [])
        for _ in 0..<5_000 { chain = Chain(next: [chain]) }
        #expect(throws: EncodingError.self) { try CBOREncoder().encode(chain) }
        // Releasing it takes a stack as deep as it is.
        while let next = chain.next.first { chain = next }
    }

    @Test func `skipped content may be as deep as it likes`() throws {
        struct Empty: Decodable {}
        let depth = 200_000
        for (open, close) in [
            ([0x81], []), ([0x9F], [0xFF]), ([0xBF, 0x00], [0xFF]), ([0xC1], []), ([0xA1, 0x00], []),
        ] {
            var bytes = Data([0xA1, 0x61, 0x78])
            for _ in 0..<depth { bytes.append(contentsOf: open.map(UInt8.init)) }
            bytes.append(0)
            for _ in 0..<depth { bytes.append(contentsOf: close.map(UInt8.init)) }
            #expect(throws: Never.self) { try CBORDecoder().decode(Empty.self, from: bytes) }
        }
    }

    /// The time to decode a map of this many keys, with its keys in the reverse order.
    private func work(_ count: Int, _ bytes: Data) throws -> Int {
        struct Reverse: Decodable {
            var sum = 0
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: CBORValue.Key.self)
                for key in container.allKeys.reversed() { sum += try container.decode(Int.self, forKey: key) }
            }
        }
        // The processor's time of this thread, so that other processes don't count.
        func now() -> Int {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return time.tv_sec * 1_000_000_000 + time.tv_nsec
        }
        var least = Int.max
        for _ in 0..<3 {
            let start = now()
            #expect(try CBORDecoder().decode(Reverse.self, from: bytes).sum == count)
            least = min(least, now() - start)
        }
        return least
    }

    @Test func `a long map takes no longer than its length in any order of keys`() throws {
        func texts(_ count: Int) throws -> Data {
            try CBOREncoder().encode(Dictionary(uniqueKeysWithValues: (0..<count).map { ("\($0)", 1) }))
        }
        func numbers(_ count: Int) -> Data {
            var bytes = Data([0xB9, UInt8(count >> 8), UInt8(count & 0xFF)])
            for number in 0..<count { bytes += Data([0x19, UInt8(number >> 8), UInt8(number & 0xFF), 0x01]) }
            return bytes
        }
        // 16 times the keys are 16 times the work, and some for the processor's caches. By the square it would be 256.
        let (few, many) = (3_000, 48_000)
        #expect(try work(many, texts(many)) < 64 * work(few, texts(few)))
        #expect(try work(many, numbers(many)) < 64 * work(few, numbers(few)))
    }

    @Test func `every prefix of a good encoding is an error, and no flipped bit is a crash`() throws {
        struct Mixed: Codable {
            var date = Date(timeIntervalSinceReferenceDate: 0.1)
            var id = UUID()
            var url = URL(fileURLWithPath: "/tmp")
            var map = ["a": 1, "b": 2]
            var items = [Item(a: 1, b: "x"), Item(a: 2)]
            var decimal = Decimal(12345)
            var values: [CBORValue] = [1, "x", [nil, true], ["k": 1.5]]
            var bytes: [UInt8] = [1, 2, 3]
        }
        let good = try CBOREncoder().encode(Mixed())
        let decoder = CBORDecoder()
        for length in 0..<good.count {
            #expect(throws: DecodingError.self) { try decoder.decode(Mixed.self, from: good.prefix(length)) }
        }
        var survived = 0
        for index in good.indices {
            for bit in 0..<8 {
                var bytes = good
                bytes[index] ^= 1 << bit
                do {
                    _ = try decoder.decode(Mixed.self, from: bytes)
                    survived += 1
                } catch is DecodingError {}
            }
        }
        #expect(survived > 0)
    }
}
