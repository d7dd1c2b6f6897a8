import Foundation
import Larder
import LarderTestSupport
import Testing

/// What is at a snapshot's path, and beside it, while it is saved and after who saved it has died.
struct SnapshotReplacementTests {
    private let folder: TemporaryFolder
    private var file: URL { folder("snapshot") }

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A value that tells when it is encoded, large enough that the file is written in several parts.
    private struct Noisy: Codable, Sendable {
        /// What hears of it, on the thread that encodes.
        let heard: (@Sendable () -> Void)?
        let bytes: Data

        init(_ heard: (@Sendable () -> Void)?) { (self.heard, bytes) = (heard, Data(count: 100_000)) }

        init(from decoder: any Decoder) throws {
            heard = nil
            bytes = try decoder.singleValueContainer().decode(Data.self)
        }

        func encode(to encoder: any Encoder) throws {
            heard?()
            var container = encoder.singleValueContainer()
            try container.encode(bytes)
        }
    }

    private func filled(_ keys: Range<Int>, _ heard: (@Sendable () -> Void)? = nil) -> MemoryCache<Int, Noisy> {
        let cache = MemoryCache<Int, Noisy>(clearsOnMemoryPressure: false)
        for key in keys { cache[key] = Noisy(heard) }
        return cache
    }

    @Test func `until a save is complete, whoever reads finds the old file whole`() throws {
        try filled(0..<3).save(to: file)
        let (file, counts) = (file, Told<Int>())
        let look: @Sendable () -> Void = {
            do {
                counts.add(try MemoryCache<Int, Noisy>().load(from: file))
            } catch {
                Issue.record(error)
            }
        }
        try filled(0..<8, look).save(to: file)
        #expect(counts.all == Array(repeating: 3, count: 8))
        #expect(try filled(0..<0).load(from: file) == 8)
        #expect(try folder.names == ["snapshot"])
    }

    @Test func `two saves at once leave the one that ends last, whole`() throws {
        let (file, small) = (file, filled(0..<2))
        let save: @Sendable () -> Void = {
            do {
                try small.save(to: file)
            } catch {
                Issue.record(error)
            }
        }
        try filled(0..<8, save).save(to: file)
        #expect(try filled(0..<0).load(from: file) == 8)
        #expect(try folder.names == ["snapshot"])
    }

    @Test func `what a process leaves that dies in a save goes with the next one, and nothing else does`() throws {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        cache[1] = 1
        try cache.save(to: file)
        let others = [".hidden", ".snapshot.old", "snapshot.bak"]
        for name in others { try Data().write(to: folder(name)) }
        let child = try ChildProcess("larder-test-cache", ["save-and-wait", file.path])
        #expect(child.line() == "saving")
        child.kill()
        #expect(try folder.names.count == 5, "it left what it had written")
        #expect(try MemoryCache<Int, Int>().load(from: file) == 1, "the old one is whole")
        // Of another snapshot, it is not touched.
        try cache.save(to: folder("second"))
        #expect(try folder.names.count == 6)
        try cache.save(to: file)
        #expect(try folder.names == (others + ["second", "snapshot"]).sorted())
    }

    @Test func `a name may be as long as a name may be`() throws {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        cache[1] = 1
        let name = String(repeating: "n", count: 255)
        try cache.save(to: folder(name))
        #expect(try MemoryCache<Int, Int>().load(from: folder(name)) == 1)
        #expect(try folder.names == [name])
    }
}
