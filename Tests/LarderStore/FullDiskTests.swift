import Foundation
import LarderTestSupport
import Testing

/// Each test runs a program on a disk in memory of its own.
///
/// Time stands in the program, so nothing happens there but its steps. The disk has 8 MB, and the ballast becomes as large
/// as the database. `check` reads all entries and compares them with what was acknowledged and not removed.
@Suite(.enabled(if: SmallVolume.isAvailable, "this system does not let us make a small volume"))
struct FullDiskTests {
    private func lines(_ steps: [String], _ kibibytes: Int, _ taken: Int) throws -> [String] {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-rows", ["disk", folder.url.path] + steps,
            through: SmallVolume.wrapper(folder.url.path, kibibytes: kibibytes, ballast: taken))
        let (status, lines) = try withExtendedLifetime(folder) { try child.finish() }
        return lines + (status == 0 ? [] : ["status \(status)"])
    }

    /// Takes steps, and expects the result of each.
    ///
    /// - Parameters:
    ///   - steps: Steps with their results; nil for any.
    ///   - kibibytes: The size of the disk.
    ///   - taken: The kibibytes of it that a file named `ballast` takes, which is not that of the store.
    private func expect(
        _ steps: KeyValuePairs<String, String?>, kibibytes: Int = 8192, taken: Int = 0,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let results = try lines(steps.map(\.key), kibibytes, taken)
        let found = results.enumerated().map { index, result in
            index < steps.count ? "\(steps[index].key): \(steps[index].value == nil ? "any" : result)" : result
        }
        #expect(found == steps.map { "\($0.key): \($0.value ?? "any")" }, sourceLocation: sourceLocation)
    }

    // MARK: Small values

    @Test func `a full disk evicts the oldest entries but pinned ones, and each put goes through`() throws {
        try expect([
            "evict small": "opened", "ballast": "true", "pin 5": "done", "add 6000": "done removing",
            "ballast": "false", "kept": "true", "newest 100": "true", "removed 1000": "true", "causes": "evicted",
            "check": "sound", "reopen": "done", "check": "sound", "remove 10000": "done", "left": "0",
            "add 100": "done", "check": "sound",
        ])
    }

    @Test func `a cache that refuses keeps all entries on a full disk, and they can be replaced and removed`() throws {
        try expect([
            "refuse small": "opened", "fill": "storageFull", "ballast": "false", "check": "sound",
            "replace 20": "done", "bodyremove 30": "done", "remove 30": "done", "add 20": "done", "check": "sound",
            "clear": "done", "reclaim": "done", "left": "0", "add 100": "done", "check": "sound", "reopen": "done",
            "check": "sound",
        ])
    }

    /// Maintenance must not give empty pages back that the file could not have again.
    @Test func `after removals and maintenance puts go on, though the disk has no room for a ballast`() throws {
        try expect([
            "refuse small": "opened", "fill": "storageFull", "remove 10000": "done", "maintain": "done",
            "add 100": "done", "check": "sound",
        ])
    }

    // MARK: Large values

    @Test func `a full disk evicts large entries with their files, and each put goes through`() throws {
        try expect([
            "evict large": "opened", "add 400": "done removing", "newest 5": "true", "causes": "evicted",
            "check": "sound", "reopen": "done", "check": "sound", "remove 60": "done", "add 20": "done",
            "check": "sound", "orphans": "0",
        ])
    }

    @Test func `a cache that refuses keeps all large entries, and those that it refuses leave no file`() throws {
        try expect([
            "refuse large": "opened", "fill": "storageFull", "add 20": "storageFull", "check": "sound",
            "reopen": "done", "check": "sound", "remove 60": "done", "add 20": "done", "check": "sound",
            "orphans": "0",
        ])
    }

    // MARK: Another program

    /// The other program takes what is free after every few puts, or all the time, in which case the cache may refuse.
    @Test(arguments: [false, true])
    func `while another program takes all room, entries are read as they were written`(allTheTime: Bool) throws {
        try expect(
            [
                "evict small": "opened", "add 200": "done",
                (allTheTime ? "race 600" : "feed 2800"): allTheTime ? "" : "done removing", "eat": "done",
                "check": "sound", "reopen eaten": "done", "check": "sound", "free eaten": "done",
                "free ballast": "done", "maintain": "done", "ballast": "true", "add 300": "done", "check": "sound",
                "remove 10000": "done", "left": "0", "check": "sound",
            ], kibibytes: 20_480, taken: 12_288)
    }

    // MARK: The order of eviction

    /// The cache learns the time from its writes, so the put that finds no room may be the first to name it.
    @Test(arguments: [true, false])
    func `a full disk evicts expired entries before others`(afterAnotherWrite: Bool) throws {
        try expect([
            "refuse expiring": "opened", "keep 40": "done", "fill": "storageFull", "advance 10000": "done",
            (afterAnotherWrite ? "replace 1" : "advance 0"): "done", "evict expiring": "opened",
            "add 50": "done removing", "kept": "true", "causes": "expired", "check": "sound",
        ])
    }

    /// The accesses that an eviction writes down may need a page, of which there is none.
    @Test(arguments: [30, 250])
    func `a full disk evicts neither the entries that were used last nor those of a cache that refuses`(
        used: Int
    ) throws {
        try expect([
            "refuse other": "opened", "keep 50": "done", "evict small": "opened", "overfill": "done",
            "access \(used)": "done", "add 100": "done removing", "kept": "true", "removed 20": "true",
            "refuse other": "opened", "kept": "true", "check": "sound",
        ])
    }

    // MARK: Batches and bodies

    /// Without free pages the batch fails, and each request runs alone.
    @Test(arguments: [true, false])
    func `of a batch the put that is larger than the ballast is refused, and the small one goes through`(
        withFreePages: Bool
    ) throws {
        try expect([
            "refuse small": "opened", "fill": "storageFull", (withFreePages ? "remove 60" : "advance 0"): "done",
            "evict small": "opened", "batch": "storageFull done", "check": "sound",
        ])
    }

    @Test func `a body that finds no room runs once, changes nothing and evicts nothing`() throws {
        try expect([
            "evict small": "opened", "add 40": "done", "eat": "done", "body": "storageFull 1", "ballast": "true",
            "check": "sound", "body": "storageFull 1", "check": "sound", "causes": "", "remove 1": "done",
            "bodyremove 5": "done",
            "put 1": "done", "check": "sound",
        ])
    }

    /// Each entry fills a page by more than the half, so that there are nearly twice as many pages as in a ballast.
    @Test func `after the largest request that a disk short of room takes, entries can be removed`() throws {
        try expect(
            [
                "refuse wide": "opened", "put 1900": nil, "maintain": nil, "remove 3": "done", "check": "sound",
            ], kibibytes: 13_200)
    }

    // MARK: Two stores

    @Test func `two stores that write at once to a full disk wait for each other`() throws {
        try expect([
            "evict small": "opened", "overfill": "done", "contend 1000": "", "check": "sound",
        ])
    }

    // MARK: Too little room from the start

    @Test func `a store that was opened with too little room is opened again with more`() throws {
        let lines = try lines([], 16_384, 0)
        #expect(lines == [#"none storageFull enough done all ["done", "storageFull"] wrong []"#])
    }

    /// Nothing is kept for removals then, so they may have to wait for room.
    @Test func `without room for a ballast all entries stay readable, and with room everything goes on`() throws {
        try expect(
            [
                "refuse small": "opened", "ballast": "false", "fill 10": "storageFull", "check": "sound",
                "reopen": "done", "check": "sound", "free ballast": "done", "remove 100": "done",
                "maintain": "done", "ballast": "true", "add 300": "done", "check": "sound",
            ], kibibytes: 20_480, taken: 20_360)
    }
}
