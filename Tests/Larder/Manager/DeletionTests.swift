import Foundation
import Larder
import LarderTestSupport
import Testing

struct DeletionTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    @Test func `a store is deleted with all that belongs to it, and nothing else`() throws {
        try Data("x".utf8).write(to: place.folder("other"))
        try Data("x".utf8).write(to: place.folder("store"))
        let manager = try place.manager()
        let cache: Cache<Int, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(inlineLimit: 10))
        cache[1] = Data(repeating: 1, count: 1000)
        expectError(.busy) { try CacheManager.deleteStore(at: place.url) }
        #expect(cache[1]?.count == 1000)
        try manager.close()
        for part in [".damaged", ".damaged-wal", ".replaced-wal"] {
            try Data("x".utf8).write(to: place.folder("store.sqlite" + part))
        }
        try CacheManager.deleteStore(at: place.url)
        #expect(try place.folder.names == ["other", "store"])
        // A store that is not there is deleted.
        try CacheManager.deleteStore(at: place.url)
        try CacheManager.deleteStore(at: place.folder("absent/store.sqlite"))
        #expect(try place.folder.names == ["other", "store"])
        let next: Cache<Int, Data> = try place.manager().cache(named: "a", version: "1", maxAge: .hours(1))
        #expect(next[1] == nil)
    }

    @Test func `a store that another process has open is not deleted`() throws {
        let child = try ChildProcess("larder-test-peer", ["hold", place.url.path])
        #expect(child.line() == "open")
        expectError(.busy) { try CacheManager.deleteStore(at: place.url) }
        child.kill()
        try CacheManager.deleteStore(at: place.url)
        #expect(try place.folder.names == [])
    }

    @Test func `a file of another program is refused and left, and so is its folder`() throws {
        try Data("text".utf8).write(to: place.url)
        expectError(.foreignFile) { try CacheManager.deleteStore(at: place.url) }
        expectError(.foreignFile) { _ = try place.manager() }
        #expect(try place.folder.names == ["store.sqlite"])
        #expect(try Data(contentsOf: place.url) == Data("text".utf8))
        for text in ["", "x"] {
            try Data(text.utf8).write(to: place.url)
            expectError(.foreignFile) { try CacheManager.deleteStore(at: place.url) }
        }
        expectError(.foreignFile) { _ = try place.manager() }
        #expect(try Data(contentsOf: place.url) == Data("x".utf8))
        try FileManager.default.removeItem(at: place.url)
        try FileManager.default.createDirectory(at: place.folder("store.files"), withIntermediateDirectories: false)
        try Data("x".utf8).write(to: place.folder("store.files/theirs"))
        try CacheManager.deleteStore(at: place.url)
        #expect(try place.folder.names == ["store.files"])
    }

    @Test func `the lock file of a store is no store`() throws {
        let manager = try place.manager()
        let cache: Cache<Int, Int> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        cache[1] = 1
        let lock = place.folder("store.sqlite.lock")
        expectError(.foreignFile) { try CacheManager(url: lock).close() }
        expectError(.foreignFile) { try CacheManager.deleteStore(at: lock) }
        #expect(try Data(contentsOf: lock).count == 1 && cache[1] == 1)
    }

    @Test func `a damaged store is deleted too`() throws {
        let manager = try place.manager()
        let cache: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        cache[1] = "one"
        try manager.close()
        var bytes = try Data(contentsOf: place.url)
        bytes.replaceSubrange(0..<4096, with: Data(repeating: 7, count: 4096))
        try bytes.write(to: place.url)
        try CacheManager.deleteStore(at: place.url)
        #expect(try place.folder.names == [])
    }
}
