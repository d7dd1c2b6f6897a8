import Foundation
import LarderCBOR
import LarderTestSupport
import Testing

struct CBORSizeTests {
    struct Author: Codable {
        var id = 7
        var name = "Jane Doe"
        var verified = true
    }

    struct Article: Codable {
        var id = 1_007
        var title = "An article about storage"
        var summary = "Some text that is long enough to matter."
        var published = Date(timeIntervalSinceReferenceDate: 721_692_807.123456)
        var token = UUID()
        var link = URL(string: "https://example.com/articles/7")
        var author = Author()
        var tags = ["swift", "cache", "disk", "linux", "fast", "sqlite"]
        var counts = ["views": 12_345, "likes": 99, "shares": 12, "saves": 7]
        var score = 0.708_333_333_333_333_4
    }

    @Test func `a ten-field struct takes at most three quarters of its JSON`() throws {
        let article = Article()
        let cbor = try CBOREncoder().encode(article).count
        let json = try JSONEncoder().encode(article).count
        #expect((400...500).contains(json))
        #expect(cbor * 4 <= json * 3, "\(cbor) of \(json) bytes")
    }

    @Test func `numbers and lengths take their shortest form, in the plain mode too`() throws {
        #expect(try CBOREncoder().encode([0, 23, 24, 255, 256, -1, -25]).hex == "8700171818" + "18ff190100203818")
        #expect(try CBOREncoder().encode(1.5).hex == "fa3fc00000")
        #expect(try CBOREncoder().encode(0.1).hex == "fb3fb999999999999a")
    }
}
