import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

struct PageTests {
    private func keys(_ rows: CacheRows, _ range: KeyRange, limit: Int) throws -> [StoredKey] {
        var (found, last): ([StoredKey], PagePosition?) = ([], nil)
        repeat {
            let page = try rows.keys(range, after: last, limit: limit)
            let headers = try rows.headers(range, after: last, limit: limit)
            let entries = try rows.rows(range, after: last, limit: limit)
            #expect(page.rows.count <= limit && headers.rows.map(\.key) == page.rows && headers.next == page.next)
            #expect(entries.rows.map(\.header.key) == page.rows && entries.next == page.next)
            #expect(entries.rows.map(\.header.id) == headers.rows.map(\.id))
            found += page.rows
            last = page.next
        } while last != nil
        return found
    }

    @Test(arguments: [1, 2, 3, 256]) func `pages have all keys in their order, in both directions`(limit: Int) throws {
        let sorted: [StoredKey] = [
            .integer(.min), .integer(-1), .integer(7), .text(""), .text("a"), .text("a\0"), .text("ab"), .text("b"),
            .text("é"), .blob(Data()), .blob(Data([1])), .blob(Data([1, 0])), .blob(Data([255])),
        ]
        try withStores { store in
            let rows = try store.open(.a)
            #expect(try keys(rows, KeyRange(), limit: limit) == [])
            for key in sorted.shuffled() {
                try rows.run(.put([EntryWrite(key: key, payload: Data([1]), writtenAt: 0)]))
            }
            #expect(try keys(rows, KeyRange(), limit: limit) == sorted)
            #expect(try keys(rows, KeyRange(isDescending: true), limit: limit) == sorted.reversed())
            for (prefix, expected) in [
                ("a", ["a", "a\0", "ab"]), ("", ["", "a", "a\0", "ab", "b", "é"]), ("c", []), ("é", ["é"]),
            ] {
                let texts = expected.map(StoredKey.text)
                #expect(try keys(rows, KeyRange(prefix: prefix), limit: limit) == texts)
                #expect(
                    try keys(rows, KeyRange(prefix: prefix, isDescending: true), limit: limit) == texts.reversed())
            }
        }
    }

    @Test func `a list has all rows by time of writing, by access and by size`() throws {
        let place = try StorePlace()
        let store = try place.open()
        let rows = try store.open(.a)
        var meta = RowMeta()
        meta.extendedData = Data(count: 10)
        try rows.run(
            .put(
                [
                    EntryWrite(1, "four", at: 30), EntryWrite(2, "1", at: 10, meta: meta), EntryWrite(3, "22", at: 20),
                    EntryWrite(4, "", at: 20), EntryWrite(5, "55555", at: 40),
                ]))
        var other = try place.otherConnection()
        try other.execute("INSERT INTO used (id, accessed_at) SELECT id, 35 FROM entry WHERE key = 2")
        func list(_ order: RowOrder, isDescending: Bool = false) throws -> [Int64] {
            let list = try rows.list(order, KeyRange(isDescending: isDescending))
            let halves = [0..<2, 2..<list.count]
            return try halves.flatMap { try rows.rows(list, $0).rows }.map { row in
                if case .integer(let key) = row.header.key { key } else { 0 }
            }
        }
        #expect(try list(.written) == [2, 3, 4, 1, 5] && list(.written, isDescending: true) == [5, 1, 4, 3, 2])
        #expect(try list(.accessed) == [3, 4, 1, 2, 5])
        #expect(try list(.size) == [4, 3, 1, 5, 2])
    }

    @Test func `a key of a list that was written again under another id comes once at most`() throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        for key in 1...5 { try rows.put(Int64(key), "x") }
        let list = try rows.list(.written)
        var found = try rows.rows(list, 0..<1).rows.map(\.header.key)
        // SQLite gives the id of the last row to the first key.
        try rows.run(.remove([.integer(5), .integer(1)]))
        try rows.put(1, "again")
        try rows.put(3, "changed")
        found += try rows.rows(list, 1..<5).rows.map(\.header.key)
        #expect(found == [.integer(1), .integer(2), .integer(3), .integer(4)])
    }

    /// The entries 0, 2, 4 … stay, the others come and go.
    @Test func `an iteration during writes has each key at most once, and every entry that stays`() throws {
        let place = try StorePlace()
        let store = try place.open()
        let rows = try store.open(.a)
        try rows.run(.put((0..<1000).map { EntryWrite(Int64($0), "\($0)") }))
        let (isDone, loops) = (Locked(false), Counter())
        let writer = SideThread {
            var random = SystemRandomNumberGenerator()
            while !isDone.value {
                loops.increment()
                let odd = (0..<50).map { _ in Int64.random(in: 0..<500, using: &random) * 2 + 1 }
                try rows.run(.remove(odd.map(StoredKey.integer)))
                try rows.run(.put(odd.prefix(25).map { EntryWrite($0, "new") }))
            }
        }
        try Waiting.until { loops.value > 1 }
        let even = Set((0..<500).map { StoredKey.integer(Int64($0 * 2)) })
        for isDescending in [false, true] {
            let found = try keys(rows, isDescending)
            #expect(Set(found).count == found.count && even.isSubset(of: found))
        }
        for order in [RowOrder.written, .size] {
            let list = try rows.list(order)
            var found: [StoredKey] = []
            for start in stride(from: 0, to: list.count, by: 100) {
                found += try rows.rows(list, start..<min(start + 100, list.count)).rows.map(\.header.key)
            }
            #expect(Set(found).count == found.count && even.isSubset(of: found))
        }
        isDone.change { $0 = true }
        try writer.value()
    }

    @Test func `entries that are added after the start of an iteration are left out, so it ends`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            try rows.run(.put((0..<4).map { EntryWrite(Int64($0 * 10), "old") }))
            var (keys, header, entries): (PagePosition?, PagePosition?, PagePosition?) = (nil, nil, nil)
            var found: [[StoredKey]] = [[], [], []]
            for number in Int64(0)... {
                if number > 20 { Issue.record("it follows the entries that are added ahead of it"); break }
                let page = (
                    try rows.keys(after: keys, limit: 2), try rows.headers(after: header, limit: 2),
                    try rows.rows(after: entries, limit: 2)
                )
                found[0] += page.0.rows
                found[1] += page.1.rows.map(\.key)
                found[2] += page.2.rows.map(\.header.key)
                (keys, header, entries) = (page.0.next, page.1.next, page.2.next)
                guard keys != nil else { break }
                try rows.run(.put([EntryWrite(11 + number, "new"), EntryWrite(31 + number, "new")]))
            }
            #expect(found == Array(repeating: [0, 10, 20, 30].map(StoredKey.integer), count: 3))
        }
    }

    @Test(arguments: [1000, 300_000]) func `a page ends after a megabyte, in rows and files`(inlineLimit: Int) throws {
        let place = try StorePlace()
        let rows = try place.open().open(.a, inlineLimit: inlineLimit)
        let text = String(repeating: "x", count: 290_000)
        for key in 0..<10 { try rows.run(.put([EntryWrite(Int64(key), text)])) }
        let page = try rows.rows(limit: 256)
        #expect(page.rows.map(\.header.key) == (0..<4).map { StoredKey.integer($0) })
        #expect(try rows.rows(after: page.next, limit: 256).rows.first?.header.key == .integer(4))
        let list = try rows.list(.written)
        let listed = try rows.rows(list, 0..<10)
        #expect(listed.rows.count == 4 && listed.end == 4)
        #expect(try rows.rows(list, 4..<6).end == 6)
        #expect(try rows.allRows().count == 10)
    }

    private func keys(_ rows: CacheRows, _ isDescending: Bool) throws -> [StoredKey] {
        var (found, last): ([StoredKey], PagePosition?) = ([], nil)
        repeat {
            let page = try rows.rows(KeyRange(isDescending: isDescending), after: last, limit: 50)
            found += page.rows.map(\.header.key)
            last = page.next
        } while last != nil
        return found
    }

    @Test func `keys come from the index alone, in the order that they are asked for`() throws {
        let place = try StorePlace()
        try place.open().open(.a).put(1, "x")
        var other = try place.otherConnection()
        let statements = SQL.pageTexts
        #expect(statements.count == 12)
        for (index, sql) in statements.enumerated() {
            let plan = try other.plan(sql)
            #expect(plan.contains("entry_key") && !plan.contains("TEMP B-TREE"), "\(sql): \(plan)")
            #expect(plan.contains("COVERING") == (index < 4), "\(sql): \(plan)")
        }
    }
}
