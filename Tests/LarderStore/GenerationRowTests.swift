import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Damaged and crafted rows of the tables that say what a store has.
struct IncarnationRowTests {
    private static let names = ["alpha", "beta", "gamma"]

    private static func declaration(_ name: String) -> CacheDeclaration {
        CacheDeclaration(name: name, version: "1.2.3", codec: "data", ageRule: .sinceWrite(1 << 40))
    }

    /// Writes three caches with limits, tags and accesses; the last one has a retired incarnation too.
    private static func fill(_ store: Store) throws {
        for name in names {
            let rows = try store.open(declaration(name), limits: Limits(count: 1000, size: 1 << 30))
            for key in 0..<4 {
                var meta = RowMeta()
                meta.tags = ["t"]
                try rows.run(.put([EntryWrite(Int64(key), name, meta: meta)]))
            }
        }
        let last = try store.open(declaration("gamma"))
        try last.run(.clear)
        try last.run(.put((0..<4).map { EntryWrite(Int64($0), "gamma") }))
    }

    /// Returns what is wrong with a store in which a bit was changed.
    private static func problems(_ place: StorePlace) throws -> [String] {
        // The clock stands still, so no timer fires.
        let store = try place.open()
        var problems: [String] = []
        for name in names {
            let rows = try again { try store.open(declaration(name)) }
            let found = try again { try rows.allRows().map { String(decoding: $0.payload, as: UTF8.self) } }
            if found != Array(repeating: name, count: 4) { problems.append("\(name) has \(found)") }
        }
        _ = try again { try store.maintain() }
        let rows = try again { try store.open(declaration("alpha")) }
        try again { try rows.put(9, "new") }
        if try rows.text(9) != "new" { problems.append("A put is not read back.") }
        if try store.verify(repairing: true).damagedCount > 0 { problems.append("An entry is damaged.") }
        for name in names where try store.open(declaration(name)).totals().count < 4 {
            problems.append("\(name) is lost")
        }
        problems += try store.verify().problems
        try store.close()
        return problems
    }

    /// Runs a call, and once more if it has met the damage.
    private static func again<R>(_ call: () throws -> R) throws -> R {
        do { return try call() } catch let error as StoreError where error.code == .corrupt { return try call() }
    }

    @Test(arguments: [false, true])
    func `whatever bit of the table of caches or of its indexes is wrong, each entry is there`(hasLog: Bool) throws {
        let sample = try StorePlace()
        let store = try sample.open()
        try Self.fill(store)
        try store.close()
        if hasLog {
            // The log has a page of another table.
            var other = try sample.otherConnection()
            try other.execute("UPDATE store SET free_space_floor = NULL, size_limit = 1 << 40")
        }
        var other = try sample.otherConnection()
        let roots = try other.texts(
            "SELECT rootpage FROM sqlite_schema WHERE name IN ('cache', 'cache_live', 'cache_copy')"
        ).compactMap { Int($0) }
        try #require(roots.count == 3)
        let files = try sample.folder.contents()
        let main = try #require(files["store.sqlite"] ?? nil)
        var bits = roots.flatMap { Array(($0 - 1) * 4096 * 8..<$0 * 4096 * 8) }
        // Heads and cells: all of them, or one bit of a byte. What is between is not read.
        let isRead: (Int) -> Bool = { main[$0 / 8] != 0 || $0 / 8 % 4096 < 64 }
        let isChosen: (Int) -> Bool = { LongTests.areEnabled || $0 % 8 == $0 / 8 % 8 }
        bits = bits.filter { isRead($0) ? isChosen($0) : LongTests.areEnabled && $0 % 101 == 0 }
        for bit in bits {
            let place = try StorePlace()
            var changed = files
            var bytes = main
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            changed.updateValue(bytes, forKey: "store.sqlite")
            try place.folder.restore(changed)
            let found: [String]
            do { found = try SideThread { try Self.problems(place) }.value() } catch { found = ["\(error)"] }
            #expect(found == [], "byte \(bit / 8 % 4096) of page \(bit / 8 / 4096 + 1), bit \(bit % 8)")
        }
        #expect(bits.count > 300)
    }

    // MARK: Crafted numbers

    /// A value of each kind for a column of numbers.
    private static func number(_ random: inout Seeded) -> String {
        let numbers: [Int64] = [.min, .min + 1, -1, 0, 1, 2, 3, 500, 1 << 31, 1 << 40, 1 << 62, .max - 1, .max]
        return Int.random(in: 0..<4, using: &random) == 0
            ? "\(Int64.random(in: .min ... .max, using: &random))" : "\(numbers.randomElement(using: &random)!)"
    }

    private static let columns: [String: [String]] = [
        "cache": [
            "id", "age_rule", "age", "count_limit", "size_limit", "keeps_expired", "state", "opened_at", "checksum",
            "name", "version", "codec",
        ],
        "store": ["size_limit", "free_space_floor", "opened_at", "program"],
        "used": ["id", "accessed_at"],
        "tag": ["cache", "entry", "revision", "tag"],
        "activity": ["day", "counter", "value", "cache"],
    ]

