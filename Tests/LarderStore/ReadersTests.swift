import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

struct ReadersTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    /// Reads until a slot keeps its transaction open.
    private func readOften(_ rows: CacheRows) throws {
        for _ in 0..<20 { _ = try rows.text(1) }
    }

    private func logSize() throws -> Int {
        try FileManager.default.attributesOfItem(atPath: place.path + "-wal")[.size] as? Int ?? 0
    }

    @Test func `a store that is suspended or closed has no timer for its transactions`() throws {
        let clock = StoreClock()
        let store = try place.open(clock) { $0.runsUpkeep = false }
        let rows = try store.open(.a)
        try rows.put(1, "x")
        for _ in 0..<3 {
            try readOften(rows)
            #expect(clock.pending.contains(clock.now + 100))
            try store.suspend()
            #expect(!clock.pending.contains(clock.now + 100))
            store.resume()
        }
        try readOften(rows)
        #expect(clock.pending.contains(clock.now + 100))
        try store.close()
        #expect(!clock.pending.contains(clock.now + 100))
    }

    // MARK: Other stores

    @Test func `a store sees each write of another store on its path at once`() throws {
        let (store, other) = (try place.open(), try place.open())
        let (rows, otherRows) = (try store.open(.a), try other.open(.a))
        for round in 0..<50 {
            try rows.put(1, "a\(round)")
            #expect(try otherRows.text(1) == "a\(round)")
            try readOften(otherRows)
            try otherRows.put(1, "b\(round)")
            #expect(try rows.text(1) == "b\(round)" && rows.rows([.integer(1)]).count == 1)
            try readOften(rows)
            try otherRows.run(.clear)
            #expect(try rows.text(1) == nil && rows.keys().rows == [] && rows.totals() == Totals())
        }
        _ = try other.open(CacheDeclaration(name: "a", version: "2", codec: "data", ageRule: .unlimited))
        #expect(try rows.isSuperseded() && rows.keys().rows == [])
    }

    @Test func `a commit of another store begins an epoch, one of our own does not, and a clear does`() throws {
        let (store, other) = (try place.open(), try place.open())
        let (rows, otherRows) = (try store.open(.a), try other.open(.a))
        try rows.put(1, "x")
        var epoch = store.watch.epoch()
        try rows.put(1, "y")
        try rows.run(.remove([.integer(77)]))
        #expect(throws: CancellationError.self) { try store.transaction { _ in throw CancellationError() } }
        #expect(store.watch.epoch() == epoch)
        for change in [Change.put([EntryWrite(2, "x")]), .remove([.integer(2)]), .clear] {
            try otherRows.run(change)
            #expect(store.watch.epoch() != epoch)
            epoch = store.watch.epoch()
            // Nothing is committed, so the next change of the other store must not count as ours.
            try rows.run(.remove([.integer(77)]))
            #expect(throws: CancellationError.self) { try store.transaction { _ in throw CancellationError() } }
            #expect(store.watch.epoch() == epoch)
        }
        try rows.run(.clear)
        #expect(store.watch.epoch() != epoch)
    }

    @Test func `a clear of another store between a look-up and its read hides nothing from the next read`() throws {
        let (store, other) = (try place.open(), try place.open())
        let (rows, otherRows) = (try store.open(.a), try other.open(.a))
        try rows.put(1, "old")
        try readOften(rows)
        let epoch = store.watch.epoch()
        var seen: Data?
        try rows.read { connection, incarnation throws(SQLiteError) in
            do {
                try otherRows.run(.clear)
                try otherRows.put(1, "new")
            } catch { Issue.record(error) }
            seen = try connection.row(.integer(1), in: incarnation, store.accesses)?.payload
        }
        // The read began before the clear.
        #expect(seen == Data("old".utf8))
        #expect(store.watch.epoch() != epoch)
        #expect(try rows.text(1) == "new" && rows.totals() == Totals(count: 1, size: 3))
    }

    @Test func `what is applied carries the epoch of its commit, though another store commits before`() throws {
        let (store, other) = (try place.open(), try place.open())
        let (rows, otherRows) = (try store.open(.a), try other.open(.a))
        let epochs = Locked<[UInt32]>([])
        let put = Change.put([EntryWrite(1, "ours")]) { outcome, _ in
            do { try otherRows.put(1, "theirs") } catch { Issue.record(error) }
            epochs.change { $0 = [outcome.epoch, store.watch.epoch()] }
        }
        try rows.run(put)
        #expect(epochs.value.count == 2 && epochs.value[0] != epochs.value[1])
        #expect(try rows.text(1) == "theirs" && rows.totals() == Totals(count: 1, size: 6))
    }

    /// A log is begun again only if no connection reads in it.
    @Test func `between commits that follow each other the writer reads on, for a tenth of a second`() throws {
        let clock = StoreClock()
        let rows = try place.open(clock).open(.a)
        var other = try Connection.open(.file(place.realPath), .init(role: .writer, busyMilliseconds: 0))
        func isBegunAgain() throws -> Bool { try other.text("PRAGMA wal_checkpoint(TRUNCATE)") == "0" }
        clock.advance(1000)
        for number in 0..<3 { try rows.put(1, "\(number)") }
        #expect(try isBegunAgain(), "after few commits")
        for number in 0..<9 { try rows.put(1, "\(number)") }
        #expect(try !isBegunAgain())
        clock.advance(100)
        #expect(try isBegunAgain())
    }

    @Test func `a file that is opened again is not read on without a timer`() throws {
        let clock = StoreClock()
        let rows = try place.open(clock).open(.a)
        for number in 0..<4 { try rows.put(1, "\(number)") }
        try FileManager.default.moveItem(atPath: place.path, toPath: place.path + ".away")
        clock.advance(1000)
        #expect(try rows.text(1) == nil)
        clock.advance(1000)
        var other = try Connection.open(.file(place.realPath), .init(role: .writer, busyMilliseconds: 0))
        #expect(try other.text("PRAGMA wal_checkpoint(TRUNCATE)") == "0")
    }

    @Test(arguments: [0, 1, 20])
    func `reads over the writer's transaction see what another store has committed since`(lentReads: Int) throws {
        let (rows, otherRows) = (try place.open().open(.a), try place.open().open(.a))
        for round in 0..<20 {
            for number in 0..<6 { try rows.put(1, "ours \(round) \(number)") }
            for _ in 0..<lentReads { #expect(try rows.text(1) == "ours \(round) 5") }
            try otherRows.put(1, "theirs \(round)")
            #expect(try rows.text(1) == "theirs \(round)")
            try otherRows.put(Int64(round) + 2, "x")
            #expect(try rows.totals().count == Int64(round) + 2 && rows.keys().rows.count == round + 2)
            try rows.put(1, "ours")
            #expect(try otherRows.text(1) == "ours")
        }
    }

    /// The programs share numbers in memory, so that each knows what had returned in another one before it reads.
    @Test func `four processes write and read one file, and no read is older than a write that had returned`() throws {
        let (counts, rounds) = (place.folder("counts").path, LongTests.areEnabled ? 5000 : 300)
        #expect(FileManager.default.createFile(atPath: counts, contents: Data(count: 4096)))
        try place.open().close()
        let children = try (0..<4).map {
            try ChildProcess("larder-test-rows", ["share", place.path, counts, "\($0)", "\(rounds)"])
        }
        for child in children { #expect(try child.finish().lines == ["done"]) }
        let rows = try place.open().open(.rows)
        for index in 0..<4 { #expect(try rows.text(Int64(index)) == "\(rounds)") }
    }

    // MARK: Transactions of reads

    @Test func `reads during a body see the state before it`() throws {
        let store = try place.open()
        let rows = try store.open(.a)
        try rows.put(1, "before")
        try store.transaction { state in
            _ = try state.perform(.put([EntryWrite(1, "after")]), on: rows)
            #expect(try rows.text(1) == "before" && rows.totals() == Totals(count: 1, size: 6))
            #expect(try SideThread { try rows.text(1) }.value() == "before")
        }
        #expect(try rows.text(1) == "after")
    }

    /// The files are not opened: closing one would end the locks of this process.
    @Test func `reads write no byte`() throws {
        let store = try place.open()
        let rows = try store.open(.a)
        try rows.run(.put((0..<1000).map { EntryWrite($0, "x") }))
        // A copy of the log that the put has scheduled finds nothing to do.
        try store.maintain()
        func state() throws -> [String] {
            try ["", "-wal"].map { suffix in
                let attributes = try FileManager.default.attributesOfItem(atPath: place.path + suffix)
                let moment = try #require(attributes[.modificationDate] as? Date)
                return "\(attributes[.size] ?? "") \(moment.timeIntervalSinceReferenceDate)"
            }
        }
        let before = try state()
        for key in 0..<2000 { _ = try rows.row(.integer(Int64(key))) }
        _ = try (rows.rows(), rows.list(.size), rows.totals())
        #expect(try state() == before)
    }

    @Test func `a read waits if other threads have all connections, and then finds its entry`() throws {
        let store = try place.open()
        let rows = try store.open(.a)
        try rows.put(1, "one")
        let (begun, end) = (Counter(), Locked(false))
        let holding = (0..<4).map { _ in
            SideThread {
                try rows.read(.page) { _, _ throws(SQLiteError) in
                    begun.increment()
                    do { try Waiting.until { end.value } } catch { Issue.record(error) }
                }
            }
        }
        try Waiting.until { begun.value == 4 }
        let waiting = (0..<4).map { _ in SideThread { try rows.text(1) } }
        end.change { $0 = true }
        for thread in waiting { #expect(try thread.value() == "one") }
        for thread in holding { _ = try thread.value() }
    }

    @Test func `a read transaction is released 100 ms after it began`() throws {
        let clock = StoreClock()
        let rows = try place.open(clock).open(.a)
        clock.advance(100)
        try rows.put(1, "x")
        try readOften(rows)
        #expect(clock.pending.first == clock.now + 100)
        var other = try place.otherConnection()
        try other.execute("PRAGMA busy_timeout = 0")
        #expect(try other.text("PRAGMA wal_checkpoint(TRUNCATE)") == "1")
        clock.advance(100)
        #expect(try other.text("PRAGMA wal_checkpoint(TRUNCATE)") == "0")
        try readOften(rows)
        #expect(clock.pending.first == clock.now + 100)
    }

    @Test func `reads of many large values end, though values are replaced all the time`() throws {
        let store = try place.open()
        let rows = try store.open(.a, inlineLimit: 100)
        let meta = {
            var meta = RowMeta()
            meta.tags = ["t"]
            return meta
        }()
        @Sendable func entry(_ key: Int64, _ letter: Int) -> EntryWrite {
            let text = String(repeating: String(UnicodeScalar(UInt8(97 + letter))), count: 50_000)
            return EntryWrite(key, text, meta: meta)
        }
        let keys = Int64(0)..<200
        try rows.run(.put(keys.map { entry($0, 0) }))
        let isDone = Locked(false)
        let writer = SideThread {
            var round = 0
            while !isDone.value {
                round += 1
                try rows.run(.put([entry(.random(in: keys), round % 26)]))
            }
        }
        let reader = SideThread {
            let reads: [() throws -> [StoredRow]] = [
                { try rows.allRows() }, { try rows.rows(keys.map { .integer($0) }) }, { try rows.rows(tagged: "t") },
            ]
            for read in reads {
                let found = try read()
                #expect(Set(found.map(\.header.key)).count == 200)
                for row in found { #expect(row.payload.count == 50_000 && Set(row.payload).count == 1) }
            }
        }
        defer { isDone.change { $0 = true } }
        try reader.value()
        isDone.change { $0 = true }
        try writer.value()
    }

    @Test func `a read writes nothing, also after another process has written`() throws {
        let store = try place.open()
        let rows = try store.open(.a)
        try rows.put(1, "one")
        try FileManager.default.removeItem(at: place.folder("store.sqlite.ballast"))
        var other = try place.otherConnection()
        for limit in [1, 2] {
            try other.execute("UPDATE cache SET opened_at = \(limit)")
            let counter = CommitCounter(of: other)
            let before = counter?.mark()
            for _ in 0..<20 { #expect(try rows.text(1) == "one") }
            #expect(counter?.mark() == before && before != nil)
        }
        #expect(try !place.folder.names.contains("store.sqlite.ballast"))
        try rows.put(2, "two")
        #expect(try rows.text(2) == "two")
    }

    // MARK: The log

    /// A thousand pages until the log is copied, a thousand until a write copies it, and a transaction.
    private static let logBound = 2300 * 4120

    @Test func `the log keeps its bound during reads without a pause`() throws {
        let store = try place.open()
        let rows = try store.open(.a)
        let text = String(repeating: "x", count: 2000)
        let (isDone, loops) = (Locked(false), Counter())
        let reader = SideThread {
            while !isDone.value {
                loops.increment()
                _ = try rows.row(.integer(Int64.random(in: 0..<12_000)))
                let keys = (0..<20).map { _ in StoredKey.integer(.random(in: 0..<12_000)) }
                _ = try rows.rows(keys)
            }
        }
        try Waiting.until { loops.value > 1 }
        var longest = 0
        // All rows have 6,000 pages.
        for round in 0..<120 {
            try rows.run(.put((0..<100).map { EntryWrite(Int64(round * 100 + $0), text) }))
            longest = try max(longest, logSize())
        }
        isDone.change { $0 = true }
        try reader.value()
        #expect(longest < Self.logBound, "\(longest)")
        #expect(try rows.totals().count == 12_000)
    }

    @Test func `the log keeps its bound during writes of one task`() async throws {
        let store = try place.open()
        let rows = try store.open(.a)
        let text = String(repeating: "x", count: 2000)
        var longest = 0
        for key in 0..<8000 {
            try await rows.put(Int64(key), text)
            longest = try max(longest, logSize())
        }
        #expect(longest < Self.logBound, "\(longest)")
    }

    @Test(arguments: [9, 40]) func `the log keeps its bound during reads of another store`(reads: Int) throws {
        let (store, other) = (try place.open(), try place.open())
        let (rows, otherRows) = (try store.open(.a), try other.open(.a))
        var longest = 0
        // Each commit has one page.
        for round in 0..<5000 {
            try rows.put(1, "\(round)")
            for _ in 0..<reads { _ = try otherRows.row(.integer(1)) }
            longest = try max(longest, logSize())
        }
        #expect(longest < Self.logBound, "\(longest)")
    }

    @Test func `each commit that is long is copied, also if the log has begun again with it`() throws {
        let rows = try place.open().open(.a)
        let text = String(repeating: "x", count: 2000)
        var other = try place.otherConnection()
        _ = try other.text("SELECT count(*) FROM entry")
        let counter = CommitCounter(of: other)
        for count in [3000, 3200, 3400] {
            try rows.run(.put((0..<count).map { EntryWrite(Int64($0), text) }))
            try Waiting.until { counter?.uncopiedFrames == 0 }
        }
    }

    @Test func `closing leaves no frame in the log, unless another store has the file open`() throws {
        let (store, other) = (try place.open(), try place.open())
        try store.open(.a).put(1, "one")
        _ = try other.open(.a).text(1)
        try store.close()
        #expect(try logSize() > 0)
        #expect(try other.open(.a).text(1) == "one")
        try other.close()
        #expect(try logSize() == 0)
        #expect(try place.open().open(.a).text(1) == "one")
    }
}
