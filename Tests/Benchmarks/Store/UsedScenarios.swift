import Foundation
import LarderStore

extension Scenario {
    /// The 1,000 least recently used of 1,000,000 entries are chosen and deleted, next to one look at each entry of the
    /// yardstick's index of keys.
    static let used: [Scenario] = [
        Scenario(
            name: "evict 1,000 of 1,000,000", keys: 1, goal: 1.0, addsNothing: true,
            raw: { bench in
                let subject = try bench.used.get()
                bench.measure { subject.raw.scanKeys() }
            },
            store: { bench in
                let subject = try bench.used.get()
                let count = try subject.rows.totals().count
                var removed = 0
                try bench.measure { removed = try subject.rows.trim(to: Limits(count: count - 1000)) }
                precondition(removed == 1000)
            })
    ]
}

/// A million small entries, of which four tenths were used since they were written.
final class UsedSubjects {
    static let count = 1_000_000

    let raw: Raw
    let rows: CacheRows

    init(_ folder: URL) throws {
        raw = Raw(folder.appendingPathComponent("used-raw.sqlite").path)
        let store = try Store.open(folder.appendingPathComponent("used-store.sqlite").path)
        rows = try store.open(
            CacheDeclaration(name: "a", version: "1", codec: "data", ageRule: .unlimited), accessGrain: 0)
        for start in stride(from: 0, to: Self.count, by: 5000) {
            let keys = (start..<start + 5000).map { _ in Int64.random(in: 0 ... .max) }
            raw.transaction { for key in keys { raw.set(key, Data(count: 50)) } }
            try rows.run(
                .put(keys.map { EntryWrite(key: .integer($0), payload: Data(count: 50), writtenAt: 1) }, if: .always))
        }
        var last: StoredKey?
        repeat {
            let page = try rows.facts(after: last, limit: 4000)
            for facts in page.rows where Int.random(in: 0..<10) < 4 { rows.noteAccess(to: facts, at: 2) }
            try store.maintain()
            last = page.next
        } while last != nil
    }
}
