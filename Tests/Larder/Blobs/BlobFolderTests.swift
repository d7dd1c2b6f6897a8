import Foundation
import Larder
import LarderTestSupport
import Testing

struct BlobFolderTests {
    let folder: TemporaryFolder
    let blobs: BlobFolder

    init() throws { (folder, blobs) = try BlobFolder.inTemporaryFolder() }

    @Test func `nothing is made on the disk before the first write`() throws {
        #expect(try blobs.read("3f/0123", size: 1, checksum: 1).isMissing)
        try blobs.giveUp("3f/0123")
        #expect(try blobs.handOut("3f/0123") == nil)
        try blobs.emptyPool()
        var sweep = BlobSweep(olderThan: .max)
        try blobs.sweep(&sweep, atMost: 10) { _ in [] }
        #expect(sweep.isDone)
        #expect(try folder.names == [])
    }

    // case 57
    @Test(arguments: [0, 1, 31, 2048, 100_000, 4 << 20, 5_000_001], [false, true])
    func `what is written is read back whole`(count: Int, syncs: Bool) throws {
        let blobs = BlobFolder(in: folder, syncs: syncs)
        let data = noise(count)
        let reference = try blobs.write(data)
        #expect(reference.size == Int64(count))
        #expect(try blobs.bytes(reference) == data)
        #expect(try BlobFolder(in: folder).bytes(reference) == data)
        #expect(try Data(contentsOf: blobs.url(reference)) == data)
        #expect(try blobs.files == [reference.name])
    }

    @Test func `the checksum is the published XXH3 of 64 bits with seed 0`() throws {
        #expect(try blobs.write(Data("abc".utf8)).checksum == Int64(bitPattern: 0x78AF_5F94_892F_3950))
        #expect(try blobs.write(Data()).checksum == Int64(bitPattern: 0x2D06_8005_38D3_94C2))
    }

    @Test func `files and folders are their owner's alone, whatever the mask is`() throws {
        let name = try blobs.write(noise(10)).name
        for (path, mode) in [("", 0o700), ("/" + name.prefix(2), 0o700), ("/" + name, 0o600)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: blobs.path + path)
            #expect(attributes[.posixPermissions] as? Int == mode)
        }
    }

    @Test func `names are fresh, and fill folders of two digits`() throws {
        let names = try (0..<200).map { _ in try blobs.write(Data()).name }
        #expect(Set(names).count == 200)
        #expect(Set(names.map { $0.prefix(2) }).count > 64)
        for name in names {
            let match = try #require(name.wholeMatch(of: /([0-9a-f]{2})\/([0-9a-f]{24})/))
            #expect(match.output.2.hasPrefix(match.output.1))
        }
    }

    // case 72
    @Test(arguments: [3000, 5 << 20]) func `a byte that flipped is damage`(count: Int) throws {
        let reference = try blobs.write(noise(count))
        for place in [0, count / 2, count - 1] {
            var data = noise(count)
            data[place] ^= 1
            try data.write(to: blobs.url(reference))
            #expect(try blobs.read(reference).isDamaged)
        }
        try noise(count).write(to: blobs.url(reference))
        #expect(try blobs.bytes(reference) == noise(count))
    }

    @Test func `another length or another checksum is damage`() throws {
        let reference = try blobs.write(noise(3000))
        let (name, size, checksum) = (reference.name, reference.size, reference.checksum)
        for other: Int64 in [0, 2999, 3001, -1, 3_000_000_000, .max, .min] {
            #expect(try blobs.read(name, size: other, checksum: checksum).isDamaged)
        }
        #expect(try blobs.read(name, size: size, checksum: checksum ^ 1).isDamaged)
        for data in [Data(), noise(2999), noise(3001)] {
            try data.write(to: blobs.url(reference))
            #expect(try blobs.read(reference).isDamaged)
        }
    }

    @Test func `what is no file is damage, and is not waited for`() throws {
        let reference = try blobs.write(noise(10))
        let path = try blobs.url(reference).path
        try FileSystem.remove(path)
        try #require(mkfifo(path, 0o600) == 0)
        #expect(try blobs.read(reference).isDamaged)
        try FileSystem.remove(path)
        try FileSystem.makeFolders(path)
        #expect(try blobs.read(reference).isDamaged)
    }

    // case 73
    @Test func `a file, a folder on the way or all of it that vanished is missing`() throws {
        let kept = try blobs.write(noise(10))
        for depth in 0..<3 {
            let reference = try blobs.write(noise(10))
            var url = try blobs.url(reference)
            for _ in 0..<depth { url.deleteLastPathComponent() }
            try FileManager.default.removeItem(at: url)
            #expect(try blobs.read(reference).isMissing)
            #expect(try blobs.handOut(reference.name) == nil)
            try blobs.giveUp(reference.name)
            #expect(try depth == 2 || kept.name.prefix(2) == reference.name.prefix(2) || blobs.bytes(kept) != nil)
        }
    }

    @Test(arguments: [false, true]) func `a folder that the system cleared is made again`(syncs: Bool) throws {
        let blobs = BlobFolder(in: folder, syncs: syncs)
        for removed in ["store.files", nil] {
            for reference in try (0..<3).map({ _ in try blobs.write(noise(10)) }) { try blobs.giveUp(reference.name) }
            if let removed {
                try FileManager.default.removeItem(at: folder(removed))
            } else {
                for name in try FileSystem.names(in: blobs.path) { try FileSystem.remove(blobs.path + "/" + name) }
            }
            let new = try blobs.write(noise(20))
            #expect(try blobs.bytes(new) == noise(20))
            try blobs.giveUp(new.name)
            #expect(try blobs.bytes(blobs.write(noise(30))) == noise(30))
            // The pool that is gone was noticed; the next one is a new one.
            try blobs.giveUp(blobs.write(noise(40)).name)
            let pools = try blobs.pools
            try #require(pools.count == 1)
            #expect(try FileSystem.names(in: blobs.path + "/" + pools[0]).count == blobs.poolFigures.count)
            #expect(blobs.poolFigures.count == 1)
            try blobs.emptyPool()
        }
    }

    @Test func `a folder that was moved away and made anew is the one that is used`() throws {
        let old = try blobs.write(noise(10))
        #expect(try blobs.bytes(old) != nil)
        try FileSystem.move(blobs.path, to: blobs.path + "-aside")
        let new = try BlobFolder(in: folder).write(noise(20))
        #expect(try blobs.bytes(new) == noise(20))
        #expect(try blobs.read(old).isMissing)
        #expect(try blobs.files == [new.name])
    }

    @Test func `a file whose URL is handed out can be read where it is`() throws {
        let reference = try blobs.write(noise(10))
        let path = try #require(try blobs.handOut(reference.name))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == noise(10))
        #expect(path == blobs.path(of: reference.name))
        #expect(try blobs.bytes(reference) == noise(10))
    }

    #if os(Linux)
    // case 318
    @Test func `descriptors are closed`() throws {
        func comeAndGo() throws {
            let reference = try blobs.write(noise(10))
            #expect(try blobs.bytes(reference) != nil)
            try blobs.giveUp(reference.name)
        }
        // Other tests run beside this one, and have theirs elsewhere.
        func count() throws -> Int { try OpenFiles.paths { $0.hasPrefix(blobs.path) }.count }
        // The folder, its parts and the pool are opened when they are first wanted.
        for _ in 0..<300 { try comeAndGo() }
        let before = try count()
        for _ in 0..<2000 { try comeAndGo() }
        #expect(try count() == before)
    }
    #endif
}
