import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// What is emptied, and written again.
struct ClearingTests {
    private let folder: TemporaryFolder
    private let time = ManualTime()

    init() throws {
        folder = try TemporaryFolder()
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

    @Test func `what is retired goes in the end, though the first attempts fail`() async throws {
        let told = Told<CacheError.Code>()
        var configuration = time.configuration
        configuration.busyTimeout = .zero
        configuration.log = { if let code = $0.error?.code { told.add(code) } }
        let manager = try CacheManager(url: folder("store.sqlite"), configuration: configuration)
        let cache: Cache<Int, Int> = try await manager.cache(named: "a", version: "1", maxAge: .unlimited)
        try await cache.setValues((0..<1200).map { ($0, $0) })
        var intruder = try Intruder(folder("store.sqlite"))
        try await cache.removeAll()
        try intruder.execute("BEGIN IMMEDIATE")
        // Until an attempt has failed, of which the log may be told.
        let rounds = Counter()
        try await Waiting.until {
            time.advance(by: .milliseconds(500))
            return rounds.increment() == 1000 || !told.all.isEmpty
        }
        try intruder.execute("ROLLBACK")
        let store = try manager.store()
        try await Waiting.until {
            time.advance(by: .seconds(1))
            return try store.entryCount() == 0
        }
        // It is at rest, and begins anew.
        try await cache.setValues((0..<10).map { ($0, $0) })
        try await cache.removeAll()
        try await Waiting.until {
            time.advance(by: .seconds(1))
            return try store.entryCount() == 0
        }
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
