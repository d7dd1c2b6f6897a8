import Foundation
import Larder
import LarderTestSupport
import Testing

/// Symbolic links, which somebody put where the folder's own things should be.
struct BlobLinkTests {
    let folder: TemporaryFolder
    let blobs: BlobFolder
    let outside: String

    init() throws {
        (folder, blobs) = try BlobFolder.inTemporaryFolder()
        outside = folder.url.path + "/outside"
        try FileSystem.makeFolders(outside)
    }

    private func expectUntouchedOutside(_ names: [String] = []) throws {
        #expect(try FileSystem.names(in: outside).sorted() == names)
    }

    @Test func `a folder that is a link is refused`() throws {
        let reference = try blobs.write(noise(10))
        try link(blobs.path, to: outside)
        let other = BlobFolder(in: folder)
        for body in [
            { _ = try other.write(noise(10)) }, { _ = try other.read(reference) }, { try other.giveUp(reference.name) },
            { _ = try other.handOut(reference.name) }, { _ = try blobs.write(noise(10)) },
        ] as [() throws -> Void] {
            let error = #expect(throws: SystemError.self, performing: body)
            #expect(error?.number == ELOOP)
            #expect(error?.path == blobs.path)
        }
        try expectUntouchedOutside()
    }

    @Test func `a folder in it that is a link is not entered`() throws {
        let reference = try blobs.write(noise(10))
        let file = try blobs.url(reference).lastPathComponent
        try noise(10).write(to: URL(fileURLWithPath: outside + "/" + file))
        try link(blobs.path + "/" + reference.name.prefix(2), to: outside)
        #expect(try blobs.read(reference).isDamaged)
        #expect(try blobs.handOut(reference.name) == nil)
        try blobs.giveUp(reference.name)
        var sweep = BlobSweep(olderThan: .max)
        while !sweep.isDone { try blobs.sweep(&sweep, atMost: 10) { _ in [] } }
        try expectUntouchedOutside([file])
    }

    @Test func `where every folder is a link, a write throws; where some are, it goes elsewhere`() throws {
        _ = try blobs.write(noise(10))
        for number in 0..<256 {
            let digits = String(number, radix: 16)
            try link(blobs.path + "/" + (digits.count == 1 ? "0" : "") + digits, to: outside)
        }
        #expect(throws: SystemError.self) { try blobs.write(noise(10)) }
        try expectUntouchedOutside()
        for name in try FileSystem.names(in: blobs.path) where name.hasPrefix("0") == false {
            try FileSystem.remove(blobs.path + "/" + name)
        }
        for _ in 0..<50 { #expect(try blobs.bytes(blobs.write(noise(10))) == noise(10)) }
        try expectUntouchedOutside()
    }

    @Test func `a file that is a link is not followed`() throws {
        let reference = try blobs.write(noise(10))
        let target = outside + "/target"
        try noise(10).write(to: URL(fileURLWithPath: target))
        try link(blobs.url(reference).path, to: target)
        #expect(try blobs.read(reference).isDamaged)
        #expect(try blobs.handOut(reference.name) == nil)
        try blobs.giveUp(reference.name)
        #expect(blobs.poolFigures.count == 0)
        _ = try blobs.write(noise(5))
        #expect(try FileSystem.contents(target) == Array(noise(10)))
    }

    @Test func `a link in the pool is not written through`() throws {
        let reference = try blobs.write(noise(10))
        try blobs.giveUp(reference.name)
        let target = outside + "/target"
        try noise(10).write(to: URL(fileURLWithPath: target))
        let pool = try blobs.path + "/" + blobs.pools[0]
        try link(pool + "/" + FileSystem.names(in: pool)[0], to: target)
        #expect(try blobs.bytes(blobs.write(noise(20))) == noise(20))
        #expect(try FileSystem.contents(target) == Array(noise(10)))
        #expect(try FileSystem.names(in: pool) == [])
    }
}
