import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Reads, counts, writes and passes of upkeep judge the age of an entry by one rule.
///
/// The clock begins at 1,000,000, and stands still unless a test advances it.
struct AgeTests {
    /// An entry that is written at 1,000,000.
    struct AgedEntry: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The rule of the cache.
        let rule: AgeRule
        var expiresAt: Int64?
        var slidingAge: Int64?
        /// The last moment at which the entry is served, if it is not read in the meantime.
        var end: Int64 = 1_005_000

        func write(tags: [String] = []) -> EntryWrite {
            var meta = RowMeta()
            (meta.slidingAge, meta.tags) = (slidingAge, tags)
            return EntryWrite(
                key: .integer(1), payload: Data("x".utf8), writtenAt: 1_000_000, expiresAt: expiresAt, meta: meta)
        }
    }

    private let place: StorePlace
    private let clock = StoreClock()

    init() throws { place = try StorePlace() }

    private func declaration(_ rule: AgeRule) -> CacheDeclaration {
        CacheDeclaration(name: "a", version: "1", codec: "data", ageRule: rule)
    }

    private func open(_ rule: AgeRule) throws -> (Store, CacheRows) {
        let store = try place.open(clock)
        return (store, try store.open(declaration(rule)))
    }

    /// Returns an entry without an end.
    private func lasting(_ key: Int64) -> EntryWrite {
        EntryWrite(key: .integer(key), payload: Data("x".utf8), writtenAt: clock.now, expiresAt: .max)
    }

    /// Expects every kind of read, and the count, to find entry 1 with an end.
    private func expectEnd(
        _ end: Int64, _ rows: CacheRows, others: Int64 = 0, at place: SourceLocation = #_sourceLocation
    ) throws {
        let key = StoredKey.integer(1)
        let list = try rows.list(.written)
        let single = try [rows.row(key)?.header, rows.header(key), rows.rows([key]).first?.header].compactMap { $0 }
        let listed = try rows.rows(list, 0..<list.count).rows.map(\.header)
        let pages = try rows.headers().rows + rows.rows().rows.map(\.header)
        let ends = (single + (listed + pages).filter { $0.key == key }).map(\.end)
        #expect(ends == Array(repeating: end, count: 6), sourceLocation: place)
        #expect(try rows.count(at: end) == others + 1, sourceLocation: place)
        if end != .max { #expect(try rows.count(at: end + 1) == others, sourceLocation: place) }
    }

    /// Expects that upkeep leaves entry 1 at exactly its end, and removes it a millisecond later.
    private func expectRemoval(
        after end: Int64, _ store: Store, _ rows: CacheRows, others: Int64 = 0,
        at place: SourceLocation = #_sourceLocation
    ) throws {
        clock.advance(end - clock.now)
        #expect(try store.maintain().expired == 0 && rows.totals().count == others + 1, sourceLocation: place)
        clock.advance(1)
        #expect(try store.maintain().expired == 1 && rows.totals().count == others, sourceLocation: place)
        #expect(try rows.text(1) == nil && store.maintain().expired == 0, sourceLocation: place)
    }

    // MARK: One rule

    static let aged = [
        AgedEntry(testDescription: "since the write", rule: .sinceWrite(5000)),
        AgedEntry(testDescription: "since the access", rule: .sinceAccess(5000)),
        AgedEntry(testDescription: "until a moment", rule: .until(1_005_000)),
        AgedEntry(testDescription: "an own end", rule: .unlimited, expiresAt: 1_005_000),
        AgedEntry(testDescription: "an earlier own end", rule: .sinceWrite(60_000), expiresAt: 1_005_000),
        AgedEntry(testDescription: "a later own end", rule: .sinceWrite(1000), expiresAt: 1_005_000),
        AgedEntry(testDescription: "an own sliding age", rule: .unlimited, slidingAge: 5000),
        AgedEntry(testDescription: "a longer sliding age", rule: .sinceWrite(1000), slidingAge: 5000),
        AgedEntry(testDescription: "a shorter sliding age", rule: .sinceAccess(60_000), slidingAge: 5000),
    ]
    static let endless = [
        AgedEntry(testDescription: "unlimited", rule: .unlimited, end: .max),
        AgedEntry(testDescription: "no end of its own", rule: .sinceWrite(5000), expiresAt: .max, end: .max),
    ]

    @Test(arguments: aged + endless, [false, true])
    func `an entry stays at exactly its end, and has expired a millisecond later`(
        entry: AgedEntry, isInMemory: Bool
    ) throws {
        var options = Store.Options()
        options.time = clock.time
        let store = try isInMemory ? Store.inMemory(options) : Store.open(place.path, options)
        let (rows, memory) = (try store.open(declaration(entry.rule)), MemoryProbe())
        rows.attach(memory)
        try rows.run(.put([entry.write(), lasting(2)]))
        try expectEnd(entry.end, rows, others: 1)
        if entry.end == .max {
            clock.advance(31_536_000_000)
            #expect(try store.maintain().expired == 0 && rows.totals().count == 2)
            return
        }
        try expectRemoval(after: entry.end, store, rows, others: 1)
        #expect(try rows.keys().rows == [.integer(2)])
        #expect(memory.removed.map(\.key) == [.integer(1)] && memory.removed.map(\.cause) == [.expired])
    }

    @Test(arguments: [AgeRule.sinceWrite(0), .sinceWrite(-1), .sinceAccess(0)])
    func `an entry whose age is 0 or less has expired at once`(rule: AgeRule) throws {
        let (store, rows) = try open(rule)
        try rows.run(.put([EntryWrite(1, "x", at: clock.now)]))
        #expect(try #require(try rows.header(.integer(1))).end < clock.now && rows.count(at: clock.now) == 0)
        #expect(try store.maintain().expired == 1 && rows.totals().count == 0)
    }

    @Test func `a later open with another age rule holds for the older handles of all stores`() throws {
        let (store, rows) = try open(.unlimited)
        let otherRows = try place.open().open(declaration(.unlimited))
        try rows.run(.put([EntryWrite(1, "x", at: clock.now)]))
        let rules: [(AgeRule, Int64)] = [
            (.sinceWrite(50_000), 1_050_000), (.until(1_002_000), 1_002_000), (.unlimited, .max),
            (.sinceAccess(9000), 1_009_000), (.sinceWrite(1000), 1_001_000),
        ]
        for (rule, end) in rules {
            _ = try store.open(declaration(rule))
            for old in [rows, otherRows] { try expectEnd(end, old) }
        }
        try expectRemoval(after: 1_001_000, store, rows)
    }

    @Test func `an entry with a later moment of its write is served until it has expired`() throws {
        let (store, rows) = try open(.sinceWrite(5000))
        try rows.run(.put([EntryWrite(1, "x", at: clock.now + 100_000)]))
        #expect(try rows.count(at: clock.now) == 1)
        try expectEnd(1_105_000, rows)
        try expectRemoval(after: 1_105_000, store, rows)
    }

    @Test(arguments: [
        AgedEntry(testDescription: "an own end", rule: .unlimited),
        AgedEntry(testDescription: "an end instead of none", rule: .sinceWrite(5000), expiresAt: .max),
        AgedEntry(testDescription: "a later end", rule: .sinceWrite(1000)),
    ])
    func `a touch gives an entry another end`(entry: AgedEntry) throws {
        let (store, rows) = try open(entry.rule)
        try rows.run(.put([entry.write()]))
        try rows.run(.change(.integer(1), .touch(at: clock.now, ownAge: .until(entry.end))))
        try expectEnd(entry.end, rows)
        try expectRemoval(after: entry.end, store, rows)
    }

    @Test(arguments: [
        (AgeRule.sinceWrite(3000), Int64(1_004_000)), (.until(1_003_000), 1_003_000), (.unlimited, .max),
        (.sinceAccess(3000), 1_004_000),
    ])
    func `a touch restarts the own age of an entry, and moves no fixed end`(own: AgeRule, end: Int64) throws {
        let (_, rows) = try open(.sinceWrite(100))
        var meta = RowMeta()
        let first = meta.setOwnAge(own, writtenAt: 1_000_000)
        try rows.run(
            .put(
                [EntryWrite(key: .integer(1), payload: Data(), writtenAt: 1_000_000, expiresAt: first, meta: meta)]))
        try rows.run(.change(.integer(1), .touch(at: 1_001_000, ownAge: nil)))
        #expect(try rows.header(.integer(1))?.end == end)
    }

    @Test func `expired entries stay for the longest time that was asked for, also after reopening`() throws {
        let (first, rows) = try open(.sinceWrite(5000))
        for wish in [10_000, 3000, -1] as [Int64] { rows.keepExpired(wish) }
        try rows.run(.remove([]))
        try rows.run(.put([EntryWrite(1, "x", at: clock.now)]))
        try expectEnd(1_005_000, rows)
        clock.advance(15_000)
        #expect(try first.maintain().expired == 0 && rows.totals().count == 1 && rows.text(1) == "x")
        try first.close()
        let (store, reopened) = try open(.sinceWrite(5000))
        try expectRemoval(after: 1_015_000, store, reopened)
        try reopened.run(.put([EntryWrite(1, "x", at: clock.now)]))
        try store.open(declaration(.sinceWrite(5000))).keepExpired(20_000)
        try reopened.run(.remove([]))
        try expectRemoval(after: 1_015_001 + 25_000, store, reopened)
    }

    // MARK: Accesses

    /// The rule of a cache that stamps accesses every 10,000 milliseconds.
    static let sliding = AgeRule.sinceAccess(160_000)

    private func noteAccess(_ rows: CacheRows) throws {
        rows.noteAccess(to: try #require(try rows.header(.integer(1))).summary, at: clock.now)
    }

    @Test(arguments: [
        AgedEntry(testDescription: "the cache slides", rule: sliding),
        AgedEntry(testDescription: "the entry slides", rule: .sinceWrite(1000), slidingAge: 160_000),
    ])
    func `an access moves the end at once, for other stores after its stamp, and after reopening`(
        entry: AgedEntry
    ) throws {
        let ((store, rows), other) = (try open(entry.rule), try place.open())
        let otherRows = try other.open(declaration(entry.rule))
        try rows.run(.put([entry.write()]))
        clock.advance(100_000)
        try noteAccess(rows)
        try expectEnd(1_260_000, rows)
        #expect(try otherRows.header(.integer(1))?.end == 1_160_000)
        clock.advance(10_000)
        try expectEnd(1_260_000, otherRows)
        for open in [store, other] { try open.close() }
        let (again, reopened) = try open(entry.rule)
        try expectEnd(1_260_000, reopened)
        try expectRemoval(after: 1_260_000, again, reopened)
    }

    @Test(arguments: [false, true])
    func `the accesses of each store, and of each session, move the end`(isReopened: Bool) throws {
        let (first, rows) = try open(Self.sliding)
        try rows.run(.put([EntryWrite(1, "x", at: clock.now)]))
        var stores = [first, try place.open(clock)]
        for round in 0..<4 {
            if isReopened {
                for store in stores { try store.close() }
                stores = [try place.open(clock), try place.open(clock)]
            }
            clock.advance(100_000)
            let end = clock.now + 160_000
            try noteAccess(stores[round % 2].open(declaration(Self.sliding)))
            clock.advance(10_000)
            for store in stores { try expectEnd(end, store.open(declaration(Self.sliding))) }
        }
    }

    /// The grain is a sixteenth of the age.
    @Test func `an access that was within the grain does not keep a later one from being stored`() throws {
        let (store, rows) = try open(.sinceAccess(16_000))
        try rows.run(.put([lastingAsTheCache(1)]))
        let written = clock.now
        clock.advance(500)
        try noteAccess(rows)
        try store.flush()
        clock.advance(900)
        try noteAccess(rows)
        try store.flush()
        let other = try place.open(clock).open(declaration(.sinceAccess(16_000)))
        #expect(try other.header(.integer(1), withAccess: true)?.accessedAt == written + 1400)
    }

    private func lastingAsTheCache(_ key: Int64) -> EntryWrite {
        EntryWrite(key: .integer(key), payload: Data("x".utf8), writtenAt: clock.now)
    }

    // MARK: Timers

    @Test(arguments: [1, 100, 10_000, 3_600_000, 2_592_000_000] as [Int64])
    func `a pass comes between a second and a minute after each end, and then no timer is left`(age: Int64) throws {
        let (_, rows) = try open(.sinceWrite(age))
        clock.advance(1000)
        #expect(clock.pending == [])
        let ends = [clock.now + age, clock.now + 200_000 + age * 2]
        let second = EntryWrite(key: .integer(2), payload: Data(), writtenAt: clock.now, expiresAt: ends[1])
        try rows.run(.put([EntryWrite(1, "x", at: clock.now), second, lasting(3)]))
        for (index, end) in ends.enumerated() {
            let pass = try #require(clock.pending.first)
            #expect(clock.pending.count == 1 && (end + 1000...end + 60_000).contains(pass), "\(end) \(pass)")
            clock.advance(pass - 1 - clock.now)
            #expect(try rows.totals().count == Int64(3 - index))
            clock.advance(1)
            #expect(try rows.totals().count == Int64(2 - index))
        }
        #expect(clock.pending == [])
        withExtendedLifetime(rows) {}
    }

    @Test(
        arguments: [
            AgedEntry(testDescription: "unlimited", rule: .unlimited, end: .max),
            AgedEntry(testDescription: "no end of its own", rule: .sinceWrite(5000), expiresAt: .max, end: .max),
            AgedEntry(testDescription: "a later end", rule: .sinceWrite(5000), expiresAt: 9_000_000, end: 9_000_000),
            AgedEntry(testDescription: "a sliding age", rule: .sinceWrite(5000), slidingAge: 8_000_000, end: 9_000_000),
        ], [[], ["tag"]])
    func `an idle store waits for the first end, or has no timer`(entry: AgedEntry, tags: [String]) throws {
        let first = try place.open()
        try first.open(declaration(entry.rule)).run(.put([entry.write(tags: tags)]))
        try first.close()
        let (store, rows) = try open(entry.rule)
        try rows.setLimits(Limits(count: 2))
        clock.advance(1_000_000)
        if entry.end == .max {
            #expect(clock.pending == [])
        } else {
            let pass = try #require(clock.pending.first)
            #expect(clock.pending.count == 1 && (entry.end + 1000...entry.end + 60_000).contains(pass), "\(pass)")
            clock.advance(pass - clock.now)
            #expect(try clock.pending == [] && rows.totals().count == 0)
        }
        try store.close()
        #expect(clock.pending == [])
    }

    /// As while a computer sleeps: timers come later by as long, and the clock goes on.
    @Test func `what expires while timers stand still counts no more, and is deleted when they go on`() throws {
        let (now, calls) = (Locked<Int64>(1_000_000), Locked<[@Sendable () -> Void]>([]))
        var options = Store.Options()
        options.time = StoreTime(now: { now.value }) { _, call in
            calls.change { $0.append(call) }
            return {}
        }
        let rows = try Store.open(place.path, options).open(declaration(.sinceWrite(10_000)))
        try rows.run(.put([EntryWrite(1, "x", at: now.value), lasting(2)]))
        now.change { $0 += 8 * 3_600_000 }
        #expect(try rows.totals().count == 2 && rows.count(at: now.value) == 1)
        let due = calls.value
        for call in due { call() }
        #expect(try rows.totals().count == 1)
    }

    @Test func `a pass on a closed store does nothing, though its timer comes`() throws {
        let calls = Locked<[@Sendable () -> Void]>([])
        var options = Store.Options()
        options.time = StoreTime(now: { 1_000_000 }) { _, call in
            calls.change { $0.append(call) }
            return {}
        }
        let store = try Store.open(place.path, options)
        try store.open(declaration(.sinceWrite(1))).run(.put([EntryWrite(1, "x", at: 900_000)]))
        try store.close()
        #expect(!calls.value.isEmpty)
        for call in calls.value { call() }
        let error = #expect(throws: StoreError.self) { try store.maintain() }
        #expect(error?.code == .closed)
        var other = try place.otherConnection()
        #expect(try other.text("SELECT count(*) FROM entry") == "1")
    }
}
