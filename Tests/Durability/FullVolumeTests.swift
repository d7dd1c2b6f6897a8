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

    @Test(arguments: ["processCrash", "powerLoss"])
    func `a store on a full volume is opened and read by the next process`(durability: String) throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["reopen-full", folder.url.path, durability],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 32 << 10, ballast: 0))
        #expect(try child.finish().lines == ["full storageFull", "read true", "count true"])
    }

    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: ["remove", "clear", "trim", "purge"])
    func `a store on a volume that it has filled is read, can be emptied, and is written again`(way: String) throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["empty", folder.url.path, way],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 32 << 10, ballast: 0))
        #expect(
            try child.finish().lines == [
                "full storageFull", "read true", "\(way) nothing true", "maintain nothing", "set nothing true",
                "healthy true",
            ])
    }

    // case 335
    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: ["small", "large"], ["expired", "live"])
    func `a full disk evicts expired entries, then the least recently used, before a write fails`(
        size: String, age: String
    ) throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["evict-when-full", folder.url.path, size, age],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 32 << 10, ballast: 0))
        let isExpired = age == "expired"
        #expect(
            try child.finish().lines == [
                "full storageFull", "refused storageFull", "set nothing", "awaited", "loaded true",
                "new true pinned \(isExpired ? 0 : 3) kept true", "newest true fewer true", "kept cache storageFull",
                "healthy true",
            ])
    }
}
