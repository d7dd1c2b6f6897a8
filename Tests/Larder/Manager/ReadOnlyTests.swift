import Foundation
import Larder
import LarderTestSupport
import Testing

/// Managers that only read, next to managers that write, and on damaged files.
struct ReadOnlyTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func cache(_ manager: CacheManager, _ version: CacheVersion = "1") throws -> Cache<String, Data> {
        try manager.cache(
            named: "shared", version: version, maxAge: .unlimited, options: CacheOptions(inlineLimit: 1000).steady)
    }

    private func reader() throws -> CacheManager { try place.manager { $0.access = .readOnly } }

    @Test func `a manager that only reads knows the limits that the cache has in the file`() throws {
        let limits = DiskLimits(countLimit: 10, sizeLimit: 1_000_000)
        let writer: Cache<String, Data> = try place.manager().cache(
            named: "shared", version: "1", maxAge: .unlimited, options: CacheOptions(disk: limits))
        #expect(writer.disk.limits == limits)
        #expect(try cache(reader()).disk.limits == limits && cache(reader(), "2").disk.limits == DiskLimits())
    }

    @Test(arguments: [10, 5000])
    func `each change of another manager is seen at once, though memory has the value before`(size: Int) throws {
        func bytes(_ byte: UInt8) -> Data { Data(repeating: byte, count: size) }
        let writer = try place.manager()
        let written = try cache(writer)
        written["a"] = bytes(0)
        let reader = try reader()
        let (cache, newer) = (try self.cache(reader), try self.cache(reader, "2"))
        for round in UInt8(1)...5 {
            written["a"] = bytes(round)
            for _ in 0..<2 { #expect(try cache.value(forKey: "a") == bytes(round)) }
            #expect(try cache.count == 1)
            try written.removeAll()
            for _ in 0..<2 { #expect(try cache.value(forKey: "a") == nil) }
            #expect(try cache.isEmpty && cache.snapshot().isEmpty && cache.entry(forKey: "a") == nil)
            #expect(Array(cache.keys) == [])
            #expect(try reader.cacheInfo().map(\.count) == [0])
        }
        written["b"] = bytes(9)
        #expect(try cache.value(forKey: "b") == bytes(9))
        #expect(try newer.value(forKey: "b") == nil)
        // Another version takes the place of this one.
        let next = try self.cache(writer, "2")
        next["b"] = bytes(8)
        #expect(try cache.value(forKey: "b") == nil)
        #expect(try newer.value(forKey: "b") == bytes(8))
        expectError(.readOnly) { try newer.remove("b") }
        try writer.maintain()
        #expect(try newer.value(forKey: "b") == bytes(8))
    }

    @Test func `a value in memory of a file without a log is not served after another manager has written`() throws {
        let first = try place.manager()
        try cache(first).setValue(Data([1]), forKey: "a")
        try first.close()
        try place.url.removeLog()
        // The next write changes the time of the file, however fast it follows.
        let past = Date(timeIntervalSince1970: 1000)
        try FileManager.default.setAttributes([.modificationDate: past], ofItemAtPath: place.url.path)
        let cache = try cache(reader())
        for _ in 0..<3 { #expect(cache["a"] == Data([1])) }
        let writer = try place.manager()
        let written = try self.cache(writer)
        written["a"] = Data([2])
        place.clock.set(place.clock.now + 0.25)
        #expect(cache["a"] == Data([2]))
        written["a"] = Data([3])
        #expect(cache["a"] == Data([3]))
        try written.remove("a")
        #expect(cache["a"] == nil)
    }

    @Test func `a damaged page is an error of what is on it, and changes no file`() throws {
        let first = try place.manager()
        let keys = (0..<2000).map { "\($0)" }
        try cache(first).setValues(keys.map { ($0, Data(repeating: 7, count: 100)) })
        try first.close()
        try place.url.removeLog()
        // The tables of caches and the last entry, which an opening reads, stay whole.
        let pageCount = try place.url.fileSize() / 4096
        for page in pageCount / 2..<pageCount / 2 + 4 { try place.url.overwritePage(page) }
        let before = try place.folder.contents()
        let manager = try reader()
        let cache = try cache(manager)
        var failures = 0
        for key in keys {
            do throws(CacheError) {
                let value = try cache.disk.value(forKey: key)
                #expect(value?.count == 100)
            } catch {
                #expect(error.code == .corrupt)
                failures += 1
            }
        }
        #expect(failures > 0 && failures < keys.count)
        expectError(.readOnly) { try manager.verify(repairing: true) }
        try manager.close()
        #expect(try place.folder.contents() == before)
    }
}
