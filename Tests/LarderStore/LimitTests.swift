import Foundation
import LarderStore
import LarderTestSupport
import Testing

/// The limits of caches and of stores hold, whatever writes, and nothing waits for them without an end.
struct LimitTests {
    private let place: StorePlace
    private let clock = StoreClock()

    init() throws { place = try StorePlace() }

    /// Opens the cache; payloads above 100 bytes are files.
    private func open() throws -> (Store, CacheRows) {
        let store = try place.open(clock)
        return (store, try store.open(.a, inlineLimit: 100))
    }

    private func entry(_ key: Int64, _ size: Int = 10, isPinned: Bool = false, end: Int64? = nil) -> EntryWrite {
        var meta = RowMeta()
        meta.isPinned = isPinned
        return EntryWrite(
            key: .integer(key), payload: Data(count: size), writtenAt: clock.now, expiresAt: end, meta: meta)
    }

    /// Writes on a thread of its own, so that an eviction without an end fails the test.
    private func put(_ entries: [EntryWrite], _ rows: CacheRows) throws {
        try SideThread { _ = try rows.run(.put(entries)) }.value()
    }

    private func setFloor(_ bytes: Int64?, _ store: Store) throws {
        try SideThread { try store.setLimits(StoreLimits(freeSpace: bytes)) }.value()
    }

    private func keys(_ rows: CacheRows) throws -> [Int64] {
        try rows.keys(limit: 2000).rows.map { if case .integer(let key) = $0 { key } else { -1 } }
    }

    private func expectTooLarge(_ call: () throws -> Void) {
        let error = #expect(throws: StoreError.self) { try call() }
        #expect(error?.code == .tooLarge)
    }

    // MARK: Each put

    @Test(arguments: [false, true])
    func `a count limit holds after each put, whichever way it comes`(isInMemory: Bool) async throws {
        var options = Store.Options()
        options.time = clock.time
        let store = try isInMemory ? Store.inMemory(options) : Store.open(place.path, options)
        let rows = try store.open(.a)
        func putHere(_ key: Int64) throws { try rows.put(key, "x") }
        func putInBody(_ key: Int64) throws {
            try store.transaction { _ = try $0.perform(.put([EntryWrite(key, "x")]), on: rows) }
        }
        try rows.setLimits(Limits(count: 20))
        for key in Int64(1)...90 {
            switch key % 3 {
            case 0: try putHere(key)
            case 1: try putInBody(key)
            default: try await rows.put(key, "x")
            }
            #expect(try rows.totals().count <= 20 && rows.text(key) == "x", "\(key)")
        }
        try await rows.run(.put((101...300).map { EntryWrite($0, "x") }))
        #expect(try keys(rows) == Array(281...300))
    }

    @Test func `a size limit holds after each change, and counts files and extended data`() throws {
        let (store, rows) = try open()
        try rows.setLimits(Limits(size: 1000))
        for key in Int64(1)...60 {
            try rows.run(.put([entry(key, Int(key * 37 % 150))]))
            #expect(try rows.totals().size <= 1000 && rows.row(.integer(key))?.payload.count == Int(key * 37 % 150))
            try rows.run(.change(.integer(key), .extendedData(Data(count: Int(key * 41 % 90)))))
            #expect(try rows.totals().size <= 1000)
        }
        let header = try rows.headers().rows
        #expect(try rows.totals() == Totals(count: Int64(header.count), size: header.reduce(0) { $0 + $1.size }))
        try store.close()
        #expect(try place.fileNames() == place.namedFiles())
    }

