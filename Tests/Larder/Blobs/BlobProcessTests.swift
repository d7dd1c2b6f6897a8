import Foundation
import Larder
import LarderTestSupport
import Testing

/// The folder in processes of their own: with no rights, no descriptors, no room, no time.
struct BlobProcessTests {
    let folder: TemporaryFolder
    let blobs: BlobFolder

    init() throws { (folder, blobs) = try BlobFolder.inTemporaryFolder() }

    private func words(_ verb: String, _ reference: BlobReference) -> [String] {
        [verb, blobs.path, reference.name, "\(reference.size)", "\(reference.checksum)"]
    }

    // case 74
    @Test(.enabled(if: getuid() == 0, "needs another user to be"), arguments: 0..<3)
    func `a file that may not be read throws and stays, and is read later`(depth: Int) throws {
        let reference = try blobs.write(noise(1000))
        for path in [folder.url.path, blobs.path] {
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
        var url = try blobs.url(reference)
        for name in [url.path, url.deletingLastPathComponent().path] {
            try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: name)
        }
        try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: blobs.path)
        for _ in 0..<depth { url.deleteLastPathComponent() }
        let mode = try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions]
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: url.path)
        #expect(
            try ChildProcess("larder-test-store", words("blob-read-as-nobody", reference)).finish().lines == [
                "error \(EACCES)"
            ])
        try FileManager.default.setAttributes([.posixPermissions: try #require(mode)], ofItemAtPath: url.path)
        #expect(
            try ChildProcess("larder-test-store", words("blob-read-as-nobody", reference)).finish().lines == [
                "bytes 1000"
            ])
    }

    // case 74
    @Test func `too many open files throw, and later the file is read`() throws {
        let reference = try blobs.write(noise(1000))
        let child = try ChildProcess("larder-test-store", words("blob-read-without-descriptors", reference))
        #expect(try child.finish().lines == ["error \(EMFILE)", "bytes 1000"])
    }

    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"), arguments: ["ENOSYS", "EPERM"])
    func `where a file cannot be opened with one call, two do, and neither goes through a link`(error: String) throws {
        let reference = try blobs.write(noise(1000))
        func readings() throws -> [String] {
            let wrappers = [[], Strace.wrapper("-e", "trace=openat2", "-e", "inject=openat2:error=\(error)")]
            return try wrappers.map { wrapper in
                let child = try ChildProcess("larder-test-store", words("blob-read", reference), through: wrapper)
                return try child.finish().lines.joined()
            }
        }
        let place = blobs.path + "/" + reference.name.prefix(2)
        #expect(try readings() == ["bytes 1000", "bytes 1000"])
        try FileManager.default.moveItem(atPath: place, toPath: place + "-moved")
        #expect(try readings() == ["missing", "missing"])
        try FileManager.default.createSymbolicLink(atPath: place, withDestinationPath: place + "-moved")
        #expect(try readings() == ["damaged", "damaged"])
    }

    // case 78
    @Test(.enabled(if: !ChildProcess.isSanitized, "sanitizers need much memory"))
    func `a payload that is larger than the memory is an error`() throws {
        let reference = try blobs.write(noise(10))
        let handle = try FileHandle(forWritingTo: blobs.url(reference))
        try handle.truncate(atOffset: 5 << 30)
        try handle.close()
        let huge = BlobReference(name: reference.name, size: 5 << 30, checksum: 0)
        let child = try ChildProcess(
            "larder-test-store", words("blob-read", huge),
            through: ["sh", "-c", "ulimit -v 4000000; exec \"$0\" \"$@\""])
        #expect(try child.finish().lines == ["error \(ENOMEM)"])
    }

    @Test(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
    func `without room a write throws and leaves nothing, and the pool makes room`() throws {
        try FileSystem.makeFolders(folder.url.path + "/volume")
        let volume = folder.url.path + "/volume"
        let child = try ChildProcess(
            "larder-test-store", ["blob-fill", volume + "/store.files"],
            through: SmallVolume.wrapper(volume, kibibytes: 2000, ballast: 500))
        #expect(try child.finish().lines == ["full \(ENOSPC)", "kept true true", "pool 0", "again"])
    }

    // case 70
    @Test func `a process that is killed leaves its files whole, and a pool that is swept`() throws {
        for round in 1...5 {
            let child = try ChildProcess("larder-test-store", ["blob-write-on", blobs.path])
            var lines: [String] = []
            for _ in 0..<(round * 10) { if let line = child.line() { lines.append(line) } }
            child.kill()
            while let line = child.line() { lines.append(line) }
            #expect(lines.count >= round * 10)
            for line in lines {
                let words = line.split(separator: " ").map(String.init)
                let reference = BlobReference(
                    name: words[0], size: try #require(Int64(words[1])), checksum: try #require(Int64(words[2])))
                #expect(try blobs.bytes(reference)?.count == Int(reference.size))
            }
            #expect(try blobs.pools.count == 1)
            var sweep = BlobSweep(olderThan: 0)
            try blobs.sweep(&sweep, atMost: 100_000) { _ in [] }
            #expect(try blobs.pools == [])
            // What was under way when it was killed, at most.
            #expect(try blobs.files.subtracting(lines.map { String($0.prefix { $0 != " " }) }).count <= 2)
            try FileSystem.remove(blobs.path)
        }
    }

    // case 320
    @Test(.enabled(if: !ChildProcess.isSanitized && FileManager.default.fileExists(atPath: "/proc/self/statm")))
    func `values of 50 MB come and go, and the memory in use returns to its level`() throws {
        let line = try ChildProcess("larder-test-store", ["blob-memory", blobs.path]).finish().lines.first ?? ""
        let grown = try #require(Int(line.replacing("grew ", with: "")))
        #expect(grown < 25, "\(line)")
    }
}
