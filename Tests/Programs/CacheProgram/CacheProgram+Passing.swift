import Foundation
import Larder
import LarderSQLite
import LarderTestSupport

/// Passes over more than anybody would hold.
extension CacheProgram {
    private static let rows = 200_000

    /// Goes over many entries in every form, and says how far the memory in use grew meanwhile, in kilobytes.
    static func pass(_ path: String) async throws {
        let cache = try filled(path)
        // The first pages bring in code and tables.
        for (key, _) in cache where key == 2000 { break }
        for key in cache.keys where key == 2000 { break }
        for entry in cache.entries(orderedBy: .written) where entry.key == 2000 { break }
        for try await (key, _) in cache.async where key == 2000 { break }

        var growth = try Growth()
        for (key, _) in cache { try growth.note(key) }
        growth.say("entries")
        growth = try Growth()
        for key in cache.keys { try growth.note(key) }
        growth.say("keys")
        growth = try Growth()
        for entry in cache.entries(orderedBy: .written) { try growth.note(entry.key) }
        growth.say("ordered")
        growth = try Growth()
        for try await (key, _) in cache.async { try growth.note(key) }
        growth.say("async")
        try await cache.manager.close()
    }

    /// A sub-cache of many rows, copied from one that was written, which takes a fraction of the time.
    private static func filled(_ path: String) throws -> Cache<Int, Data> {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: configuration { _ in })
        let cache: Cache<Int, Data> = try manager.cache(
            named: "many", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled))
        try cache.setValue(Data(count: 100), forKey: 0)
        var connection = try Connection.open(.file(path), .init(role: .writer, busyMilliseconds: 0))
        try connection.changeRows(
            """
            WITH RECURSIVE number (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM number WHERE value < \(rows) - 1)
            INSERT INTO entry (cache, key, size, written_at, accessed_at, revision, payload)
            SELECT cache, number.value, size, written_at, accessed_at, revision + number.value, payload
            FROM number, entry WHERE entry.key = 0
            """, files: URL(fileURLWithPath: path))
        return cache
    }

    /// How much more memory is in use than at a start, looked at now and then.
    private struct Growth {
        private let start: Int
        private var most = 0
        private var count = 0

        init() throws { start = try Self.resident() }

        mutating func note(_ key: Int) throws {
            count += 1
            if count.isMultiple(of: 10_000) { most = max(most, try Self.resident() - start) }
        }

        func say(_ form: String) { LarderTestSupport.say(form, count, most) }

        private static func resident() throws -> Int {
            let words = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
            return (Int(words[1]) ?? 0) * Int(getpagesize()) / 1000
        }
    }
}
