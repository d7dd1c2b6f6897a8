import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

struct ReclaimerTests {
    private let folder: TemporaryFolder
    private let time = ManualTime()

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test func `what is retired goes in the end, though the first attempts fail`() async throws {
        let told = Told<CacheError.Code>()
        var configuration = time.configuration
        configuration.busyTimeout = .zero
        configuration.log = { if let code = $0.error?.code { told.add(code) } }
        let manager = try CacheManager(url: folder("store.sqlite"), configuration: configuration)
        let cache: Cache<Int, Int> = try await manager.cache(named: "a", version: "1", maxAge: .unlimited)
        try await cache.setValues((0..<1200).map { ($0, $0) })
        try await cache.removeAll()
        #expect(time.pendingCount == 1)
        func rows() throws -> Int {
            try manager.store().read { (connection) throws(SQLiteError) in try connection.countRows() }
        }
        var intruder = try Intruder(folder("store.sqlite"))
        try intruder.execute("BEGIN IMMEDIATE")
        time.advance(by: .zero)
        // It works on a thread of its own, and tries again after two seconds, and after four more.
        try await Waiting.until { told.all.count == 1 && time.pendingCount > 0 }
        time.advance(by: .milliseconds(1500))
        #expect(told.all.count == 1)
        time.advance(by: .milliseconds(500))
        try await Waiting.until { told.all.count == 2 && time.pendingCount > 0 }
        try intruder.execute("ROLLBACK")
        #expect(try rows() == 1200)
        try await Waiting.until {
            time.advance(by: .seconds(1))
            return try rows() == 0
        }
        #expect(told.all == [.busy, .busy])
        // It is at rest, and begins anew.
        try await cache.setValues((0..<10).map { ($0, $0) })
        try await cache.removeAll()
        try await Waiting.until {
            time.advance(by: .milliseconds(20))
            return try rows() == 0
        }
    }

    @Test func `who finishes waits for the files of a slice that somebody else has begun`() throws {
        let place = try StorePlace()
        let manager = try CacheManager(url: place.url)
        let cache: Cache<Int, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 0))
        let store = try manager.store()
        for _ in 0..<5 {
            try cache.setValues((0..<400).map { ($0, Data(count: 100)) })
            // In the background, with the system's time.
            try cache.removeAll()
            try Waiting.until { try !store.reclaimer.isAnyRetired(store) }
            try cache.clear()
            #expect(try place.spilledFiles().isEmpty)
        }
    }

    enum Emptying: CaseIterable { case clear, removal, bump }

    // case 138
    @Test(arguments: Emptying.allCases)
    func `emptying touches no row, and what it leaves goes in slices, a transaction each`(kind: Emptying) throws {
        let manager = try CacheManager(url: folder("store.sqlite"), configuration: time.configuration)
        func cache(_ version: CacheVersion) throws -> Cache<Int, Int> {
            try manager.cache(named: "a", version: version, maxAge: .unlimited)
        }
        let first = try cache("1")
        try first.setValues((0..<5000).map { ($0, $0) })
        let store = try manager.writableStore()
        let before = store.queue.transactions
        switch kind {
        case .clear: try first.removeAll()
        case .removal: try manager.removeCache(named: "a")
        case .bump: #expect(try cache("2").isEmpty)
        }
        #expect(store.queue.transactions == before + 1)
        #expect(try store.entryCount() == 5000)
        #expect(first[1] == nil)
        var counts: [Int] = []
        try store.reclaimer.finish(store) { count, _ in counts.append((counts.last ?? 0) + count) }
        #expect(counts.count >= 10 && counts.last == 5000, "\(counts)")
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $1 - $0 <= 500 })
        #expect(store.queue.transactions >= before + 1 + counts.count)
        #expect(try store.entryCount() == 0)
    }

    // case 56
    @Test func `a clear of a few gives back everything, and a write after it works`() throws {
        let manager = try CacheManager(url: folder("store.sqlite"), configuration: time.configuration)
        let cache: Cache<Int, Data> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        for key in 0..<20 { cache[key] = Data(count: 100) }
        // case 54
        #expect(try cache.value(forKey: 20) == nil)
        #expect(try cache.count == 20 && cache.sizeOnDisk == 2000)
        try cache.removeAll()
        #expect(try cache.count == 0 && cache.sizeOnDisk == 0 && cache.isEmpty)
        try cache.setValue(Data([1]), forKey: 3)
        #expect(try cache.count == 1 && cache.sizeOnDisk == 1)
        #expect(cache[3] == Data([1]))
        try expectInvariants(cache)
    }

    // case 94
    @Test func `a thousand clears among readers and writers fail nobody`() throws {
        let manager = try CacheManager(url: folder("store.sqlite"), configuration: time.configuration)
        let cache: Cache<Int, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(clearsOnMemoryPressure: false))
        let (isDone, wrong, failures) = (Counter(), Counter(), Counter())
        let ended = DispatchSemaphore(value: 0)
        for lane in 0..<3 {
            Thread.detachNewThread {
                var round = 0
                while isDone.value == 0 {
                    round += 1
                    let key = round % 20
                    do {
                        if lane == 0 { try cache.setValue(key, forKey: key) }
                        if lane == 1, let value = try cache.value(forKey: key), value != key { wrong.increment() }
                        if lane == 2 {
                            for (key, value) in cache where key != value { wrong.increment() }
                            try cache.remove(key)
                        }
                    } catch {
                        failures.increment()
                    }
                }
                ended.signal()
            }
        }
        for _ in 0..<1000 { try cache.removeAll() }
        isDone.increment()
        for _ in 0..<3 { ended.wait() }
        #expect(failures.value == 0 && wrong.value == 0)
        #expect(cache.statistics.failures == 0)
        try manager.maintain()
        try expectInvariants(cache)
    }
}
