import Foundation
import LarderTestSupport
import Testing

struct PassMemoryTests {
    private static let isMeasured =
        FileManager.default.fileExists(atPath: "/proc/self/statm") && !ChildProcess.isSanitized

    /// The entries have 75 MB.
    ///
    /// Each of four connections that read may keep 8 MB of pages.
    @Test(.enabled(if: isMeasured, "the system does not say how much memory is resident, or a sanitizer keeps it"))
    func `an iteration over any number of entries holds a page of them`() throws {
        let folder = try TemporaryFolder()
        let path = folder("store.sqlite").path
        // Memory that this process releases is not that of the next one.
        #expect(try ChildProcess("larder-test-cache", ["fill-many", path]).finish().lines == [])
        let lines = try ChildProcess("larder-test-cache", ["iterate", path]).finish().lines
        let words = lines.map { $0.split(separator: " ").map(String.init) }
        #expect(words.map(\.first) == ["entries", "keys", "ordered", "async"], "\(lines)")
        for line in words {
            try #require(line.count == 3, "\(lines)")
            #expect(line[1] == "25000")
            #expect(try #require(Int(line[2])) < 45_000, "\(line)")
        }
    }
}
