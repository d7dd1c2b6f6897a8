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

    @Test(
        .enabled(if: LongTests.areEnabled, "a long test"), arguments: ["rows", "wide", "files"], ["itself", "other"])
    func `a store on a full volume can be emptied in every way, and be written again`(
        kind: String, filler: String
    ) throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["empty", folder.url.path, kind, filler],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 4096, ballast: 0))
        #expect(try child.finish().lines == ["done 18"])
    }

    @Test(arguments: ["processCrash", "powerLoss"])
    func `a store on a full volume is opened and read by the next process`(durability: String) throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["reopen-full", folder.url.path, durability],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 4096, ballast: 0))
        #expect(try child.finish().lines == ["read true", "set storageFull", "count true"])
    }

    @Test func `a store without room for a word of its own is opened and read all the same`() throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["reopen-full", folder.url.path, "without a log"],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 4096, ballast: 0))
        #expect(try child.finish().lines == ["read true", "set storageFull", "count true"])
    }

    // case 335
    @Test(arguments: ["small", "large"], ["expired", "live"])
    func `a full disk evicts expired entries, then the least recently used, before a write fails`(
        size: String, age: String
    ) throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["evict-when-full", folder.url.path, size, age],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 4096, ballast: 0))
        let isExpired = age == "expired"
        #expect(
            try child.finish().lines == [
                "full storageFull", "refused storageFull", "set nothing", "awaited", "loaded true",
                "new true pinned \(isExpired ? 0 : 3) kept true", "newest true fewer true", "kept cache storageFull",
                "healthy true",
            ])
    }

    @Test func `who is killed on a full volume leaves a store that can be emptied`() throws {
        let folder = try TemporaryFolder()
        // Twice on the same volume, which ends with the shell.
        let twice = ["sh", "-c", "\"$@\"; exec \"$@\"", "twice"]
        let child = try ChildProcess(
            "larder-test-cache", ["die-full", folder.url.path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 4096, ballast: 0) + twice)
        #expect(
            try child.finish().lines == ["removed true", "found true nothing nothing", "set nothing", "healthy true"])
    }
}
