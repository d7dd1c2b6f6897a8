import Foundation
import Larder
import LarderTestSupport
import Testing

struct MaintenanceTests {
    private let place: TemporaryStore

    init() throws {
        place = try TemporaryStore(of: #fileID)
    }

    private func cache(
        _ manager: CacheManager, _ name: String = "blobs", maxAge: MaxAge = .hours(1), version: CacheVersion = "1",
        options: CacheOptions = CacheOptions(inlineLimit: 1000)
    ) throws -> Cache<Int, Data> {
        try manager.cache(named: name, version: version, maxAge: maxAge, options: options)
    }

    private func bytes(_ count: Int) -> Data { Data(repeating: 5, count: count) }

    @Test func `maintenance removes what is expired, also of caches that nobody opens any more`() throws {
        do {
            let manager = try place.manager()
            let forgotten = try cache(manager, "forgotten")
            try forgotten.setValues((0..<10).map { ($0, bytes(2000)) })
            try manager.close()
        }
        place.clock.advance(by: .seconds(7200))
        let manager = try place.manager()
        let current = try cache(manager, "current")
        current[1] = bytes(10)
        let report = try manager.maintain()
        #expect(report.expired == 10)
        #expect(try StoreProbe(manager).entryCount() == 1)
        #expect(try place.spilledFiles(withPools: true).isEmpty)
        #expect(current[1] != nil)
        #expect(try manager.maintain().expired == 0)
    }

    @Test func `what is expired in the place of a cache that was in use here goes too`() throws {
        let manager = try place.manager()
        let replaced = try cache(manager)
        replaced[1] = bytes(10)
        let other = try place.manager()
        let current = try cache(other, maxAge: .seconds(1), version: "2")
        current[1] = bytes(10)
        place.clock.advance(by: .seconds(2))
        #expect(try manager.maintain().expired == 1)
        #expect(try StoreProbe(manager).entryCount() == 0)
        expectError(.superseded) { try replaced.setValue(bytes(1), forKey: 1) }
    }

    @Test(arguments: [MaxAge.seconds(0), .seconds(60), .seconds(60).sinceLastAccess])
    func `what is to be kept after its end is kept for as long, after an age of nothing too`(maxAge: MaxAge) throws {
        let manager = try place.manager()
        let options = CacheOptions(keepsExpired: .seconds(600))
        let kept = try cache(manager, maxAge: maxAge, options: options)
        try kept.setValue(bytes(1), forKey: 1)
        // A manager that only reads changes nothing about that.
        let reader = try place.manager { $0.access = .readOnly }
        let read = try cache(reader, maxAge: maxAge, options: CacheOptions())
        place.clock.advance(by: .seconds(599))
        #expect(try manager.maintain().expired == 0)
        #expect(try read.entry(forKey: 1, allowingExpired: true)?.isExpired == true)
        place.clock.advance(by: .seconds(80))
        #expect(try manager.maintain().expired == 1)
        #expect(try kept.entry(forKey: 1, allowingExpired: true) == nil)
    }

    @Test func `a large store that is cleared takes next to nothing, its log included`() throws {
        let manager = try place.manager()
        let cache = try cache(manager)
        for key in 0..<20 { try cache.setValues((0..<1000).map { (key * 1000 + $0, bytes(900)) }) }
        func sizes() throws -> [Int] { [try place.url.fileSize(), try place.folder("store.sqlite-wal").fileSize()] }
        #expect(try sizes().reduce(0, +) > 20 << 20)
        try cache.removeAll()
        try manager.maintain()
        let maintained = try sizes()
        #expect(maintained.allSatisfy { $0 <= 96 << 10 }, "\(maintained)")
        try manager.close()
        let closed = try sizes()
        #expect(closed.allSatisfy { $0 <= 96 << 10 }, "\(closed)")
    }

    @Test func `a file that no row names is deleted an hour after it was written`() throws {
        let manager = try place.manager()
        let cache = try cache(manager)
        cache[1] = bytes(2000)
        let folder = try #require(try cache.fileURL(forKey: 1)).deletingLastPathComponent()
        for (name, minutes) in [("old", 61.0), ("new", 59.0)] {
            let file = folder.appendingPathComponent(name + "-0123456789abcdefghij")
            try bytes(10).write(to: file)
            try FileManager.default.setAttributes(
                [.modificationDate: place.clock.now - minutes * 60], ofItemAtPath: file.path)
        }
        #expect(try manager.maintain().orphans == 1)
        #expect(try place.spilledFiles(withPools: true).filter { $0.contains("/new-") }.count == 1)
        #expect(cache[1] == bytes(2000))
    }

    @Test func `a purge gives back rows, files and the space of the database`() throws {
        let manager = try place.manager()
        let first = try cache(manager)
        try first.setValues((0..<3000).map { ($0, bytes(900)) })
        try first.setValues((3000..<3010).map { ($0, bytes(5000)) })
        try manager.maintain()
        let full = try place.url.fileSize()
        let second = try cache(manager, version: "2")
        #expect(first[1] == nil)
        #expect(throws: CacheError.self) { try first.setValue(bytes(1), forKey: 1) }
        second[1] = bytes(10)
        let report = try manager.maintain()
        #expect(report.reclaimed == 3010)
        #expect(report.freedBytes > 2_000_000)
        #expect(try StoreProbe(manager).entryCount() == 1)
        #expect(try place.spilledFiles(withPools: true).isEmpty)
        #expect(try place.url.fileSize() < full / 10)
    }

    @Test func `after a clear and maintenance neither the database nor its log takes room`() throws {
        let manager = try place.manager()
        let cache = try cache(manager)
        try cache.setValues((0..<3000).map { ($0, bytes(900)) })
        let log = place.folder("store.sqlite-wal")
        #expect(try log.fileSize() > 2_000_000)
        try cache.removeAll()
        try manager.maintain()
        #expect(try place.url.fileSize() < 200_000)
        #expect(try log.fileSize() < 200_000)
        cache[1] = bytes(10)
        #expect(cache[1] == bytes(10))
    }

    @Test func `maintenance cuts a log that was copied and has begun again`() throws {
        let manager = try place.manager()
        let cache = try cache(manager)
        try cache.setValues((0..<5000).map { ($0, bytes(900)) })
        // A log of more than 1,000 pages is copied in the background.
        try Waiting.until { try place.url.fileSize() > 4_000_000 }
        cache[1] = bytes(10)
        let log = place.folder("store.sqlite-wal")
        #expect(try log.fileSize() > 4_000_000)
        try manager.maintain()
        #expect(try log.fileSize() < 200_000)
        #expect(try cache.count == 5000 && cache[1] == bytes(10))
    }

    @Test func `a check finds what is damaged, and repairs it`() throws {
        let manager = try place.manager()
        let cache = try self.cache(manager, "blobs", options: CacheOptions(memory: .disabled, inlineLimit: 100))
        try cache.setValues((0..<10).map { ($0, bytes(500)) })
        cache[10] = bytes(50)
        #expect(try manager.verify().isHealthy)
        #expect(try manager.verify().entries == 11)
        let file = try #require(try cache.fileURL(forKey: 3))
        try FileManager.default.removeItem(at: file)
        var intruder = try Intruder(place.url)
        try intruder.execute("UPDATE entry SET payload = x'07' WHERE key = 10")
        let report = try manager.verify()
        #expect(report.problems.count == 2)
        #expect(report.problems.allSatisfy { $0.hasSuffix(".") })
        let seen = Told<CacheProgress>()
        let repair = try manager.verify(repairing: true) { seen.add($0) }
        #expect(repair.repaired == 2)
        #expect(seen.all.last?.completed == 11 && seen.all.last?.total == 11)
        #expect(try manager.verify().isHealthy)
        #expect(try cache.count == 9)
    }

    @Test func `a limit over all caches takes the least recently used of any`() throws {
        let manager = try place.manager { $0.sizeLimit = 100_000 }
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

    @Test func `a floor of free space that cannot be met empties the store, and does not spin`() throws {
        let manager = try place.manager { $0.freeSpaceFloor = .max }
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
            let error = #expect(throws: CacheError.self) { _ = try place.manager(change) }
            #expect(error?.code == .invalidConfiguration)
        }
    }

    @Test func `a store that was written is looked after by itself, one that was not has no timer`() async throws {
        let manager = try place.manager { $0.maintenanceInterval = .seconds(600) }
        let cache = try self.cache(manager, maxAge: .unlimited)
        place.clock.advance(by: .seconds(2))
        #expect(place.clock.pendingCount == 0)
        try await cache.setValues((0..<1000).map { ($0, bytes(900)) })
        let before = try place.url.fileSize()
        #expect(place.clock.pendingCount == 1)
        place.clock.advance(by: .seconds(600))
        // The log was copied.
        #expect(try place.url.fileSize() > before + 500_000)
        try await manager.close()
    }

    @Test(arguments: [false, true])
    func `closing during maintenance, there or on another thread, ends it, and leaves the store whole`(
        isElsewhere: Bool
    ) throws {
        let home = Locked<CacheManager?>(nil)
        let closing = Locked<SideThread<Void>?>(nil)
        let manager = try place.manager { configuration in
            configuration.log = { message in
                // In its middle: a slice is gone, the others are not.
                guard message.text.contains("has expired"), let manager = home.change({ $0.take() }) else { return }
                do {
                    if isElsewhere {
                        let thread = SideThread { try manager.close() }
                        closing.change { $0 = thread }
                        try Waiting.until { thread.result != nil }
                    } else {
                        try manager.close()
                    }
                } catch {
                    Issue.record(error)
                }
            }
        }
        home.change { $0 = manager }
        let cache = try self.cache(manager, maxAge: .seconds(60))
        try cache.setValues((0..<5000).map { ($0, bytes(100)) })
        place.clock.advance(by: .seconds(61))
        expectError(.closed) { try manager.maintain() }
        #expect(home.value == nil)
        try closing.value?.value()
        let again = try place.manager()
        let left = try StoreProbe(again).entryCount()
        #expect((1..<5000).contains(left), "\(left)")
        #expect(try again.verify().isHealthy)
        try again.maintain()
        #expect(try StoreProbe(again).entryCount() == 0)
    }

    @Test func `a limit takes what is expired first`() throws {
        let manager = try place.manager()
        let cache = try self.cache(
            manager, maxAge: .minutes(1), options: CacheOptions(disk: DiskLimits(countLimit: 10), inlineLimit: 1000))
        for number in 0..<5 { try cache.setValue(bytes(1), forKey: number, maxAge: .hours(1)) }
        for number in 5..<10 { cache[number] = bytes(1) }
        place.clock.advance(by: .seconds(120))
        for number in 10..<15 { cache[number] = bytes(1) }
        for number in 0..<5 { #expect(cache[number] != nil) }
        #expect(try cache.count == 10)
    }

    @Test func `trims to a size and a count`() throws {
        let manager = try place.manager()
        let cache = try self.cache(manager)
        for number in 0..<10 { cache[number] = bytes(100) }
        #expect(try cache.trim(toSize: .max) == 0)
        #expect(try cache.trim(toSize: 300) == 7)
        #expect(cache.map(\.key) == [7, 8, 9])
        try cache.setValue(bytes(100), forKey: 0, pinned: true)
        #expect(try cache.trim(toCount: -5) == 3)
        #expect(cache.map(\.key) == [0])
    }

    @Test func `a trim counts the entries of its cache alone`() throws {
        let (place, manager) = try TemporaryStore.opened()
        let a: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        let b: Cache<Int, String> = try manager.cache(named: "b", version: "1", maxAge: .hours(1))
        for cache in [a, b] { try cache.setValues((0..<4).map { ($0, "expired") }) }
        place.clock.advance(by: .seconds(7200))
        try a.setValues((4..<7).map { ($0, "live") })
        #expect(try a.trim(toCount: 2) == 5)
    }

    @Test func `what the store says of a cache has its limits and its use, after a restart too`() throws {
        let (place, first) = try TemporaryStore.opened()
        let cache: Cache<Int, String> = try first.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(disk: DiskLimits(countLimit: 10)).steady)
        cache[1] = "one"
        _ = (cache[1], cache[2])
        _ = try cache.value(forKey: 3) { _ in "three" }
        struct Nothing: Error {}
        _ = #expect(throws: Nothing.self) { try cache.value(forKey: 4) { _ in throw Nothing() } }
        try first.close()
        let info = try #require(try place.manager().cacheInfo().first)
        #expect(info.limits == DiskLimits(countLimit: 10) && info.count == 2)
        #expect(info.activity.memoryHits == 1 && info.activity.misses == 3 && info.activity.writes == 2)
        #expect(info.activity.loads == 2)
        #expect(info.lastOpener?.program == ProcessInfo.processInfo.processName)
        #expect(info.lastOpener?.libraryVersion == CacheManager.libraryVersion)
        place.clock.advance(by: .seconds(100 * 86_400))
        #expect(try place.manager().cacheInfo().first?.activity.writes == 0)
    }
}
