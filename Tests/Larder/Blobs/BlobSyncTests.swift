import Foundation
import Larder
import LarderTestSupport
import Testing

/// What is brought to the disk, and when.
struct BlobSyncTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// The paths that were synced, from what strace wrote down.
    private func synced(_ log: URL) throws -> [String] {
        try String(contentsOf: log, encoding: .utf8).matches(of: /fsync\(\d+<([^>]*)>/).map { String($0.output.1) }
    }

    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
    func `for power loss the file is synced, then its folder, then once what leads there`() throws {
        let path = folder("store.files").path
        let child = try ChildProcess(
            "larder-test-store", ["blob-write", path],
            through: Strace.wrapper("-y", "-e", "trace=fsync", log: folder("log")))
        let lines = try child.finish().lines.map { $0.split(separator: " ").last.map(String.init) ?? "" }
        try #require(lines.count == 2)
        let folders = lines.map { path + "/" + $0.prefix(2) }
        var synced = try synced(folder("log"))
        // The folder of all value files is made first, and brought to the disk in the one above it.
        #expect(synced.removeFirst() == folder.url.path)
        #expect(synced.prefix(4) == [path + "/" + lines[0], folders[0], path, folder.url.path])
        // The second one is the first one's file, and still in the pool when it is synced.
        #expect(synced.count >= 6 && synced[4].hasPrefix(path + "/pool-"))
        #expect(synced.dropFirst(5) == (folders[0] == folders[1] ? [folders[1]] : [folders[1], path]))
    }

    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"), arguments: 1...6)
    func `a write that cannot be synced throws and leaves nothing`(number: Int) throws {
        let path = folder("store.files").path
        let child = try ChildProcess(
            "larder-test-store", ["blob-write", path],
            through: Strace.wrapper("-e", "trace=fsync", "-e", "inject=fsync:error=EIO:when=\(number)"))
        let lines = try child.finish().lines
        let blobs = BlobFolder(in: folder)
        // One of the two writes failed, and the first one that did not was given up.
        #expect(lines.contains("error \(EIO)"))
        let last = lines.last?.split(separator: " ").last.map(String.init) ?? ""
        #expect(try blobs.files == (lines.last?.hasPrefix("wrote") == true ? [last] : []))
    }

    @Test(
        .enabled(if: Strace.isAvailable, "a long test, or strace is missing"),
        arguments: ["mkdirat:error=ENOSPC:when=2", "renameat:error=ENOSPC"])
    func `a file that cannot be recycled, for want of room, is deleted`(failure: String) throws {
        let path = folder("store.files").path
        let child = try ChildProcess(
            "larder-test-store", ["blob-write", path],
            through: Strace.wrapper("-e", "trace=mkdirat,renameat", "-e", "inject=\(failure)"))
        let names = try child.finish().lines.map { $0.split(separator: " ") }
        try #require(names.map { $0[0] } == ["wrote", "wrote"])
        let blobs = BlobFolder(in: folder)
        #expect(try blobs.files == [String(names[1][1])])
        var left: [String] = []
        for pool in try blobs.pools { left += try FileSystem.names(in: path + "/" + pool) }
        #expect(left == [])
    }
}
