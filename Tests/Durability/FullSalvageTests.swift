import Foundation
import Larder
import LarderTestSupport
import Testing

/// Processes that find no room while they salvage a damaged store.
struct FullSalvageTests {
    @Test(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
    func `a salvage without room throws, leaves the original as it is, and works when there is room`() throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["salvage-full", folder.url.path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 6000, ballast: 0))
        let lines = try child.finish().lines
        #expect(lines.count == 4 && lines.prefix(2) == ["read storageFull", "kept true true"])
        // All but what is on the damaged page.
        #expect(lines.count == 4 && lines[2].hasPrefix("found ") && lines[3] == lines[2])
    }
}
