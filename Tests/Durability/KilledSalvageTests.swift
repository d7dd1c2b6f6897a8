import Foundation
import Larder
import LarderTestSupport
import Testing

/// Processes that are killed, or find no room, while they salvage a damaged store.
struct KilledSalvageTests {
    private static let strace = "/usr/bin/strace"
    private static let count = 150

    @Test(
        .enabled(
            if: Strace.isAvailable, "a long test, or strace is missing"))
    func `whatever moment a salvage dies at, the next opening has every entry`() throws {
        let source = try TemporaryFolder()
        let sample = try SampleStore(at: source("store.sqlite"), count: Self.count)
        // Without its first page SQLite can read nothing.
        try source("store.sqlite").overwrite(at: 0, with: Data(repeating: 0x5A, count: 4096))
        let contents = try source.contents()
        // Each of these calls is a moment at which the process is killed.
        let calls = ["rename", "fsync", "pwrite64", "unlink,unlinkat"]
        var kills = 0
        for call in calls {
            var moment = 1
            while moment < 2000 {
                let folder = try TemporaryFolder()
                try folder.restore(contents)
                let url = folder("store.sqlite")
                let child = try ChildProcess(
                    "larder-test-cache", ["open-damaged", url.path, "\(Self.count)"],
                    through: [
                        Self.strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)",
                        "-e", "inject=\(call):signal=SIGKILL:when=\(moment)",
                    ])
                let lines = try child.finish().lines
                let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
                let (missing, wrong) = try sample.check(manager)
                #expect(
                    missing.isEmpty && wrong.isEmpty,
                    "\(call) \(moment): \(missing.count) missing, \(wrong.count) wrong")
                #expect(try manager.fileProblems() == [], "\(call) \(moment)")
                try manager.close()
                #expect(try folder.names.allSatisfy { !$0.contains(".salvage") }, "\(call) \(moment)")
                #expect(try folder.names.contains { $0.contains(".corrupt-") }, "\(call) \(moment)")
                if lines.contains(where: { $0.hasPrefix("found") }) { break }
                kills += 1
                // Of the many writes of the new file some.
                moment += call == "pwrite64" ? 1 + moment / 3 : 1
            }
        }
        #expect(kills > 10)
        print("salvages killed: \(kills)")
    }

    @Test(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
    func `a salvage without room throws, leaves the original as it is, and works when there is room`() throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["salvage-full", folder.url.path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 6000, ballast: 0))
        #expect(try child.finish().lines == ["storageFull", "true true", "found 398"])
    }
}
