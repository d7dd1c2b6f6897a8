import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Synchronization
import Testing

struct MaintenanceTests {
    private let folder: TemporaryFolder
    private let time = ManualTime()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func manager(_ change: (inout CacheManager.Configuration) -> Void = { _ in }) throws -> CacheManager {
        var configuration = time.configuration
        change(&configuration)
        return try CacheManager(url: folder("store.sqlite"), configuration: configuration)
    }

    private func cache(
        _ manager: CacheManager, _ name: String = "blobs", maxAge: MaxAge = .hours(1), version: CacheVersion = "1",
        options: CacheOptions = CacheOptions(inlineLimit: 1000)
    ) throws -> Cache<Int, Data> {
        try manager.cache(named: name, version: version, maxAge: maxAge, options: options)
    }

    private func bytes(_ count: Int) -> Data { Data(repeating: 5, count: count) }

    private func rows(_ manager: CacheManager) throws -> Int {
        try manager.store().read { (connection) throws(SQLiteError) in try connection.countRows() }
    }

    private func files() throws -> [String] {
        try folder.contents().filter { $0.key.hasPrefix("store.files/") && $0.value != nil }.map(\.key)
    }

    @Test func `maintenance removes what is expired, also of sub-caches that nobody opens any more`() throws {
        do {
            let manager = try self.manager()
            let forgotten = try cache(manager, "forgotten")
            try forgotten.setValues((0..<10).map { ($0, bytes(2000)) })
            try manager.close()
        }
        time.advance(by: .seconds(7200))
        let manager = try self.manager()
        let current = try cache(manager, "current")
        current[1] = bytes(10)
        let report = try manager.maintain()
        #expect(report.expired == 10)
        #expect(try rows(manager) == 1)
        #expect(try files().isEmpty)
        #expect(current[1] != nil)
        #expect(try manager.maintain().expired == 0)
    }

    // case 162
    @Test func `a handle with a longer age keeps what a shorter one hides`() throws {
        let manager = try self.manager()
        let short = try cache(manager, maxAge: .minutes(1))
        let long = try cache(manager, maxAge: .hours(1))
        short[1] = bytes(10)
        time.advance(by: .seconds(120))
        #expect(short[1] == nil)
        #expect(long[1] == bytes(10))
        #expect(try manager.maintain().expired == 0)
        #expect(try short.removeExpired() == 0)
        #expect(long[1] == bytes(10))
    }

    // case 92, 138
    @Test func `a purge gives back rows, files and the space of the database`() throws {
        let manager = try self.manager()
        let first = try cache(manager)
        try first.setValues((0..<3000).map { ($0, bytes(900)) })
        try first.setValues((3000..<3010).map { ($0, bytes(5000)) })
        try manager.maintain()
        let full = try size()
        let second = try cache(manager, version: "2")
        #expect(first[1] == nil)
        #expect(throws: CacheError.self) { try first.setValue(bytes(1), forKey: 1) }
        second[1] = bytes(10)
        let report = try manager.maintain()
        #expect(report.reclaimed == 3010)
        #expect(report.freedBytes > 2_000_000)
        #expect(try rows(manager) == 1)
        #expect(try files().isEmpty)
        #expect(try size() < full / 10)
    }

