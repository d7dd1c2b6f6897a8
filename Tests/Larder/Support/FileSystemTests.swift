import Foundation
import Larder
import LarderTestSupport
import Testing

struct FileSystemTests {
    @Test func `a volume's type is found by its device numbers`() {
        let mounts = """
            22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
            40 22 0:45 / /home rw - nfs4 server:/home rw,vers=4.2
            41 22 0:300 / /mnt/drive rw,nosuid master:2 - fuse.sshfs me@host: rw
            42 22 259:1048575 / /big rw - xfs /dev/nvme rw
            """
        func device(_ major: UInt64, _ minor: UInt64) -> UInt64 {
            (major & 0xfff) << 8 | (major & ~0xfff) << 32 | (minor & 0xff) | (minor & ~0xff) << 12
        }
        #expect(!FileSystem.isNetwork(device: device(254, 0), mounts: mounts))
        #expect(FileSystem.isNetwork(device: device(0, 45), mounts: mounts))
        #expect(FileSystem.isNetwork(device: device(0, 300), mounts: mounts))
        #expect(!FileSystem.isNetwork(device: device(259, 1_048_575), mounts: mounts))
        #expect(!FileSystem.isNetwork(device: device(1, 2), mounts: mounts))
    }

    @Test func `the volume of the temporary folder is local`() throws {
        let folder = try TemporaryFolder()
        #expect(try !FileSystem.isOnNetwork(folder.url.path))
    }

    @Test func `removing a tree deletes links, not what they lead to`() throws {
        let folder = try TemporaryFolder()
        let (tree, outside) = (folder.url.path + "/tree", folder.url.path + "/outside")
        try FileSystem.makeFolders(tree + "/a/b")
        try FileSystem.makeFolders(outside)
        try Data("kept".utf8).write(to: URL(fileURLWithPath: outside + "/file"))
        try FileManager.default.createSymbolicLink(atPath: tree + "/a/link", withDestinationPath: outside)
        try FileSystem.remove(tree)
        #expect(try FileSystem.status(tree)?.kind == nil)
        #expect(try FileSystem.contents(outside + "/file") == Array("kept".utf8))
        try FileSystem.remove(tree)
    }

    @Test func `a file is made once`() throws {
        let folder = try TemporaryFolder()
        let path = folder("file").path
        #expect(try FileSystem.makeFile(path))
        #expect(try !FileSystem.makeFile(path))
        #expect(try FileSystem.contents(path, limit: 3) == [])
        #expect(try FileSystem.contents(path + "-missing") == nil)
    }

    @Test func `a held lock is waited for within its bound`() throws {
        let folder = try TemporaryFolder()
        let path = folder("lock").path
        let inner = try FileSystem.withLock(path, waiting: 0) { () -> Result<Int?, any Error> in
            Result { try FileSystem.withLock(path, waiting: 20) { 1 } }
        }
        #expect(try inner?.get() == nil)
        // A process that another test starts has a copy of the descriptor until it becomes another program.
        #expect(try FileSystem.withLock(path, waiting: 60_000) { 2 } == 2)
    }

    @Test func `a failing call says which and where`() throws {
        let folder = try TemporaryFolder()
        let error = #expect(throws: SystemError.self) { try FileSystem.names(in: folder("missing").path) }
        #expect(error?.description == "opendir \(folder("missing").path): No such file or directory")
        #expect(error.map { CacheError("cannot list", $0).code } == .storageUnavailable)
    }
}
