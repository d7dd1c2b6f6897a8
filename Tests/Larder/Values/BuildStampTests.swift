import Foundation
import Larder
import LarderTestSupport
import Testing

struct BuildStampTests {
    @Test func `the stamp of a build is never empty, and the same whenever it is asked for`() {
        #expect(CacheVersion.buildStamp.description.count > 8)
        #expect(CacheVersion.buildStamp == .buildStamp)
    }

    @Test func `a bundle is known by its version and its build number`() {
        #expect(BuildStamp.stamp(version: "1.2", build: "345") == "1.2 (345)")
        #expect(BuildStamp.stamp(version: "1.2", build: nil) == "1.2")
        #expect(BuildStamp.stamp(version: nil, build: "345") == "(345)")
        #expect(BuildStamp.stamp(version: nil, build: nil) == nil)
    }

    @Test func `versions are compared as bytes`() {
        #expect(CacheVersion.custom("1") == "1")
        #expect(CacheVersion.custom("\u{e9}") != "e\u{301}")
        #expect(Set([CacheVersion.custom("\u{e9}"), "e\u{301}", "\u{e9}"]).count == 2)
        #expect("\(CacheVersion.custom("v2"))" == "v2")
        let schema = 4
        let versions: [CacheVersion] = ["v\(schema)", "\(schema)-\(CacheVersion.custom("b"))"]
        #expect(versions == [.custom("v4"), .custom("4-b")])
    }

    /// Three load commands, of which the second one is the identifier.
    private static func machO(_ byte: UInt8) -> [UInt8] {
        func words(_ words: UInt32...) -> [UInt8] { words.flatMap { withUnsafeBytes(of: $0.littleEndian, Array.init) } }
        let header = words(0xFEED_FACF, 0x100_000C, 0, 2, 3, 56, 0, 0)
        return header + words(0x32, 16, 0, 0) + words(0x1B, 24) + [UInt8](repeating: byte, count: 16)
            + words(0x2A, 16, 0, 0)
    }

    @Test func `a program of Apple's linker is known by its identifier, and by that of the library with its code`()
        throws
    {
        let folder = try TemporaryFolder()
        func write(_ name: String, _ bytes: [UInt8]) throws -> String {
            try Data(bytes).write(to: folder(name))
            return folder(name).path
        }
        let id = String(repeating: "0a", count: 16)
        let path = try write("app", Self.machO(10))
        #expect(try BuildStamp.stamp(executable: path) == "uuid:\(id)")
        // For two processors: the number of files, and of the first one its kind, its place and its size.
        let list: [UInt8] = [0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 2, 1, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 64]
        let both = list + [UInt8](repeating: 0, count: 64 - list.count) + Self.machO(10)
        #expect(try BuildStamp.stamp(executable: write("both", both)) == "uuid:\(id)")
        for count in [4, 31, 40, 70] {
            let cut = try write("cut", Array(Self.machO(10).prefix(count)))
            #expect(try BuildStamp.stamp(executable: cut).hasPrefix("digest:"))
        }
        let code = String(repeating: "0b", count: 16)
        _ = try write("app.debug.dylib", Self.machO(11))
        #expect(try BuildStamp.stamp(executable: path) == "uuid:\(id) uuid:\(code)")
    }

    #if os(Linux)
    @Test func `the stamp of a program without a bundle is that of its executable`() throws {
        #expect(try CacheVersion.buildStamp.text == BuildStamp.stamp(executable: "/proc/self/exe"))
    }

    /// Builds a program, and returns its path.
    private func build(returning status: Int, _ options: [String], in folder: TemporaryFolder) throws -> String {
        let path = folder("program\(status)").path
        try Data("int main(void) { return \(status); }\n".utf8).write(to: folder("program\(status).c"))
        #expect(try SmallProgram.run(["cc", path + ".c", "-o", path] + options).status == 0)
        return path
    }

    /// Returns the build id as binutils print it.
    private func readelf(_ path: String) throws -> String {
        let text = try SmallProgram.run(["readelf", "-n", path]).text
        let id = try #require(text.firstMatch(of: /Build ID: ([0-9a-f]+)/))
        return String(id.output.1)
    }

    @Test func `a program has the build id of its linker as stamp, and another one after a change`() throws {
        let folder = try TemporaryFolder()
        let stamps = try (0..<2).map { status in
            let path = try build(returning: status, ["-Wl,--build-id"], in: folder)
            let stamp = try BuildStamp.stamp(executable: path)
            #expect(try stamp == "build-id:" + readelf(path))
            return stamp
        }
        #expect(stamps[0] != stamps[1])
    }

    @Test func `a program without a build id has a digest as stamp, and another one after a change`() throws {
        let folder = try TemporaryFolder()
        let stamps = try (0..<2).map { status in
            let path = try build(returning: status, ["-Wl,--build-id=none"], in: folder)
            let stamp = try BuildStamp.stamp(executable: path)
            #expect(try BuildStamp.stamp(executable: path) == stamp)
            #expect(stamp.hasPrefix("digest:"))
            return stamp
        }
        #expect(stamps[0] != stamps[1])
    }

    @Test func `a damaged head of an executable is read without a trap`() throws {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/exe"))
        let bytes = Array(try #require(try handle.read(upToCount: 4096)))
        try handle.close()
        for seed in UInt64(0)..<2000 {
            var (damaged, random) = (bytes, Seeded(seed))
            for _ in 0..<8 { damaged[Int.random(in: 0..<512, using: &random)] = .random(in: 0...255, using: &random) }
            _ = damaged.withUnsafeBytes { ELFFile(bytes: $0)?.buildID }
        }
    }
    #endif
}
