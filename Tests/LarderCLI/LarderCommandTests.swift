import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What the command prints of a store that the test makes, and how it ends.
struct LarderCommandTests {
    private let store: TemporaryStore

    init() throws { store = try TemporaryStore(of: #fileID) }

    /// Fills the store at 2023-11-14T22:13:20Z.
    private func fill() throws {
        let manager = try store.manager()
        let articles: Cache<Int, Article> = try manager.cache(
            named: "articles", version: "3", maxAge: .days(7),
            options: CacheOptions(memory: .disabled, disk: DiskLimits(countLimit: 100), accessGrain: .zero))
        try articles.setValue(
            Article(title: "On \"shelves\"\u{1B}[31m", tags: ["a", nil]), forKey: 42, tags: ["new", "jars"])
        try articles.setValue(Article(title: "On jars", tags: []), forKey: 7, cost: 5, extendedData: Data([1, 2]))
        let photos: Cache<String, Data> = try manager.cache(
            named: "photos", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 100))
        try photos.setValue(Data(repeating: 65, count: 3_000), forKey: "covers/large")
        try photos.setValue(Data("small".utf8), forKey: "covers/small\u{7}", maxAge: .minutes(1), pinned: true)
        try photos.setValue(Data("text".utf8), forKey: "1")
        store.clock.advance(by: .seconds(3600))
        _ = (articles[42], articles[8], photos["1"])
        try manager.close()
    }

    struct Article: Codable, Sendable {
        var title: String
        var tags: [String?]
    }

    /// Runs the command an hour after the last write, and returns its status and lines.
    private func larder(_ verb: String, _ words: String...) throws -> (status: Int32, lines: [String]) {
        try ChildProcess("larder", [verb, store.url.path] + words + ["--at", "2023-11-14T23:13:20Z"]).finish()
    }

    private func expect(
        _ found: (status: Int32, lines: [String]), _ lines: String..., status: Int32 = 0,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(found.status == status, sourceLocation: sourceLocation)
        #expect(found.lines == lines, sourceLocation: sourceLocation)
    }

    // MARK: The command

    @Test func `it says its version`() throws {
        let (status, lines) = try ChildProcess("larder", ["--version"]).finish()
        #expect(status == 0 && lines == ["larder \(CacheManager.libraryVersion)"])
    }

    @Test(arguments: [[], ["--help"], ["help"]])
    func `it says in twenty lines what it can do`(arguments: [String]) throws {
        let (status, lines) = try ChildProcess("larder", arguments).finish()
        #expect(status == 0 && lines.count <= 20)
        for verb in ["ls", "stats", "keys", "top", "tags", "show", "get", "export", "verify", "doctor"] {
            #expect(lines.contains { $0.hasPrefix("  larder \(verb) ") })
        }
    }

    @Test(arguments: [
        ["nonsense"], ["keys"], ["keys", "a", "b", "c"], ["keys", "a", "b", "--by", "colour"],
        ["keys", "a", "b", "--by"],
        ["keys", "a", "b", "--limit", "-1"], ["keys", "a", "b", "--larger", "many"], ["ls", "--verbose"],
        ["ls", "a", "--at", "yesterday"], ["keys", "a", "b", "--older", "999999999999d"],
        ["get", "a", "b", "1", "--redact"], ["keys", "a", "b", "--tag", "x", "-r"],
    ])
    func `a wrong call ends with 64`(arguments: [String]) throws {
        try fill()
        let words = arguments.map { $0 == "a" ? store.url.path : $0 == "b" ? "photos" : $0 }
        expect(try ChildProcess("larder", words).finish(), status: 64)
    }

    // MARK: Verbs

    @Test func `the caches of a store`() throws {
        try fill()
        expect(
            try larder("ls"),
            "CACHE     VERSION  CODEC  MAX AGE    ENTRIES  LIMITS       OPENED",
            "articles  3        cbor   7 days           2  100 entries  1 hour ago",
            "photos    1        data   unlimited        3  none         1 hour ago")
    }

    @Test func `the stores of a user, without the files of others`() throws {
        try fill()
        let folder = store.url.deletingLastPathComponent()
        try Data("not a store, and longer than a hundred bytes".utf8 + Data(count: 100)).write(
            to: folder.appendingPathComponent("other.sqlite"))
        let lines = try ChildProcess("larder", ["ls"], environment: ["XDG_CACHE_HOME": folder.path]).finish().lines
        #expect(lines.count == 2 && lines[1].hasPrefix("store  ") && lines[1].contains("  2        5  "))
        let name = try ChildProcess(
            "larder", ["tags", "store", "articles", "--at", "2023-11-14T23:13:20Z"],
            environment: ["XDG_CACHE_HOME": folder.path]
        ).finish().lines
        #expect(name.count == 3)
    }

    @Test func `how full a store is, and how good`() throws {
        try fill()
        let lines = try larder("stats").lines
        #expect(lines.contains { $0.hasPrefix("  On disk ") && $0.contains("1 files 3.0 KB") })
        #expect(lines.contains { $0.hasPrefix("  Opened by ") })
        #expect(
            lines.contains(
                "articles  3        7 days           2  100 entries   50.0 %       0     1       1       2"))
    }

