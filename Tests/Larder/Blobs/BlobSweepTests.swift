import Foundation
import Larder
import LarderTestSupport
import Testing

/// Files that no row names.
struct BlobSweepTests {
    let folder: TemporaryFolder
    let blobs: BlobFolder
    /// A moment before which every file of the test was written.
    let later = Int64(Date.distantFuture.timeIntervalSince1970) * 1000

    init() throws { (folder, blobs) = try BlobFolder.inTemporaryFolder() }

    /// Sweeps in slices; how often it asked for names, and how many files went.
    private func sweep(
        olderThan moment: Int64, atMost count: Int = 1000, named: Set<String> = []
    ) throws -> (questions: Int, slices: Int, deleted: Int) {
        var sweep = BlobSweep(olderThan: moment)
        var (questions, slices) = (0, 0)
        while !sweep.isDone {
            slices += 1
            try blobs.sweep(&sweep, atMost: count) { names in
                questions += 1
                #expect(names.count <= count)
                return named.intersection(names)
            }
        }
        return (questions, slices, sweep.deletedCount)
    }

    @Test(arguments: [1, 7, 1000]) func `old files that no row names go, the others stay`(slice: Int) throws {
        let references = try (0..<60).map { try blobs.write(noise(10, UInt64($0 + 1))) }
        let named = Set(references.prefix(20).map(\.name))
        let result = try sweep(olderThan: later, atMost: slice, named: named)
        #expect(result.deleted == 40)
        #expect(result.slices >= 60 / slice)
        #expect(try blobs.files == named)
        for (number, reference) in references.prefix(20).enumerated() {
            #expect(try blobs.bytes(reference) == noise(10, UInt64(number + 1)))
        }
        #expect(try sweep(olderThan: later, named: named).deleted == 0)
    }

    @Test func `young files stay, by when they were written`() throws {
        let reference = try blobs.write(noise(10))
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        let result = try sweep(olderThan: now - 3_600_000)
        #expect(result.deleted == 0 && result.questions == 0)
        #expect(try blobs.bytes(reference) == noise(10))
        try FileManager.default.setAttributes(
            [.modificationDate: Date() - 3600], ofItemAtPath: blobs.url(reference).path)
        #expect(try sweep(olderThan: now).deleted == 1)
    }

    @Test func `a recycled file is as young as its new name`() throws {
        let old = try blobs.write(noise(10))
        try blobs.giveUp(old.name)
        let tick = folder("tick")
        try Data([0]).write(to: tick)
        let givenUp = try changedAt(tick)
        // The file system's clock stands still for some milliseconds at a time.
        try Waiting.until {
            try Data([0]).write(to: tick)
            return try changedAt(tick) > givenUp + 1
        }
        let new = try blobs.write(noise(10))
        #expect(blobs.poolFigures.taken == 1)
        let moment = try changedAt(blobs.url(new))
        #expect(moment > givenUp + 1)
        #expect(try sweep(olderThan: moment).deleted == 0)
        #expect(try sweep(olderThan: moment + 2).deleted == 1)
    }

    /// When a file changed or moved last, in whole milliseconds since 1970.
    private func changedAt(_ url: URL) throws -> Int64 {
        let status = try #require(try FileSystem.status(url.path))
        return Int64(status.changedAt.seconds) * 1000 + Int64(status.changedAt.nanoseconds) / 1_000_000
    }

    @Test func `whatever else lies in the folder goes if it is a file, and stays if not`() throws {
        _ = try blobs.write(noise(10))
        for name in ["stray", "3f-stray", "other/file"] {
            let url = URL(fileURLWithPath: blobs.path + "/" + name)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data("x".utf8).write(to: url)
        }
        try noise(5).write(to: folder("outside"))
        try link(blobs.path + "/link", to: folder("outside").path)
        try link(blobs.path + "/folder-link", to: folder.url.path)
        #expect(try sweep(olderThan: later).deleted == 4)
        #expect(try blobs.files == [])
        #expect(try FileSystem.status(blobs.path + "/link")?.kind == .link)
        #expect(try FileSystem.contents(folder("outside").path) == Array(noise(5)))
    }

    @Test func `what a dead process left in its pool goes at once, a living one's pool stays`() throws {
        let dead = blobs.path + "/pool-0123456789abcdef"
        try FileSystem.makeFolders(dead)
        for name in ["1", "2"] { try noise(10).write(to: URL(fileURLWithPath: dead + "/" + name)) }
        let other = BlobFolder(in: folder)
        for blobs in [blobs, other] { try blobs.giveUp(blobs.write(noise(10)).name) }
        #expect(try sweep(olderThan: 0).deleted == 0)
        #expect(try blobs.pools.count == 2)
        #expect(try FileSystem.status(dead)?.kind == nil)
        #expect(blobs.poolFigures.count == 1)
        _ = try other.write(noise(10))
        #expect(other.poolFigures.taken == 1)
    }

    @Test func `a sweep that throws goes on, and a folder that goes meanwhile ends it`() throws {
        struct Busy: Error {}
        for _ in 0..<10 { _ = try blobs.write(noise(10)) }
        var sweep = BlobSweep(olderThan: later)
        #expect(throws: Busy.self) {
            while !sweep.isDone { try blobs.sweep(&sweep, atMost: 5) { _ in throw Busy() } }
        }
        #expect(try blobs.files.count == 10)
        try blobs.sweep(&sweep, atMost: 5) { _ in [] }
        #expect(!sweep.isDone)
        try FileSystem.remove(blobs.path)
        try blobs.sweep(&sweep, atMost: 5) { _ in [] }
        #expect(sweep.isDone)
    }
}
