import Foundation
import LarderTestSupport
import Testing

struct FullSalvageTests {
    @Test(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
    func `a salvage without room throws and leaves the damaged file, and works once there is room`() throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["salvage-full", folder.url.path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 6000, ballast: 0))
        let lines = try withExtendedLifetime(folder) { try child.finish().lines }
        #expect(lines == ["read storageFull", "unchanged true []", "lost only damaged true wrong []", "problems []"])
    }
}
