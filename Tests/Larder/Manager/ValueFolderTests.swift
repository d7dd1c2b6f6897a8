import Foundation
import Larder
import LarderTestSupport
import Testing

/// The folder of value files when another program deletes, replaces or locks what is in it.
struct ValueFolderTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    /// A cache that keeps every value in a file, and none in memory.
    private func cache() throws -> Cache<Int, Data> {
        try manager.cache(
            named: "files", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled, inlineLimit: 0))
    }

    private func bytes(_ byte: UInt8) -> Data { Data(repeating: byte, count: 2000) }

    private var folder: URL { place.folder("store.files") }

    private func files() throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    }

    @Test(arguments: [true, false])
    func `values whose files were deleted are misses, and later values are stored`(withFolder: Bool) throws {
        let cache = try cache()
        try cache.setValues((0..<6).map { ($0, bytes(UInt8($0))) })
        // These files wait to be overwritten.
        try cache.removeValues(forKeys: [4, 5])
        for url in try withFolder ? [folder] : files() { try FileManager.default.removeItem(at: url) }
        for key in 0..<4 { #expect(try cache.value(forKey: key) == nil) }
        for key in 3..<6 { try cache.setValue(bytes(UInt8(10 + key)), forKey: key) }
        for key in 0..<6 { #expect(try cache.value(forKey: key) == (key < 3 ? nil : bytes(UInt8(10 + key)))) }
        // The rows without files are deleted in the background.
        try Waiting.until { try cache.count == 3 }
        #expect(try manager.verify().isHealthy)
        #expect(try StoreProbe(manager).fileProblems(isSwept: true) == [])
        try expectInvariants(cache)
    }

    @Test func `a pipe in place of a value file is a miss, and no call waits for it`() throws {
        let cache = try cache()
        func replaceFile() throws {
            let file = try #require(try files().first)
            try FileManager.default.removeItem(at: file)
            #expect(mkfifo(file.path, 0o600) == 0)
        }
        try cache.setValue(bytes(1), forKey: 1)
        try replaceFile()
        #expect(try SideThread { try cache.value(forKey: 1) }.value() == nil)
        try cache.clear()
        try cache.setValue(bytes(2), forKey: 2)
        // The file waits to be overwritten.
        try cache.remove(2)
        try replaceFile()
        let value = bytes(3)
        try SideThread { try cache.setValue(value, forKey: 3) }.value()
        #expect(try SideThread { try cache.value(forKey: 3) }.value() == value)
    }

    @Test func `a link in place of a file that waits to be overwritten is not written through`() throws {
        let (cache, target) = (try cache(), place.folder("target"))
        try bytes(7).write(to: target)
        try cache.setValue(bytes(1), forKey: 1)
        try cache.remove(1)
        let file = try #require(try files().first)
        try FileManager.default.removeItem(at: file)
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: target)
        try cache.setValue(bytes(2), forKey: 2)
        #expect(try cache.value(forKey: 2) == bytes(2))
        #expect(try Data(contentsOf: target) == bytes(7))
    }

    @Test func `values that come and go leave no descriptor of a file open`() throws {
        let cache = try cache()
        for number in 0..<200 {
            let key = number % 7
            try cache.setValue(bytes(UInt8(key)), forKey: key)
            #expect(try cache.value(forKey: key) == bytes(UInt8(key)))
            if number % 3 == 0 { try cache.remove(key) }
        }
        let path = folder.path
        #expect(try OpenFiles.paths { $0.hasPrefix(path) } == [])
    }

    #if os(Linux)
    /// Runs `body` while no other call can open a file; false if the disk has no leases.
    @discardableResult
    private static func withLease(of url: URL, _ body: () throws -> Void = {}) throws -> Bool {
        // F_SETLEASE, which Swift does not import. Its holder gets a signal when another call wants to open the file.
        let setLease: Int32 = 1024
        signal(SIGIO, SIG_IGN)
        let descriptor = open(url.path, O_RDONLY)
        defer { close(descriptor) }
        guard fcntl(descriptor, setLease, Int32(F_WRLCK)) == 0 else { return false }
        try body()
        return true
    }

    private static let hasLeases: Bool = {
        do {
            let folder = try TemporaryFolder()
            try Data([1]).write(to: folder("file"))
            return try withLease(of: folder("file"))
        } catch {
            return false
        }
    }()

    @Test(.enabled(if: hasLeases, "the disk has no leases"))
    func `a file that cannot be opened for now is an error that deletes nothing, and is read later`() throws {
        let cache = try cache()
        try cache.setValue(bytes(1), forKey: 1)
        try Self.withLease(of: #require(try files().first)) {
            expectError(.storageUnavailable) { try cache.value(forKey: 1) }
            expectError(.storageUnavailable) { try cache.entry(forKey: 1) }
            expectError(.storageUnavailable) { try cache.values(forKeys: [1]) }
            expectError(.storageUnavailable) { try cache.snapshot() }
            expectError(.storageUnavailable) { try cache.update(1) { $0 = nil } }
            expectError(.storageUnavailable) { try manager.transaction { try $0.value(forKey: 1, in: cache) } }
            #expect(cache[1] == nil && cache.statistics.failures == 1)
            #expect(try cache.contains(1))
            // A write would delete a row that was found damaged before it.
            try cache.setValue(bytes(2), forKey: 2)
            #expect(try cache.count == 2)
        }
        #expect(try cache.snapshot() == [1: bytes(1), 2: bytes(2)])
        try expectInvariants(cache)
    }
    #endif
}
