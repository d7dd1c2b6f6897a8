import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

struct WriterTests {
    private struct Injected: Error {}

    /// Holds the writer with a body on a thread of its own, until it is told to end.
    private final class SlowBody: Sendable {
        private let end = DispatchSemaphore(value: 0)
        private let thread: SideThread<Void>

        init(_ store: Store) throws {
            let (end, begun) = (end, Locked(false))
            thread = SideThread {
                try store.transaction { _ in
                    begun.change { $0 = true }
                    end.wait()
                }
            }
            try Waiting.until { begun.value }
        }

        func finish() throws {
            end.signal()
            try thread.value()
        }
    }

    /// Waits until so many requests wait.
    private func expectWaiting(_ count: Int, _ store: Store) async throws {
        try await Waiting.until { store.waitingCount == count }
    }

    // MARK: Many at once

    @Test func `a hundred tasks and eight threads write, and each acknowledged entry is there`() async throws {
        let place = try StorePlace()
        let store = try place.open()
        let rows = try store.open(.a)
        let threads = (0..<8).map { thread in
            SideThread { for count in 0..<50 { try rows.put(Int64(100_000 + thread * 100 + count), "\(count)") } }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<100 {
                group.addTask { for count in 0..<10 { try await rows.put(Int64(task * 10 + count), "\(count)") } }
            }
            try await group.waitForAll()
        }
        for thread in threads { try thread.value() }
        #expect(try rows.totals().count == 1400)
        try store.close()
        let again = try place.open()
        let reopened = try again.open(.a)
        for key in 0..<1000 { #expect(try reopened.text(Int64(key)) == "\(key % 10)") }
        for thread in 0..<8 {
            for count in 0..<50 { #expect(try reopened.text(Int64(100_000 + thread * 100 + count)) == "\(count)") }
        }
    }

    @Test func `more requests than a batch holds all run, though no other call comes`() async throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        let body = try SlowBody(store)
        let tasks = (0..<1300).map { key in Task { try await rows.put(Int64(key), "x") } }
        try await expectWaiting(1300, store)
        let thread = SideThread { try rows.put(5000, "x") }
        try body.finish()
        try thread.value()
        for task in tasks { try await task.value }
        #expect(try rows.totals().count == 1301)
    }

    @Test func `an entry that is put after a clear of its batch is in the new incarnation`() async throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        let body = try SlowBody(store)
        async let first: Void = rows.put(1, "before")
        try await expectWaiting(1, store)
        async let second = rows.run(.clear)
        try await expectWaiting(2, store)
        async let third: Void = rows.put(2, "after")
        try await expectWaiting(3, store)
        try body.finish()
        _ = try await (first, second, third)
        #expect(try rows.text(1) == nil && rows.text(2) == "after")
        #expect(try rows.totals() == Totals(count: 1, size: 5))
    }

    @Test func `a request that fails takes none of its batch with it, and counts once`() async throws {
        let place = try StorePlace()
        let store = try place.open()
        let rows = try store.open(.a)
        let applied = Locked<[Int]>([])
        let body = try SlowBody(store)
        async let first = rows.run(.put([EntryWrite(1, "one")]) { _, _ in applied.change { $0.append(1) } })
        try await expectWaiting(1, store)
        let failing = Task { try await store.perform { _ in throw Injected() } }
        try await expectWaiting(2, store)
        async let last = rows.run(.put([EntryWrite(2, "two")]) { _, _ in applied.change { $0.append(2) } })
        try await expectWaiting(3, store)
        try body.finish()
        _ = try await (first, last)
        await #expect(throws: StoreError.self) { try await failing.value }
        #expect(applied.value == [1, 2])
        #expect(try rows.text(1) == "one" && rows.text(2) == "two")
        #expect(try rows.totals() == Totals(count: 2, size: 6))
    }

    @Test func `a refused request runs again if its batch is undone`() async throws {
        let place = try StorePlace()
        let store = try place.open()
        let rows = try store.open(.a)
        let body = try SlowBody(store)
        // The opening under another version fails when it runs alone, so the older handle is live after all.
        let runs = Counter()
        let opening = Task {
            try await store.perform { state in
                runs.increment()
                if runs.value > 1 { throw Injected() }
                try state.open(CacheDeclaration(name: "a", version: "2", codec: "data", ageRule: .unlimited), at: 0)
            }
        }
        try await expectWaiting(1, store)
        async let put: Void = rows.put(1, "one")
        try await expectWaiting(2, store)
        let failing = Task { try await store.perform { _ in throw Injected() } }
        try await expectWaiting(3, store)
        try body.finish()
        try await put
        await #expect(throws: StoreError.self) { try await opening.value }
        await #expect(throws: StoreError.self) { try await failing.value }
        #expect(try rows.text(1) == "one")
    }

