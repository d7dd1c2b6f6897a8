import Foundation
import Larder
import LarderTestSupport
import Testing

/// Values in files when a write fails, a file is gone, or a process ended before its work did.
struct FileFaultTests {
    private let folder: TemporaryFolder
    private let time = ManualClock()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func manager() throws -> CacheManager {
        var configuration = time.configuration
        configuration.busyTimeout = .zero
        return try CacheManager(url: folder("store.sqlite"), configuration: configuration)
    }

    private func cache(_ manager: CacheManager, maxAge: MaxAge = .hours(1)) throws -> Cache<Int, Data> {
        try manager.cache(
            named: "blobs", version: "1", maxAge: maxAge, options: CacheOptions(memory: .disabled, inlineLimit: 1000))
    }

    private func bytes(_ count: Int, _ byte: UInt8) -> Data { Data(repeating: byte, count: count) }

    /// The files that rows name, and that are there.
    private func files(_ manager: CacheManager) throws -> Set<String> {
        let probe = StoreProbe(manager)
        #expect(try probe.fileProblems() == [])
        return try Set(probe.namedFiles().keys)
    }

    private func rows(_ manager: CacheManager) throws -> Int {
        try StoreProbe(manager).entryCount()
    }

    @Test(arguments: [10, 3000])
    func `a write over a file that is not committed leaves the old value, and no file of its own`(size: Int) throws {
        let manager = try manager()
        let cache = try cache(manager)
        try cache.setValue(bytes(2000, 1), forKey: 1)
        let before = try files(manager)
        #expect(before.count == 1)
        var intruder = try Intruder(folder("store.sqlite"))
        try intruder.execute("BEGIN IMMEDIATE")
        let new = bytes(size, 2)
        expectError(.busy) { try cache.setValue(new, forKey: 1) }
        expectError(.busy) { try cache.setValues([1: new, 2: new]) }
        expectError(.busy) { try cache.update(1) { $0 = new } }
        expectError(.busy) { try manager.transaction { try $0.setValue(new, forKey: 1, in: cache) } }
        expectError(.busy) { try cache.remove(1) }
        // A load gives its value to its caller, and an event says that it is not stored.
        #expect(try cache.value(forKey: 2) { _ in new } == new)
        #expect(try cache.value(forKey: 2) == nil)
        #expect(try cache.value(forKey: 1) == bytes(2000, 1))
        #expect(try files(manager) == before)
        try intruder.execute("ROLLBACK")
        #expect(try cache.value(forKey: 1) == bytes(2000, 1))
        try cache.setValue(new, forKey: 1)
        #expect(try cache.value(forKey: 1) == new)
        #expect(try files(manager).count == (size > 1000 ? 1 : 0))
        #expect(try manager.verify().isHealthy)
        try expectInvariants(cache)
    }

    @Test func `of many keys the one whose file is gone is missed, and all others are given`() throws {
        let manager = try manager()
        let cache = try cache(manager)
        try cache.setValues((0..<6).map { ($0, bytes($0 == 5 ? 10 : 2000, UInt8($0))) })
        let url = try #require(try cache.fileURL(forKey: 3))
        try FileManager.default.removeItem(at: url)
        let expected = [0, 1, 2, 4, 5].map { ($0, bytes($0 == 5 ? 10 : 2000, UInt8($0))) }
        for _ in 0..<2 {
            #expect(try cache.values(forKeys: 0..<10) == Dictionary(uniqueKeysWithValues: expected))
        }
        cache[7] = bytes(1, 7)
        // The row without a file is deleted in the background.
        try Waiting.until { cache.statistics.failures == 1 }
        #expect(try rows(manager) == 6)
        #expect(Array(cache.keys) == [0, 1, 2, 4, 5, 7])
        try expectInvariants(cache)
    }

    @Test(arguments: ["expired", "size", "limit", "decider", "version"])
    func `a file goes with its entry, whatever takes that away`(cause: String) throws {
        let manager = try manager()
        let cache = try cache(manager, maxAge: .minutes(1))
        try cache.setValues((0..<10).map { ($0, bytes(2000, 1)) })
        #expect(try files(manager).count == 10)
        switch cause {
        case "expired":
            time.set(time.now + 61)
            #expect(try cache.removeExpired() == 10)
        case "size": #expect(try cache.trim(toSize: 6000) == 7)
        case "limit": try cache.disk.setLimits(DiskLimits(countLimit: 3))
        case "decider":
            let task = cache.evict(every: .seconds(1)) { $0.key > 2 }
            time.advance(by: .seconds(1))
            task.cancel()
        default:
            let _: Cache<Int, Data> = try manager.cache(named: "blobs", version: "2", maxAge: .minutes(1))
            #expect(try manager.maintain().reclaimed == 10)
        }
        #expect(try files(manager).count == (["expired", "version"].contains(cause) ? 0 : 3))
        #expect(try rows(manager) == files(manager).count)
        #expect(try manager.verify().isHealthy)
    }

    @Test func `rows and files that a clear left when its process ended go after the next opening, by themselves`()
        async throws
    {
        do {
            let manager = try manager()
            try await cache(manager).setValues((0..<30).map { ($0, bytes(2000, 1)) })
            try await cache(manager).removeAll()
            #expect(try files(manager).count == 30)
            try await manager.close()
        }
        let later = ManualClock(time.now)
        var configuration = later.configuration
        configuration.maintenanceInterval = .seconds(60)
        let manager = try CacheManager(url: folder("store.sqlite"), configuration: configuration)
        let cache = try cache(manager)
        #expect(try cache.isEmpty)
        try await Waiting.until {
            later.advance(by: .seconds(1))
            return try rows(manager) == 0 && files(manager).isEmpty
        }
        try expectInvariants(cache)
    }
}
