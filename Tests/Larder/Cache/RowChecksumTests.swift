import Foundation
import Larder
import LarderTestSupport
import Testing

/// Rows that another program changed without their checksums.
struct RowChecksumTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache() throws -> Cache<Int, String> {
        try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled, inlineLimit: 1000))
    }

    private func damage(_ sql: String) throws {
        var shell = try Intruder(place.url)
        try shell.execute(sql)
    }

    /// The first is the encoding of "valuX 2".
    private static let changes = [
        "payload = x'6776616C75582032'", "payload = NULL", "written_at = written_at + 1",
        "expires_at = 9000000000000000", "meta = x'01'", "meta = x'FF'", "checksum = checksum + 1",
    ]

    @Test(arguments: changes)
    func `a row of which one column has changed is a miss and an event, and the others are served`(
        change: String
    ) async throws {
        var events = manager.steadyEvents.makeAsyncIterator()
        try expectMiss(after: change)
        let event = try #require(await events.next())
        #expect(event.kind == .corruptEntry && event.cacheName == "a" && event.key == "2")
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
        #expect(try manager.verify().isHealthy)
    }

    @Test func `two rows whose payloads were exchanged, with their checksums, are misses`() throws {
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

    @Test func `a row that names the file of another key is a miss, and no key gets the value of another`() throws {
        let cache = try cache()
        func value(_ key: Int) -> String { String(repeating: "\(key)", count: 2000) }
        for key in 1...2 { try cache.setValue(value(key), forKey: key) }
        try damage("UPDATE entry SET (file, checksum) = (SELECT file, checksum FROM entry WHERE key = 1) WHERE key = 2")
        #expect(try cache.value(forKey: 2) == nil)
        // The file is deleted with the row of key 2, in the background.
        for key in 3...6 { try cache.setValue(value(key), forKey: key) }
        #expect(try [nil, value(1)].contains(cache.value(forKey: 1)))
        for key in 3...6 { #expect(try cache.value(forKey: key) == value(key)) }
        try cache.setValue(value(1), forKey: 1)
        #expect(try cache.value(forKey: 1) == value(1))
    }

    @Test func `other attributes leave rows and files sound`() throws {
        let cache = try cache()
        for (key, count) in [(1, 10), (2, 2000)] {
            let value = String(repeating: "v", count: count)
            try cache.setValue(
                value, forKey: key, cost: 3, maxAge: .hours(2), extendedData: Data([1]), tags: ["t"], pinned: true)
            try cache.setExtendedData(Data([2, 3]), forKey: key)
            #expect(try cache.touch(key, maxAge: .hours(3)) && cache.touch(key))
            #expect(try cache.setPinned(false, forKey: key) && cache.setPinned(true, forKey: key))
            #expect(try cache.value(forKey: key) == value)
            #expect(try cache.entry(forKey: key)?.extendedData == Data([2, 3]))
            try cache.update(key) { $0 = "other" }
            #expect(try cache.value(forKey: key) == "other" && cache.metadata(forKey: key)?.isPinned == true)
        }
        #expect(try manager.verify().isHealthy)
    }
}
