import Foundation
import Larder
import LarderTestSupport
import Testing

/// Entries larger than a whole limit.
struct LargestEntryTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func cache(_ manager: CacheManager, _ limits: DiskLimits = DiskLimits()) throws -> Cache<Int, Data> {
        try manager.cache(
            named: "a", version: "1", maxAge: .hours(1),
            options: CacheOptions(memory: .disabled, disk: limits, inlineLimit: 20_000))
    }

    @Test(arguments: [false, true], [30_000, 2_000_000])
    func `a value larger than the limit is refused, and drives nothing out`(isOfStore: Bool, size: Int) async throws {
        let limit: Int64 = size > 1_000_000 ? 1_000_000 : 25_000
        let manager = try place.manager { if isOfStore { $0.sizeLimit = limit } }
        let cache = try cache(manager, isOfStore ? DiskLimits() : DiskLimits(sizeLimit: limit))
        let count = 20
        for key in 0..<count { try await cache.setValue(Data(count: 900), forKey: key) }
        let value = Data(repeating: 1, count: size)
        let tooLarge = await #expect(throws: CacheError.self) { try await cache.setValue(value, forKey: 3) }
        #expect(tooLarge?.code == .tooLarge)
        let many = await #expect(throws: CacheError.self) {
            try await cache.setValues([(100, Data(count: 1)), (101, value)])
        }
        #expect(many?.code == .tooLarge)
        try expectRefusals(manager, cache, value)
        #expect(try await cache.value(forKey: 50) { _ in value } == value)
        #expect(try await !cache.contains(50))
        let left = try await cache.snapshot()
        #expect(left.count == count && left.values.allSatisfy { $0.count == 900 })
        #expect(try place.spilledFiles().isEmpty)
    }

    private func expectRefusals(_ manager: CacheManager, _ cache: Cache<Int, Data>, _ value: Data) throws {
        expectError(.tooLarge) { try cache.setValue(value, forKey: 3) }
        expectError(.tooLarge) { try cache.setValue(Data(), forKey: 3, extendedData: value) }
        expectError(.tooLarge) { try cache.setExtendedData(value, forKey: 3) }
        expectError(.tooLarge) { try cache.setValues([3: value]) }
        expectError(.tooLarge) { try cache.update(3) { $0 = value } }
        expectError(.tooLarge) { try manager.transaction { try $0.setValue(value, forKey: 3, in: cache) } }
        let failures = cache.statistics.failures
        cache[3] = value
        #expect(cache.statistics.failures == failures + 1)
        #expect(try cache.value(forKey: 60) { _ in value } == value)
    }

    @Test func `an entry that a later limit makes too large can be changed, and leaves by eviction`() throws {
        let manager = try place.manager()
        let cache = try cache(manager)
        try cache.setValue(Data(count: 1000), forKey: 1, extendedData: Data(count: 10), pinned: true)
        try cache.disk.setLimits(DiskLimits(sizeLimit: 100))
        try cache.setExtendedData(nil, forKey: 1)
        #expect(try cache.touch(1))
        #expect(try cache.setPinned(false, forKey: 1))
        try cache.setValue(Data(count: 50), forKey: 2)
        #expect(Array(cache.keys) == [2])
    }
}