    @Test func `a clear counts what the same batch has put before it`() async throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        try await rows.put(1, "one")
        let body = try SlowBody(store)
        async let put: Void = rows.put(2, "two")
        try await expectWaiting(1, store)
        async let clear = rows.run(.clear)
        try await expectWaiting(2, store)
        try body.finish()
        _ = try await put
        #expect(try await clear.cleared == Totals(count: 2, size: 6))
        #expect(try rows.totals() == Totals())
    }

    // MARK: Bodies

    @Test func `a body that throws changes nothing, and its error is the caller's`() async throws {
        try withStores { store in
            let rows = try store.open(.a)
            try rows.put(1, "one")
            #expect(throws: Injected.self) {
                try store.transaction { state in
                    _ = try state.perform(.put([EntryWrite(1, "two"), EntryWrite(2, "x")]), on: rows)
                    _ = try state.perform(.clear, on: rows)
                    throw Injected()
                }
            }
            #expect(try rows.text(1) == "one" && rows.text(2) == nil)
            #expect(try rows.totals() == Totals(count: 1, size: 3))
        }
    }

    @Test func `a body reads what it has written, and all of it is there afterwards`() async throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        let seen = try await store.transaction { state in
            _ = try state.perform(.put([EntryWrite(1, "one")]), on: rows)
            return try state.row(.integer(1), of: .a)?.payload
        }
        #expect(seen == Data("one".utf8))
        #expect(try rows.text(1) == "one")
        #expect(try rows.totals() == Totals(count: 1, size: 3))
    }

    @Test func `a body that asks for the writer again gets an error from every call`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            let calls: [() throws -> Void] = [
                { try rows.put(1, "x") }, { try rows.run(.clear) }, { _ = try store.open(.a) },
                { try store.transaction { _ in } }, { try store.close() }, { try store.transaction { _ in } },
            ]
            for call in calls {
                let error = #expect(throws: StoreError.self) { try store.transaction { _ in try call() } }
                #expect(error?.code == .reentrant)
            }
            try rows.put(1, "works")
            #expect(try rows.text(1) == "works")
            // In memory there is one connection.
            guard store.path == nil else { return }
            let error = #expect(throws: StoreError.self) { try store.transaction { _ in _ = try rows.text(1) } }
            #expect(error?.code == .reentrant)
        }
    }

    @Test func `a request behind a body that outlives its deadline is tried once, and succeeds`() async throws {
        let place = try StorePlace()
        let store = try place.open(busyTimeout: 0)
        let rows = try store.open(.a)
        let body = try SlowBody(store)
        async let put: Void = rows.put(1, "one")
        try await expectWaiting(1, store)
        try body.finish()
        try await put
        #expect(try rows.text(1) == "one")
    }

    @Test func `a body of a task that is cancelled before it begins never runs`() async throws {
        let store = try Store.inMemory()
        let (ran, body) = (Locked(false), try SlowBody(store))
        let blocked = Task { try await store.transaction { _ in } }
        let task = Task { try await store.transaction { _ in ran.change { $0 = true } } }
        task.cancel()
        try body.finish()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await blocked.value
        #expect(!ran.value)
    }

    @Test func `a body that has begun ends, though its task is cancelled`() async throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        let (begun, end) = (Locked(false), DispatchSemaphore(value: 0))
        let task = Task {
            try await store.transaction { state in
                begun.change { $0 = true }
                end.wait()
                _ = try state.perform(.put([EntryWrite(1, "one")]), on: rows)
            }
        }
        try await Waiting.until { begun.value }
        task.cancel()
        end.signal()
        try await task.value
        #expect(try rows.text(1) == "one")
    }

    @Test func `a body that catches the failure of a request commits nothing`() throws {
        let place = try StorePlace()
        let store = try place.open()
        let rows = try store.open(.a)
        var other = try place.otherConnection()
        try other.execute("ALTER TABLE tag RENAME TO gone")
        var meta = RowMeta()
        meta.tags = ["x"]
        let failing = EntryWrite(2, "two", meta: meta)
        let error = #expect(throws: StoreError.self) {
            try store.transaction { state in
                do {
                    _ = try state.perform(.put([EntryWrite(1, "one"), failing]), on: rows)
                } catch {}
            }
        }
        #expect(error?.code == .corrupt)
        #expect(try rows.text(1) == nil && rows.totals() == Totals())
        try rows.put(3, "three")
        #expect(try rows.totals() == Totals(count: 1, size: 5))
    }

    @Test func `a failure of SQLite in a body is an error of the store, also if the body catches it`() throws {
        let place = try StorePlace()
        // The file stays as it is.
        let store = try place.open { $0.recovery = .fail }
        let rows = try store.open(.a)
        try rows.put(1, "one")
        var other = try place.otherConnection()
        try other.execute("ALTER TABLE cache RENAME COLUMN opened_at TO gone")
        let next = CacheDeclaration(name: "a", version: "2", codec: "data", ageRule: .unlimited)
        #expect(throws: StoreError.self) { try store.transaction { try $0.open(next, at: 0) } }
        #expect(throws: StoreError.self) {
            try store.transaction { state in do { try state.open(next, at: 0) } catch {} }
        }
        // The old incarnation is not retired.
        #expect(try rows.text(1) == "one" && !rows.isSuperseded())
        try rows.put(2, "two")
    }

    // MARK: Cancellation, values, closing

    @Test func `a cancelled write that waits throws and changes nothing, and the others go on`() async throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        let body = try SlowBody(store)
        let cancelled = Task { try await rows.put(1, "one") }
        try await expectWaiting(1, store)
        async let other: Void = rows.put(2, "two")
        try await expectWaiting(2, store)
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(store.waitingCount == 1)
        try body.finish()
        try await other
        #expect(try rows.text(1) == nil && rows.text(2) == "two")
    }

    /// A value whose release writes, as a user's may.
    private final class Writing: Sendable {
        private let rows: CacheRows
        init(_ rows: CacheRows) { self.rows = rows }
        deinit {
            do { try rows.put(9, "released") } catch { Issue.record(error) }
        }
    }

    @Test func `the values that a request holds are released outside the lock`() async throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        func apply() -> Change.Taking {
            let value = Writing(rows)
            return { _, _ in withExtendedLifetime(value) {} }
        }
        try await rows.run(.put([EntryWrite(1, "x")], taking: apply()))
        #expect(try rows.text(9) == "released")
        try await rows.run(.remove([.integer(9)]))
        let body = try SlowBody(store)
        async let waiting = rows.run(.put([EntryWrite(2, "x")], taking: apply()))
        try await expectWaiting(1, store)
        let cancelled = Task { try await rows.run(.put([EntryWrite(3, "x")], taking: apply())) }
        try await expectWaiting(2, store)
        cancelled.cancel()
        try body.finish()
        _ = try await waiting
        _ = await cancelled.result
        try await Waiting.until { try rows.text(9) == "released" }
    }

    @Test func `a closed store refuses new requests, and the waiting ones are committed`() async throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        let body = try SlowBody(store)
        async let waiting: Void = rows.put(1, "x")
        try await expectWaiting(1, store)
        let closing = SideThread { try store.close() }
        try await Waiting.until { store.isClosed }
        expectClosed { try rows.put(2, "x") }
        expectClosed { try store.transaction { _ in } }
        try body.finish()
        try closing.value()
        try await waiting
        try store.close()
        expectClosed { _ = try rows.text(1) }
        expectClosed { _ = try rows.totals() }
    }

    private func expectClosed(_ call: () throws -> Void) {
        let error = #expect(throws: StoreError.self) { try call() }
        #expect(error?.code == .closed)
    }

    // MARK: Other connections

    @Test func `while another connection writes a request waits, and is busy at its deadline`() async throws {
        let place = try StorePlace()
        let (patient, hasty) = (try place.open(), try place.open(busyTimeout: 20))
        let rows = try patient.open(.a)
        let hastyRows = try hasty.open(.a)
        var other = try place.otherConnection()
        try other.execute("BEGIN IMMEDIATE")
        let error = #expect(throws: StoreError.self) { try hastyRows.put(1, "x") }
        #expect(error?.code == .busy)
        let another = await #expect(throws: StoreError.self) { try await hastyRows.put(1, "x") }
        #expect(another?.code == .busy)
        let waiting = Task { try await rows.put(2, "two") }
        try await expectWaiting(1, patient)
        try other.execute("COMMIT")
        try await waiting.value
        #expect(try rows.text(1) == nil && rows.text(2) == "two")
    }

    @Test func `a commit of another store is noticed by the next request, also after one that changed nothing`() throws
    {
        let place = try StorePlace()
        let (store, other) = (try place.open(), try place.open())
        let (rows, otherRows) = (try store.open(.a), try other.open(.a))
        for round in 0..<10 {
            try rows.put(1, "one")
            // An empty commit would make the other's look like ours.
            try rows.run(.remove([.integer(77)]))
            try otherRows.put(Int64(round + 100), "other")
            try otherRows.run(.clear)
            try rows.put(2, "two")
            #expect(try otherRows.text(2) == "two" && otherRows.text(1) == nil)
            #expect(try rows.totals() == Totals(count: 1, size: 3))
            #expect(try otherRows.totals() == Totals(count: 1, size: 3))
        }
        _ = try other.open(CacheDeclaration(name: "a", version: "2", codec: "data", ageRule: .unlimited))
        let error = #expect(throws: StoreError.self) { try rows.put(1, "x") }
        #expect(error?.code == .superseded)
    }

    @Test func `every write of a row gives it another revision`() throws {
        try withStores { store in
            let rows = try store.open(.a)
            var revisions: Set<Int64> = []
            let writes: [Change] = [
                .put([EntryWrite(1, "x")]), .put([EntryWrite(1, "x")]),
                .change(.integer(1), .pin(true)), .change(.integer(1), .pin(true)),
                .change(.integer(1), .touch(at: 1000, ownAge: nil)), .change(.integer(1), .extendedData(nil)),
            ]
            for write in writes {
                try rows.run(write)
                revisions.insert(try #require(try rows.row(.integer(1))).header.revision)
            }
            #expect(revisions.count == writes.count)
        }
    }
}
