import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

struct CacheRowsTests {
    @Test func `an entry is found, replaced, taken and removed`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            try rows.put(1, "one")
            #expect(try rows.text(1) == "one")
            try rows.put(1, "another")
            #expect(try rows.text(1) == "another")
            #expect(try rows.totals() == Totals(count: 1, size: 7))
            let taken = try rows.run(.take(.integer(1))).taken
            #expect(taken?.payload == Data("another".utf8))
            #expect(try rows.text(1) == nil && rows.totals() == Totals())
            #expect(try rows.run(.take(.integer(1))).taken == nil)
            try rows.put(2, "")
            #expect(try rows.text(2) == "")
            #expect(try rows.run(.remove([.integer(2), .integer(3)])).rows.map(\.key) == [.integer(2)])
            #expect(try rows.totals() == Totals())
        }
    }

    @Test(arguments: [
        StoredKey.text(""), .text("a\0b"), .text("é"), .integer(.min), .integer(.max), .blob(Data()),
        .blob(Data([0, 255])),
    ])
    func `keys of different kinds never share an entry`(key: StoredKey) throws {
        try withStores { store in
            let rows = try store.open(.a)
            for other in [StoredKey.text("1"), .integer(1), .blob(Data("1".utf8))] {
                try rows.run(.put([EntryWrite(key: other, payload: Data([9]), writtenAt: 0)]))
            }
            try rows.run(.put([EntryWrite(key: key, payload: Data([1, 2]), writtenAt: 0)]))
            #expect(try rows.row(key)?.payload == Data([1, 2]))
            #expect(try rows.totals() == Totals(count: 4, size: 5))
        }
    }

    @Test func `of two entries with one key in a request the last is kept`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            let outcome = try rows.run(
                .put([EntryWrite(1, "a"), EntryWrite(2, "b"), EntryWrite(1, "c")]))
            #expect(outcome.rows.map(\.key) == [.integer(1), .integer(2), .integer(1)])
            #expect(try rows.text(1) == "c" && rows.text(2) == "b")
            #expect(try rows.totals() == Totals(count: 2, size: 2))
        }
    }

    @Test func `a put whose condition does not hold changes nothing`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            try rows.put(1, "one")
            #expect(try rows.run(.put([EntryWrite(1, "two")], if: When { false })).rows.isEmpty)
            #expect(try rows.text(1) == "one")
            #expect(try rows.run(.put([EntryWrite(1, "three")], if: When { true })).rows.count == 1)
            try rows.put(2, "new")
            #expect(try rows.text(1) == "three" && rows.text(2) == "new")
        }
    }

    @Test func `attributes come back, and change without the payload`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            var meta = RowMeta()
            meta.cost = 7
            meta.extendedData = Data([1, 2, 3])
            meta.tags = ["x", "y"]
            meta.slidingAge = 5
            try rows.run(.put([EntryWrite(1, "one", meta: meta)]))
            let first = try #require(try rows.row(.integer(1))).header
            #expect(first.meta == meta && first.writtenAt == 1000 && first.expiresAt == nil)
            #expect(try rows.totals() == Totals(count: 1, size: 6))

            try rows.run(.change(.integer(1), .pin(true)))
            try rows.run(.change(.integer(1), .extendedData(Data([4]))))
            try rows.run(.change(.integer(1), .touch(at: 1005, ownAge: .unlimited)))
            let last = try #require(try rows.row(.integer(1))).header
            #expect(last.meta.isPinned && last.meta.extendedData == Data([4]) && last.meta.tags == ["x", "y"])
            #expect(
                last.writtenAt == 1005 && last.end == .max && last.meta.slidingAge == nil
                    && last.revision != first.revision)
            #expect(try rows.totals() == Totals(count: 1, size: 4))
            #expect(try rows.run(.change(.integer(9), .pin(true))).rows.isEmpty)
        }
    }

    @Test func `a write keeps the pin if it is asked to, and nothing else`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            var meta = RowMeta()
            meta.isPinned = true
            meta.extendedData = Data([1])
            try rows.run(.put([EntryWrite(1, "one", meta: meta)]))
            try rows.run(.put([EntryWrite(1, "two", keepsPin: true)]))
            let header = try #require(try rows.row(.integer(1))).header
            #expect(header.meta.isPinned && header.meta.extendedData == nil)
            try rows.run(.put([EntryWrite(1, "three")]))
            #expect(try rows.row(.integer(1))?.header.meta.isPinned == false)
        }
    }

    @Test func `a clear hides all rows at once, for all handles, and they go on`() throws {
        try withStores { store in
            let (rows, other) = (try store.open(.a), try store.open(.a))
            for key in 0..<10 { try rows.put(Int64(key), "x") }
            #expect(try rows.run(.clear).cleared == Totals(count: 10, size: 10))
            #expect(try other.text(1) == nil && other.totals() == Totals())
            try other.put(1, "new")
            #expect(try rows.text(1) == "new")
            let deleted = Locked<[Int]>([])
            for _ in 0..<4 {
                try store.transaction { state in
                    let count = try state.reclaim(atMost: 6).deleted
                    deleted.change { $0.append(count) }
                }
            }
            #expect(deleted.value == [6, 4, 0, 0])
            #expect(try rows.text(1) == "new")
        }
    }

    @Test func `rows of several retired caches are deleted, whatever order they retire in, and no others`() throws {
        let place = try StorePlace()
        let store = try place.open()
        func rows(_ name: String, _ version: Int) throws -> CacheRows {
            try store.open(CacheDeclaration(name: name, version: "\(version)", codec: "data", ageRule: .unlimited))
        }
        let kept = try rows("kept", 1)
        for name in ["b", "a"] { try rows(name, 1).run(.put((0..<20).map { EntryWrite(Int64($0), "x") })) }
        try kept.run(.put((0..<20).map { EntryWrite(Int64($0), "kept") }))
        _ = try rows("b", 2)
        try store.transaction { _ = try $0.reclaim(atMost: 15) }
        _ = try rows("a", 2)
        for _ in 0..<8 { try store.transaction { _ = try $0.reclaim(atMost: 15) } }
        var other = try place.otherConnection()
        #expect(try other.texts("SELECT DISTINCT name FROM cache ORDER BY name") == ["a", "b", "kept"])
        #expect(try other.text("SELECT count(*) FROM cache") == "3")
        #expect(try other.text("SELECT count(*) FROM entry") == "20")
        #expect(try kept.totals() == Totals(count: 20, size: 80))
    }

    @Test func `each write of an entry gives its rows of tags the new revision`() throws {
        let place = try StorePlace()
        let store = try place.open()
        let rows = try store.open(.a)
        var meta = RowMeta()
        meta.tags = ["x", "y"]
        let writes: [Change] = [
            .put([EntryWrite(1, "one", meta: meta)]), .change(.integer(1), .pin(true)),
            .change(.integer(1), .touch(at: 5, ownAge: nil)), .put([EntryWrite(1, "two", meta: meta)]),
        ]
        var other = try place.otherConnection()
        for write in writes {
            try rows.run(write)
            let tags = try other.texts("SELECT tag FROM tag JOIN entry ON entry = id AND tag.revision = entry.revision")
            #expect(tags == ["x", "y"])
        }
    }

    @Test(arguments: [
        CacheDeclaration(name: "a", version: "2", codec: "data", ageRule: .unlimited),
        CacheDeclaration(name: "a", version: "1", codec: "cbor", ageRule: .unlimited),
    ])
    func `an open under another version or codec deletes all entries, and supersedes the older handle`(
        declaration: CacheDeclaration
    ) throws {
        try withStores { store in
            let old = try store.open(.a)
            try old.put(1, "old")
            let new = try store.open(declaration)
            #expect(try new.text(1) == nil && new.totals() == Totals())
            #expect(try old.text(1) == nil && old.totals() == Totals() && old.isSuperseded())
            let error = #expect(throws: StoreError.self) { try old.put(1, "again") }
            #expect(error?.code == .superseded)
            try new.put(1, "new")
            #expect(try new.text(1) == "new")
        }
    }

    @Test func `a handle with another age rule supersedes no handle`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            try rows.put(1, "one")
            let aged = try store.open(
                CacheDeclaration(name: "a", version: "1", codec: "data", ageRule: .sinceWrite(5)))
            #expect(try aged.text(1) == "one" && rows.text(1) == "one")
        }
    }

    @Test(arguments: [
        "payload = x'00'", "written_at = written_at + 1", "expires_at = 5", "meta = x'01'", "checksum = checksum + 1",
        "meta = x'ff'", "key = 2",
    ])
    func `a row of which a column has changed is a miss`(change: String) throws {
        let place = try StorePlace()
        let store = try place.open()
        let rows = try store.open(.a)
        try rows.put(1, "one")
        try rows.put(3, "three")
        var other = try place.otherConnection()
        try other.execute("UPDATE entry SET \(change) WHERE key = 1")
        #expect(try rows.text(1) == nil && rows.text(2) == nil)
        #expect(try rows.text(3) == "three")
        try rows.put(1, "again")
        #expect(try rows.text(1) == "again")
    }
}
