import Foundation
import Larder
import LarderTestSupport
import Testing

struct FileTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func blobs(_ options: CacheOptions = CacheOptions(inlineLimit: 100)) throws -> Cache<String, Data> {
        try manager.cache(named: "blobs", version: "1", maxAge: .unlimited, options: options)
    }

    private func files() throws -> [String] { try place.spilledFiles() }

    private func bytes(_ count: Int, _ byte: UInt8 = 7) -> Data { Data(repeating: byte, count: count) }

    @Test func `a sliding age and the order of use go by the URLs that were handed out too`() throws {
        let (place, manager) = try TemporaryStore.opened()
        let cache: Cache<Int, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .seconds(10).sinceLastAccess, options: CacheOptions(inlineLimit: 0).steady
        )
        for key in 1...3 { cache[key] = Data(count: 100) }
        for _ in 0..<3 {
            place.clock.set(place.clock.now + 9)
            #expect(cache[2] != nil)
            #expect(try cache.fileURL(forKey: 1) != nil)
        }
        place.clock.set(place.clock.now + 9)
        #expect(try cache.fileURL(forKey: 2) != nil)
        #expect(try cache.fileURL(forKey: 3) == nil)
        place.clock.advance(by: .milliseconds(1))
        #expect(try cache.fileURL(forKey: 1) != nil)
        try cache.trim(toCount: 1)
        #expect(Array(cache.keys) == [1])
    }

    @Test func `a payload of the limit stays in its row, one byte more becomes a file`() throws {
        let cache = try blobs()
        try cache.setValue(bytes(100), forKey: "row")
        #expect(try files().isEmpty)
        #expect(try cache.fileURL(forKey: "row") == nil)
        try cache.setValue(bytes(101), forKey: "small file")
        #expect(try files().count == 1)
        #expect(try cache.metadata(forKey: "small file")?.isFile == true)
        try cache.setValue(bytes(2048), forKey: "file")
        #expect(try files().count == 2)
        #expect(try cache.metadata(forKey: "file")?.isFile == true)
        cache.memoryIsForgotten()
        #expect(try cache.value(forKey: "file") == bytes(2048))
        let url = try #require(try cache.fileURL(forKey: "file"))
        #expect(try Data(contentsOf: url) == bytes(2048))
    }

    @Test func `a name is asked for with the key's text, and the same one for two keys makes two files`() throws {
        let asked = Told<String>()
        let fileName: @Sendable (String) -> String = { key in
            asked.add(key)
            return "same.txt"
        }
        let options = CacheOptions(memory: .disabled, inlineLimit: 0, fileName: fileName)
        let texts = try blobs(options)
        try texts.setValues([("a/b", bytes(5, 1)), ("c", bytes(5, 2))])
        let numbers: Cache<Int, Data> = try manager.cache(
            named: "numbers", version: "1", maxAge: .unlimited, options: options)
        numbers[-42] = bytes(5, 3)
        let flags: Cache<Bool, Data> = try manager.cache(
            named: "flags", version: "1", maxAge: .unlimited, options: options)
        flags[true] = bytes(5, 4)
        #expect(asked.all == ["a/b", "c", "-42", "f5"])
        #expect(texts["a/b"] == bytes(5, 1) && texts["c"] == bytes(5, 2))
        #expect(numbers[-42] == bytes(5, 3) && flags[true] == bytes(5, 4))
        #expect(try files().count == 4)
        for key in ["a/b", "c"] {
            let url = try #require(try texts.fileURL(forKey: key))
            #expect(url.lastPathComponent.hasPrefix("same-") && url.pathExtension == "txt")
        }
    }

    @Test func `a name that changes between two writes leaves one file, under the new name`() throws {
        let first = try blobs(CacheOptions(inlineLimit: 100, fileName: { _ in "first.txt" }))
        try first.setValue(bytes(500), forKey: "key")
        let old = try #require(try first.fileURL(forKey: "key"))
        let second = try blobs(CacheOptions(inlineLimit: 100, fileName: { _ in "second.txt" }))
        try second.setValue(bytes(600), forKey: "key")
        let new = try #require(try second.fileURL(forKey: "key"))
        #expect(old.lastPathComponent.hasPrefix("first-") && new.lastPathComponent.hasPrefix("second-"))
        #expect(try files().count == 1)
        #expect(!FileManager.default.fileExists(atPath: old.path))
        #expect(try Data(contentsOf: new) == bytes(600))
    }

    @Test func `extended data stands beside a file as beside a row`() throws {
        let cache = try blobs(CacheOptions(memory: .disabled, inlineLimit: 100))
        try cache.setValue(bytes(500), forKey: "a", extendedData: Data([1, 2]))
        #expect(try cache.metadata(forKey: "a")?.size == 502)
        #expect(try cache.extendedData(forKey: "a") == Data([1, 2]))
        try cache.setExtendedData(Data([3]), forKey: "a")
        let entry = try #require(try cache.entry(forKey: "a"))
        #expect(entry.value == bytes(500) && entry.extendedData == Data([3]))
        #expect(entry.metadata.isFile && entry.metadata.size == 501)
        #expect(try cache.sizeOnDisk == 501 && files().count == 1)
    }

    @Test func `removing what is larger than a hundred bytes leaves what has a hundred`() throws {
        let cache = try blobs()
        for count in [99, 100, 101] { cache["\(count)"] = bytes(count) }
        #expect(try cache.removeAll(whereMetadata: { _, metadata in metadata.size > 100 }) == 1)
        #expect(cache.map(\.key) == ["100", "99"])
        #expect(try files().isEmpty)
    }

    @Test func `a file goes when its entry is written small, removed, or removed with others`() throws {
        let cache = try blobs()
        try cache.setValue(bytes(500), forKey: "a")
        try cache.setValue(bytes(5), forKey: "a")
        #expect(try files().isEmpty)
        try cache.setValue(bytes(500, 1), forKey: "a")
        try cache.setValue(bytes(600, 2), forKey: "a")
        #expect(try files().count == 1)
        cache.memoryIsForgotten()
        #expect(cache["a"] == bytes(600, 2))
        #expect(try cache.removeValue(forKey: "a") == bytes(600, 2))
        #expect(try files().isEmpty)
        try cache.setValues((0..<20).map { ("\($0)", bytes(200 + $0)) })
        #expect(try files().count == 20)
        #expect(try cache.trim(toCount: 15) == 5)
        #expect(try files().count == 15)
        try cache.removeValues(forKeys: ["15", "16"])
        #expect(try files().count == 13)
        #expect(try cache.removeAll { $0.key == "17" } == 1)
        #expect(try files().count == 12)
        try cache.clear()
        #expect(try files().isEmpty)
    }

    @Test func `a damaged or vanished file is a miss that is reported`() throws {
        let cache = try blobs(CacheOptions(memory: .disabled, inlineLimit: 0))
        try cache.setValue(bytes(3000), forKey: "flipped")
        try cache.setValue(bytes(3000), forKey: "gone")
        try cache.setValue(bytes(3000), forKey: "good")
        let flipped = try #require(try cache.fileURL(forKey: "flipped"))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: flipped.path)
        try flipped.overwrite(at: 100, with: Data([0xFF]))
        let gone = try #require(try cache.fileURL(forKey: "gone"))
        try FileManager.default.removeItem(at: gone)
        for key in ["flipped", "gone"] { for _ in 0..<3 { #expect(try cache.value(forKey: key) == nil) } }
        // They count when their rows are deleted, in the background.
        try Waiting.until { cache.statistics.failures == 2 }
        #expect(cache["good"] == bytes(3000))
        #expect(cache.map(\.key) == ["good"])
        cache["other"] = bytes(1)
        #expect(try cache.entry(forKey: "gone", allowingExpired: true) == nil)
    }

    @Test func `limits hold while running, and the least recently used go first`() throws {
        let cache = try blobs(CacheOptions(disk: DiskLimits(countLimit: 100), inlineLimit: 100))
        for number in 0..<400 {
            cache["\(number)"] = bytes(150)
            _ = cache["0"]
            #expect(try cache.count <= 110)
        }
        #expect(cache["0"] != nil)
        #expect(cache["399"] != nil)
        #expect(cache["1"] == nil)
        #expect(try files().count == cache.count)
        #expect((290...300).contains(cache.statistics.countEvictions))
    }
}

extension Cache {
    /// Lets everything leave memory.
    fileprivate func memoryIsForgotten() { manager.handleMemoryPressure(.critical) }
}
