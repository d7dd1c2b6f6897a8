import Foundation
import Larder
import LarderTestSupport
import Testing

/// Processes that are killed while they salvage a damaged store.
struct KilledSalvageTests {
    private static let count = 150

    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
    func `whatever moment a salvage dies at, the next opening has every entry that can be read`() throws {
        let source = try TemporaryFolder()
        let sample = try SampleStore(at: source("store.sqlite"), count: Self.count)
        let (page, onPage) = try sample.leaf()
        try source("store.sqlite").overwritePage(page)
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
                    through: Strace.wrapper(
                        "-qq", "-e", "trace=\(call)", "-e", "inject=\(call):signal=SIGKILL:when=\(moment)"))
                let lines = try child.finish().lines
                let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
                let (missing, wrong) = try sample.check(manager)
                #expect(
                    missing.isSubset(of: onPage) && wrong.isEmpty,
                    "\(call) \(moment): \(missing.subtracting(onPage).count) missing, \(wrong.count) wrong")
                #expect(try manager.fileProblems(isSwept: true) == [], "\(call) \(moment)")
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
}
