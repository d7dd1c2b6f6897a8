import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Which thread does the work of a call, and for what a write waits.
struct WaitingTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    /// A Boolean value that indicates whether this code runs on a thread of the cooperative pool.
    private static var isInTask: Bool { withUnsafeCurrentTask { $0 != nil } }

    // MARK: Writers

    @Test func `writers do not wait for a long read, and the log is copied after it`() throws {
        let store = try place.open()
        let rows = try store.open(.a)
        let text = String(repeating: "x", count: 3000)
        try rows.put(0, text)
        var isWritten = false
        try rows.read(.many) { _, _ throws(SQLiteError) in
            let writer = SideThread {
                // The log becomes longer than the length at which it is copied.
                for round in 0..<40 {
                    try rows.run(.put((0..<100).map { EntryWrite(Int64(round * 100 + $0), text) }))
                }
            }
            do { isWritten = try writer.value() == () } catch { isWritten = false }
        }
        #expect(isWritten)
        try store.maintain()
        #expect(try place.folder.real("store.sqlite-wal").fileSize() < 100_000)
    }

    @Test func `other threads write between the batches of an eviction`() throws {
        let first = Locked<(count: Int64, didWrite: Bool)?>(nil)
        let opened = Locked<CacheRows?>(nil)
        let store = try place.open { options in
            options.report = { event in
                guard case .removed = event, first.value == nil, let rows = opened.value else { return }
                first.change { $0 = (0, false) }
                do {
                    // This thread is inside the eviction, and its batch is over.
                    let count = try SideThread { () -> Int64 in
                        try rows.put(-1, "between")
                        return try rows.totals().count
                    }.value()
                    first.change { $0 = (count, true) }
                } catch { Issue.record(error) }
            }
        }
        let rows = try store.open(.a)
        opened.change { $0 = rows }
        try rows.run(.put((0..<5000).map { EntryWrite($0, "x") }))
        try rows.setLimits(Limits(count: 100))
        let seen = try #require(first.value)
        #expect(seen.didWrite && seen.count > 4000)
        #expect(try rows.totals().count == 100 && rows.text(-1) == "between")
    }

    enum Change: CaseIterable { case removal, trim, noLimit }

    @Test(arguments: Change.allCases)
    func `an eviction ends if another store has done its work in the meantime, and removes no more`(
        change: Change
    ) throws {
        let other = try place.open()
        let told = Counter()
        let store = try place.open { options in
            options.report = { event in
                guard event.isRemoval, told.increment() == 1 else { return }
                do {
                    switch change {
                    case .removal: _ = try other.removeCache(named: "a")
                    case .trim: _ = try other.open(.a).trim(to: Limits(count: 100))
                    // An opening removes nothing.
                    case .noLimit: try other.open(.a).setLimits(Limits())
                    }
                } catch { Issue.record(error) }
            }
        }
        let rows = try store.open(.a)
        try rows.run(.put((0..<3000).map { EntryWrite($0, "x") }))
        try SideThread { try rows.setLimits(Limits(count: 100)) }.value()
        #expect(told.value > 0)
        let left: Int64 =
            switch change {
            case .removal: 0
            case .trim: 100
            case .noLimit: 2500
            }
        #expect(try rows.totals().count == left)
    }

    @Test(arguments: [false, true])
    func `two evictions at once remove no more than one of them has to`(isTrim: Bool) throws {
        let store = try place.open()
        let rows = try store.open(.a)
        try rows.run(.put((0..<6000).map { EntryWrite($0, "x") }))
        let threads = (1...3).map { count in
            SideThread {
                if isTrim {
                    _ = try rows.trim(to: Limits(count: Int64(count * 1000)))
                } else {
                    try rows.setLimits(Limits(count: Int64(1000)))
                }
            }
        }
        for thread in threads { try thread.value() }
        #expect(try rows.totals().count == 1000)
    }

    @Test func `the latest write outlives an eviction that has begun before it`() throws {
        let opened = Locked<CacheRows?>(nil)
        let store = try place.open { options in
            options.report = { event in
                guard case .removed = event, let rows = opened.value else { return }
                opened.change { $0 = nil }
                // The next to go is written again.
                do { try SideThread { try rows.put(700, "again") }.value() } catch { Issue.record(error) }
            }
        }
        let rows = try store.open(.a)
        opened.change { $0 = rows }
        try rows.run(.put((0..<3000).map { EntryWrite($0, "x") }))
        #expect(try rows.trim(to: Limits(count: 500)) == 2500)
        #expect(try rows.text(700) == "again" && rows.totals().count == 500)
    }

    // MARK: Tasks

    @Test func `the file of a removed value is read after the commit, and not on a thread of the task`() async throws {
        let places = Told<Bool>()
        let store = try place.open { options in
            options.report = { if case .damagedEntry = $0 { places.add(Self.isInTask) } }
        }
        let rows = try store.open(.a, inlineLimit: 10)
        try await rows.put(1, "a value in a file")
        let name = try #require(try rows.header(.integer(1))?.file)
        try FileManager.default.removeItem(at: place.folder("store.files/" + name))
        #expect(try await rows.run(.take(.integer(1))).taken == nil)
        #expect(places.all == [false])
        try await rows.put(1, "another value in a file")
        let taken = try await rows.run(.take(.integer(1))).taken
        #expect(taken.map { String(decoding: $0.payload, as: UTF8.self) } == "another value in a file")
        #expect(try rows.text(1) == nil)
        try store.close()
        #expect(try place.fileNames().isEmpty)
    }

    @Test func `code that runs on the queue of the files may erase a cache`() async throws {
        let opened = Locked<CacheRows?>(nil)
        let store = try place.open { options in
            options.report = { event in
                guard case .damagedEntry = event, let rows = opened.value else { return }
                do { try rows.erase() } catch { Issue.record(error) }
            }
        }
        let rows = try store.open(.a, inlineLimit: 10)
        try await rows.put(1, "a value in a file")
        try await rows.put(2, "small")
        let name = try #require(try rows.header(.integer(1))?.file)
        try FileManager.default.removeItem(at: place.folder("store.files/" + name))
        opened.change { $0 = rows }
        #expect(try await rows.run(.take(.integer(1))).taken == nil)
        opened.change { $0 = nil }
        #expect(try rows.totals().count == 0)
    }

    // MARK: After the commit

    @Test func `hits do not agree with a commit before memory has taken it over`() throws {
        let store = try place.open()
        let rows = try store.open(.a)
        let epochs = Told<UInt32>()
        for number in 0..<2 {
            try rows.run(
                .put([EntryWrite(1, "\(number)")]) { _, _ in epochs.add(store.watch.knownEpoch) })
        }
        try store.transaction { state in
            _ = try state.perform(.put([EntryWrite(1, "2")]) { _, _ in epochs.add(store.watch.knownEpoch) }, on: rows)
        }
        #expect(epochs.all == [0, 0, 0])
        #expect(store.watch.knownEpoch != CommitWatch.noEpoch)
    }

    @Test func `a look at the path that fails after a commit runs no request again`() throws {
        let (home, away) = (place.folder.real("home"), place.folder.real("away"))
        var options = Store.Options()
        options.time = StoreClock().time
        let store = try Store.open(home.appendingPathComponent("store.sqlite").path, options)
        let rows = try store.open(.a)
        try rows.put(1, "one")
        let calls = Counter()
        // A folder that is a link to itself cannot be looked at.
        let move: @Sendable () -> Bool = {
            do {
                if calls.increment() == 1 {
                    try FileManager.default.moveItem(at: home, to: away)
                    try FileManager.default.createSymbolicLink(at: home, withDestinationURL: home)
                }
            } catch { Issue.record(error) }
            return true
        }
        let error = #expect(throws: StoreError.self) {
            try rows.run(.put([EntryWrite(1, "two")], if: When(move)))
        }
        #expect(error?.code == .storageUnavailable && calls.value == 1)
        try FileManager.default.removeItem(at: home)
        try FileManager.default.moveItem(at: away, to: home)
        try rows.put(2, "two")
        #expect(try rows.text(1) == "two" && rows.text(2) == "two")
    }
}

extension URL {
    fileprivate func fileSize() throws -> Int {
        (try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber)?.intValue ?? 0
    }
}
