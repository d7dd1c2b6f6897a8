import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// What other calls, other handles and other processes do in between.
struct CacheFaultTests {
    private let place: TemporaryStore

    init() throws {
        place = try TemporaryStore(of: #fileID)
    }

    private func cache(
        _ manager: CacheManager, _ options: CacheOptions = CacheOptions(inlineLimit: 1000), maxAge: MaxAge = .unlimited
    ) throws -> Cache<String, Data> {
        try manager.cache(named: "blobs", version: "1", maxAge: maxAge, options: options)
    }

    private func bytes(_ count: Int, _ byte: UInt8 = 5) -> Data { Data(repeating: byte, count: count) }

    @Test func `a damaged file is nil and an event, and the row that takes its place keeps its own`() throws {
        let manager = try place.manager()
        let cache = try cache(manager, CacheOptions(memory: .disabled, inlineLimit: 1000))
        try cache.setValue(bytes(2000), forKey: "a")
        let file = try #require(try place.spilledFiles().first)
        try bytes(2000, 6).write(to: place.folder(file))
        #expect(try cache.value(forKey: "a") == nil)
        // It counts when its row is deleted, in the background.
        try Waiting.until { cache.statistics.failures == 1 }
        // In one batch: the second write comes upon the mark of the row that the first has replaced.
        try manager.transaction { transaction in
            try transaction.setValue(bytes(3000), forKey: "a", in: cache)
            try transaction.setValue(bytes(10), forKey: "b", in: cache)
        }
        #expect(try cache.value(forKey: "a") == bytes(3000))
        #expect(try manager.verify().isHealthy)
        #expect(try place.spilledFiles().count == 1)
    }

    @Test func `the greatest limits are none`() throws {
        let manager = try place.manager { $0.sizeLimit = .max }
        let cache = try cache(
            manager, CacheOptions(disk: DiskLimits(countLimit: .max, sizeLimit: .max), inlineLimit: 1000))
        for number in 0..<100 { try cache.setValue(bytes(100_000), forKey: "\(number)") }
        #expect(try cache.count == 100)
        #expect(try manager.maintain().trimmed == 0)
    }

    @Test func `a manager that only reads sees a cache that is made after it looked`() throws {
        try place.manager().close()
        let reader = try place.manager { $0.access = .readOnly }
        let early = try cache(reader)
        #expect(try early.value(forKey: "a") == nil)
        let writer = try place.manager()
        let cache = try cache(writer)
        cache["a"] = bytes(10)
        #expect(try early.value(forKey: "a") == bytes(10))
        cache["a"] = bytes(20)
        #expect(try early.value(forKey: "a") == bytes(20))
        try cache.removeAll()
        #expect(try early.value(forKey: "a") == nil)
    }

    @Test func `emptying everything empties what is opened meanwhile`() throws {
        let manager = try place.manager()
        let first = try cache(manager)
        first["a"] = bytes(10)
        let caches = Locked<[Cache<String, Data>]>([])
        let isEnough = Locked(false)
        let opener = SideThread {
            var number = 0
            while !isEnough.value {
                number += 1
                let cache: Cache<String, Data> = try manager.cache(
                    named: "\(number)", version: "1", maxAge: .unlimited)
                try cache.setValue(Data([1]), forKey: "early")
                caches.change { $0.append(cache) }
            }
        }
        try Waiting.until { caches.value.count > 5 || opener.result != nil }
        for _ in 0..<10 { try manager.removeAll() }
        isEnough.change { $0 = true }
        try opener.value()
        // What is written from here on stands in live rows, whenever the cache was opened.
        let opened = caches.value
        for cache in opened { try cache.setValue(Data([2]), forKey: "late") }
        #expect(try manager.cacheInfo().filter { $0.name != "blobs" }.allSatisfy { (1...2).contains($0.count) })
        #expect(try manager.cacheInfo().count == opened.count + 1)
        for cache in opened { #expect(try cache.value(forKey: "late") == Data([2])) }
    }

    @Test func `extended data counts for a size limit`() throws {
        let manager = try place.manager()
        let cache = try cache(manager, CacheOptions(disk: DiskLimits(sizeLimit: 100_000), inlineLimit: 1000))
        for number in 0..<50 { try cache.setValue(bytes(10), forKey: "\(number)") }
        for number in 0..<50 { try cache.setExtendedData(bytes(5000), forKey: "\(number)") }
        let size = try cache.sizeOnDisk
        #expect((60_000...110_000).contains(size), "\(size)")
    }

    @Test func `what one pair of types cannot read the next pair may`() throws {
        let manager = try place.manager()
        do {
            let texts: Cache<String, String> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
            texts["a"] = "text"
            texts["b"] = "text"
        }
        do {
            let numbers: Cache<String, Int> = try manager.cache(
                named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(undecodable: .keep))
            #expect(numbers["a"] == nil)
            // A use that is not written down keeps what the process knows of the cache.
            #expect(try numbers.contains("b"))
        }
        let texts: Cache<String, String> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        #expect(try texts.value(forKey: "a") == "text")
    }
}
