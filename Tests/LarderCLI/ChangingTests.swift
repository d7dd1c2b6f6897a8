import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What the verbs that change a store say, ask and do.
///
/// The entries with an age have expired: these verbs go by the clock of the system.
struct ChangingTests {
    private let filled: FilledStore
    private var store: TemporaryStore { filled.store }

    init() throws { filled = try FilledStore(of: #fileID) }

    private func change(_ verb: String, _ words: String..., path: String? = nil) throws -> Printed {
        try FilledStore.larder([verb, path ?? store.url.path] + words)
    }

    private func articles(_ manager: CacheManager) throws -> Cache<Int, FilledStore.Article> {
        try manager.cache(named: "articles", version: "3", maxAge: .days(7))
    }

    private func photos(_ manager: CacheManager) throws -> Cache<String, Data> {
        try manager.cache(named: "photos", version: "1", maxAge: .unlimited)
    }

    /// Every verb that changes, with words for it.
    private static let calls = [
        ["rm", "", "articles", "7"], ["rm", "", "articles", "--tag", "new"], ["clear", "", "photos"],
        ["drop", "", "photos"], ["expire", ""], ["trim", "", "photos", "--to-count", "1"], ["maintain", ""],
        ["delete", ""],
    ]

    // MARK: Before anything is changed

    @Test(arguments: calls)
    func `nothing is changed with -n, and nothing without a terminal or --yes`(call: [String]) throws {
        let words = call.map { $0.isEmpty ? store.url.path : $0 }
        let before = try store.folder.contents()
        let shown = try FilledStore.larder(words + ["-n"])
        #expect(shown.status == 0 && shown.lines.count == 2 && shown.lines.last == "Nothing was changed (-n).")
        let refused = try FilledStore.larder(words)
        #expect(refused.status == 64 && refused.lines == Array(shown.lines.prefix(1)))
        #expect(
            refused.errors == ["larder: Nothing was changed. Add --yes to change it, or -n to see what would be done."])
        #expect(try store.folder.contents() == before)
    }

    @Test(arguments: calls)
    func `a store of another release is not touched`(call: [String]) throws {
        let old = store.folder("old.sqlite")
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        try FileManager.default.copyItem(at: sources.appendingPathComponent("Stores/1/store.sqlite"), to: old)
        let bytes = try Data(contentsOf: old)
        let words = call.map { $0.isEmpty ? old.path : $0 } + ["--yes"]
        #expect(try FilledStore.larder(words).status == 78)
        #expect(try Data(contentsOf: old) == bytes)
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "needs a terminal"))
    func `on a terminal it asks, and wants the name of what goes`() throws {
        func answering(_ answer: String, _ words: String) throws -> [String] {
            let larder = ChildProcess.folder.appendingPathComponent("larder").path
            let child = try ChildProcess(command: ["script", "-qec", "\(larder) \(words)", "/dev/null"])
            try child.tell(answer)
            return try child.finish().lines.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
        }
        let path = store.url.path
        #expect(try answering("photo", "clear \(path) photos").last?.hasSuffix("Nothing was changed.") == true)
        #expect(try answering("", "rm \(path) articles 7").last?.hasSuffix("Nothing was changed.") == true)
        #expect(try photos(try store.manager()).count == 2)
        #expect(try answering("photos", "clear \(path) photos").last?.hasSuffix("“photos” is empty.") == true)
        #expect(try answering("y", "rm \(path) articles 7").last?.hasSuffix("Removed 1 entry.") == true)
        #expect(try answering("store", "delete \(path)").last?.hasSuffix("The store is deleted.") == true)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    // MARK: What is done

    @Test func `entries are removed by key, tag and prefix, and a running program sees it`() throws {
        let manager = try store.manager()
        let (articles, photos) = (try articles(manager), try photos(manager))
        #expect(articles[7] != nil && articles[42] != nil && photos["covers/large"] != nil)
        try change("rm", "articles", "7", "7", "8", "--yes").expect(
            "Removes 1 entry of “articles”. It does not have the other key.", "Removed 1 entry.")
        #expect(articles[7] == nil && articles[42] != nil)
        try change("rm", "articles", "--tag", "jars", "--yes").expect(
            "Removes 1 entry of “articles”.", "Removed 1 entry.")
        #expect(articles[42] == nil)
        try change("rm", "photos", "--prefix", "covers/", "--yes").expect(
            "Removes 2 entries of “photos”.", "Removed 2 entries.")
        #expect(photos["covers/large"] == nil && photos["1"] != nil)
        try change("rm", "photos", "2", "--yes").expect(status: 1, error: "“photos” has no such entry.")
        try change("rm", "photos", "--prefix", "", "--yes").expect(status: 64, error: "“larder clear” removes all.")
        try change("rm", "photos", "--yes").expect(status: 64, error: "Give one of the three.")
    }

    @Test func `a cache is emptied or dropped, and a running program sees it`() throws {
        let manager = try store.manager()
        let (articles, photos) = (try articles(manager), try photos(manager))
        #expect(articles[7] != nil && photos["1"] != nil)
        try change("clear", "photos", "--yes").expect(
            "Removes and overwrites all 3 entries of “photos”.", "“photos” is empty.")
        #expect(photos["1"] == nil)
        try photos.setValue(Data([1]), forKey: "2")
        try change("drop", "articles", "--yes").expect(
            "Removes the cache “articles” with its 2 entries.", "“articles” is removed.")
        #expect(articles[7] == nil)
        #expect(throws: CacheError.self) { try articles.remove(7) }
        #expect(try manager.cacheInfo().map(\.name) == ["photos"] && photos["2"] == Data([1]))
    }

    @Test(
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "needs a terminal"),
        arguments: ["clear", "drop"])
    func `a cache that the program has opened under another version is left alone`(verb: String) throws {
        // The command has looked, and waits for the answer.
        let larder = ChildProcess.folder.appendingPathComponent("larder").path
        let child = try ChildProcess(
            command: ["script", "-qec", "\(larder) \(verb) \(store.url.path) photos", "/dev/null"])
        #expect(child.line()?.hasPrefix("Removes ") == true)
        let manager = try store.manager()
        let photos: Cache<String, Data> = try manager.cache(named: "photos", version: "2", maxAge: .unlimited)
        photos["new"] = Data([1])
        try child.tell("photos")
        let (status, lines) = try child.finish()
        #expect(status == 75 && lines.last?.contains("opened under another version") == true)
        #expect(photos["new"] == Data([1]))
        #expect(try manager.cacheInfo().first { $0.name == "photos" }?.version == "2")
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "needs a terminal"))
    func `a store that is deleted during the question is not created again`() throws {
        let larder = ChildProcess.folder.appendingPathComponent("larder").path
        let child = try ChildProcess(
            command: ["script", "-qec", "\(larder) rm \(store.url.path) articles 7", "/dev/null"])
        #expect(child.line()?.hasPrefix("Removes ") == true)
        for name in try store.folder.names { try FileManager.default.removeItem(at: store.folder(name)) }
        try child.tell("y")
        #expect(try child.finish().status == 69)
        #expect(try store.folder.names == [])
    }

    @Test func `what has expired is deleted`() throws {
        try change("expire", "articles", "--yes").expect("Deletes 2 entries that have expired.", "Deleted 2 entries.")
        try change("expire", "--yes").expect("Deletes 1 entry that has expired.", "Deleted 1 entry.")
        try change("expire", "--yes").expect("Nothing has expired.")
        try filled.larder(["keys", "photos"]).expect("1", "covers/large")
    }

    @Test func `a cache is trimmed to a number and to a size`() throws {
        try change("trim", "photos", "--to-size", "1K", "--yes").expect(
            "Deletes what has expired. Then evicts 1 entry of “photos” that were read longest ago: 3.0 KB. Pinned entries stay: 0.",
            "“photos” has 1 entry of 4 B.")
        try change("trim", "photos", "--to-count", "0", "--yes").expect(
            "Deletes what has expired. Then evicts 1 entry of “photos” that were read longest ago: 4 B. Pinned entries stay: 0.",
            "“photos” has 0 entries of 0 B.")
        try change("trim", "photos", "--to-size", "1M", "--yes").expect("“photos” is within these limits.")
        try change("trim", "photos", "--yes").expect(status: 64, error: "“trim” needs a limit")
    }

    @Test func `upkeep is done`() throws {
        let manager = try store.manager()
        let _: Cache<String, Data> = try manager.cache(named: "photos", version: "2", maxAge: .unlimited)
        try manager.close()
        let printed = try change("maintain", "--yes")
        #expect(printed.status == 0 && printed.lines.count == 2)
        #expect(printed.lines.last?.hasPrefix("Deleted: 3 purged, 2 expired, 0 beyond a limit, 0 files.") == true)
        try filled.larder(["doctor"]).expect("Nothing unusual.")
    }

    @Test func `damaged entries are removed, and a damaged database is replaced by what can be read`() throws {
        try change("repair", "--yes").expect("5 entries, no problem.")
        let manager = try store.manager()
        try store.damage(42, in: try articles(manager))
        try manager.close()
        let printed = try change("repair", "--yes")
        #expect(printed.status == 0 && printed.lines.count == 3)
        #expect(
            printed.lines.suffix(2) == [
                "Deletes 1 entry that no program can read.", "The store is sound, with 4 entries.",
            ])
        #expect(try filled.larder(["verify"]).status == 0)
        try store.url.overwritePagesBehindSchema()
        let replaced = try change("repair", "--yes").lines
        #expect(replaced.dropLast().last == "Sets the damaged database aside, and copies what can be read of it.")
        #expect(replaced.last?.hasPrefix("The store is sound, with") == true)
        #expect(
            replaced.last?.hasSuffix("The damaged database is \(store.folder.realURL.path)/store.sqlite.damaged.")
                == true)
        #expect(try filled.larder(["verify"]).status == 0 && store.folder.names.contains("store.sqlite.damaged"))
    }

    @Test func `a log that a killed process has left without its index is repaired`() throws {
        try Data(repeating: 1, count: 5_000).write(to: URL(fileURLWithPath: store.url.path + "-wal"))
        try FileManager.default.removeItem(atPath: store.url.path + "-shm")
        try change("expire", "--yes").expect(status: 69, error: "“larder repair” does that.")
        try change("repair", "--yes").expect(
            "Opens the store once for writing: \"\(store.url.path)\" has a log without an index. Open it once for writing.",
            "The store is sound, with 5 entries.")
        #expect(try filled.larder(["verify"]).status == 0)
    }

    @Test func `names and releases are compared to the byte`() throws {
        let manager = try store.manager()
        for name in ["caf\u{E9}", "cafe\u{301}"] {
            let cache: Cache<Int, Int> = try manager.cache(named: name, version: "1", maxAge: .unlimited)
            cache[1] = 1
        }
        try manager.close()
        #expect(try change("drop", "cafe\u{301}", "--yes").status == 0)
        let file = store.folder("export")
        try Data(try filled.larder(["export"]).lines.map { $0 + "\n" }.joined().utf8).write(to: file)
        #expect(try change("import", file.path, "--yes").status == 0)
        let names = try store.manager().cacheInfo().map { Array($0.name.utf8) }
        #expect(names.contains(Array("caf\u{E9}".utf8)) && !names.contains(Array("cafe\u{301}".utf8)))
    }

    @Test func `a store that is open is not deleted`() throws {
        var manager: CacheManager? = try store.manager()
        let printed = try change("delete", "--yes")
        #expect(printed.status == 75 && printed.errors.count == 1)
        try manager?.close()
        manager = nil
        let deleted = try change("delete", "--yes")
        #expect(
            deleted.lines.first?.hasPrefix("Deletes \(store.url.path) and all that belongs to it: 2 caches, 5") == true)
        #expect(deleted.status == 0 && deleted.lines.last == "The store is deleted.")
        #expect(try store.folder.names.allSatisfy { !$0.hasPrefix("store") })
    }

    // MARK: Import

    @Test func `what was exported is imported, with ages, tags, pins, costs and extended data`() throws {
        let file = store.folder("export")
        store.clock.advance(by: .milliseconds(606))
        let first = try store.manager()
        _ = try self.photos(first).value(forKey: "0") { _, _ in .value(Data([9]), refreshAfter: .seconds(9)) }
        try first.close()
        let exported = try filled.larder(["export"]).lines.map { $0 + "\n" }
        #expect(exported.contains { $0.contains("\"writtenAt\":\"2023-11-14T23:13:20.606Z\"") })
        try Data(exported.joined().utf8).write(to: file)
        let manager = try store.manager()
        let (articles, photos) = (try articles(manager), try photos(manager))
        let before = try articles.entries(forKeys: [7, 42])
        try articles.removeAll()
        try photos.removeAll()
        try change("import", file.path, "--yes").expect(
            "Writes 2 into “articles”, 4 into “photos”. Entries of the same keys are replaced, limits hold, and other writers"
                + " wait.", "Wrote 6 entries. Now there are 2 in “articles”, 4 in “photos”.")
        let after = try articles.entries(forKeys: [7, 42])
        #expect(before.count == 2 && after.count == 2)
        for (key, entry) in after {
            #expect(before[key]?.metadata == entry.metadata && before[key]?.extendedData == entry.extendedData)
        }
        #expect(photos["covers/large"] == Data(repeating: 65, count: 3_000))
        let loaded = try #require(try photos.metadata(forKey: "0"))
        #expect(loaded.refreshesAt == loaded.writtenAt.addingTimeInterval(9))
        // Whether a value is a file depends on the options of the program.
        let again = try filled.larder(["export"]).lines.map { $0 + "\n" }
        #expect(again == exported.map { $0.replacing("\"isFile\":true", with: "\"isFile\":false") })
    }

    private static let unknownKey =
        "its key is not CBOR as programs store it, and no program would find the entry."

    /// A line whose key is CBOR.
    private static func lineOfKey(_ hexadecimal: String) -> String {
        #"{"format":"larder.export/1","cache":"photos","version":"1","codec":"data","payload":"AA==","key":{"cbor":""#
            + hexadecimal + #""},"writtenAt":"0"}"#
    }

    /// A key of many kinds of values.
    private struct Place: Codable, Hashable, Sendable {
        var name: String
        var height: Double
        var grid: [Float]
        var date: Date
        var number: UInt128
        var below: Int128
        var id: UUID?
        var link: URL?
        var names: Set<String>
        var parts: [String: Int?]
        var bytes: Data
    }

    @Test func `keys of any type are exported and imported`() throws {
        let manager = try store.manager()
        let places: Cache<Place, Int> = try manager.cache(named: "places", version: "1", maxAge: .unlimited)
        let numbers: Cache<UInt64, Int> = try manager.cache(named: "large", version: "1", maxAge: .unlimited)
        try numbers.setValue(1, forKey: .max)
        var expected: [Place: Int] = [:]
        let heights = [0, -0.0, 1, 0.1, 65_504, 65_505, 1e-7, 5.960_464_477_539_063e-8, 1e300, .infinity, -3.5, 6.1e-5]
        for (number, height) in heights.enumerated() {
            let place = Place(
                name: "cafe\u{301} \(number)", height: height, grid: [Float(height), 0.1, 16_777_216],
                date: Date(timeIntervalSince1970: height.isFinite ? height / 3 : 0),
                number: .max >> UInt128(number * 10),
                below: .min >> Int128(number * 10), id: number % 2 == 0 ? UUID() : nil,
                link: URL(string: "https://example.org/\(number)"), names: ["b", "a", "cc", "e\u{301}"],
                parts: ["b": 1, "a": nil, String(repeating: "a", count: 30): -300, "\u{e9}": 70_000],
                bytes: Data([1, 2, 255]))
            expected[place] = number
        }
        try places.setValues(expected)
        let exported = try ["places", "large"].flatMap { try filled.larder(["export", $0]).lines }
        #expect(exported.count == expected.count + 1)
        let file = store.folder("export")
        try Data(exported.joined(separator: "\n").utf8).write(to: file)
        try manager.removeAll()
        #expect(try change("import", file.path, "--yes").status == 0)
        #expect(try places.snapshot() == expected && numbers.value(forKey: .max) == 1)
    }

    @Test func `a key and tags that are not in normal form are imported in it`() throws {
        let lines = try filled.larder(["export", "photos"]).lines
        let line = try #require(lines.first { $0.contains("covers/large") })
        let file = store.folder("export")
        let edited = line.replacing("covers/large", with: "cafe\\u0301")
            .replacing(#""tags":[]"#, with: #""tags":["e\u0301","\u00e9","a"]"#)
        #expect(edited.contains("u00e9"))
        try Data((edited + "\n").utf8).write(to: file)
        #expect(try change("import", file.path, "--yes").status == 0)
        let photos = try photos(store.manager())
        #expect(try photos.value(forKey: "caf\u{e9}")?.count == 3_000)
        #expect(photos.keys.contains { Array($0.unicodeScalars) == Array("caf\u{e9}".unicodeScalars) })
        #expect(try photos.keys(tagged: "\u{e9}") == ["caf\u{e9}"] && photos.tags() == ["\u{e9}": 1, "a": 1])
    }

    @Test(arguments: [
        ("nonsense", "line 1: it is no line of “larder export”."),
        (
            #"{"format":"larder.export/1","cache":"lists","version":"1","codec":"cbor"}"#,
            "the store has no cache “lists”"
        ),
        (
            #"{"format":"larder.export/1","cache":"photos","version":"0","codec":"data"}"#,
            "the store has “photos” in version 1 (data), and the line in version 0 (data)."
        ),
        (#"{"format":"larder.export/1","cache":"photos","version":"1","codec":"data"}"#, "it has no payload"),
        (
            #"{"format":"larder.export/1","cache":"photos","version":"1","codec":"data","payload":"AA=="}"#,
            "its key or its time is missing."
        ),
        (
            #"{"format":"larder.export/1","cache":"photos","version":"1","codec":"data","payload":"AA==","key":{"integer":1.5},"#
                + #""writtenAt":"0"}"#,
            "its key or its time is missing."
        ),
        (
            #"{"format":"larder.export/1","cache":"photos","version":"1","codec":"data","payload":"AA==","key":{"integer":1},"#
                + #""writtenAt":"0","ownSlidingAge":-5}"#,
            "its own age is none."
        ),
        (lineOfKey("ff"), unknownKey), (lineOfKey("626161"), unknownKey), (lineOfKey("05"), unknownKey),
        (lineOfKey("1800"), unknownKey), (lineOfKey("80f6"), unknownKey), (lineOfKey("811805"), unknownKey),
        (lineOfKey("9f05ff"), unknownKey), (lineOfKey("a2616201616102"), unknownKey),
        (lineOfKey("a2616101616102"), unknownKey), (lineOfKey("816365cc81"), unknownKey),
        (lineOfKey("81fa3f800000"), unknownKey), (lineOfKey("81fb3ff0000000000000"), unknownKey),
        (lineOfKey("81f97e00"), unknownKey), (lineOfKey("81f98000"), unknownKey), (lineOfKey("81c24105"), unknownKey),
    ])
    func `an import is whole or nothing`(line: String, message: String) throws {
        let file = store.folder("export")
        let good = try filled.larder(["export", "photos"]).lines[0]
        try Data((good.replacing("covers/large", with: "other") + "\n" + line + "\n").utf8).write(to: file)
        let before = try store.folder.contents()
        let printed = try change("import", file.path, "--yes")
        #expect(printed.status == 65 && printed.lines == [])
        #expect(printed.errors.first?.contains(message.replacing("line 1", with: "line 2")) == true, "\(printed)")
        #expect(try store.folder.contents() == before)
        try change("import", "/dev/null", "--yes").expect(
            status: 66, error: "/dev/null is no file that can be read twice.")
    }
}
