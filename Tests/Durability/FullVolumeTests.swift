import Foundation
import LarderTestSupport
import Testing

@Suite(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
struct FullVolumeTests {
    /// A program fills a disk by handles that fail on a full disk, and goes on by a handle that evicts.
    @Test(arguments: [900, 20_000])
    func `a full disk fails the writes of one cache, and evicts the least recently used entries of another`(
        size: Int
    ) throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["fill-disk", folder.url.path, "\(size)"],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 12 << 10, ballast: 0))
        let lines = try withExtendedLifetime(folder) { try child.finish().lines }
        #expect(
            lines == [
                "full storageFull", "read true", "set done", "new true pinned true kept true",
                "evicted true first true", "memory true", "full storageFull", "reopened true", "problems []",
            ])
    }

    @Test func `below the floor of free space the least recently used entries are evicted until it is met`() throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["hold-floor", folder.url.path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 32 << 10, ballast: 0))
        let lines = try withExtendedLifetime(folder) { try child.finish().lines }
        #expect(
            lines == ["floor true enough left true", "pinned true newest true", "evicted true", "problems []"])
    }
}
