import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Rows with moments and ages as anybody may have written them, many of them on a border.
private struct AgeRows {
    let now: Int64
    var random = Seeded()

    init(now: Int64) { self.now = now }

    private mutating func one<Item>(of items: [Item]) -> Item { items[Int.random(in: 0..<items.count, using: &random)] }

    private mutating func beside(_ number: Int64) -> Int64 { number + Int64.random(in: -2...2, using: &random) }

    private mutating func moment() -> Int64 {
        one(of: [beside(now), beside(now - 1000), beside(0), beside(.min + now), now + 1000, .min, .max])
    }

    private mutating func age() -> String {
        let number = one(of: [
            0, beside(0), beside(1000), beside(1000), beside(now), beside(.max - now), .min, .max - 1,
        ])
        return one(of: [true, true, true, false]) ? "\(number)" : "NULL"
    }

    private mutating func row(_ key: Int) -> String {
        let rule = one(of: ["NULL", "NULL", "0", "1", "1", "2", "2", "3", "3", "99", "-1"])
        return "(\(key), \(moment()), \(moment()), \(rule), \(age()))"
    }

    mutating func write(_ count: Int, at url: URL) throws {
        let rows = (0..<count).map { row($0) }.joined(separator: ",\n")
        var intruder = try Intruder(url)
        try intruder.change(
            """
            WITH made (key, written_at, accessed_at, age_rule, age) AS (VALUES \(rows))
            INSERT INTO entry (cache, key, size, written_at, accessed_at, age_rule, age, revision, payload)
                SELECT cache.id, made.key, 1, made.written_at, made.accessed_at, made.age_rule, made.age, 1 + made.key, x'2A'
                FROM made, cache
            """)
    }
}

/// Ages that anybody may have written into rows: the queries judge them as reads do.
struct AgeRowsTests {
    private let place: StorePlace
    private let manager: CacheManager

    init() throws { (place, manager) = try StorePlace.opened() }

    static let rules: [MaxAge] = [
        .unlimited, .seconds(1), .seconds(1).sinceLastAccess, .seconds(0),
        .until(Date(timeIntervalSince1970: 1_700_000_000)),
        .until(Date(timeIntervalSince1970: 1_699_999_999.999)), .until(.distantFuture),
        .duration(.seconds(Int64.max / 1000)),
    ]

    enum Removal: CaseIterable { case trim, sweep }

    @Test(arguments: rules, Removal.allCases)
    func `a count, a listing, single reads, trims and sweeps judge every age alike`(
        rule: MaxAge, removal: Removal
    ) throws {
        let cache: Cache<Int, Data> = try manager.cache(
            named: "a", version: "1", maxAge: rule, options: CacheOptions(memory: .disabled))
        let rows = 400
        var made = AgeRows(now: SystemClock.milliseconds(of: place.time.now))
        try made.write(rows, at: place.url)
        let comment = Comment(rawValue: "seed \(made.random.seed)")
        // The queries first: who reads a row takes note of a moment that is still to come.
        let (count, isEmpty) = (try cache.count, try cache.isEmpty)
        #expect(try manager.cacheInfo().map(\.count) == [count], comment)
        let served = try (0..<rows).filter { try cache.contains($0) }
        #expect(count == served.count && isEmpty == served.isEmpty, comment)
        #expect(Array(cache.keys) == served, comment)
        #expect(try cache.snapshot().keys.sorted() == served, comment)
        #expect(cache.map(\.key) == served, comment)
        for order in [EntryOrder.written, .accessed, .size] {
            #expect(cache.entries(orderedBy: order).map(\.key).sorted() == served, comment)
        }
        #expect(try cache.count == served.count && cache.isEmpty == served.isEmpty, comment)
        for key in served { #expect(try cache.value(forKey: key) != nil, comment) }
        let gone = try removal == .trim ? cache.trim(toCount: served.count) : cache.removeExpired()
        #expect(gone == rows - served.count, comment)
        #expect(Array(cache.keys) == served, comment)
        try expectInvariants(cache)
    }
}
