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
