import Foundation
import Larder
import LarderTestSupport
import Testing

struct EntryOrderTests {
    private let bench: Workbench

    init() throws {
        bench = try Workbench()
    }

    private func filled() throws -> Cache<String, Int> {
        let cache = try bench.words()
        for (index, key) in ["pear", "apple", "plum", "apricot", "fig"].enumerated() {
            try cache.setValue(index, forKey: key, extendedData: Data(repeating: 0, count: (index * 7) % 5))
            bench.time.advance(by: .seconds(1))
        }
        return cache
    }

    @Test func `entries come in the order that is asked for`() throws {
        let cache = try filled()
        _ = cache["apple"]
        bench.time.advance(by: .seconds(1))
        _ = cache["pear"]
        try bench.manager.flush()
        func keys(_ order: EntryOrder, _ descending: Bool = false) -> [String] {
            cache.entries(orderedBy: order, descending: descending).map(\.key)
        }
        #expect(keys(.key) == ["apple", "apricot", "fig", "pear", "plum"])
        #expect(keys(.key, true) == ["plum", "pear", "fig", "apricot", "apple"])
        #expect(keys(.written) == ["pear", "apple", "plum", "apricot", "fig"])
        #expect(keys(.written, true) == ["fig", "apricot", "plum", "apple", "pear"])
        #expect(keys(.accessed) == ["plum", "apricot", "fig", "apple", "pear"])
        #expect(keys(.accessed, true) == ["pear", "apple", "fig", "apricot", "plum"])
        #expect(keys(.size) == ["pear", "apricot", "apple", "fig", "plum"])
        #expect(keys(.size, true) == ["plum", "fig", "apple", "apricot", "pear"])
        #expect(try bench.isIdle)
    }

    @Test func `prefix and limit narrow the listing, in every order`() throws {
        let cache = try filled()
        #expect(cache.entries(prefix: "ap").map(\.key) == ["apple", "apricot"])
        #expect(cache.entries(descending: true, prefix: "p").map(\.key) == ["plum", "pear"])
        #expect(cache.entries(orderedBy: .written, prefix: "p").map(\.key) == ["pear", "plum"])
        #expect(cache.entries(orderedBy: .accessed, descending: true, limit: 2).map(\.key) == ["fig", "apricot"])
        #expect(cache.entries(limit: 0).map(\.key) == [])
        #expect(cache.entries(limit: -1).map(\.key) == [])
        #expect(cache.entries(orderedBy: .size, limit: .max).map(\.key).count == 5)
        #expect(cache.entries(prefix: "").map(\.key).count == 5)
        #expect(cache.entries(prefix: "zebra").map(\.key) == [])
        #expect(cache.entries(prefix: "apple").map(\.key) == ["apple"])
    }

    @Test func `a prefix compares bytes, up to the last characters there are`() throws {
        let cache = try bench.words()
        let keys = [
            "a", "a\u{10FFFF}", "a\u{10FFFF}b", "b", "\u{10FFFF}", "\u{D7FF}x", "\u{E000}", "e\u{301}", "e", "eé",
        ]
        for key in keys { cache[key] = 1 }
        #expect(cache.entries(prefix: "a").map(\.key) == ["a", "a\u{10FFFF}", "a\u{10FFFF}b"])
        #expect(cache.entries(prefix: "a\u{10FFFF}").map(\.key) == ["a\u{10FFFF}", "a\u{10FFFF}b"])
        #expect(cache.entries(prefix: "\u{10FFFF}").map(\.key) == ["\u{10FFFF}"])
        #expect(cache.entries(prefix: "\u{D7FF}").map(\.key) == ["\u{D7FF}x"])
        #expect(cache.entries(descending: true, prefix: "e").map(\.key) == ["eé", "e"])
        #expect(cache.entries(prefix: "e\u{301}").map(\.key) == ["é"])
    }

    @Test func `a prefix matches nothing where keys are no strings`() throws {
        let cache = try bench.numbers()
        for number in 1...20 { cache[number] = "x" }
        #expect(cache.entries(prefix: "1").map(\.key) == [])
        #expect(cache.entries(prefix: "").map(\.key) == [])
        #expect(cache.entries(orderedBy: .written, prefix: "1").map(\.key) == [])
    }

    @Test(arguments: [EntryOrder.key, .written, .accessed, .size], [false, true])
    func `each entry comes once though the body rewrites and reads`(order: EntryOrder, descending: Bool) throws {
        let cache = try bench.numbers()
        try cache.setValues((0..<700).map { ($0, String(repeating: "x", count: $0 % 13)) })
        var seen: [Int] = []
        for entry in cache.entries(orderedBy: order, descending: descending) {
            seen.append(entry.key)
            // An entry that is written during the pass may be in it.
            guard entry.key < 700 else { continue }
            cache[(entry.key * 31) % 700] = "rewritten \(entry.key)"
            _ = cache[(entry.key * 17) % 700]
            cache[1000 + entry.key] = "new"
            if seen.count == 100 { try bench.manager.flush() }
        }
        #expect(seen.filter { $0 < 700 }.sorted() == Array(0..<700))
        #expect(Set(seen).count == seen.count)
        #expect(try bench.isIdle)
    }

    @Test func `an order over more entries than one scan gives is complete`() throws {
        let cache = try bench.numbers()
        try cache.setValues((0..<20_500).map { ($0, "") })
        #expect(cache.entries(orderedBy: .written, descending: true).map(\.key) == (0..<20_500).reversed())
    }
}
