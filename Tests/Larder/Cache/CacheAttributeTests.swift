import Foundation
import Larder
import LarderTestSupport
import Testing

/// Attributes of an entry that change without its value, and those that a write keeps.
struct CacheAttributeTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(memory: MemoryLimits = MemoryLimits()) throws -> Cache<Int, String> {
        try manager.cache(
            named: "a", version: "1", maxAge: .seconds(10), options: CacheOptions(memory: memory, inlineLimit: 1000))
    }

    @Test(arguments: [10, 2000], [MemoryLimits(), .disabled])
    func `a touch restarts the age, and leaves everything else`(count: Int, memory: MemoryLimits) throws {
        let cache = try cache(memory: memory)
        let value = String(repeating: "v", count: count)
        try cache.setValue(value, forKey: 1, cost: 7, extendedData: Data([1]), pinned: true)
        place.clock.advance(by: .seconds(8))
        #expect(try cache.touch(1))
        place.clock.advance(by: .seconds(8))
        #expect(try cache.value(forKey: 1) == value)
        let entry = try #require(try cache.entry(forKey: 1))
        #expect(entry.extendedData == Data([1]) && entry.metadata.isPinned && entry.metadata.isFile == (count > 1000))
        #expect(try cache.touch(1, maxAge: .seconds(100)))
        place.clock.advance(by: .seconds(99))
        #expect(try cache.value(forKey: 1) == value)
        place.clock.advance(by: .seconds(2))
        #expect(try cache.value(forKey: 1) == nil)
        #expect(try !cache.touch(1) && !cache.touch(2))
        expectError(.invalidConfiguration) { try cache.touch(1, maxAge: .seconds(.nan)) }
        #expect(try manager.verify().isHealthy)
    }

    @Test(arguments: [10, 2000])
    func `a pin is set and taken away without the value, and limits follow`(count: Int) async throws {
        let cache = try cache()
        for key in 1...4 { try await cache.setValue(String(repeating: "\(key)", count: count), forKey: key) }
        #expect(try await cache.setPinned(true, forKey: 1))
        #expect(try await !cache.setPinned(true, forKey: 9))
        try await cache.disk.setLimits(DiskLimits(countLimit: 2))
        #expect(Array(cache.keys) == [1, 4])
        #expect(try await cache.setPinned(false, forKey: 1))
        #expect(try await cache.metadata(forKey: 1)?.isPinned == false)
        #expect(try await cache.touch(4))
        try await cache.setValue("5", forKey: 5)
        #expect(Array(cache.keys) == [4, 5])
        #expect(try await manager.verify().isHealthy)
    }

    @Test func `a plain write keeps the pin, and resets own age, cost and extended data`() throws {
        let cache = try cache()
        func write(_ body: () throws -> Void) throws {
            try cache.setValue("old", forKey: 1, cost: 7, maxAge: .hours(1), extendedData: Data([1]), pinned: true)
            try body()
            let entry = try #require(try cache.entry(forKey: 1))
            #expect(entry.metadata.isPinned && entry.extendedData == nil)
            #expect(entry.metadata.expiresAt == place.clock.now + 10)
            #expect(cache.memory.totalCost != 7)
        }
        try write { cache[1] = "new" }
        try write { cache[1]! += "er" }
        try write { try cache.setValue("new", forKey: 1) }
        try write { try cache.setValues([1: "new"]) }
        try write { try manager.transaction { try $0.setValue("new", forKey: 1, in: cache) } }
        try cache.setValue("new", forKey: 1, pinned: false)
        #expect(try cache.metadata(forKey: 1)?.isPinned == false)
        cache[1] = "newer"
        #expect(try cache.metadata(forKey: 1)?.isPinned == false)
        #expect(try manager.verify().isHealthy)
    }

    @Test func `all caches are emptied in one step`() throws {
        let first = try cache()
        let second: Cache<Int, Int> = try manager.cache(named: "b", version: "1", maxAge: .unlimited)
        let store = StoreProbe(manager)
        for key in 1...3 { (first[key], second[key]) = ("\(key)", key) }
        let before = try store.commitCount()
        try manager.removeAll()
        #expect(try store.commitCount() == before + 1)
        #expect(try first.isEmpty && second.isEmpty && first.memory.count == 0)
        (first[1], second[1]) = ("one", 1)
        #expect(first[1] == "one" && second[1] == 1)
        try expectInvariants(first)
    }

    @Test func `once a cache is cleared no byte of its entries is left in any file`() throws {
        let kept: Cache<Int, String> = try manager.cache(
            named: "kept", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 1000))
        let cache = try cache()
        let marker = "MARKED-TO-BE-REMOVED"
        for key in 0..<600 {
            try cache.setValue("\(key) \(marker)", forKey: key, extendedData: Data(marker.utf8))
            kept[key] = "kept \(key)"
        }
        for key in 0..<20 { try cache.setValue(String(repeating: marker, count: 200), forKey: key) }
        for key in 0..<10 { try cache.remove(key) }
        #expect(try marked(marker) != [])
        let progress = Told<CacheProgress>()
        try cache.clear { progress.add($0) }
        #expect(try marked(marker) == [])
        #expect(progress.all.last?.completed == 590 && progress.all.last?.total == 590)
        #expect(kept.count(where: { $0.value == "kept \($0.key)" }) == 600)
        cache[1] = "again"
        #expect(cache[1] == "again")
        #expect(try manager.verify().isHealthy)
    }

    /// The files of the store in which a text is.
    private func marked(_ text: String) throws -> [String] {
        try place.folder.contents().compactMap { name, bytes in
            bytes?.range(of: Data(text.utf8)) == nil ? nil : name
        }
    }
}
