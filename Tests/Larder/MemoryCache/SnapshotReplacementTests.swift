import Foundation
import Larder
import LarderStore
import LarderTestSupport
import Testing

/// The files at the path of a snapshot and next to it, while the snapshot is saved and after a process died in a save.
struct SnapshotReplacementTests {
    private let folder: TemporaryFolder
    private var file: URL { folder("snapshot") }

    init() throws { folder = try TemporaryFolder() }

    /// A value that reports when it is encoded, so large that the file is written in several parts.
    private struct Noisy: Codable, Sendable {
        /// Called on the thread that encodes.
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

    private func filled(_ keys: Range<Int>, _ heard: (@Sendable () throws -> Void)? = nil) -> MemoryCache<Int, Noisy> {
        let cache = MemoryCache<Int, Noisy>(clearsOnMemoryPressure: false)
        let report: @Sendable () -> Void = {
            do { try heard?() } catch { Issue.record(error) }
        }
        for key in keys { cache[key] = Noisy(report) }
        return cache
    }

    @Test func `until a save is complete a load finds the old file whole`() throws {
        try filled(0..<3).save(to: file)
        let (file, counts) = (file, Told<Int>())
        try filled(0..<8) { counts.add(try MemoryCache<Int, Noisy>().load(from: file)) }.save(to: file)
        #expect(counts.all == Array(repeating: 3, count: 8))
        #expect(try filled(0..<0).load(from: file) == 8)
        #expect(try folder.names == ["snapshot"])
    }

    @Test func `of two saves at once the one that ends last leaves its file, whole`() throws {
        let (file, small) = (file, filled(0..<2))
        try filled(0..<8) { try small.save(to: file) }.save(to: file)
        #expect(try filled(0..<0).load(from: file) == 8)
        #expect(try folder.names == ["snapshot"])
    }

    @Test func `a file of a process that died in a save is deleted by a save an hour later, and no other file is`()
        throws
    {
        let others = [".hidden", ".snapshot.old", "snapshot.bak"]
        for name in others { try Data().write(to: folder(name)) }
        let digits = Data("snapshot".utf8).withUnsafeBytes { Checksum.of($0) }.digits
        let (old, new) = (".larder-\(digits)-old", ".larder-\(digits)-new")
        for name in [old, new] { try Data("half".utf8).write(to: folder(name)) }
        let anHourAgo = Date(timeIntervalSinceNow: -3700)
        try FileManager.default.setAttributes([.modificationDate: anHourAgo], ofItemAtPath: folder(old).path)
        // It belongs to another snapshot, so this save does not touch it.
        try filled(0..<1).save(to: folder("second"))
        #expect(try folder.names.count == 6)
        try filled(0..<2).save(to: file)
        #expect(try folder.names == (others + [new, "second", "snapshot"]).sorted())
        #expect(try filled(0..<0).load(from: file) == 2)
    }

    @Test func `the name of a snapshot may be as long as a name may be`() throws {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        cache[1] = 1
        let name = String(repeating: "n", count: 255)
        try cache.save(to: folder(name))
        #expect(try MemoryCache<Int, Int>().load(from: folder(name)) == 1)
        #expect(try folder.names == [name])
    }
}
