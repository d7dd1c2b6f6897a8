import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Limits and long removals while other threads and processes write: each call returns, and what it promises holds.
struct BusyLimitTests {
    private let place: StorePlace
    private let clock = StoreClock()

    init() throws { place = try StorePlace() }

    private func entries(_ keys: Range<Int64>, meta: RowMeta = RowMeta()) -> [EntryWrite] {
        keys.map { EntryWrite($0, "x", at: clock.now, meta: meta) }
    }

    // MARK: Limits

    @Test func `a limit holds after each call, beside writers that add more than a slice`() throws {
        let rows = try place.open(clock).open(.a)
        try rows.setLimits(Limits(count: 3000))
        let most = Locked<Int64>(0)
        let check: @Sendable () throws -> Void = {
            let count = try rows.totals().count
            most.change { $0 = max($0, count) }
        }
        let writers = (0..<2).map { writer in
            SideThread {
                for call in Int64(0)..<8 {
                    let first = Int64(writer) * 1_000_000 + call * 1500
                    try rows.run(.put((first..<first + 1500).map { EntryWrite($0, "x") }))
                    try check()
                }
            }
        }
        let single = SideThread {
            for key in Int64(-400)..<0 {
                try rows.put(key, "x")
                try check()
            }
        }
        for writer in writers { try writer.value() }
        try single.value()
        #expect(most.value <= 3300)
        #expect(try rows.totals().count <= 3000)
    }

    @Test func `a limit in bytes holds after a call that adds few large entries among many small ones`() throws {
        let rows = try place.open(clock).open(.a, inlineLimit: 1_000_000)
        try rows.setLimits(Limits(size: 100_000))
        try rows.run(.put((0..<4000).map { EntryWrite(Int64($0), "0123456789abcdefghijklmn") }))
        for key in Int64(-5)..<0 {
            let size = Locked<Int64>(0)
            let text = String(repeating: "x", count: 60_000)
            let put = Change.put([EntryWrite(key, text)]) { [rows] _, _ in
                // The transaction itself has made room.
                do {
                    let bytes = try rows.sizeBesideWriter()
                    size.change { $0 = bytes }
                } catch { Issue.record(error) }
            }
            try rows.run(put)
            #expect(size.value <= 110_000)
            #expect(try rows.totals().size <= 100_000)
        }
    }

    @Test func `a trim ends beside a writer that adds more than a slice, and removes what was too much`() throws {
        let rows = try place.open(clock).open(.a)
        try rows.run(.put(entries(0..<3000)))
        let isTrimmed = Locked(false)
        let writer = SideThread {
            var next: Int64 = 10_000
            while !isTrimmed.value {
                try rows.run(.put((next..<next + 1500).map { EntryWrite($0, "x") }))
                next += 1500
            }
            return next - 10_000
        }
        let trim = SideThread { try rows.trim(to: Limits(count: 1000)) }
        let removed = Result { try trim.value() }
        isTrimmed.change { $0 = true }
        let added = try writer.value()
        // At its begin the writer may have added already.
        #expect(try Int64(removed.get()) >= 2000)
        #expect(try rows.totals().count == 3000 + added - Int64(removed.get()))
    }

    @Test func `a body of a task comes between the slices of an eviction that a task has begun`() async throws {
        let (opened, events, bodies) = (Locked<(Store, CacheRows)?>(nil), Counter(), Counter())
        let store = try place.open { options in
            options.report = { event in
                // The first one is of the transaction that has added the row.
                guard event.isRemoval, let (store, rows) = opened.value, events.increment() == 2 else { return }
                let isDone = SideThread {
                    let waiting = Told<Bool>()
                    Task {
                        try await store.transaction { state in
                            _ = try state.perform(.put([EntryWrite(-1, "y")]), on: rows)
                        }
                        waiting.add(true)
                    }
                    try Waiting.until { waiting.all == [true] }
                }
                do { try isDone.value() } catch { Issue.record(error) }
                bodies.increment()
            }
        }
        let rows = try store.open(.a)
        try await rows.run(.put(entries(0..<12_000)))
        try rows.setLimits(Limits(count: 12_000))
        opened.change { $0 = (store, rows) }
        // It begins an eviction of 600 rows, in its own transaction and one slice more.
        try await rows.put(20_000, "x")
        try await Waiting.until { bodies.value == 1 }
        #expect(try rows.text(-1) == "y")
    }

    @Test func `a write counts no row of a large cache after a commit of another store`() throws {
        let (store, other) = (try place.open(clock), try place.open())
        let (rows, otherRows) = (try store.open(.a), try other.open(.a))
        try rows.setLimits(Limits(count: 30_000))
        try rows.run(.put(entries(0..<20_100)))
        clock.advance(120_000)
        #expect(clock.pending == [])
        try otherRows.put(-1, "other")
        try rows.put(1, "again")
        // Upkeep counts them, at once and on its own thread.
        #expect(clock.pending.first == clock.now)
        clock.advance(0)
        #expect(try rows.totals().count == 20_101)
        // After a count of a large cache nothing is counted for a time.
        try rows.put(2, "again")
        #expect(clock.pending.first != clock.now)
    }