    @Test func `which limit a cache needs`() throws {
        try fill()
        let lines = try larder("stats", "articles").lines
        #expect(lines.first == "articles · version 3 · codec cbor · max age 7 days · limits 100 entries")
        #expect(lines.contains { $0.contains("2 of ") && $0.contains("0 expired, 1 never read, 0 pinned") })
        #expect(lines.contains { $0.hasSuffix("now") } && lines.contains { $0.hasSuffix("1 hour ago") })
        #expect(lines.last?.hasPrefix("This is an age, not a hit rate.") == true)
    }

    @Test func `keys, by what they are`() throws {
        try fill()
        expect(try larder("keys", "articles"), "7", "42")
        expect(try larder("keys", "articles", "-r", "--limit", "1"), "42")
        expect(try larder("keys", "articles", "--by", "accessed"), "7", "42")
        expect(try larder("keys", "articles", "--tag", "jars"), "42")
        expect(try larder("keys", "photos"), "1", "covers/large")
        expect(try larder("keys", "photos", "-0"), "1\0covers/large\0")
        expect(try larder("keys", "photos", "--prefix=", "--limit", "1"), "1")
        expect(try larder("keys", "photos", "--expired"), "covers/small\\u0007")
        expect(try larder("keys", "photos", "--prefix", "cov"), "covers/large")
        expect(try larder("keys", "photos", "--match", "*large"), "covers/large")
        expect(try larder("keys", "photos", "--larger", "2K"), "covers/large")
        expect(try larder("keys", "photos", "--older", "2h"))
        expect(try larder("keys", "photos", "--larger", "2K", "--redact"), "key-b2af886d02a20b2b")
    }

