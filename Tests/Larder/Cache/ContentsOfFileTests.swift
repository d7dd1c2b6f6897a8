import Foundation
import Larder
import LarderTestSupport
import Testing

/// Files of the program that become values.
struct ContentsOfFileTests {
    private let bench: Workbench

    init() throws { bench = try Workbench() }

    private func cache(_ codec: ValueCodec<Data>? = nil, _ manager: CacheManager? = nil) throws -> Cache<String, Data> {
        let manager = manager ?? bench.manager
        guard let codec else { return try manager.cache(named: "files", version: "1", maxAge: .hours(1)) }
        return try manager.cache(named: "coded", version: "1", maxAge: .hours(1), codec: codec)
    }

    private func bytes(_ count: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    }

    private func file(_ bytes: Data, _ name: String = "source") throws -> URL {
        let url = bench.folder(name)
        try bytes.write(to: url)
        return url
    }

    @Test(arguments: [0, 1, 63, 64, 65, 32 << 10, 32 << 10 + 1, 1 << 20 - 1, 1 << 20, 1 << 20 + 65, 3 << 20 + 7])
    func `the bytes of a file come back, as a file from the limit on`(count: Int) throws {
        let (cache, bytes) = (try cache(), bytes(count))
        try cache.setValue(contentsOf: file(bytes), forKey: "a", extendedData: Data([7]), tags: ["x"])
        #expect(try cache.disk["a"] == bytes && cache.extendedData(forKey: "a") == Data([7]))
        let metadata = try cache.metadata(forKey: "a")
        let isFile = count > 32 << 10
        #expect(metadata?.size == count + 1 && metadata?.isFile == isFile && metadata?.tags == ["x"])
        #expect(try (cache.fileURL(forKey: "a").map { try Data(contentsOf: $0) } == bytes) == isFile)
        #expect(try Data(contentsOf: bench.folder("source")) == bytes)
        #expect(try bench.manager.verify().isHealthy)
    }

    @Test func `memory keeps no copy, and streams and readers see the new value`() async throws {
        let (cache, bytes) = (try cache(), bytes(100_000))
        try await cache.setValue(Data([1]), forKey: "a", maxAge: .minutes(1))
        var changes = cache.changes().makeAsyncIterator()
        try await cache.setValue(contentsOf: file(bytes), forKey: "a", maxAge: .minutes(2))
        #expect(cache.memory.count == 0 && cache.memory["a"] == nil)
        bench.time.advance(by: .milliseconds(100))
        #expect(await changes.next()?.updated == ["a": bytes])
        bench.time.advance(by: .seconds(90))
        #expect(cache["a"] == bytes)
        bench.time.advance(by: .seconds(60))
        #expect(cache["a"] == nil)
    }

    @Test func `a replaced file and a removed one leave nothing`() throws {
        let cache = try cache()
        for number in 0..<3 { try cache.setValue(contentsOf: file(bytes(50_000 + number)), forKey: "a") }
        #expect(cache.disk["a"] == bytes(50_002))
        cache["a"] = nil
        #expect(try StoreProbe(bench.manager).fileProblems(isSwept: true) == [])
        try expectInvariants(cache)
    }

    @Test func `a file that a cache hands out becomes the value of another key`() throws {
        let cache = try cache()
        try cache.setValue(contentsOf: file(bytes(50_000)), forKey: "a")
        let handedOut = try #require(try cache.fileURL(forKey: "a"))
        try cache.setValue(contentsOf: handedOut, forKey: "b")
        cache["a"] = nil
        #expect(cache.disk["b"] == bytes(50_000))
        #expect(try StoreProbe(bench.manager).fileProblems(isSwept: true) == [])
    }

    @Test func `with a transform and in memory the bytes are read, encoded and kept`() throws {
        let flip = DataTransform(identifier: "flip", apply: { Data($0.map { ~$0 }) }, undo: { Data($0.map { ~$0 }) })
        let (bytes, inMemory) = (bytes(40_000), try CacheManager.inMemory())
        for cache in [try cache(.data.then(flip)), try cache(nil, inMemory)] {
            try cache.setValue(contentsOf: file(bytes), forKey: "a")
            #expect(cache["a"] == bytes && cache.disk["a"] == bytes)
        }
    }

    @Test func `a link is followed, and what is no file, and what is not there, is refused`() throws {
        let (cache, bytes) = (try cache(), bytes(100_000))
        cache["a"] = Data([1])
        let link = bench.folder("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file(bytes))
        try cache.setValue(contentsOf: link, forKey: "b")
        #expect(cache["b"] == bytes)
        let pipe = bench.folder("pipe")
        #expect(mkfifo(pipe.path, 0o600) == 0)
        let flip = DataTransform(identifier: "flip", apply: { $0 }, undo: { $0 })
        let remote = try #require(URL(string: "https://example.com" + link.path))
        for source in [bench.folder.url, pipe, bench.folder("absent"), remote] {
            for cache in [cache, try self.cache(.data.then(flip))] {
                let error = #expect(throws: CacheError.self) { try cache.setValue(contentsOf: source, forKey: "a") }
                #expect(error?.code == .storageUnavailable && error?.message.contains(source.lastPathComponent) == true)
            }
        }
        #expect(cache["a"] == Data([1]))
        #expect(try StoreProbe(bench.manager).fileProblems(isSwept: true) == [])
    }

    @Test func `a file that grows while it is copied is an error, and the old value stays`() throws {
        let (cache, source) = (try cache(), try file(bytes(8 << 20)))
        cache["a"] = Data([1])
        let isOver = LoadGate()
        let writer = SideThread {
            let handle = try FileHandle(forWritingTo: source)
            try handle.seekToEnd()
            while !isOver.isOpen { try handle.write(contentsOf: Data([1])) }
        }
        defer { isOver.open() }
        let error = #expect(throws: CacheError.self) {
            // The thread may not have begun.
            while true { try cache.setValue(contentsOf: source, forKey: "b") }
        }
        isOver.open()
        try writer.value()
        #expect(error?.code == .storageUnavailable && error?.message.contains("changed while it was copied") == true)
        #expect(cache["a"] == Data([1]))
        #expect(try StoreProbe(bench.manager).fileProblems(isSwept: true) == [])
    }
}
