import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What the command prints of a store that the test makes, and how it ends.
struct LarderCommandTests {
    private let filled: FilledStore
    private var store: TemporaryStore { filled.store }

    init() throws { filled = try FilledStore(of: #fileID) }

    private func larder(_ verb: String, _ words: String...) throws -> Printed { try filled.larder([verb] + words) }

    // MARK: The command

    @Test func `it says its version`() throws {
        try FilledStore.larder(["--version"]).expect("larder \(CacheManager.libraryVersion)")
    }

    @Test(arguments: [[], ["--help"], ["help"]])
    func `it says in twenty lines what it can do`(arguments: [String]) throws {
        let printed = try FilledStore.larder(arguments)
        #expect(printed.status == 0 && printed.lines.count <= 20)
        for verb in [
            "ls", "stats", "keys", "top", "tags", "show", "get", "export", "verify", "doctor", "watch", "report",
        ] {
            #expect(printed.lines.contains { $0.hasPrefix("  larder \(verb) ") })
        }
        #expect(
            printed.lines.contains {
                $0.contains("larder rm|clear|drop|expire|trim|maintain|repair|import|delete STORE")
            })
    }

    // MARK: Verbs

    @Test func `the caches of a store`() throws {
        try larder("ls").expect(
            "CACHE     VERSION  CODEC  MAX AGE    ENTRIES  LIMITS       OPENED",
            "articles  3        cbor   7 days           2  100 entries  1 hour ago",
            "photos    1        data   unlimited        3  none         1 hour ago")
    }

    @Test func `the stores of a user, without the files of others`() throws {
        let folder = store.url.deletingLastPathComponent()
        try Data("not a store, and longer than a hundred bytes".utf8 + Data(count: 100)).write(
            to: folder.appendingPathComponent("other.sqlite"))
        let lines = try FilledStore.larder(["ls"], environment: ["XDG_CACHE_HOME": folder.path]).lines
        #expect(lines.count == 2 && lines[1].hasPrefix("store  ") && lines[1].contains("  2        5  "))
        let name = try FilledStore.larder(
            ["tags", "store", "articles", "--at", "2023-11-14T23:13:20Z"],
            environment: ["XDG_CACHE_HOME": folder.path]
        ).lines
        #expect(name.count == 3)
    }

    @Test func `how full a store is, and how good`() throws {
        let lines = try larder("stats").lines
        #expect(lines.contains { $0.hasPrefix("  On disk ") && $0.contains("1 files 3.0 KB") })
        #expect(lines.contains { $0.hasPrefix("  Opened by ") })
        #expect(
            lines.contains(
                "articles  3        7 days           2  100 entries   50.0 %       0     1       1       2"))
    }

    @Test func `which limit a cache needs`() throws {
        let lines = try larder("stats", "articles").lines
        #expect(lines.first == "articles · version 3 · codec cbor · max age 7 days · limits 100 entries")
        #expect(lines.contains { $0.contains("2 of ") && $0.contains("0 expired, 1 without a stored read, 0 pinned") })
        #expect(lines.contains { $0.hasSuffix("now") } && lines.contains { $0.hasSuffix("1 hour ago") })
        #expect(lines.contains { $0.hasPrefix("This is an age, not a hit rate,") })
    }

