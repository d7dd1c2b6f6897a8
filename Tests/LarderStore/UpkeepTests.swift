import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Payloads above 100 bytes are files here.
struct UpkeepTests {
    /// The memory in front of a cache, with calls of a test's own.
    private final class FakeMemory: TierDelegate {
        let accesses = Locked<[Access]>([])
        let gains = Locked<[Int64: Int64]>([:])
        private let onRemoval: @Sendable () -> Void

        init(onRemoval: @escaping @Sendable () -> Void = {}) { self.onRemoval = onRemoval }

        func rowsAreRemoved() {}
        func rowsWereRemoved(_ rows: [RemovedRow]) { onRemoval() }

        func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool) {}
        func takeAccesses(at now: Int64) -> [Access] {
            accesses.change { all in
                defer { all = [] }
                return all
            }
        }

        func overtakeLoads(_ loads: Overtaken) {}
        func takeActivity() -> [Int64: Int64] {
            gains.change { all in
                defer { all = [:] }
                return all
            }
        }
    }

    private let place: StorePlace
    private let clock = StoreClock()

    init() throws { place = try StorePlace() }

    /// The first numbers that a query returns.
    private func numbers(_ query: String) throws -> [Int] {
        var other = try place.otherConnection()
        return try other.texts("SELECT " + query).compactMap { Int($0) }
    }

    /// Runs a pass, for which an opening asks.
    private func runPass(_ store: Store) throws {
        _ = try store.open(.named("pass"))
        clock.advance(1000)
    }

    private static let expiring = CacheDeclaration.named("expiring", .sinceWrite(1000))

    /// Opens a cache with 1200 entries, which have expired.
    private func openExpired(_ store: Store) throws -> CacheRows {
        let rows = try store.open(Self.expiring)
        try rows.run(.put((0..<1200).map { EntryWrite($0, "x") }))
        return rows
    }

    // MARK: Chores

    enum Retiring: CaseIterable { case clear, version, reopening }

    @Test(arguments: Retiring.allCases)
    func `retired rows and their files are deleted automatically`(by way: Retiring) throws {
        var store = try place.open(clock)
        for name in ["a", "kept"] {
            let entries = (0..<1200).map { EntryWrite($0, $0 % 40 == 0 ? big("x") : "y") }
            try store.open(.named(name), inlineLimit: 100).run(.put(entries))
        }
        if way == .version { _ = try store.open(.named("a", version: "2")) } else { try store.open(.a).run(.clear) }
        if way == .reopening {
            try store.close()
            store = try place.open(clock)
        }
        #expect(try numbers("count(*) FROM entry") == [2400])
        clock.advance(1000)
        #expect(try numbers("count(*) FROM entry") == [1200] && numbers("id FROM cache WHERE state <> 0") == [])
        #expect(try store.open(.named("kept")).text(40) == big("x"))
        try store.close()
        #expect(try place.fileNames() == place.namedFiles() && place.fileNames().count == 30)
    }

    @Test func `maintenance ends while four threads write, and leaves nothing that was due at its start`() throws {
        let store = try place.open(clock)
        _ = try openExpired(store)
        let (limited, cleared) = (try store.open(.named("limited")), try store.open(.named("cleared")))
        for rows in [limited, cleared] { try rows.run(.put((0..<1200).map { EntryWrite($0, "x") })) }
        try cleared.run(.clear)
        var other = try place.otherConnection()
        try other.execute("UPDATE cache SET count_limit = 100, checksum = 0 WHERE name = 'limited'")
        let (written, isDone, count) = (try store.open(.named("written")), Locked(false), Counter())
        defer { isDone.change { $0 = true } }
        let threads = (0..<4).map { _ in
            SideThread { while !isDone.value { try written.put(Int64(count.increment()), "y") } }
        }
        try Waiting.until { count.value > 10 }
        let report = try store.maintain()
        isDone.change { $0 = true }
        for thread in threads { try thread.value() }
        #expect(report.expired == 1200 && report.reclaimed == 1200)
        #expect(try numbers("count(*) FROM entry") == [100 + count.value] && limited.totals().count == 100)
        #expect(try written.totals().count == Int64(count.value))
    }

    @Test func `counters are kept for ninety days, and go with their cache`() throws {
        let store = try place.open(clock)
        let (rows, other) = (try store.open(.a), try store.open(.named("other")))
        let gaining = [FakeMemory(), FakeMemory()]
        for (cache, memory) in zip([rows, other], gaining) { cache.attach(memory) }
        func maintain() throws {
            for memory in gaining { memory.gains.change { $0 = [1: 1] } }
            try store.maintain()
        }
        try maintain()
        let days = { try self.numbers("DISTINCT day FROM activity ORDER BY day") }
        let first = clock.now / 86_400_000
        #expect(try days() == [Int(first)])
        clock.advance(60 * 86_400_000)
        try maintain()
        #expect(try days() == [Int(first), Int(first) + 60])
        clock.advance(31 * 86_400_000)
        try maintain()
        #expect(try days() == [Int(first) + 60, Int(first) + 91])
        _ = try store.removeCache(named: "other")
        try maintain()
        #expect(try numbers("count(*) FROM activity WHERE cache = 'other'") == [0])
        #expect(try numbers("count(*) FROM activity WHERE cache = 'a'") == [2])
    }

    @Test func `files that no row names are swept once a day while large values are written`() throws {
        let store = try place.open(clock)
        let rows = try store.open(.a, inlineLimit: 10)
        clock.advance(10_000)
        try rows.put(1, "a value in a file")
        #expect(clock.pending.contains { $0 <= clock.now + 86_400_000 })
        let orphans = [
            "left-0123456789abcdefghij", "left-0123456789abcdefgh.jpg", "a.b-0123456789abcdefghij",
            "0000000000000000000z",
        ]
        // Those of other programs, in a folder that they have too.
        let others = [
            "left", "thesis.txt", ".hidden", "video-2026.mov", "550e8400-e29b-41d4-a716-446655440000.jpg",
            "01234567890123456789", "abcdefghijklmnopqrst", "0123456789abcdefghijk", "0123456789ABCDEFGHIJ",
        ]
        for name in orphans + others {
            let file = place.folder("store.files/" + name)
            try Data("x".utf8).write(to: file)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: file.path)
        }
        clock.advance(86_400_000)
        clock.advance(86_400_000)
        func left() throws -> Set<String> {
            Set(try FileManager.default.contentsOfDirectory(atPath: place.folder("store.files").path))
        }
        #expect(try left().subtracting(others).count == 1 && left().isSuperset(of: others))
        #expect(try rows.text(1) == "a value in a file")
        try store.close()
        try Store.delete(place.path)
        #expect(try left() == Set(others) && place.folder.names == ["store.files"])
    }

    @Test func `an eviction writes no access of another entry`() throws {
        let store = try place.open(clock)
        let (limited, read) = (try store.open(.named("limited")), try store.open(.named("read")))
        try read.run(.put((0..<100).map { EntryWrite($0, "x", at: clock.now) }))
        try limited.setLimits(Limits(count: 10))
        try limited.run(.put((0..<10).map { EntryWrite($0, "x", at: clock.now) }))
        for key in 0..<100 {
            read.noteAccess(to: try #require(try read.header(.integer(Int64(key)))).summary, at: clock.now + 5)
        }
        for key in 10..<40 { try limited.run(.put([EntryWrite(Int64(key), "x", at: clock.now)])) }
        #expect(try limited.totals().count == 10 && numbers("count(*) FROM used") == [0])
    }

    @Test func `a limit of the store removes no more than it has to, though others write between its slices`() throws {
        let store = try place.open(clock)
        let rows = try store.open(.a)
        try rows.run(.put((0..<3000).map { EntryWrite($0, "0123456789") }))
        let memory = FakeMemory(onRemoval: {
            do {
                var other = try place.otherConnection()
                try other.execute("UPDATE cache SET opened_at = opened_at + 1")
            } catch { Issue.record(error) }
        })
        rows.attach(memory)
        try store.setLimits(StoreLimits(size: 20_000))
        #expect(try rows.totals().count == 2000)
    }

    @Test func `files that wait to be overwritten are not deleted through a symbolic link`() throws {
        let (store, manager) = (try place.open(clock), FileManager.default)
        let rows = try store.open(.a, inlineLimit: 100)
        for text in ["a", "b"] { try rows.put(1, big(text)) }
        let (path, elsewhere) = (place.folder("store.files").path, place.folder("elsewhere").path)
        try manager.moveItem(atPath: path, toPath: elsewhere)
        try manager.createSymbolicLink(atPath: path, withDestinationPath: elsewhere)
        #expect(throws: StoreError.self) { try store.maintain() }
        try store.close()
        #expect(try manager.contentsOfDirectory(atPath: elsewhere).count == 2)
    }

    private func activity() throws -> String? {
        var other = try place.otherConnection()
        return try other.text(
            """
            SELECT group_concat(cache || day || ' ' || counter || ':' || value, ', ')
            FROM (SELECT * FROM activity ORDER BY cache, day, counter)
            """)
    }

    @Test func `counters are written at most once an hour, by maintenance and on close`() throws {
        var store = try place.open(clock)
        let memories = ["a": FakeMemory(), "b": FakeMemory()]
        func attach() throws { for (name, memory) in memories { try store.open(.named(name)).attach(memory) } }
        func gain(_ name: String, _ gains: [Int64: Int64]) { memories[name]?.gains.change { $0 = gains } }
        func expect(_ activity: String, line: Int = #line) throws {
            #expect(try self.activity() == activity, "line \(line)")
        }
        try attach()
        gain("a", [1: 5, 2: 0])
        gain("b", [1: 7])
        try runPass(store)
        try expect("a0 1:5, b0 1:7")
        gain("a", [1: 1, 3: 2])
        try runPass(store)
        try expect("a0 1:5, b0 1:7")
        clock.advance(3_600_000)
        try runPass(store)
        try expect("a0 1:6, a0 3:2, b0 1:7")
        gain("b", [1: 1])
        try store.maintain()
        try expect("a0 1:6, a0 3:2, b0 1:8")
        gain("b", [1: 1])
        try store.close()
        store = try place.open(clock)
        try attach()
        try expect("a0 1:6, a0 3:2, b0 1:9")
        clock.advance(86_400_000)
        gain("a", [1: 4])
        try store.maintain()
        try expect("a0 1:6, a0 3:2, a1 1:4, b0 1:9")
    }

    @Test func `counters of a store that writes no entry are those of the day of its close`() throws {
        clock.advance(3 * 86_400_000)
        let (store, memory) = (try place.open(clock), FakeMemory())
        try store.open(.a).attach(memory)
        memory.gains.change { $0 = [1: 5] }
        try store.close()
        #expect(try activity() == "a3 1:5")
    }

    @Test func `accesses are stamped by passes and on close, if the stored ones are older than the grain`() throws {
        let (store, memory) = (try place.open(clock), FakeMemory())
        let rows = try store.open(.a, accessGrain: 5000)
        rows.attach(memory)
        try rows.run(.put([EntryWrite(1, "x"), EntryWrite(2, "y")]))
        let stamps = "accessed_at FROM used ORDER BY id"
        try noteAccess(rows)
        #expect(try numbers(stamps) == [])
        try runPass(store)
        #expect(try numbers(stamps) == [1_000_000])
        try noteAccess(rows)
        try runPass(store)
        #expect(try numbers(stamps) == [1_000_000])
        clock.advance(10_000)
        try noteAccess(rows)
        let header = try #require(try rows.header(.integer(2)))
        let access = Access(id: header.id, revision: header.revision, moment: clock.now, grain: 0)
        memory.accesses.change { $0 = [access] }
        try store.close()
        #expect(try numbers(stamps) == [1_012_000, 1_012_000])
    }

    @Test func `an access to an entry that slides is stamped after a sixteenth of its age`() throws {
        let rows = try place.open(clock).open(.named("sliding", .sinceAccess(16_000)))
        try rows.run(.put([EntryWrite(1, "x", at: clock.now)]))
        clock.advance(5000)
        try noteAccess(rows)
        clock.advance(999)
        #expect(try numbers("accessed_at FROM used") == [])
        clock.advance(1)
        #expect(try numbers("accessed_at FROM used") == [1_005_000])
    }

    private func noteAccess(_ rows: CacheRows) throws {
        rows.noteAccess(to: try #require(try rows.header(.integer(1))).summary, at: clock.now)
    }

    // MARK: The end of a store, and calls from a memory

    @Test(arguments: [false, true])
    func `a close during a pass returns, and the pass ends with its slice`(byMaintenance: Bool) throws {
        let store = try place.open(clock)
        let (rows, begun) = (try openExpired(store), Locked(false))
        let memory = FakeMemory(onRemoval: {
            begun.change { $0 = true }
            do { try Waiting.until { store.isClosed } } catch { Issue.record(error) }
        })
        rows.attach(memory)
        defer { rows.detach(memory) }
        let pass = SideThread<Void> {
            if byMaintenance { _ = try store.maintain() } else { clock.advance(10_000) }
        }
        try Waiting.until { begun.value }
        try store.close()
        if byMaintenance {
            let error = #expect(throws: StoreError.self) { try pass.value() }
            #expect(error?.code == .closed)
        } else {
            try pass.value()
            #expect(clock.pending == [])
        }
        #expect(try numbers("count(*) FROM entry") == [700])
    }

    @Test func `a store whose last reference is released in a pass ends without a hang`() throws {
        let last = Locked<CacheRows?>(nil)
        weak var released: Store?
        do {
            let store = try place.open(clock)
            let rows = try openExpired(store)
            rows.attach(FakeMemory(onRemoval: { last.change { $0 = nil } }))
            last.change { $0 = rows }
            released = store
        }
        #expect(released != nil)
        try SideThread { clock.advance(10_000) }.value()
        #expect(released == nil && clock.pending == [])
        #expect(try [[0], [700]].contains(numbers("count(*) FROM entry")))
        #expect(try openExpired(place.open(clock)).totals().count == 1200)
    }

    @Test func `a memory that is told of removed rows may write, and the pass goes on`() throws {
        let store = try place.open(clock)
        let (rows, codes) = (try openExpired(store), Told<StoreError.Code?>())
        let memory = FakeMemory(onRemoval: {
            do {
                try rows.put(2, "y")
                codes.add(nil)
            } catch { codes.add((error as? StoreError)?.code) }
        })
        rows.attach(memory)
        clock.advance(10_000)
        rows.detach(memory)
        #expect(codes.all.count >= 3 && codes.all.allSatisfy { $0 == nil })
        #expect(try rows.totals().count == 1)
    }
}
