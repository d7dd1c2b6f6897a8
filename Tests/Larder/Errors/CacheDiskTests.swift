import Foundation
import Larder
import LarderTestSupport
import Testing

/// Sub-caches in processes whose disk is full, or whose files cannot be read for a while.
struct CacheDiskTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    // cases 68, 69
    @Test(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
    func `on a full disk what takes room throws and changes nothing, and all that is there can be looked at`() throws {
        let child = try ChildProcess(
            "larder-test-cache", ["fill", folder.url.path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 3000, ballast: 500))
        let lines = try child.finish().lines
        #expect(
            lines == [
                "full storageFull", "set storageFull storageFull", "set storageFull storageFull", "many storageFull",
                "update storageFull", "transaction storageFull", "old true true", "files true", "info true true",
                "again true true",
            ])
    }

    // cases 88, 89
    @Test(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
    func `below the floor of its own volume the least recently used go, until it is met`() throws {
        let child = try ChildProcess(
            "larder-test-cache", ["sink", folder.url.path, "2000000"],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 8000, ballast: 4000))
        let lines = try child.finish().lines
        #expect(
            lines == [
                "below true 250", "above true true", "kept [true, false, true]", "most true true",
            ])
    }

    // case 88
    @Test(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
    func `without a floor nothing goes for the sake of the volume`() throws {
        let child = try ChildProcess(
            "larder-test-cache", ["sink", folder.url.path],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 8000, ballast: 4000))
        let lines = try child.finish().lines
        #expect(
            lines == [
                "below true 250", "above false true", "kept [true, true, true]", "most true true",
            ])
    }

    // cases 88, 89
    @Test(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
    func `the floor is held while several times the volume is set, value by value, expired ones first`() throws {
        let child = try ChildProcess(
            "larder-test-cache", ["hold-floor", folder.url.path, "16000000"],
            through: SmallVolume.wrapper(folder.url.path, kibibytes: 32 << 10, ballast: 0))
        let lines = try child.finish().lines
        #expect(
            lines == [
                "above true 40", "first 10 true", "left 1 true 0", "pinned [0] [] true",
            ])
    }

    /// What reading, updating and a transaction say of a file that is out of reach.
    private static let refusal =
        "error storageUnavailable, contained true, update storageUnavailable, transaction storageUnavailable"

    // case 74
    @Test func `a file that cannot be opened for want of descriptors throws, and is there later`() throws {
        let child = try ChildProcess("larder-test-cache", ["read-without-descriptors", folder("store.sqlite").path])
        let refusal = Self.refusal
        let lines = try child.finish().lines
        #expect(
            lines == [
                "contained true", "contained true", refusal, refusal, "value 5000, 0 failures",
            ])
    }

    @Test(.enabled(if: getuid() == 0, "needs another user to be"))
    func `a database that may not be opened is said to be refused by its permissions, and stays as it is`() throws {
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o700, .ownerAccountID: 65534], ofItemAtPath: folder.url.path)
        let path = folder("store.sqlite").path
        let child = try ChildProcess("larder-test-cache", ["open-as-nobody", path])
        #expect(child.line() == "opened")
        let before = try folder.names
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: path)
        for first in [try child.ask(""), child.line()] {
            #expect(first?.hasPrefix("storageUnavailable: cannot open \(path)") == true, "\(first ?? "")")
            #expect(first?.contains("the permissions of the file") == true, "\(first ?? "")")
        }
        #expect(try folder.names == before)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        #expect(try child.ask("") == "opened")
        #expect(child.line() == "opened")
        #expect(try child.finish().status == 0)
    }

    // case 74
    @Test(.enabled(if: getuid() == 0, "needs another user to be"))
    func `a file that may not be read throws, and is there later`() throws {
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o700, .ownerAccountID: 65534], ofItemAtPath: folder.url.path)
        let child = try ChildProcess("larder-test-cache", ["read-as-nobody", folder("store.sqlite").path])
        let file = try #require(child.line())
        #expect(try child.ask("") == "value 5000, 0 failures")
        let mode = try #require(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions])
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: file)
        for _ in 0..<2 { #expect(try child.ask("") == Self.refusal) }
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        #expect(try child.ask("") == "value 5000, 0 failures")
        #expect(try child.finish().status == 0)
    }
}
