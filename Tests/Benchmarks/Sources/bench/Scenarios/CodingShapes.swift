import Foundation

/// Ten fields, about 410 bytes of JSON.
struct CodingArticle: Codable {
    struct Author: Codable {
        var id = 7
        var name = "Jane Doe"
        var verified = true
    }

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

    static let sample = CodingArticle()
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
