import Foundation
import Larder
import LarderTestSupport
import Testing

/// Files that are given up and overwritten.
struct BlobPoolTests {
    let folder: TemporaryFolder
    let blobs: BlobFolder

    init() throws { (folder, blobs) = try BlobFolder.inTemporaryFolder() }

    private func identity(_ reference: BlobReference) throws -> FileIdentity? {
        try FileSystem.status(blobs.url(reference).path)?.identity
    }

    private var figures: [Int] { [blobs.poolFigures.count, Int(blobs.poolFigures.bytes), blobs.poolFigures.taken] }

    @Test(arguments: [0, 10, 5000, 5001, 20_000], [false, true])
    func `a file given up is overwritten under another name`(count: Int, syncs: Bool) throws {
        let blobs = BlobFolder(in: folder, syncs: syncs)
        let old = try blobs.write(noise(5000, 1))
        let oldIdentity = try identity(old)
        try blobs.giveUp(old.name)
        #expect(try blobs.read(old).isMissing)
        #expect(try blobs.files == [])
        let new = try blobs.write(noise(count, 2))
        #expect(try identity(new) == oldIdentity)
        #expect(new.name != old.name)
        #expect(try blobs.bytes(new) == noise(count, 2))
        #expect(try Data(contentsOf: blobs.url(new)) == noise(count, 2))
        #expect(try blobs.read(old).isMissing)
        #expect(try blobs.files == [new.name])
        #expect(blobs.poolFigures == (0, 0, 1))
    }

    @Test func `who has read a payload keeps it when its file is overwritten`() throws {
        for count in [1000, 5 << 20] {
            let old = try blobs.write(noise(count, 1))
            let data = try #require(try blobs.bytes(old))
            try blobs.giveUp(old.name)
            _ = try blobs.write(noise(count, 2))
            #expect(data == noise(count, 1))
        }
    }

    @Test func `a file whose URL was handed out is deleted, by whomever it is given up`() throws {
        for other in [blobs, BlobFolder(in: folder)] {
            let reference = try blobs.write(noise(10, 1))
            let path = try #require(try blobs.handOut(reference.name))
            let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            try other.giveUp(reference.name)
            #expect(other.poolFigures.count == 0)
            _ = try other.write(noise(10, 2))
            #expect(try handle.readToEnd() == noise(10, 1))
            try handle.close()
        }
    }

    @Test func `a file with a second name is deleted`() throws {
        let reference = try blobs.write(noise(10, 1))
        try FileManager.default.linkItem(at: blobs.url(reference), to: folder("second"))
        try blobs.giveUp(reference.name)
        _ = try blobs.write(noise(10, 2))
        #expect(try Data(contentsOf: folder("second")) == noise(10, 1))
        #expect(figures == [0, 0, 0])
    }

    @Test func `the pool holds 32 files`() throws {
        let references = try (0..<40).map { _ in try blobs.write(noise(10)) }
        for reference in references { try blobs.giveUp(reference.name) }
        #expect(figures == [32, 320, 0])
        #expect(try blobs.files == [])
        #expect(try FileSystem.names(in: blobs.path + "/" + blobs.pools[0]).count == 32)
    }

    @Test func `the pool holds 16 MiB`() throws {
        let sizes = [7 << 20, 7 << 20, 3 << 20, 2 << 20, (16 << 20) + 1, 1]
        let references = try sizes.map { try blobs.write(Data(count: $0)) }
        for reference in references { try blobs.giveUp(reference.name) }
        #expect(figures == [3, 16 << 20, 0])
        #expect(try blobs.files == [])
        try blobs.emptyPool()
        #expect(figures == [0, 0, 0])
        let exact = try blobs.write(Data(count: 16 << 20))
        try blobs.giveUp(exact.name)
        #expect(figures == [1, 16 << 20, 0])
    }

    @Test func `the smallest file that is large enough is taken, else the largest`() throws {
        let sizes = [3000, 100, 50_000, 8000]
        let references = try sizes.map { try blobs.write(noise($0)) }
        let identities = try references.map(identity)
        for reference in references { try blobs.giveUp(reference.name) }
        for (size, index) in [(2500, 0), (90_000, 2), (8000, 3), (101, 1)] {
            #expect(try identity(blobs.write(noise(size))) == identities[index])
        }
    }

