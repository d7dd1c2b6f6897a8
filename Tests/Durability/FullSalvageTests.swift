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
        // Without its first page the store may have nothing left that can be read.
        #expect(lines.count == 3 && lines.prefix(2) == ["storageFull", "true true"] && lines[2].hasPrefix("found "))
    }
}
