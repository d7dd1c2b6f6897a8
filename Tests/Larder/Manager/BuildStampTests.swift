import Foundation
import Larder
import LarderTestSupport
import Testing

struct BuildStampTests {
    // case 134
    @Test func `it is never empty, and the same whenever it is asked for`() {
        #expect(CacheVersion.buildStamp.description.count > 8)
        #expect(CacheVersion.buildStamp == .buildStamp)
    }

    @Test func `a bundle is known by its version and its build number`() {
        #expect(BuildStamp.stamp(version: "1.2", build: "345") == "1.2 (345)")
        #expect(BuildStamp.stamp(version: "1.2", build: nil) == "1.2")
        #expect(BuildStamp.stamp(version: nil, build: "345") == "(345)")
        #expect(BuildStamp.stamp(version: nil, build: nil) == nil)
    }

    #if os(Linux)
    /// Builds a program that prints its stamp, against what the tests themselves are linked from.
    private func build(printing text: String, _ name: String, in folder: TemporaryFolder) throws {
        let source = folder(name + ".swift")
        try Data("import Larder\nprint(CacheVersion.buildStamp)\nprint(\"\(text)\")\n".utf8).write(to: source)
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
        let built = ChildProcess.folder.path
        // An object of a source that is gone, or has moved to another target, must not be linked.
        let objects = try ["Larder", "LarderCBOR", "LarderSQLite", "LarderMigrations"].flatMap { target in
            let folder = target == "LarderMigrations" ? "Migrations" : "Sources/\(target)"
            let sources = try FileManager.default.subpathsOfDirectory(atPath: root.appendingPathComponent(folder).path)
                .map { URL(fileURLWithPath: $0).lastPathComponent + ".o" }
            let known = Set(sources + ["embedded_resources.swift.o"])
            return try FileManager.default.contentsOfDirectory(atPath: "\(built)/\(target).build")
                .filter { known.contains($0) }.map { "\(built)/\(target).build/\($0)" }
        }
        let status = try SmallProgram.run(
            ["swiftc", source.path, "-o", folder(name).path, "-lsqlite3"] + SmallProgram.options + objects
        ).status
        #expect(status == 0)
    }

    // case 134
    @Test(.enabled(if: !ChildProcess.isSanitized, "the small program is not linked with the sanitizer's library"))
    func `a program built twice has one stamp over its runs, and another after a change`() throws {
        let folder = try TemporaryFolder()
        try build(printing: "one", "one", in: folder)
        try build(printing: "two", "two", in: folder)
        let stamps = try ["one", "one", "two", "two"].map { name in
            let lines = try SmallProgram.run([folder(name).path]).text.split(separator: "\n")
            #expect(lines.last == Substring(name))
            return try #require(lines.first)
        }
        #expect(stamps[0].count > 8)
        #expect(stamps[0] == stamps[1])
        #expect(stamps[2] == stamps[3])
        #expect(stamps[0] != stamps[2])
    }

    @Test(arguments: [["-Wl,--build-id"], ["-Wl,--build-id=none"]])
    func `the linker's build id is taken where there is one, else a digest`(options: [String]) throws {
        let folder = try TemporaryFolder()
        let path = folder("program").path
        try Data("int main(void) { return 0; }\n".utf8).write(to: folder("program.c"))
        #expect(try SmallProgram.run(["cc", path + ".c", "-o", path] + options).status == 0)
        let stamp = try #require(try BuildStamp.stamp(executable: path))
        if options == ["-Wl,--build-id"] {
            #expect(try stamp == "build-id:" + readelf(path))
        } else {
            #expect(stamp.hasPrefix("digest:"))
        }
    }

    /// What binutils says of the same file.
    private func readelf(_ path: String) throws -> String {
        let text = try SmallProgram.run(["readelf", "-n", path]).text
        let id = try #require(text.firstMatch(of: /Build ID: ([0-9a-f]+)/))
        return String(id.output.1)
    }

    @Test func `a damaged executable's head is read without a trap`() throws {
        let bytes = try #require(try FileSystem.contents("/proc/self/exe", limit: 4096))
        for seed in UInt64(0)..<2000 {
            var damaged = bytes
            var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
            for _ in 0..<8 {
                state = state &* 6_364_136_223_846_793_005 &+ 1
                damaged[Int(state >> 33) % 512] = UInt8(truncatingIfNeeded: state >> 20)
            }
            _ = damaged.withUnsafeBytes { ExecutableFile(bytes: $0)?.buildID }
        }
    }
    #endif

    @Test func `versions are compared as bytes`() {
        #expect(CacheVersion.custom("1") == "1")
        #expect(CacheVersion.custom("\u{e9}") != "e\u{301}")
        #expect(Set([CacheVersion.custom("\u{e9}"), "e\u{301}", "\u{e9}"]).count == 2)
        #expect("\(CacheVersion.custom("v2"))" == "v2")
        let schema = 4
        let versions: [CacheVersion] = ["v\(schema)", "\(schema)-\(CacheVersion.custom("b"))"]
        #expect(versions == [.custom("v4"), .custom("4-b")])
    }
}