    @Test func `the largest and the coldest`() throws {
        try fill()
        expect(
            try larder("top", "photos", "--limit", "2"),
            "  SIZE  WRITTEN     LAST READ  EXPIRES  WHERE  KEY",
            "3.0 KB  1 hour ago  never      never    file   covers/large",
            "   5 B  1 hour ago  never      expired  row    covers/small\\u0007")
        #expect(
            try larder("top", "articles", "--by", "access", "--limit", "1").lines.last?.hasSuffix("row    7") == true)
    }

    @Test func `tags, and how many entries have each`() throws {
        try fill()
        expect(try larder("tags", "articles"), "TAG   ENTRIES", "jars        1", "new         1")
    }

    @Test func `an entry and its value`() throws {
        try fill()
        let lines = try larder("show", "articles", "42").lines
        #expect(lines.prefix(2) == ["key         42", "cache       articles, version 3, cbor"])
        #expect(lines.contains("written     2023-11-14T22:13:20.000Z (1 hour ago)"))
        #expect(lines.contains("expires     2023-11-21T22:13:20.000Z (in 6 days), by the age of the cache"))
        #expect(lines.contains("tags        jars, new"))
        expect(
            try larder("get", "articles", "42"),
            "{", "  \"title\": \"On \\\"shelves\\\"\\u001b[31m\",", "  \"tags\": [", "    \"a\",", "    null", "  ]",
            "}")
        expect(try larder("get", "photos", "1", "--raw"), "text")
        expect(try larder("get", "articles", "8"), status: 1)
        expect(try larder("show", "articles", "8"), status: 1)
    }

    @Test func `lines for programs`() throws {
        try fill()
        let line = try #require(try larder("show", "articles", "7", "--json").lines.first)
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        #expect(object?["format"] as? String == "larder.entry/1" && object?["cost"] as? Int == 5)
        #expect((object?["key"] as? [String: Int]) == ["integer": 7])
        let exported = try larder("export").lines
        #expect(exported.count == 5 && exported.allSatisfy { $0.contains("\"format\":\"larder.export/1\"") })
        #expect(exported.contains { $0.contains("\"payload\":\"dGV4dA==\"") })
        #expect(try !larder("show", "photos", "covers/large", "--redact").lines.contains { $0.contains("covers") })
        #expect(try !larder("tags", "articles", "--redact").lines.contains { $0.contains("jars") })
        #expect(try !larder("export", "photos", "--redact").lines.contains { $0.contains("covers") })
        for verb in ["ls", "stats", "verify"] {
            for line in try larder(verb, "--json").lines {
                #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(line.utf8)) }
            }
        }
    }

    @Test func `a sound store has nothing to verify and nothing unusual`() throws {
        try fill()
        expect(try larder("verify"), "5 entries, no problem.")
        expect(try larder("doctor"), "Nothing unusual.")
    }

    @Test func `a damaged entry is a problem, and 1`() throws {
        try fill()
        let manager = try store.manager()
        let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))
        try store.damage(42, in: articles)
        let found = try larder("verify")
        #expect(found.status == 1 && found.lines.first?.contains("does not fit its checksum") == true)
        expect(try larder("get", "articles", "42"), status: 65)
    }

    // MARK: What it never does

    @Test func `no verb changes a byte or a time, beside a program that writes and without one`() throws {
        try fill()
        var manager: CacheManager? = try store.manager()
        let words: Cache<String, Int>? = try manager?.cache(named: "words", version: "1", maxAge: .unlimited)
        words?["in the log"] = 1
        for isBeside in [true, false] {
            if !isBeside {
                try manager?.close()
                manager = nil
            }
            let (before, times) = (try store.folder.contents(), try self.times())
            for words in [
                ["ls"], ["stats"], ["stats", "photos"], ["keys", "photos"], ["top", "photos"], ["tags", "articles"],
                ["show", "articles", "7"], ["get", "articles", "7"], ["export"], ["verify"], ["doctor"],
            ] {
                let arguments = [words[0], store.url.path] + words.dropFirst()
                #expect(try ChildProcess("larder", arguments).finish().status == 0, "\(words)")
            }
            #expect(try store.folder.contents() == before)
            #expect(try self.times() == times)
        }
    }

    private func times() throws -> [String: Date?] {
        let names = try FileManager.default.subpathsOfDirectory(atPath: store.folder.realURL.path)
        return [String: Date?](
            try names.map { name in
                let path = store.folder.realURL.appendingPathComponent(name).path
                return (name, try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date)
            }
        ) { first, _ in first }
    }

    // MARK: What it cannot read

    @Test func `what is no store, of another release, damaged or missing has a status of its own`() throws {
        try fill()
        let missing = store.folder("missing.sqlite").path
        expect(try ChildProcess("larder", ["ls", missing]).finish(), status: 66)
        expect(try ChildProcess("larder", ["ls", "no-such-store"]).finish(), status: 66)
        expect(try larder("keys", "lists"), status: 66)
        #expect(!FileManager.default.fileExists(atPath: missing))
        let text = store.folder("text.sqlite")
        try Data(repeating: 65, count: 5_000).write(to: text)
        expect(try ChildProcess("larder", ["ls", text.path]).finish(), status: 76)
        try store.makeNewer()
        expect(try larder("ls"), status: 78)
    }

    @Test func `a store of an earlier release and a damaged one stay as they are`() throws {
        let old = store.folder("old.sqlite")
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        try FileManager.default.copyItem(at: sources.appendingPathComponent("Stores/1/store.sqlite"), to: old)
        let bytes = try Data(contentsOf: old)
        for verb in ["ls", "stats", "verify", "doctor", "export"] {
            expect(try ChildProcess("larder", [verb, old.path]).finish(), status: 78)
        }
        #expect(try Data(contentsOf: old) == bytes && store.folder.names.allSatisfy { !$0.hasPrefix("old.sqlite-") })

        try fill()
        try store.url.overwritePagesBehindSchema()
        let damaged = try Data(contentsOf: store.url)
        expect(try larder("stats"), status: 65)
        expect(try larder("keys", "articles"), status: 65)
        #expect(try larder("verify").status != 0)
        #expect(try Data(contentsOf: store.url) == damaged)
    }

    @Test func `a database that was set aside can be looked at`() throws {
        try fill()
        let aside = store.folder("store.sqlite.damaged")
        try FileManager.default.copyItem(at: store.url, to: aside)
        let lines = try ChildProcess("larder", ["ls", aside.path]).finish().lines
        #expect(lines.count == 3)
        #expect(try larder("doctor").lines.first?.contains("was set aside") == true)
    }

    @Test func `a key that could be two things is asked for`() throws {
        let manager = try store.manager()
        struct Either: Codable, Hashable, Sendable {
            var isText: Bool
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                if isText { try container.encode("42") } else { try container.encode(42) }
            }
        }
        let cache: Cache<Either, String> = try manager.cache(named: "both", version: "1", maxAge: .unlimited)
        try cache.setValue("number", forKey: Either(isText: false))
        try cache.setValue("text", forKey: Either(isText: true))
        expect(try larder("get", "both", "42"), status: 64)
        expect(try larder("get", "both", "42", "--text"), "\"text\"")
        expect(try larder("get", "both", "42", "--integer"), "\"number\"")
    }

    @Test func `a full output and a reader that has gone end it`() throws {
        let manager = try store.manager()
        let cache: Cache<Int, Int> = try manager.cache(named: "many", version: "1", maxAge: .unlimited)
        try cache.setValues((0..<20_000).map { ($0, $0) })
        let larder = ChildProcess.folder.appendingPathComponent("larder").path
        func run(_ script: String) throws -> Int32 {
            let shell = Process()
            shell.executableURL = URL(fileURLWithPath: "/bin/bash")
            shell.arguments = ["-c", script, larder, store.url.path]
            shell.standardError = FileHandle.nullDevice
            try shell.run()
            shell.waitUntilExit()
            return shell.terminationStatus
        }
        #expect(try run("\"$0\" keys \"$1\" many | head -n 1 > /dev/null; exit ${PIPESTATUS[0]}") == 141)
        if FileManager.default.fileExists(atPath: "/dev/full") {
            #expect(try run("\"$0\" keys \"$1\" many > /dev/full") == 74)
        }
    }
}