    @Test func `an emptied pool leaves nothing, and fills again`() throws {
        for _ in 0..<2 {
            let references = try (0..<5).map { _ in try blobs.write(noise(10)) }
            for reference in references { try blobs.giveUp(reference.name) }
            #expect(figures[0] == 5)
            try blobs.emptyPool()
            #expect(figures[0...1] == [0, 0])
            #expect(try blobs.pools == [])
            #expect(try blobs.files == [])
        }
        try blobs.emptyPool()
    }

    @Test func `giving up twice, or what is gone, is nothing`() throws {
        let (a, b) = try (blobs.write(noise(10)), blobs.write(noise(10)))
        try blobs.giveUp(a.name)
        try blobs.giveUp(a.name)
        try FileManager.default.removeItem(at: blobs.url(b))
        try blobs.giveUp(b.name)
        #expect(figures == [1, 10, 0])
    }

    @Test func `two on one folder have a pool each, and read each other's files`() throws {
        let other = BlobFolder(in: folder)
        let (a, b) = try (blobs.write(noise(10, 1)), other.write(noise(10, 2)))
        #expect(try other.bytes(a) == noise(10, 1))
        #expect(try blobs.bytes(b) == noise(10, 2))
        // Each gives up what the other one wrote.
        try blobs.giveUp(b.name)
        try other.giveUp(a.name)
        #expect(try blobs.pools.count == 2)
        #expect(try other.read(b).isMissing)
        let (c, d) = try (blobs.write(noise(20, 3)), other.write(noise(20, 4)))
        #expect(figures == [0, 0, 1])
        #expect(other.poolFigures.taken == 1)
        #expect(try other.bytes(c) == noise(20, 3))
        #expect(try blobs.bytes(d) == noise(20, 4))
        try blobs.emptyPool()
        #expect(try blobs.pools.count == 1)
    }

    @Test(arguments: [true, false]) func `a pool that somebody cleared costs nothing but its files`(whole: Bool) throws
    {
        let references = try (0..<4).map { _ in try blobs.write(noise(10)) }
        for reference in references.dropLast() { try blobs.giveUp(reference.name) }
        let pool = try blobs.path + "/" + blobs.pools[0]
        for name in try FileSystem.names(in: pool) { try FileSystem.remove(pool + "/" + name) }
        if whole { try FileSystem.remove(pool) }
        let new = try blobs.write(noise(20))
        #expect(try blobs.bytes(new) == noise(20))
        try blobs.giveUp(references[3].name)
        try blobs.giveUp(new.name)
        #expect(try blobs.files == [])
        #expect(try blobs.bytes(blobs.write(noise(30))) == noise(30))
        try blobs.emptyPool()
        #expect(try blobs.pools == [])
    }

    @Test func `many threads on two folders never see another's bytes`() throws {
        let other = BlobFolder(in: folder)
        let others = Told<String>()
        let errors = errors(ofThreads: 4) { thread in
            let blobs = thread % 2 == 0 ? blobs : other
            var kept: [(BlobReference, Data)] = []
            for number in 0..<150 {
                let data = noise(1 + number * 37 % 9000, UInt64(thread * 1000 + number + 1))
                kept.append((try blobs.write(data), data))
                if kept.count > 3 {
                    let (reference, data) = kept.remove(at: number % 4)
                    if try other.bytes(reference) != data { others.add("\(thread) \(number)") }
                    try blobs.giveUp(reference.name)
                }
                if number % 50 == 49 { try blobs.emptyPool() }
            }
            for (reference, data) in kept where try blobs.bytes(reference) != data { others.add("\(thread)") }
        }
        #expect(errors == [])
        #expect(others.all == [])
        #expect(try blobs.files.count == 12)
        try blobs.emptyPool()
        try other.emptyPool()
        var sweep = BlobSweep(olderThan: 0)
        try blobs.sweep(&sweep, atMost: 100_000) { _ in [] }
        #expect(try blobs.pools == [])
    }
}
