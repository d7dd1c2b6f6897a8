import Foundation
import Larder
import LarderTestSupport
import Testing

/// Openings by several processes, and by a process that has no permission.
struct OpeningProcessesTests {
    private let folder: TemporaryFolder
    private let url: URL
    private let damaged = "store.sqlite.damaged"

    init() throws {
        folder = try TemporaryFolder()
        url = folder("store.sqlite")
    }

    /// Each process has four threads, each of which opens the store, reads all entries and writes one.
    @Test func `processes that find the same damage salvage the store once, and lose none of what they write`() throws {
        for round in 0..<(LongTests.areEnabled ? 20 : 3) {
            let sample = try DamagedSample(at: url)
            let children = try (0..<4).map {
                try ChildProcess("larder-test-cache", ["open-together", url.path, "\($0)"])
            }
            for child in children { #expect(child.line() == "ready") }
            for child in children { try child.goOn() }
            for child in children { #expect(try child.finish().lines == ["done", "done", "done", "done"]) }
            let manager = try CacheManager(url: url, configuration: .patient)
            let cache = try DamagedSample.cache(manager)
            let (missing, wrong) = try DamagedSample.check(cache)
            #expect(missing.isDisjoint(with: sample.kept) && wrong == [], "round \(round)")
            for number in 0..<16 { #expect(try cache.value(forKey: -1 - number) == "\(number)", "round \(round)") }
            #expect(try manager.verify().problems == [], "round \(round)")
            try manager.close()
            // A second exchange would have replaced the damaged file by a sound one.
            #expect(try folder.salvagedNames.filter { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") } == [damaged])
            #expect(try sample.isDamaged(folder(damaged)), "round \(round)")
            for name in try folder.names { try FileManager.default.removeItem(at: folder(name)) }
        }
    }

    // MARK: Permissions

    private func makeStore() throws {
        let manager = try CacheManager(url: url)
        try DamagedSample.cache(manager).setValue("one", forKey: 1)
        try manager.close()
    }

    /// Gives the folder and its files to the user nobody, which the program becomes.
    private func giveToNobody(folderMode: Int) throws {
        let nobody: [FileAttributeKey: Any] = [.ownerAccountID: 65534, .groupOwnerAccountID: 65534]
        for path in try folder.names.map({ folder($0).path }) + [folder.url.path] {
            try FileManager.default.setAttributes(nobody, ofItemAtPath: path)
        }
        try FileManager.default.setAttributes([.posixPermissions: folderMode], ofItemAtPath: folder.url.path)
    }

    private func openAsNobody(_ access: String) throws -> [String] {
        try ChildProcess("larder-test-cache", ["open-as-nobody", url.path, access]).finish().lines
    }

    @Test(.enabled(if: getuid() == 0, "needs another user to be"))
    func `a folder that may not be written is an error, and nothing is created in it`() throws {
        try giveToNobody(folderMode: 0o500)
        #expect(try openAsNobody("write") == ["error storageUnavailable"])
        #expect(try folder.names == [])
    }

    @Test(.enabled(if: getuid() == 0, "needs another user to be"))
    func `a store in a folder that may not be written can be read`() throws {
        try makeStore()
        try giveToNobody(folderMode: 0o500)
        let before = try folder.contents()
        #expect(try openAsNobody("read") == ["entries 1"])
        #expect(try folder.contents() == before)
    }

    @Test(.enabled(if: getuid() == 0, "needs another user to be"), arguments: [0o000, 0o400])
    func `a file that may not be read or written is an error, and stays as it is`(mode: Int) throws {
        try makeStore()
        try giveToNobody(folderMode: 0o700)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
        let before = try Data(contentsOf: url)
        #expect(try openAsNobody("write") == ["error storageUnavailable"])
        #expect(try Data(contentsOf: url) == before)
        #expect(try folder.salvagedNames == [])
    }
}
