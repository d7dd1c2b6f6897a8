import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

struct SchemaTests {
    @Test(arguments: [
        """
        INSERT INTO entry (cache, key, revision, written_at, checksum, payload)
            SELECT cache, key, revision, written_at, checksum, payload FROM entry
        """,
        """
        INSERT INTO cache (name, version, codec, age_rule, age, state, opened_at)
            SELECT name, '2', codec, age_rule, age, state, opened_at FROM cache
        """,
    ])
    func `no key can have two rows, and no name two live caches`(sql: String) throws {
        let (place, manager) = try TemporaryStore.opened()
        let cache: Cache<Int, Int> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        cache[1] = 1
        var shell = try Intruder(place.url)
        do {
            try shell.execute(sql)
            Issue.record("A second row was inserted.")
        } catch let error as SQLiteError {
            #expect(error.code.primary == .constraint)
        }
        #expect(try cache.disk.value(forKey: 1) == 1)
    }
}