    private static func statement(_ random: inout Seeded) -> String {
        let table = columns.keys.sorted().randomElement(using: &random)!
        let column = columns[table]!.randomElement(using: &random)!
        let isText =
            ["name", "version", "codec", "tag", "program"].contains(column) || (table, column) == ("activity", "cache")
        let value = isText ? ["'alpha'", "'beta'", "''", "'x'"].randomElement(using: &random)! : number(&random)
        let place = Int.random(in: 0..<6, using: &random)
        // A crafted row fits its checksum, or has none.
        let seal = table == "cache" && column != "checksum" && Bool.random(using: &random) ? ", checksum = 0" : ""
        return "UPDATE OR IGNORE \(table) SET \(column) = \(value)\(seal) WHERE "
            + (["tag", "activity"].contains(table)
                ? "true" : "rowid IN (SELECT rowid FROM \(table) LIMIT 1 OFFSET \(place % 4))")
    }

    @Test func `whatever numbers the tables have, no call traps, hangs or gives a wrong value`() throws {
        let sample = try StorePlace()
        let store = try sample.open()
        try Self.fill(store)
        try store.close()
        var sampleFile = try sample.otherConnection()
        try sampleFile.execute("INSERT INTO activity SELECT name, 0, 1, 5 FROM cache WHERE state = 0")
        let files = try sample.folder.contents()
        let seed = Seeded().seed
        for round in 0..<(LongTests.areEnabled ? 2000 : 50) {
            var random = Seeded(seed &+ UInt64(round))
            let statements = (0..<Int.random(in: 1...3, using: &random)).map { _ in Self.statement(&random) }
            let place = try StorePlace()
            try place.folder.restore(files)
            do {
                var other = try place.otherConnection()
                for statement in statements { try other.execute(statement) }
            } catch let error as SQLiteError where .constraint ~= error.code {}
            let found: [String]
            do { found = try SideThread { try Self.wrongValues(place) }.value() } catch { found = ["\(error)"] }
            #expect(found == [], "\(statements), seed \(seed), round \(round)")
        }
    }

    /// Uses a store, and returns what is wrong.
    private static func wrongValues(_ place: StorePlace) throws -> [String] {
        let clock = StoreClock()
        let store = try Store.open(place.path, clock.options)
        try store.setLimits(StoreLimits())
        var problems: [String] = []
        for name in names {
            let rows = try store.open(declaration(name), limits: Limits(count: 1000, size: 1 << 30))
            // A cache whose row was given another id or name may have lost its entries, and has none of another one.
            for row in try rows.allRows() where String(decoding: row.payload, as: UTF8.self) != name {
                problems.append("\(name) has an entry of another cache")
            }
            try rows.put(1, name)
            if try rows.text(1) != name { problems.append("A put is not read back.") }
            _ = try (
                rows.totals(), rows.count(at: clock.now), rows.rows(tagged: "t"), rows.list(.accessed), store.caches()
            )
        }
        clock.advance(100_000)
        try store.maintain()
        _ = try store.verify(repairing: true)
        let rows = try store.open(declaration("beta"))
        try rows.run(.clear)
        _ = try rows.trim(to: Limits(count: 0))
        try store.maintain()
        problems += try store.verify().problems
        try store.close()
        return problems
    }

    @Test(arguments: [Int64.min, -5, .max - 1, .max])
    func `a row with the largest or the smallest id does not keep upkeep from ending`(id: Int64) throws {
        let place = try StorePlace()
        let store = try place.open()
        let (rows, cleared) = (try store.open(.a), try store.open(Self.declaration("cleared")))
        try rows.put(1, "one")
        try cleared.run(.put((0..<20).map { EntryWrite($0, "x") }))
        var other = try place.otherConnection()
        try other.execute("UPDATE entry SET id = \(id) WHERE cache = (SELECT id FROM cache WHERE name = 'a')")
        try cleared.run(.clear)
        let report = try SideThread { try store.maintain() }.value()
        #expect(report.reclaimed == 20)
        #expect(try rows.text(1) == "one" && cleared.totals().count == 0)
        #expect(try other.text("SELECT count(*) FROM cache WHERE state = 1") == "0")
    }

    @Test func `a limit below zero is no limit`() throws {
        let place = try StorePlace()
        let store = try place.open()
        try store.open(.a).run(.put((0..<20).map { EntryWrite($0, "x") }))
        try store.close()
        var other = try place.otherConnection()
        try other.execute(
            """
            UPDATE cache SET count_limit = -9223372036854775808, size_limit = -1, checksum = 0;
            UPDATE store SET size_limit = -9223372036854775807, free_space_floor = -3
            """)
        let again = try place.open()
        try again.setLimits(StoreLimits())
        let rows = try again.open(.a)
        try rows.put(30, "x")
        try again.maintain()
        #expect(try rows.totals().count == 21)
    }

    @Test func `an incarnation never gets an id that another one has`() throws {
        let store = try Store.inMemory()
        for name in Self.names {
            // The same numbers come again.
            try store.transaction { $0.seed = 7 }
            let rows = try store.open(Self.declaration(name))
            try rows.put(1, name)
        }
        for name in Self.names { #expect(try store.open(Self.declaration(name)).text(1) == name) }
        for name in Self.names {
            try store.transaction { $0.seed = 7 }
            try store.open(Self.declaration(name)).run(.clear)
        }
        #expect(try Self.names.map { try store.open(Self.declaration($0)).totals().count } == [0, 0, 0])
    }
}

extension StoreClock {
    fileprivate var options: Store.Options {
        var options = Store.Options()
        options.busyTimeout = 60_000
        options.time = time
        return options
    }
}
