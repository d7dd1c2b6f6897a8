import Foundation
import LarderTestSupport
import Testing

struct PassMemoryTests {
    // case 175
    @Test(
        .enabled(
            if: FileManager.default.fileExists(atPath: "/proc/self/statm") && !ChildProcess.isSanitized,
            "the system does not say how much memory is resident, or a sanitizer keeps it"))
    func `a pass over any number of entries holds a page of them`() throws {
        let folder = try TemporaryFolder()
        let lines = try ChildProcess("larder-test-cache", ["pass", folder("store.sqlite").path]).finish().lines
        let words = lines.map { $0.split(separator: " ").map(String.init) }
        #expect(words.map(\.first) == ["entries", "keys", "ordered", "async"], "\(lines)")
        for line in words {
            try #require(line.count == 3, "\(lines)")
            #expect(line[1] == "200000")
            #expect(try #require(Int(line[2])) < 8000, "\(line)")
        }
    }
}
