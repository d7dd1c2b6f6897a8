import Foundation
import LarderTestSupport
import Testing

struct MemoryBoundTests {
    // case 332
    @Test(
        .enabled(
            if: LongTests.areEnabled && FileManager.default.fileExists(atPath: "/proc/self/statm")
                && !ChildProcess.isSanitized,
            "a long test, or the system does not say how much memory is resident, or a sanitizer keeps it"))
    func `a million values of a byte grow the process by the default limit, and a tenth at most`() throws {
        let folder = try TemporaryFolder()
        let lines = try ChildProcess("larder-test-cache", ["bound", folder("store.sqlite").path]).finish().lines
        let words = try #require(lines.last).split(separator: " ").map(String.init)
        try #require(words.count == 4 && words[0] == "grew", "\(lines)")
        let limit = 32 << 20
        let (growth, count, bytes) = (Int(words[1]) ?? .max, Int(words[2]) ?? 0, Int(words[3]) ?? .max)
        #expect(growth <= limit + limit / 10, "\(lines)")
        // Not by keeping next to nothing: most of the limit is used, by hundreds of thousands.
        #expect(bytes <= limit && bytes > limit - limit / 100 && count > 300_000, "\(lines)")
    }
}