    @Test func `how long loads took, and what came of them`() async throws {
        let other = try TemporaryStore()
        let manager = try other.manager()
        let numbers: Cache<Int, Int> = try await manager.cache(named: "numbers", version: "1", maxAge: .hours(1))
        let value = numbers.generator(GenerationPolicy(staleFor: .seconds(60))) { key in
            other.clock.advance(by: .milliseconds(key))
            if key == 3 { throw CancellationError() }
            return key
        }
        _ = try await (value(20), value(40))
        await #expect(throws: CancellationError.self) { try await value(3) }
        other.clock.advance(by: .seconds(3601))
        _ = try await value(20)
        try await Waiting.until { numbers.statistics.loadTimes.count == 3 }
        try await manager.close()
        let moment = ["--at", "2023-11-15T00:00:00Z"]
        let lines = try FilledStore.larder(["stats", other.url.path, "numbers"] + moment).lines
        let expected =
            "             4 keys loaded, 27 ms on average, 95 of 100 within 64 ms, 1 loads failed, 0 took too long, 1 stale values served"
        #expect(lines.contains(expected), "\(lines)")
        #expect(
            try FilledStore.larder(["stats", other.url.path, "numbers", "--json"] + moment).lines[0].contains(
                "\"loadFailures\":1"))
    }

    @Test func `keys, by what they are`() throws {
        try larder("keys", "articles").expect("7", "42")
        try larder("keys", "articles", "-r", "--limit", "1").expect("42")
        try larder("keys", "articles", "--by", "accessed").expect("7", "42")
        try larder("keys", "articles", "--tag", "jars").expect("42")
        try larder("keys", "photos").expect("1", "covers/large")
        try larder("keys", "photos", "-0").expect("1\0covers/large\0")
        try larder("keys", "photos", "--prefix=", "--limit", "1").expect("1")
        try larder("keys", "photos", "--expired").expect("covers/small\\u0007")
        try larder("keys", "photos", "--prefix", "cov").expect("covers/large")
        try larder("keys", "photos", "--match", "*large").expect("covers/large")
        try larder("keys", "photos", "--larger", "2K").expect("covers/large")
        try larder("keys", "photos", "--older", "2h").expect()
        try larder("keys", "photos", "--larger", "2K", "--redact").expect("key-b2af886d02a20b2b")
        for option in ["--prefix", "--match"] {
            try larder("keys", "articles", option, "4*").expect(error: "The cache has no keys that are texts")
        }
    }

    @Test func `keys that are neither texts nor numbers, as get takes them`() throws {
        struct Place: Codable, Hashable, Sendable { let x: Int }
        let places: Cache<Place, String> = try store.manager().cache(named: "places", version: "1", maxAge: .unlimited)
        try places.setValue("here", forKey: Place(x: 1))
        try larder("keys", "places").expect("{\"x\": 1}")
        try larder("keys", "places", "--hex").expect("a1617801")
        try larder("get", "places", "a1617801", "--hex").expect("\"here\"")
    }

    @Test func `what is empty is said in words`() throws {
        let manager = try store.manager()
        let empty: Cache<Int, Int> = try manager.cache(named: "empty", version: "1", maxAge: .unlimited)
        try larder("top", "empty").expect("The cache is empty.")
        try larder("tags", "empty").expect("No entry has a tag.")
        for name in ["articles", "photos", "empty"] { try manager.removeCache(named: name) }
        try larder("ls").expect("The store has no cache.")
        let folder = try TemporaryFolder()
        try FilledStore.larder(["ls"], environment: ["XDG_CACHE_HOME": folder.url.path]).expect(
            "There is no store in \(folder.url.path).")
        withExtendedLifetime(empty) {}
    }

    @Test func `the largest and the coldest`() throws {
        try larder("top", "photos", "--limit", "2").expect(
            "  SIZE  WRITTEN     LAST READ   EXPIRES  WHERE  KEY",
            "3.0 KB  1 hour ago  not stored  never    file   covers/large",
            "   5 B  1 hour ago  not stored  expired  row    covers/small\\u0007")
        #expect(
            try larder("top", "articles", "--by", "access", "--limit", "1").lines.last?.hasSuffix("row    7") == true)
    }

    @Test func `tags, and how many entries have each`() throws {
        try larder("tags", "articles").expect("TAG   ENTRIES", "jars        1", "new         1")
    }

    @Test func `an entry and its value`() throws {
        let lines = try larder("show", "articles", "42").lines
        #expect(lines.prefix(2) == ["key         42", "cache       articles, version 3, cbor"])
        #expect(lines.contains("written     2023-11-14T22:13:20.000Z (1 hour ago)"))
        #expect(lines.contains("expires     2023-11-21T22:13:20.000Z (in 6 days), by the age of the cache"))
        #expect(lines.contains("tags        jars, new"))
        try larder("get", "articles", "42").expect(
            "{", "  \"title\": \"On \\\"shelves\\\"\\u001b[31m\",", "  \"tags\": [", "    \"a\",", "    null", "  ]",
            "}")
        try larder("get", "photos", "1", "--raw").expect("text")
        try larder("get", "articles", "8").expect(status: 1)
        try larder("show", "articles", "8").expect(status: 1)
    }

    @Test func `values of other codecs`() throws {
        let manager = try store.manager()
        let lists: Cache<Int, [String: Int]> = try manager.cache(
            named: "lists", version: "1", maxAge: .unlimited, codec: .propertyList)
        let objects: Cache<Int, [String: Int]> = try manager.cache(
            named: "objects", version: "1", maxAge: .unlimited, codec: .json)
        let hidden: Cache<Int, String> = try manager.cache(
            named: "hidden", version: "1", maxAge: .unlimited,
            codec: ValueCodec(
                identifier: "own", encode: { Data($0.utf8) }, decode: { String(decoding: $0, as: UTF8.self) }))
        (lists[1], objects[1], hidden[1]) = (["a": 1], ["a": 1], "four")
        let list = try larder("get", "lists", "1")
        #expect(list.lines.contains { $0.contains("<key>a</key>") }, "\(list)")
        try larder("get", "objects", "1").expect("{\"a\":1}")
        try larder("get", "hidden", "1").expect(
            status: 65,
            error: "The 4 bytes of the value cannot be shown: they are of the codec “own”. --raw prints them.")
        try larder("get", "hidden", "1", "--raw").expect("four")
    }

    @Test func `lines for programs`() throws {
        let line = try #require(try larder("show", "articles", "7", "--json").lines.first)
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        #expect(object?["format"] as? String == "larder.entry/1" && object?["cost"] as? Int == 5)
        #expect((object?["key"] as? [String: Int]) == ["integer": 7])
        let exported = try larder("export").lines
        #expect(exported.count == 5 && exported.allSatisfy { $0.contains("\"format\":\"larder.export/1\"") })
        #expect(exported.contains { $0.contains("\"payload\":\"dGV4dA==\"") })
        #expect(try !larder("show", "photos", "covers/large", "--redact").lines.contains { $0.contains("covers") })
        let tags = try larder("show", "articles", "42", "--redact").lines.filter { $0.hasPrefix("tags") }
        #expect(tags.count == 1 && tags[0].split(separator: "key-").count == 3, "\(tags)")
        #expect(try !larder("tags", "articles", "--redact").lines.contains { $0.contains("jars") })
        #expect(try !larder("export", "photos", "--redact").lines.contains { $0.contains("covers") })
        for verb in ["ls", "stats", "verify"] {
            for line in try larder(verb, "--json").lines {
                #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(line.utf8)) }
            }
        }
    }

    @Test func `the fields of lines for programs are those of their page`() throws {
        let page = try String(
            contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
                "../../Sources/Larder/Documentation.docc/Internals/CommandLines.md"), encoding: .utf8)
        func words(_ text: Substring) -> Set<String> {
            Set(text.split(separator: "`").enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) })
        }
        func common(_ of: String) throws -> Set<String> {
            words(try #require(page.split(separator: "\n").first { $0.hasPrefix("The fields of \(of) are ") }))
        }
        let (cache, entry) = (try common("a cache"), try common("an entry"))
        var documented: [String: Set<String>] = [:]
        for line in page.split(separator: "\n") where line.contains("| `larder.") {
            let cells = line.split(separator: "|")
            let format = try #require(words(cells[1]).first)
            documented[format] = words(cells[2]).union(cells[2].contains("of a cache") ? cache : [])
                .union(cells[2].contains("of an entry") ? entry : [])
        }
        let folder = ["XDG_CACHE_HOME": store.url.deletingLastPathComponent().path]
        var lines = try FilledStore.larder(["ls", "--json"], environment: folder).lines
        for call in [
            ["ls"], ["stats"], ["stats", "articles"], ["keys", "articles"], ["top", "photos"], ["tags", "articles"],
            ["show", "articles", "42"], ["get", "articles", "42"], ["export"], ["verify"],
        ] { lines += try filled.larder(call + ["--json"]).lines }
        lines += try FilledStore.larder(["watch", store.url.path, "--json", "--limit", "1"]).lines
        let ahead = try CacheManager(url: store.url)
        let _: Cache<Int, Int> = try ahead.cache(named: "other", version: "1", maxAge: .unlimited)
        try ahead.close()
        lines += try filled.larder(["doctor", "--json"]).lines
        var printed: [String: Set<String>] = [:]
        for line in lines {
            let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let format = try #require(object["format"] as? String)
            let fields = Set(object.keys).subtracting(["format"])
            #expect(printed.updateValue(fields, forKey: format).map { $0 == fields } ?? true, "\(format)")
        }
        #expect(printed == documented)
    }

    @Test func `a sound store has nothing to verify and nothing unusual`() throws {
        try larder("verify").expect("5 entries, no problem.")
        try larder("doctor").expect("Nothing unusual.")
    }

    @Test func `a large cache without a limit, and a clock that is ahead, are unusual`() throws {
        let manager = try store.manager()
        let many: Cache<Int, Int> = try manager.cache(named: "many", version: "1", maxAge: .unlimited)
        try many.setValues((0..<999).map { ($0, $0) })
        try larder("doctor").expect("Nothing unusual.")
        many[999] = 999
        let hints = try larder("doctor")
        #expect(hints.status == 0 && hints.lines.last == "1 hint.")
        #expect(
            hints.lines.first?.hasPrefix("! No limit on disk bounds the cache “many”, which has 1,000 entries") == true)
        try many.disk.setLimits(DiskLimits(countLimit: 2000))
        try larder("doctor").expect("Nothing unusual.")
        try manager.close()
        store.clock.advance(by: .days(8))
        let later = try store.manager()
        let _: Cache<Int, Int> = try later.cache(named: "other", version: "1", maxAge: .unlimited)
        try later.close()
        let ahead = try larder("doctor").lines
        #expect(
            ahead.first?.hasPrefix("! A program with a clock that is ahead has opened the store") == true, "\(ahead)")
    }

    @Test(arguments: [("sl", "ls"), ("stat", "stats"), ("dokter", "doctor"), ("expor", "export")])
    func `a verb that is mistyped is guessed`(typed: String, meant: String) throws {
        try FilledStore.larder([typed]).expect(status: 64, error: "Did you mean “\(meant)”?")
        try FilledStore.larder(["frobnicate"]).expect(status: 64, error: "There is no verb “frobnicate”. “larder help”")
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/bin/bash"), "needs bash"))
    func `the names that are completed are no commands`() throws {
        let manager = try store.manager()
        let folder = try TemporaryFolder()
        for name in ["user-$(touch \(folder("ran").path))", "user-`touch \(folder("ran").path)`", "user-\u{1B}[31m"] {
            let _: Cache<Int, Int> = try manager.cache(named: name, version: "1", maxAge: .unlimited)
        }
        try manager.close()
        let larder = ChildProcess.folder.appendingPathComponent("larder").path
        let script = """
            larder() { '\(larder)' "$@"; }
            eval "$(larder completions bash)"
            COMP_WORDS=(larder keys '\(store.url.path)' user) COMP_CWORD=3
            _larder
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let lines = try ChildProcess(command: ["bash", "-c", script]).finish().lines
        #expect(lines.count == 2 && lines.allSatisfy { $0.hasPrefix("user-") })
        #expect(!FileManager.default.fileExists(atPath: folder("ran").path))
    }

    @Test func `completions ask for the names of stores and caches`() throws {
        #expect(try FilledStore.larder(["completions", "names", store.url.path]).lines == ["articles", "photos"])
        let folder = try TemporaryFolder()
        try FileManager.default.copyItem(at: store.url, to: folder("Mine.sqlite"))
        try Data().write(to: folder("note.txt"))
        try FilledStore.larder(["completions", "names"], environment: ["XDG_CACHE_HOME": folder.url.path]).expect(
            "Mine")
    }

    @Test func `a damaged entry is a problem, and 1`() throws {
        let manager = try store.manager()
        let articles: Cache<Int, FilledStore.Article> = try manager.cache(
            named: "articles", version: "3", maxAge: .days(7))
        try store.damage(42, in: articles)
        let found = try larder("verify")
        try larder("keys", "articles", "--by", "size").expect("7", "42")
        #expect(found.status == 1 && found.lines.first?.contains("does not fit its checksum") == true)
        try larder("get", "articles", "42").expect(status: 65)
    }

    // MARK: What it never does

    @Test func `no verb changes a byte or a time, beside a program that writes and without one`() throws {
        let elsewhere = try TemporaryFolder()
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
                ["watch", "--limit", "1"], ["report", "-o", elsewhere("report.html").path],
            ] {
                let arguments = [words[0], store.url.path] + words.dropFirst()
                #expect(try FilledStore.larder(arguments).status == 0, "\(words)")
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
}
