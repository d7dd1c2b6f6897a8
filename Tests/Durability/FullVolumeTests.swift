import Foundation
import LarderTestSupport
import Testing

@Suite(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
struct FullVolumeTests {
    // case 98
    @Test(arguments: [4, 12, 40]) func `without room to open, the store is full and nothing is lost`(free: Int) throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-store", ["open-full", folder.url.path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 400, ballast: 400 - free))
        #expect(try child.finish().lines == ["error storageFull", "opened with room"])
    }

    @Test func `a write that finds no room throws, what is stored is read, and room makes it work again`() throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-store", ["insert-until-full", folder("store.sqlite").path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 4000, ballast: 1000))
        #expect(try child.finish().lines == ["opened", "full storageFull true", "again true"])
    }
}
