import Foundation
import Larder
import LarderTestSupport
import Testing

/// That limits hold whatever wrote, and that nothing is held while they do.
struct LimitTests {
    private let place: TemporaryStore

    init() throws {
        place = try TemporaryStore(of: #fileID)
    }

    private func cache(_ manager: CacheManager, _ disk: DiskLimits = DiskLimits()) throws -> Cache<Int, Data> {
        try manager.cache(
            named: "blobs", version: "1", maxAge: .hours(1), options: CacheOptions(disk: disk, inlineLimit: 1000))
    }

    private func bytes(_ count: Int) -> Data { Data(repeating: 5, count: count) }

    @Test func `the limit of the whole counts extended data that come later`() throws {
        let manager = try place.manager { $0.sizeLimit = 100_000 }
        let cache: Cache<Int, Data> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        for key in 0..<100 { try cache.setValue(Data([1]), forKey: key) }
        for key in 0..<100 { try cache.setExtendedData(Data(count: 10_000), forKey: key) }
        #expect(try cache.sizeOnDisk <= 110_000)
        #expect(try cache.count < 100)
    }

    @Test func `an update that exceeds a limit evicts others, once it is over`() throws {
        let manager = try place.manager()
        let cache = try cache(manager, DiskLimits(countLimit: 10))
        for key in 0..<40 { try cache.update(key) { $0 = bytes(10) } }
        #expect(try cache.count == 10)
        #expect(cache[39] != nil)
        #expect(cache[0] == nil)
    }

    @Test func `a limit of everything beside one that is exceeded is none`() throws {
        let home = Locked<Cache<Int, Data>?>(nil)
        let written = Told<Int>()
        let manager = try place.manager { configuration in
            configuration.log = { message in
                // While what is told of here is still on its way out.
                guard message.text.contains("was evicted"), written.all.isEmpty, let cache = home.value else { return }
                written.add(3)
                for key in 3...4 { cache[key] = Data(count: 10) }
            }
        }
        let cache = try cache(manager, DiskLimits(countLimit: 1, sizeLimit: .max))
        home.change { $0 = cache }
        defer { home.change { $0 = nil } }
        cache[1] = bytes(900)
        cache[2] = Data([2])
        #expect(written.all == [3])
        #expect(Array(cache.keys) == [4])
    }

    @Test(arguments: [0, 1])
    func `what may go at last goes after the write that unpins it`(limit: Int) async throws {
        let cache = try cache(place.manager(), DiskLimits(countLimit: limit))
        for key in 0..<3 { try await cache.setValue(bytes(10), forKey: key, pinned: true) }
        #expect(Array(cache.keys).count == 3)
        for key in 0..<3 { try await cache.setValue(bytes(10), forKey: key, pinned: false) }
        // A task does not wait for what its write did not add.
        try await Waiting.until { Array(cache.keys).count == limit }
    }

    @Test func `a limit of 0 in one cache takes nothing that was just written in another`() throws {
        let manager = try place.manager()
        func cache(_ name: String, _ limit: Int) throws -> Cache<Int, Data> {
            try manager.cache(
                named: name, version: "1", maxAge: .hours(1), options: CacheOptions(disk: DiskLimits(countLimit: limit))
            )
        }
        // In whichever order limits are held, one of these comes before the other.
        let none = try (0..<6).map { try cache("none \($0)", 0) }
        let one = try cache("one", 1)
        try one.setValue(bytes(1), forKey: 0, pinned: true)
        for key in 1..<20 {
            try manager.transaction { transaction in
                for none in none { try transaction.setValue(bytes(1), forKey: key, in: none) }
                try transaction.setValue(bytes(1), forKey: key, in: one)
            }
            #expect(Array(one.keys) == [0, key])
            for none in none { #expect(try none.count == 0) }
        }
    }

    @Test func `updates on many threads that exceed a limit end`() throws {
        let manager = try place.manager()
        let cache = try cache(manager, DiskLimits(countLimit: 20))
        let errors = errors(ofThreads: 4) { lane in
            for number in 0..<50 { try cache.update(lane * 1000 + number) { $0 = Data(repeating: 1, count: 10) } }
        }
        #expect(errors == [])
        // Whoever writes next, alone, leaves no more than is let pass.
        try cache.update(9999) { $0 = Data(repeating: 1, count: 10) }
        #expect(try cache.count <= 21 && cache.contains(9999))
    }

    @Test func `an update that exceeds the limit of the whole store evicts too`() throws {
        let manager = try place.manager { $0.sizeLimit = 100_000 }
        let cache = try cache(manager)
        for key in 0..<60 { try cache.update(key) { $0 = bytes(5000) } }
        let size = try manager.cacheInfo().map(\.sizeOnDisk).reduce(0, +)
        #expect((60_000...110_000).contains(size), "\(size)")
        #expect(cache[59] != nil)
    }

    @Test func `a transaction that exceeds a limit evicts others, and its files go with their rows`() throws {
        let manager = try place.manager()
        let cache = try cache(manager, DiskLimits(countLimit: 10))
        for key in 0..<10 { cache[key] = bytes(2000) }
        try manager.transaction { transaction in
            for key in 5..<25 { try transaction.setValue(bytes(3000), forKey: key, in: cache) }
            try transaction.removeValue(forKey: 24, in: cache)
        }
        #expect(try cache.count == 10)
        #expect(cache[23] == bytes(3000))
        #expect(cache[24] == nil)
        #expect(try place.spilledFiles().count == 10)
    }

    @Test func `a transaction that throws leaves no file behind`() throws {
        struct Refusal: Error {}
        let manager = try place.manager()
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
        #expect(try place.spilledFiles().count == 1)
    }

    @Test func `who is released by an eviction may write to the same cache`() throws {
        let manager = try place.manager()
        let cache: Cache<Int, Releasing> = try manager.cache(
            named: "telling", version: "1", maxAge: .hours(1), options: CacheOptions(disk: DiskLimits(countLimit: 10)))
        let told = Counter()
        for key in 0..<10 {
            cache[key] = Releasing {
                // Written while the eviction that released it is under way.
                cache[1000 + key] = Releasing {}
                told.increment()
            }
        }
        cache[10] = Releasing {}
        #expect(told.value > 0)
        #expect(try cache.count == 10)
        // Those that are left hold the cache that holds them.
        try cache.removeAll()
    }

    @Test func `the limit of the whole store takes what is expired first`() throws {
        let manager = try place.manager { $0.sizeLimit = 100_000 }
        let cache = try cache(manager)
        for key in 0..<10 { cache[key] = bytes(4000) }
        for key in 10..<20 { try cache.setValue(bytes(4000), forKey: key, maxAge: .seconds(10)) }
        place.clock.advance(by: .seconds(20))
        for key in 20..<30 { cache[key] = bytes(4000) }
        // Older, and alive.
        for key in 0..<10 { #expect(cache[key] != nil, "\(key)") }
        for key in 20..<30 { #expect(cache[key] != nil, "\(key)") }
        #expect(try StoreProbe(manager).entryCount() == 20)
    }
}
