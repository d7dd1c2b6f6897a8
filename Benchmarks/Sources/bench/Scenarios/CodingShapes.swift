import Foundation

/// Ten fields, about 410 bytes of JSON.
///
/// The properties have no values by default: a synthesised `init(from:)` would make them, only to replace them.
struct CodingArticle: Codable {
    struct Author: Codable {
        var id: Int
        var name: String
        var verified: Bool
    }

    var id: Int
    var title: String
    var summary: String
    var published: Date
    var token: UUID
    var link: URL?
    var author: Author
    var tags: [String]
    var counts: [String: Int]
    var score: Double

    static let sample = CodingArticle(
        id: 1_007, title: "An article about storage", summary: "Some text that is long enough to matter.",
        published: Date(timeIntervalSinceReferenceDate: 721_692_807.123456), token: UUID(),
        link: URL(string: "https://example.com/articles/7"),
        author: Author(id: 7, name: "Jane Doe", verified: true),
        tags: ["swift", "cache", "disk", "linux", "fast", "sqlite"],
        counts: ["views": 12_345, "likes": 99, "shares": 12, "saves": 7], score: 0.708_333_333_333_333_4)
}

struct CodingSmall: Codable {
    var id: Int
    var name: String
    var isOn: Bool

    init(_ number: Int) {
        id = number
        name = "item \(number)"
        isOn = number % 2 == 0
    }
}

/// Twenty optionals, every other one nil.
struct CodingOptionals: Codable {
    var a1: Int?, a2: String?, a3: Double?, a4: Bool?, a5: Int?, a6: String?, a7: Double?, a8: Bool?, a9: Int?
    var b1: Int?, b2: String?, b3: Double?, b4: Bool?, b5: Int?, b6: String?, b7: Double?, b8: Bool?, b9: Int?
    var c1: Int?, c2: String?

    static let sample = CodingOptionals(
        a1: 1, a3: 2.5, a5: 3, a7: 4.5, a9: 5, b1: 6, b3: 7.5, b5: 8, b7: 9.25, c1: 10)
}

enum CodingShape: Codable {
    case circle(radius: Double)
    case rectangle(width: Double, height: Double)
    case label(String)
    case none

    init(_ number: Int) {
        switch number % 4 {
        case 0: self = .circle(radius: Double(number) + 0.1)
        case 1: self = .rectangle(width: Double(number), height: 2.5)
        case 2: self = .label("label \(number)")
        default: self = .none
        }
    }
}