    @Test func `a size limit of the store holds over all caches, the least recently used entry first`() throws {
        let (store, a) = try open()
        let b = try store.open(.rows)
        try store.setLimits(StoreLimits(size: 200))
        for key in Int64(1)...20 { try (key % 2 == 0 ? a : b).run(.put([entry(key)])) }
        clock.advance(1)
        b.noteAccess(to: try #require(try b.header(.integer(1))).summary, at: clock.now)
        try a.run(.put([entry(2)]))
        #expect(try keys(a).count == 10 && keys(b).count == 10)
        clock.advance(1)
        for key in Int64(21)...40 {
            try (key % 2 == 0 ? a : b).run(.put([entry(key)]))
            #expect(try a.totals().size + b.totals().size <= 200)
            if key == 38 { #expect(try keys(a).first == 2 && keys(b).first == 1) }
        }
        #expect(try keys(a).first == 22 && keys(b).first == 21)
    }

    @Test func `at least the excess is evicted, and at most a twentieth of the limit more`() throws {
        let (_, rows) = try open()
        try rows.run(.put((1...1000).map { entry($0) }))
        try rows.setLimits(Limits(count: 600))
        #expect(try rows.totals().count == 600)
        for key in Int64(1001)...1100 {
            try rows.run(.put([entry(key)]))
            #expect(try (570...600).contains(rows.totals().count))
        }
        try rows.setLimits(Limits(size: 4000))
        #expect(try (3800...4000).contains(rows.totals().size))
        for key in Int64(1101)...1200 {
            try rows.run(.put([entry(key)]))
            #expect(try (3800...4000).contains(rows.totals().size))
        }
    }

    @Test func `an entry above the whole size limit is refused, changes nothing and leaves no file`() async throws {
        let (store, rows) = try open()
        try await rows.run(.put([entry(1, 200)]))
        let old = try #require(try rows.header(.integer(1)))
        func expectRefusal(of size: Int) async throws {
            let operation = Change.put([entry(2, 150), entry(1, size)])
            expectTooLarge { try rows.run(operation) }
            expectTooLarge { try store.transaction { _ = try $0.perform(operation, on: rows) } }
            let error = await #expect(throws: StoreError.self) { try await rows.run(operation) }
            #expect(error?.code == .tooLarge)
            #expect(try rows.header(.integer(1))?.revision == old.revision)
            #expect(try rows.totals() == Totals(count: 1, size: 200))
        }
        try rows.setLimits(Limits(size: 1000))
        try await expectRefusal(of: 1001)
        try store.setLimits(StoreLimits(size: 500))
        try await expectRefusal(of: 501)
        try rows.setLimits(Limits(size: 50_000))
        try await expectRefusal(of: 501)
        var meta = RowMeta()
        meta.extendedData = Data(count: 401)
        let extended = EntryWrite(key: .integer(1), payload: Data(count: 100), writtenAt: clock.now, meta: meta)
        expectTooLarge { try rows.run(.put([extended])) }
        try await rows.run(.put([entry(3, 500)]))
        #expect(try keys(rows) == [3])
        try store.close()
        #expect(try place.fileNames() == place.namedFiles() && place.fileNames().count == 1)
    }

    // MARK: Which entries stay

    @Test func `pinned entries stay, and a limit holds again once their pins are gone`() throws {
        let (_, rows) = try open()
        try rows.setLimits(Limits(count: 10))
        try put((1...15).map { entry($0, isPinned: true) }, rows)
        #expect(try keys(rows) == Array(1...15))
        clock.advance(1000)
        for key in Int64(16)...20 {
            try put([entry(key)], rows)
            #expect(try keys(rows).prefix(15) == Array(1...15)[...] && keys(rows).contains(key))
        }
        clock.advance(60_000)
        #expect(try keys(rows).prefix(15) == Array(1...15)[...])
        for key in Int64(1)...8 { try rows.run(.change(.integer(key), .pin(false))) }
        clock.advance(120_000)
        #expect(try keys(rows).count <= 10 && Set<Int64>(9...15).isSubset(of: keys(rows)))
        #expect(clock.pending == [])
        for key in Int64(21)...25 {
            try put([entry(key)], rows)
            #expect(try keys(rows).count <= 10 && keys(rows).contains(key))
        }
    }

    @Test(arguments: [Limits(count: 4), Limits(size: 40)], [10, 0])
    func `the entry that was just written stays, though only pinned ones are left`(limits: Limits, size: Int) throws {
        let (_, rows) = try open()
        try rows.setLimits(limits)
        try put((1...4).map { entry($0, isPinned: true) }, rows)
        for key in Int64(5)...9 {
            try put([entry(key, size)], rows)
            #expect(try keys(rows).prefix(4) == [1, 2, 3, 4] && keys(rows).last == key)
        }
        try put([entry(10, isPinned: true), entry(11, size)], rows)
        #expect(try Set<Int64>([1, 2, 3, 4, 10, 11]).isSubset(of: keys(rows)))
    }

    @Test(arguments: [Limits(count: 20), Limits(size: 200)])
    func `expired entries are evicted before others, however recent they are`(limits: Limits) throws {
        let ((_, rows), memory) = (try open(), MemoryProbe())
        rows.attach(memory)
        try rows.setLimits(limits)
        try rows.run(.put((1...10).map { entry($0) } + (11...20).map { entry($0, end: 1_005_000) }))
        clock.advance(5001)
        for key in Int64(21)...30 { try put([entry(key)], rows) }
        #expect(try keys(rows) == Array(1...10) + Array(21...30))
        #expect(memory.removed.count == 10 && memory.removed.allSatisfy { $0.cause == .expired })
        try put([entry(31)], rows)
        #expect(
            try keys(rows).first == 2 && memory.removed.last?.cause == .evicted(by: limits.size == nil ? .count : .size)
        )
    }

    @Test func `limits hold after a clear, after reopening and in another store`() throws {
        func fill(_ rows: CacheRows, from first: Int64, upTo limit: Int64 = 10) throws {
            for key in first..<first + 30 {
                try rows.run(.put([entry(key)]))
                #expect(try rows.totals().count <= limit)
            }
        }
        let other = try place.open()
        let otherRows = try other.open(.a)
        let (store, rows) = try open()
        try rows.setLimits(Limits(count: 10))
        try fill(rows, from: 0)
        try rows.run(.clear)
        try fill(rows, from: 0)
        try fill(otherRows, from: 100)
        #expect(try rows.totals() == otherRows.totals())
        for opened in [store, other] { try opened.close() }
        let (again, reopened) = try open()
        try fill(reopened, from: 200)
        try reopened.setLimits(Limits())
        try again.setLimits(StoreLimits(size: 50))
        try again.close()
        let (_, last) = try open()
        try fill(last, from: 300, upTo: 5)
    }

    @Test(arguments: [Limits(count: 10), Limits(size: 100)])
    func `a commit of another store before an eviction makes it evict no more`(limits: Limits) throws {
        let (_, rows) = try open()
        let otherRows = try place.open().open(.rows)
        try rows.setLimits(limits)
        try put((1...10).map { entry($0) }, rows)
        let last = entry(11)
        let put = Change.put([last]) { _, _ in
            do { try otherRows.put(1, "x") } catch { Issue.record(error) }
        }
        try SideThread { _ = try rows.run(put) }.value()
        // The other store evicts one too.
        #expect(try (9...10).contains(keys(rows).count) && keys(rows).last == 11)
    }

    // MARK: Many writes

    @Test func `eight threads keep a count limit at every moment`() throws {
        let (_, rows) = try open()
        try rows.setLimits(Limits(count: 100))
        let most = Locked<Int64>(0)
        let threads = (0..<8).map { thread in
            SideThread {
                for key in 0..<200 {
                    try rows.put(Int64(thread * 1000 + key), "x")
                    let count = try rows.totals().count
                    most.change { $0 = max($0, count) }
                }
            }
        }
        for thread in threads { try thread.value() }
        #expect(most.value <= 100 + 10 + 8)
        #expect(try rows.totals().count <= 100)
    }

    @Test func `memory is told each evicted row once, and its file leaves the folder`() throws {
        let (store, rows) = try open()
        let (memory, stranger) = (MemoryProbe(), MemoryProbe())
        rows.attach(memory)
        try store.open(.rows).attach(stranger)
        try rows.setLimits(Limits(count: 7))
        var revisions: [StoredKey: Int64] = [:]
        for key in Int64(1)...50 {
            let written = try rows.run(.put([entry(key, 150)])).rows
            for row in written { revisions[row.key] = row.row?.revision }
        }
        #expect(try keys(rows) == Array(44...50))
        let removed = memory.removed
        #expect(removed.map(\.key) == (1...43).map { StoredKey.integer($0) })
        #expect(removed.allSatisfy { $0.cause == .evicted(by: .count) && $0.revision == revisions[$0.key] })
        #expect(stranger.removed.isEmpty)
        try store.close()
        #expect(try place.fileNames() == place.namedFiles() && place.fileNames().count == 7)
    }

    @Test(arguments: [true, false])
    func `a floor of free space that no disk has evicts, and neither hangs nor throws`(isReopened: Bool) throws {
        var (store, rows) = try open()
        try put([entry(0, isPinned: true)] + (1...50).map { entry($0, 150) }, rows)
        try setFloor(Int64.max / 2, store)
        if isReopened {
            try store.close()
            (store, rows) = try open()
        }
        for key in Int64(51)...60 {
            try put([entry(key)], rows)
            #expect(try keys(rows).first == 0 && keys(rows).last == key)
            clock.advance(1000)
        }
        clock.advance(600_000)
        #expect(try keys(rows).first == 0)
        try setFloor(nil, store)
        for key in Int64(70)...79 { try put([entry(key)], rows) }
        clock.advance(120_000)
        #expect(try keys(rows).suffix(10) == Array(70...79)[...] && clock.pending == [])
    }
}
