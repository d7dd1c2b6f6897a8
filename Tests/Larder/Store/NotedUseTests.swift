import Foundation
import Larder
import LarderTestSupport
import Testing

/// Uses that are noted in memory, until they are written down.
struct NotedUseTests {
    private let folder: TemporaryFolder
    private let time = ManualTime()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func manager() throws -> CacheManager {
        try CacheManager(url: folder("store.sqlite"), configuration: time.configuration)
    }

    private func cache(_ manager: CacheManager, _ isOnDiskAlone: Bool) throws -> Cache<Int, Int> {
        var options = CacheOptions().steady
        if isOnDiskAlone { options.memory = .disabled }
        return try manager.cache(named: "a", version: "1", maxAge: .days(1), options: options)
    }

    // case 90
    @Test(arguments: [false, true])
    func `ten thousand reads take one transaction, ten seconds later`(isOnDiskAlone: Bool) throws {
        let manager = try manager()
        let cache = try cache(manager, isOnDiskAlone)
        try cache.setValues((0..<100).map { ($0, $0) })
        let queue = try manager.store().queue
        let before = queue.transactions
        for _ in 0..<100 { for key in (0..<100).reversed() { #expect(try cache.value(forKey: key) == key) } }
        #expect(queue.transactions == before)
        time.advance(by: .seconds(10))
        #expect(queue.transactions == before + 1)
        // Nothing is left that waits, but for the end of what is in memory.
        time.advance(by: .seconds(10))
        #expect(time.pendingCount == (isOnDiskAlone ? 0 : 1) && queue.transactions == before + 1)
    }

    // case 150
    @Test func `what was read a moment ago is swept by its write`() throws {
        let manager = try manager()
        let cache = try cache(manager, false)
        cache[1] = 1
        time.set(time.now + 86_400)
        #expect(cache[1] == 1)
        time.set(time.now + 0.001)
        #expect(try cache.removeExpired() == 1)
        #expect(try manager.store().entryCount() == 0)
    }

    @Test(arguments: [MaxAge.minutes(1), .minutes(1).sinceLastAccess])
    func `a sub-cache whose last handle is gone is swept`(age: MaxAge) throws {
        let manager = try manager()
        do {
            let cache: Cache<Int, Int> = try manager.cache(
                named: "a", version: "1", maxAge: age, options: CacheOptions().steady)
            try cache.setValues((0..<10).map { ($0, $0) })
            time.set(time.now + 30)
            for key in 0..<10 { #expect(cache[key] == key) }
        }
        time.set(time.now + 3600)
        #expect(try manager.maintain().expired == 10)
        #expect(try manager.store().entryCount() == 0)
    }
}
