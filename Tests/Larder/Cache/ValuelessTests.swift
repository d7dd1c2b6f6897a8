import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Calls that need no value read none.
struct ValuelessTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private let decodings = Counter()

    private func cache(inline: Int, _ maxAge: MaxAge = .hours(1)) throws -> Cache<Int, String> {
        let decodings = decodings
        let codec = ValueCodec<String>(identifier: "counted", encode: { Data($0.utf8) }) { data in
            decodings.increment()
            return String(decoding: data, as: UTF8.self)
        }
        return try manager.cache(
            named: "counted", version: "1", maxAge: maxAge,
            options: CacheOptions(memory: .disabled, inlineLimit: inline), codec: codec)
    }

    @Test(arguments: [0, Int.max], [MaxAge.hours(1), .unlimited])
    func `what needs no value decodes none`(inline: Int, maxAge: MaxAge) throws {
        let cache = try cache(inline: inline, maxAge)
        try cache.setValues((0..<100).map { ($0, "\($0)") })
        try cache.setValue("own", forKey: 100, maxAge: .minutes(1), extendedData: Data([1]))
        #expect(Array(cache.keys) == Array(0...100))
        #expect(try cache.count == 101 && cache.disk.count == 101 && !cache.isEmpty && cache.sizeOnDisk > 0)
        #expect(try cache.contains(1) && !cache.contains(101) && cache.disk.contains(1))
        #expect(try cache.metadata(forKey: 1)?.size == 1)
        #expect(try cache.extendedData(forKey: 100) == Data([1]))
        try cache.setExtendedData(Data([2]), forKey: 100)
        #expect(try cache.removeAll(whereMetadata: { key, _ in key < 10 }) == 10)
        let task = cache.evict(every: .seconds(1), whereMetadata: { key, _ in key < 20 })
        place.clock.advance(by: .seconds(1))
        task.cancel()
        try cache.remove(20)
        try cache.removeValues(forKeys: [21, 22, 23])
        #expect(try cache.trim(toCount: 60) == 17)
        place.clock.advance(by: .seconds(60))
        #expect(try cache.removeExpired() == 1)
        try manager.maintain()
        #expect(try manager.cacheInfo().map(\.count) == [59])
        #expect(Array(cache.keys).count == 59)
        #expect(decodings.value == 0)
        #expect(cache[99] == "99" && decodings.value == 1)
    }

    @Test(arguments: [0, Int.max])
    func `the asynchronous forms decode none either`(inline: Int) async throws {
        let cache = try cache(inline: inline)
        try await cache.setValues((0..<10).map { ($0, "\($0)") })
        try await cache.setExtendedData(Data([1]), forKey: 1)
        #expect(try await cache.metadata(forKey: 1)?.size == 2)
        #expect(try await cache.extendedData(forKey: 1) == Data([1]))
        #expect(try await cache.contains(1))
        try await cache.remove(1)
        try await cache.removeValues(forKeys: [2, 3])
        #expect(try await cache.trim(toCount: 4) == 3)
        try await cache.removeAll()
        #expect(decodings.value == 0)
    }

    @Test func `what needs no value works though every file is gone`() throws {
        let cache = try cache(inline: 0)
        try cache.setValues((0..<1000).map { ($0, "\($0)") })
        let files = try place.spilledFiles()
        #expect(files.count == 1000)
        for file in files { try FileManager.default.removeItem(at: place.folder(file)) }
        #expect(Array(cache.keys) == Array(0..<1000))
        #expect(try cache.count == 1000 && !cache.isEmpty)
        for key in stride(from: 0, to: 1000, by: 50) {
            #expect(try cache.contains(key))
            #expect(try cache.metadata(forKey: key)?.isFile == true)
        }
        #expect(try cache.removeAll(whereMetadata: { key, _ in key.isMultiple(of: 2) }) == 500)
        let task = cache.evict(every: .seconds(1), whereMetadata: { key, _ in key < 500 })
        place.clock.advance(by: .seconds(1))
        task.cancel()
        try cache.remove(501)
        #expect(Array(cache.keys) == Array(stride(from: 503, to: 1000, by: 2)))
        #expect(try cache.count == 249)
        #expect(cache.statistics.failures == 0 && decodings.value == 0)
        // They are gone all the same.
        #expect(cache[999] == nil)
        try Waiting.until { cache.statistics.failures == 1 }
    }
}
