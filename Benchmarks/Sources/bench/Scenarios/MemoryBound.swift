import Foundation
import Larder

/// The growth of a fresh process for what a cache with default limits keeps in memory, in percent of the limit.
///
/// Each cache is filled with several times what fits. Before that it is filled with memory switched off, so that the page
/// caches of SQLite and the buffers of the writes count before, and only memory counts after. 110 is the bound.
var memoryBoundScenarios: [Scenario] {
    [
        bound("int-int", count: 1_000_000) { ($0, $0) },
        bound("int-bool", count: 1_000_000) { ($0, $0 % 2 == 0) },
        bound("text-1000-int", count: 100_000) { (String(repeating: "k", count: 1000) + "\($0)", $0) },
        bound("int-data-0", count: 1_000_000) { ($0, Data()) },
        bound("int-data-100", count: 400_000) { ($0, Data(repeating: UInt8(truncatingIfNeeded: $0), count: 100)) },
        bound("int-text-300", count: 300_000) { ($0, String(repeating: "t", count: 295) + "\($0)") },
        bound("int-data-100000", count: 1500, batch: 10) { ($0, Data(repeating: 7, count: 100_000)) },
        bound("int-record", count: 200_000) { ($0, Article($0)) },
        bound("int-numbers", count: 400_000) { ($0, Measures($0)) },
        bound("mixed", count: 300_000, batch: 50) { ($0, Data(count: $0 < 250_000 ? 0 : 20_000)) },
    ]
}

/// A record of ten fields as programs have them.
private struct Article: Codable, Sendable {
    let id: Int
    let title: String
    let author: String
    let link: String
    let summary: String
    let tags: [String]
    let published: Date
    let score: Double
    let isRead: Bool
    let comments: Int

    init(_ number: Int) {
        id = number
        title = "The title of article number \(number)"
        author = "Author \(number % 100)"
        link = "https://example.org/articles/of/this/year/\(number)"
        summary = String(repeating: "word ", count: 40)
        tags = ["swift", "a tag that is longer \(number)"]
        published = Date(timeIntervalSince1970: Double(number))
        score = 0.5
        isRead = number % 2 == 0
        comments = number % 7
    }
}

/// A record of ten numbers.
private struct Measures: Codable, Sendable {
    let a, b, c, d, e, f, g, h, i, j: Double

    init(_ number: Int) {
        (a, b, c, d, e) = (Double(number), 1, 2, 3, 4)
        (f, g, h, i, j) = (5, 6, 7, 8, 9)
    }
}

private func bound<Key: Codable & Hashable & Sendable, Value: Codable & Sendable>(
    _ shape: String, count: Int, batch: Int = 1000, _ entry: @escaping (Int) -> (Key, Value)
) -> Scenario {
    Scenario(
        "memory-bound-\(shape)", unit: "%", target: 1.1,
        [
            Variant("larder", needsProcess: true) {
                let manager = attempt { try CacheManager(url: Workplace.path()) }
                let cache: Cache<Key, Value> = attempt {
                    try manager.cache(named: "bound", version: "1", maxAge: .days(7))
                }
                func fill(every step: Int) {
                    for start in stride(from: 0, to: count, by: batch * step) {
                        attempt { try cache.setValues((start..<min(start + batch, count)).map(entry)) }
                    }
                }
                cache.memory.byteLimit = 0
                fill(every: 4)
                let before = residentBytes()
                cache.memory.byteLimit = MemoryLimits.defaultByteLimit
                fill(every: 1)
                let growth = residentBytes() - before
                withExtendedLifetime(cache) {}
                return Double(growth) / Double(MemoryLimits.defaultByteLimit) * 100
            },
            Variant("limit", needsProcess: true) { 100 },
        ])
}

/// The bytes of the process that are in memory; where the system does not tell, the most that there were.
func residentBytes() -> Int {
    #if os(Linux)
    let words = attempt { try String(contentsOfFile: "/proc/self/statm", encoding: .utf8) }.split(separator: " ")
    return (Int(words[1]) ?? 0) * Int(getpagesize())
    #else
    var usage = rusage()
    getrusage(RUSAGE_SELF, &usage)
    return Int(usage.ru_maxrss)
    #endif
}
