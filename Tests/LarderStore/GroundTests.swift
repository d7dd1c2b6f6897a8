import Foundation
import LarderStore
import LarderTestSupport
import Testing

struct GroundTests {
    // MARK: Attributes and ages

    @Test func `packed attributes come back, and damaged ones do not`() throws {
        let store = try Store.inMemory()
        let rows = try store.open(.a)
        var meta = RowMeta()
        for step in 0..<32 {
            meta.isPinned = step & 1 != 0
            meta.slidingAge = step & 2 != 0 ? -5 : nil
            meta.cost = step & 4 != 0 ? .max : nil
            meta.extendedData = step & 8 != 0 ? Data([0, 1, 255]) : nil
            meta.tags = step & 16 != 0 ? ["", "a", "é"] : []
            try rows.run(.put([EntryWrite(1, "x", meta: meta)]))
            #expect(try rows.row(.integer(1))?.header.meta == meta)
        }
    }

    @Test func `an entry as old as its age is served, an older one is not`() {
        func isExpired(_ rule: AgeRule, written: Int64 = 100, accessed: Int64 = 100, _ now: Int64) -> Bool {
            now > rule.end(writtenAt: written, accessedAt: accessed, id: 1)
        }
        #expect(!isExpired(.unlimited, .max))
        #expect(!isExpired(.sinceWrite(10), 110) && isExpired(.sinceWrite(10), 111))
        #expect(!isExpired(.sinceAccess(10), accessed: 105, 115) && isExpired(.sinceAccess(10), accessed: 105, 116))
        #expect(!isExpired(.until(200), 200) && isExpired(.until(200), 201))
        #expect(isExpired(.sinceWrite(0), 100) && isExpired(.sinceWrite(-1), 100))
        // A write in the future counts as now.
        #expect(!isExpired(.sinceWrite(10), written: 500, 100))
        #expect(isExpired(.sinceWrite(10), written: .min, .max))
        #expect(!isExpired(.sinceWrite(.max), written: 0, .max))
    }

    @Test func `an entry's own end comes before the rule of the cache`() throws {
        let store = try Store.inMemory()
        let rows = try store.open(CacheDeclaration(name: "a", version: "1", codec: "data", ageRule: .sinceWrite(20)))
        var sliding = RowMeta()
        sliding.slidingAge = 10
        try rows.run(
            .put(
                [
                    EntryWrite(key: .integer(1), payload: Data(), writtenAt: 0, expiresAt: 50),
                    EntryWrite(key: .integer(2), payload: Data(), writtenAt: 0, expiresAt: .max),
                    EntryWrite(key: .integer(3), payload: Data(), writtenAt: 0, meta: sliding),
                    EntryWrite(key: .integer(4), payload: Data(), writtenAt: 0),
                ]))
        func isExpired(_ key: Int64, _ now: Int64) throws -> Bool {
            try #require(try rows.row(.integer(key))).header.end < now
        }
        #expect(try !isExpired(1, 50) && isExpired(1, 51))
        #expect(try !isExpired(2, .max))
        #expect(try !isExpired(3, 10) && isExpired(3, 11))
        #expect(try !isExpired(4, 20) && isExpired(4, 21))
    }

    @Test func `a time of a file that is out of range is the first or the last moment`() {
        func milliseconds(_ seconds: Int, _ nanoseconds: Int = 0) -> Int64 {
            FileSystem.Status.milliseconds(timespec(tv_sec: seconds, tv_nsec: nanoseconds))
        }
        #expect(milliseconds(5, 7_999_999) == 5007 && milliseconds(-5, 999_999_999) == -4001)
        #expect(milliseconds(.max, 999_999_999) == .max && milliseconds(.min) == .min)
        #expect(milliseconds(9_300_000_000_000_000) == .max && milliseconds(-9_300_000_000_000_000, 1) == .min)
        #expect(milliseconds(9_223_372_036_854_775, 999_000_000) == .max)
    }

    // MARK: Time and locks

    @Test func `the system wakes a store, and has the time of day`() throws {
        let (calls, time) = (Counter(), StoreTime.system)
        let cancel = time.wake(1000) { calls.increment() }
        cancel()
        _ = time.wake(1) { calls.increment() }
        try Waiting.until { calls.value == 1 }
        #expect(abs(time.now() - Int64(Date().timeIntervalSince1970 * 1000)) < 60_000)
    }

    @Test func `the lock file is held by one thread at a time, and waited for until the deadline`() throws {
        let folder = try TemporaryFolder()
        let file = LockFile(path: folder("lock").path)
        let inner = try file.withLock(until: Deadline(in: 0)) {
            try SideThread { try file.withLock(until: Deadline(in: 20)) { 1 } }.value()
        }
        #expect(inner == .some(nil))
        // A process that another test starts has a copy of the descriptor until it becomes another program.
        #expect(try file.withLock(until: Deadline(in: 60_000)) { 2 } == 2)
    }

    @Test func `a lock file that was deleted while a thread held it can be taken again`() throws {
        let folder = try TemporaryFolder()
        let file = LockFile(path: folder("lock").path)
        let inner = try file.withLock(until: Deadline(in: 0)) {
            try FileManager.default.removeItem(at: folder("lock"))
            return try SideThread { try file.withLock(until: Deadline(in: 60_000)) { 1 } }.value()
        }
        #expect(inner == .some(1))
    }
}
