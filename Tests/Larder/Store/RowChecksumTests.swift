import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Rows that were damaged, which their checksums tell.
struct RowChecksumTests {
    private let place: StorePlace
    private let manager: CacheManager

    init() throws { (place, manager) = try StorePlace.opened() }

    private func cache() throws -> Cache<Int, String> {
        try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled, inlineLimit: 1000))
    }

    /// Runs SQL that leaves the checksums as they are.
    private func damage(_ sql: String) throws {
        var shell = try Intruder(place.url)
        try shell.execute(sql)
    }

    // case 329
    @Test(arguments: [
        "payload = CAST('valuX 2' AS BLOB)", "written_at = written_at + 1", "size = size + 1",
        "age_rule = 1, age = 5000000", "age_rule = 3, age = 9000000000000000", "cost = 7", "is_pinned = 1",
        "extended = x'0102'", "checksum = checksum + 1", "checksum = NULL",
    ])
    func `a row of which one column has changed is a miss and an event, and the others are served`(
        change: String
    ) async throws {
        var events = manager.steadyEvents.makeAsyncIterator()
        try expectMiss(after: change)
        let event = try #require(await events.next())
        #expect(event.kind == .corruptEntry && event.key == "2")
    }

    private func expectMiss(after change: String) throws {
        let cache = try cache()
        for key in 1...3 { try cache.setValue("value \(key)", forKey: key) }
        try damage("UPDATE entry SET \(change) WHERE key = 2")
        #expect(cache[2] == nil)
        #expect(try cache.values(forKeys: [1, 2, 3]) == [1: "value 1", 3: "value 3"])
        #expect(cache.map(\.key) == [1, 3])
        try cache.setValue("again", forKey: 2)
        #expect(try cache.value(forKey: 2) == "again")
    }

    // case 329
    @Test func `two rows whose payloads were swapped, with their checksums, are misses`() throws {
        let cache = try cache()
        for key in 1...4 { try cache.setValue("value \(key)", forKey: key) }
        try damage(
            """
            UPDATE entry SET payload = other.payload, checksum = other.checksum
            FROM (SELECT key, payload, checksum FROM entry) AS other
            WHERE other.key = 5 - entry.key AND entry.key IN (2, 3)
            """)
        #expect(cache[2] == nil && cache[3] == nil)
        #expect(cache[1] == "value 1" && cache[4] == "value 4")
    }

    // case 329
    @Test func `a row of a large value that names the file of another key is a miss`() throws {
        let cache = try cache()
        for key in 1...2 { try cache.setValue(String(repeating: "\(key)", count: 2000), forKey: key) }
        try damage("UPDATE entry SET (file, checksum) = (SELECT file, checksum FROM entry WHERE key = 1) WHERE key = 2")
        #expect(try cache.value(forKey: 2) == nil)
        #expect(try cache.value(forKey: 1)?.count == 2000)
    }

    @Test func `other extended data and a pin that is kept leave a row sound`() throws {
        let cache = try cache()
        for key in 1...2 {
            let value = String(repeating: "v", count: key == 1 ? 10 : 2000)
            try cache.setValue(value, forKey: key, cost: 3, maxAge: .hours(2), extendedData: Data([1]), pinned: true)
            try cache.setExtendedData(Data([2, 3]), forKey: key)
            #expect(try cache.value(forKey: key) == value)
        }
        for key in 1...2 { #expect(try cache.entry(forKey: key)?.extendedData == Data([2, 3])) }
        try cache.update(1) { $0 = "other" }
        #expect(try cache.value(forKey: 1) == "other" && cache.metadata(forKey: 1)?.isPinned == true)
        #expect(try manager.verify().isHealthy)
    }
}
