import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// That limits hold whatever wrote, and that nothing is held while they do.
struct LimitTests {
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

    private func cache(_ manager: CacheManager, _ disk: DiskLimits = DiskLimits()) throws -> Cache<Int, Data> {
        try manager.cache(
            named: "blobs", version: "1", maxAge: .hours(1), options: CacheOptions(disk: disk, inlineLimit: 1000))
    }

    private func bytes(_ count: Int) -> Data { Data(repeating: 5, count: count) }

    private func files() throws -> Int {
        try folder.contents().count {
            $0.key.hasPrefix("store.files/") && $0.value != nil && !$0.key.contains("/pool-")
        }
    }

    @Test func `an update that exceeds a limit evicts others, once it is over`() throws {
        let manager = try manager()
        let cache = try cache(manager, DiskLimits(countLimit: 10))
        for key in 0..<40 { try cache.update(key) { $0 = bytes(10) } }
        #expect(try cache.count == 10)
        #expect(cache[39] != nil)
        #expect(cache[0] == nil)
    }

    @Test func `updates on many threads that exceed a limit end`() throws {
        let manager = try manager()
        let cache = try cache(manager, DiskLimits(countLimit: 20))
        let failures = Counter()
        DispatchQueue.concurrentPerform(iterations: 4) { lane in
            for number in 0..<50 {
                do {
                    try cache.update(lane * 1000 + number) { $0 = Data(repeating: 1, count: 10) }
                } catch {
                    failures.increment()
                }
            }
        }
        #expect(failures.value == 0)
        // A twentieth more is let pass, and each of four may just have written.
        #expect((20...25).contains(try cache.count))
    }

    @Test func `an update that exceeds the limit of the whole store evicts too`() throws {
        let manager = try manager { $0.sizeLimit = 100_000 }
        let cache = try cache(manager)
        for key in 0..<60 { try cache.update(key) { $0 = bytes(5000) } }
        let size = try manager.cacheInfo().map(\.sizeOnDisk).reduce(0, +)
        #expect((60_000...110_000).contains(size), "\(size)")
        #expect(cache[59] != nil)
    }

    @Test func `a transaction that exceeds a limit evicts others, and its files go with their rows`() throws {
        let manager = try manager()
        let cache = try cache(manager, DiskLimits(countLimit: 10))
        for key in 0..<10 { cache[key] = bytes(2000) }
        try manager.transaction { transaction in
            for key in 5..<25 { try transaction.setValue(bytes(3000), forKey: key, in: cache) }
            try transaction.removeValue(forKey: 24, in: cache)
        }
        #expect(try cache.count == 10)
        #expect(cache[23] == bytes(3000))
        #expect(cache[24] == nil)
        #expect(try files() == 10)
    }

    @Test func `a transaction that throws leaves no file behind`() throws {
        struct Refusal: Error {}
        let manager = try manager()
        let cache = try cache(manager)
        cache[1] = bytes(2000)
        #expect(throws: Refusal.self) {
            try manager.transaction { transaction in
                try transaction.setValue(bytes(3000), forKey: 1, in: cache)
                try transaction.setValue(bytes(3000), forKey: 2, in: cache)
                throw Refusal()
            }
        }
        #expect(cache[1] == bytes(2000))
        #expect(cache[2] == nil)
        #expect(try files() == 1)
    }

    @Test func `who is released by an eviction may write to the same sub-cache`() throws {
        let manager = try manager()
        let cache: Cache<Int, Telling> = try manager.cache(
            named: "telling", version: "1", maxAge: .hours(1), options: CacheOptions(disk: DiskLimits(countLimit: 10)))
        let told = Counter()
        for key in 0..<10 {
            cache[key] = Telling {
                // Written while the eviction that released it is under way.
                cache[1000 + key] = Telling {}
                told.increment()
            }
        }
        cache[10] = Telling {}
        #expect(told.value > 0)
        #expect(try cache.count == 10)
        // Those that are left hold the cache that holds them.
        try cache.removeAll()
    }

    @Test func `the limit of the whole store takes what is expired first`() throws {
        let manager = try manager { $0.sizeLimit = 100_000 }
        let cache = try cache(manager)
        for key in 0..<10 { cache[key] = bytes(4000) }
        for key in 10..<20 { try cache.setValue(bytes(4000), forKey: key, maxAge: .seconds(10)) }
        time.advance(by: .seconds(20))
        for key in 20..<30 { cache[key] = bytes(4000) }
        // Older, and alive.
        for key in 0..<10 { #expect(cache[key] != nil, "\(key)") }
        for key in 20..<30 { #expect(cache[key] != nil, "\(key)") }
        #expect(try manager.store().read { (connection) throws(SQLiteError) in try connection.countRows() } == 20)
    }
}

/// A value that tells when it is let go of; nothing of it is stored.
private final class Telling: Codable, Sendable {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    init(from decoder: any Decoder) throws { body = {} }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(1)
    }

    deinit { body() }
}