    private func size() throws -> Int {
        try #require(
            try FileManager.default.attributesOfItem(atPath: folder("store.sqlite").path)[.size] as? Int)
    }

    @Test func `a check finds what is damaged, and repairs it`() throws {
        let manager = try self.manager()
        let cache = try self.cache(manager, "blobs", options: CacheOptions(memory: .disabled, inlineLimit: 100))
        try cache.setValues((0..<10).map { ($0, bytes(500)) })
        cache[10] = bytes(50)
        #expect(try manager.verify().isHealthy)
        #expect(try manager.verify().entries == 11)
        let file = try #require(try cache.fileURL(forKey: 3))
        try FileManager.default.removeItem(at: file)
        try manager.store().write { (connection) throws(SQLiteError) in
            try connection.execute("UPDATE entry SET size = 7 WHERE key = 10")
        }
        let report = try manager.verify()
        #expect(report.problems.count == 2)
        #expect(report.problems.allSatisfy { $0.hasSuffix(".") })
        let seen = ManagedCount()
        let repair = try manager.verify(repairing: true) { progress in seen.set(progress.completed, of: progress.total)
        }
        #expect(repair.repaired == 2)
        #expect(seen.last == "11 of 11")
        #expect(try manager.verify().isHealthy)
        #expect(try cache.count == 9)
    }

    // case 309
    @Test func `a limit over all sub-caches takes the least recently used of any`() throws {
        let manager = try self.manager { $0.sizeLimit = 100_000 }
        let (first, second) = (try cache(manager, "first"), try cache(manager, "second"))
        for number in 0..<60 {
            first[number] = bytes(900)
            _ = first[0]
            second[number] = bytes(900)
            let total = try first.sizeOnDisk + second.sizeOnDisk
            #expect(total <= 110_000)
        }
        #expect(first[0] != nil)
        #expect(second[59] != nil)
        #expect(first[1] == nil)
        try manager.maintain()
        #expect(try first.sizeOnDisk + second.sizeOnDisk <= 100_000)
    }

    // case 89
    @Test func `a floor of free space that cannot be met empties the store, and does not spin`() throws {
        let manager = try self.manager { $0.freeSpaceFloor = .max }
        let cache = try self.cache(manager)
        try cache.setValues((0..<20).map { ($0, bytes(900)) })
        try cache.setValue(bytes(10), forKey: 20, pinned: true)
        try manager.maintain()
        #expect(try cache.count == 1)
        #expect(cache.statistics.spaceEvictions == 20)
    }

    @Test func `absurd numbers are refused`() throws {
        for change: (inout CacheManager.Configuration) -> Void in [
            { $0.sizeLimit = -1 }, { $0.freeSpaceFloor = -1 }, { $0.maintenanceInterval = .seconds(-1) },
            { $0.maintenanceInterval = .zero },
        ] {
            let error = #expect(throws: CacheError.self) { _ = try manager(change) }
            #expect(error?.code == .invalidConfiguration)
        }
    }

    @Test func `a store that was written is looked after by itself, one that was not has no timer`() throws {
        let manager = try self.manager { $0.maintenanceInterval = .seconds(600) }
        let cache = try self.cache(manager, maxAge: .seconds(60))
        #expect(time.pendingCount == 0)
        cache[1] = bytes(10)
        #expect(time.pendingCount == 1)
        time.advance(by: .seconds(600))
        // It works on a thread of its own.
        try Waiting.until { try rows(manager) == 0 }
        try manager.close()
    }

    // case 281
    @Test func `closing during maintenance ends it, and leaves the store whole`() throws {
        let manager = try self.manager()
        let cache = try self.cache(manager, maxAge: .seconds(60))
        try cache.setValues((0..<5000).map { ($0, bytes(100)) })
        time.advance(by: .seconds(61))
        let (begins, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            begins.signal()
            // It comes to its end, or learns that the store was closed.
            _ = Result { try manager.maintain() }
            ended.signal()
        }
        begins.wait()
        try manager.close()
        ended.wait()
        let again = try self.manager()
        #expect(try again.verify().isHealthy)
        try again.maintain()
        #expect(try rows(again) == 0)
    }

    // case 86
    @Test func `a limit takes what is expired first`() throws {
        let manager = try self.manager()
        let cache = try self.cache(
            manager, maxAge: .minutes(1), options: CacheOptions(disk: DiskLimits(countLimit: 10), inlineLimit: 1000))
        for number in 0..<5 { try cache.setValue(bytes(1), forKey: number, maxAge: .hours(1)) }
        for number in 5..<10 { cache[number] = bytes(1) }
        time.advance(by: .seconds(120))
        for number in 10..<15 { cache[number] = bytes(1) }
        for number in 0..<5 { #expect(cache[number] != nil) }
        #expect(try cache.count == 10)
    }

    // case 81, 32
    @Test func `trims to a size and a count`() throws {
        let manager = try self.manager()
        let cache = try self.cache(manager)
        for number in 0..<10 { cache[number] = bytes(100) }
        #expect(try cache.trim(toSize: .max) == 0)
        #expect(try cache.trim(toSize: 300) == 7)
        #expect(cache.map(\.key) == [7, 8, 9])
        try cache.setValue(bytes(100), forKey: 0, pinned: true)
        #expect(try cache.trim(toCount: -5) == 3)
        #expect(cache.map(\.key) == [0])
    }
}

/// What a progress handler was told last.
private final class ManagedCount: Sendable {
    private let text = Mutex("")

    func set(_ completed: Int, of total: Int) { text.withLock { $0 = "\(completed) of \(total)" } }

    var last: String { text.withLock { $0 } }
}