    @Test func `a commit of another store makes a limit hold again for all rows`() throws {
        let (store, other) = (try place.open(clock), try place.open())
        let (rows, otherRows) = (try store.open(.a), try other.open(.a))
        try rows.setLimits(Limits(count: 100))
        try otherRows.run(.put(entries(0..<80)))
        for key in Int64(1000)..<1080 { try rows.put(key, "x") }
        #expect(try rows.totals().count <= 100 && rows.text(1079) == "x")
    }

    // MARK: Long removals

    enum Kind: CaseIterable { case tag, prefix }

    @Test(arguments: Kind.allCases)
    func `a long removal lets other threads write, and keeps what they write`(kind: Kind) throws {
        @Sendable func key(_ number: Int) -> StoredKey { .text("k\(number)") }
        @Sendable func entry(_ number: Int, _ text: String) -> EntryWrite {
            var meta = RowMeta()
            meta.tags = ["t"]
            return EntryWrite(key: key(number), payload: Data(text.utf8), writtenAt: 1000, meta: meta)
        }
        let opened = Locked<CacheRows?>(nil)
        let store = try place.open { options in
            options.report = { [clock] event in
                guard event.isRemoval, let rows = opened.value else { return }
                opened.change { $0 = nil }
                do {
                    try SideThread {
                        try rows.run(.put([entry(20_000, "new"), entry(10_400, "again")]))
                        try rows.run(.change(key(10_399), .touch(at: clock.now, ownAge: nil)))
                    }.value()
                } catch { Issue.record(error) }
            }
        }
        let rows = try store.open(.a)
        for start in stride(from: 0, to: 10_500, by: 500) {
            try rows.run(.put((start..<start + 500).map { entry($0, "x") }))
        }
        try rows.run(.put([EntryWrite(7, "stays")]))
        opened.change { $0 = rows }
        let count = try kind == .tag ? rows.removeAll(tagged: "t") : rows.removeAll(prefix: "k")
        #expect(opened.value == nil)
        let left = try rows.keys(limit: 10).rows
        // The first slice may have had the entry that was written again. Another age leaves the value, which is removed.
        #expect(Set(left) == [.integer(7), key(20_000), key(10_400)] && count <= 10_500)
        #expect(try rows.row(key(10_400))?.payload == Data("again".utf8))
    }

    @Test func `the tags of a retired cache are deleted with its rows, among many of other caches`() throws {
        let store = try place.open(clock)
        let (live, retired) = (try store.open(.rows), try store.open(.a))
        var meta = RowMeta()
        meta.tags = ["a", "c"]
        for start in stride(from: Int64(0), to: 6000, by: 1000) {
            try live.run(.put(entries(start..<start + 1000, meta: meta)))
        }
        meta.tags = ["b", "d"]
        try retired.run(.put(entries(0..<700, meta: meta)))
        try retired.run(.clear)
        #expect(try store.maintain().reclaimed == 700)
        var other = try place.otherConnection()
        #expect(try other.text("SELECT count(*) FROM tag") == "12000")
        #expect(try other.text("SELECT count(*) FROM cache") == "2")
    }

    // MARK: Openings

    @Test func `a store and an unchanged cache open and read while another process writes`() throws {
        let first = try place.open(clock)
        try first.setLimits(StoreLimits(size: 1_000_000))
        try first.open(.a, limits: Limits(count: 100), keepsExpired: 5).put(1, "one")
        try first.close()
        var other = try place.otherConnection()
        try other.execute("BEGIN IMMEDIATE")
        clock.advance(600_000)
        let store = try place.open(busyTimeout: 0, clock) { $0.opener = ("a program", "9.9") }
        try store.setLimits(StoreLimits(size: 1_000_000))
        let rows = try store.open(.a, limits: Limits(count: 100), keepsExpired: 5)
        #expect(try rows.text(1) == "one" && rows.totals().count == 1)
        let error = #expect(throws: StoreError.self) { try rows.put(2, "two") }
        #expect(error?.code == .busy)
        try other.execute("COMMIT")
        // The first write says who has opened it, and when.
        let before = try #require(try store.caches().first)
        #expect(before.openedAt < clock.now && before.opener?.program != "a program")
        try rows.put(2, "two")
        let after = try #require(try store.caches().first)
        #expect(after.openedAt == clock.now && after.opener?.program == "a program")
    }
}

extension CacheRows {
    /// Returns the bytes of the rows in a snapshot, read by another connection than the writer's.
    fileprivate func sizeBesideWriter() throws -> Int64 {
        try SideThread { try self.headers(limit: 100_000).rows.reduce(0) { $0 + $1.size } }.value()
    }
}
