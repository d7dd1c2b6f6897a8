import Foundation
import Larder
import LarderTesting

/// Makes a store that looks used: `larder-test-sample FILE [COUNT]`.
///
/// Ninety days pass on a clock of its own. With a count, a cache of so many small entries comes on top.
@main
struct SampleStore {
    struct Article: Codable, Sendable {
        var title: String
        var words: [Int]
    }

    static func main() throws {
        let words = CommandLine.arguments
        let now = Date(timeIntervalSince1970: 1_795_000_000)
        let clock = ManualClock(now - 90 * 86_400)
        var random = Random()
        for day in 0..<90 {
            try live(url: URL(fileURLWithPath: words[1]), clock: clock, day: day, &random)
            clock.advance(by: .seconds(86_400 - 60 * (60 + day)))
        }
        if let count = words.dropFirst(2).first.flatMap({ Int($0) }) {
            let manager = try CacheManager(url: URL(fileURLWithPath: words[1]), configuration: clock.configuration)
            let cache: Cache<Int, Data> = try manager.cache(named: "numbers", version: "1", maxAge: .unlimited)
            for start in stride(from: 0, to: count, by: 10_000) {
                try cache.setValues(
                    (start..<min(count, start + 10_000)).map { ($0, Data(repeating: 7, count: random.below(400))) })
                clock.advance(by: .seconds(600))
            }
            try manager.close()
        }
    }

    /// A day of a program.
    private static func live(url: URL, clock: ManualClock, day: Int, _ random: inout Random) throws {
        let manager = try CacheManager(url: url, configuration: clock.configuration)
        let articles: Cache<Int, Article> = try manager.cache(
            named: "articles", version: "3", maxAge: .days(30), options: CacheOptions(accessGrain: .zero))
        let photos: Cache<String, Data> = try manager.cache(
            named: "photos", version: "1", maxAge: .unlimited,
            options: CacheOptions(disk: DiskLimits(sizeLimit: 24_000_000), accessGrain: .zero))
        let tokens: Cache<String, String> = try manager.cache(
            named: "tokens", version: "2", maxAge: .hours(48).sinceLastAccess)
        for _ in 0..<(60 + day) {
            clock.advance(by: .seconds(60))
            // Half of the reads are of the newest articles.
            let newest = 20 * (day + 1)
            let number = random.below(2) == 0 ? newest - random.below(20) : random.below(newest)
            let tags: Set<String> = number % 7 == 0 ? ["featured"] : ["topic \(number % 5)"]
            if try articles.value(forKey: number) == nil {
                let article = Article(title: "Number \(number)", words: (0..<random.below(900)).map { $0 })
                try articles.setValue(article, forKey: number, tags: tags)
            }
            let photo = "covers/\(random.below(30 + 3 * day))"
            if try photos.value(forKey: photo) == nil {
                try photos.setValue(Data(repeating: 65, count: 2_000 + random.below(180_000)), forKey: photo)
            }
            if random.below(3) == 0 { try tokens.setValue("token", forKey: "user \(random.below(400))") }
        }
        if day == 89 { try articles.setValue(Article(title: "Pinned", words: []), forKey: 0, pinned: true) }
        try manager.maintain()
        try manager.close()
    }

    /// The same numbers in each run.
    private struct Random: RandomNumberGenerator {
        private var state: UInt64 = 42

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 29
        }

        mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
    }
}
