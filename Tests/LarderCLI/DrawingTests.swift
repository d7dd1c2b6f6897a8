import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What the command draws, and what it tells of itself.
struct DrawingTests {
    private let filled: FilledStore
    private var store: TemporaryStore { filled.store }

    init() throws { filled = try FilledStore(of: #fileID) }

    private func report(_ words: String...) throws -> String {
        let file = store.folder("report.html")
        let printed = try filled.larder(["report", "-o", file.path] + words)
        #expect(printed.status == 0 && printed.lines.count == 1 && printed.lines[0].hasPrefix(file.path))
        return try String(contentsOf: file, encoding: .utf8)
    }

    // MARK: The report

    @Test func `a report shows all that is known, and needs no network and no script`() throws {
        let page = try report()
        #expect(page.utf8.count < 300_000)
        for text in [
            "<h1>store.sqlite</h1>", "<h2>Where the bytes are</h2>", "<h2>Caches</h2>", "<h2>articles</h2>",
            "<h2>photos</h2>", "<td>100 entries</td>", "<td>50.0 %</td>", "2023-11-14: 1 hits, 1 misses",
            "<h3>Sizes</h3>", "4K: 1", "<h3>Ages</h3>", "1 h: 3", "Which limit?", "<td>covers/large</td>",
            "<h2>What is unusual</h2>\n<p>Nothing.</p>", "Tags: jars (1), new (1)", "default-src 'none'",
        ] { #expect(page.contains(text), "\(text)") }
        for text in ["<script", "http:", "https:", "url(", "@import", "src=", "On jars"] {
            #expect(!page.contains(text), "\(text)")
        }
        #expect(!page.unicodeScalars.contains("\u{7}") && !page.unicodeScalars.contains("\u{1B}"))
        for tag in ["svg", "table", "div", "section", "tr", "ul", "rect"] {
            let (opened, closed) = (
                page.ranges(of: "<\(tag)>").count + page.ranges(of: "<\(tag) ").count,
                page.ranges(of: "</\(tag)>").count
            )
            #expect(opened == closed, "\(tag)")
        }
    }

    @Test func `each part of the bytes has a name, and an empty cache is one line`() throws {
        let manager = try store.manager()
        let _: Cache<Int, Int> = try manager.cache(named: "empty", version: "1", maxAge: .unlimited)
        try manager.close()
        let page = try report()
        for name in ["database", "reserve for a full disk"] { #expect(page.contains("</i> \(name) "), "\(name)") }
        #expect(page.contains("<section><h2>empty</h2>\n<p>No entries.</p>\n</section>"))
    }

    @Test func `keys and tags can be hidden, and marks of HTML are none`() throws {
        let manager = try store.manager()
        let marks: Cache<String, String> = try manager.cache(named: "<b>\"&", version: "1", maxAge: .unlimited)
        try marks.setValue("value", forKey: "<script>alert(1)</script>", tags: ["<i>"])
        try manager.close()
        let page = try report()
        #expect(page.contains("&lt;b&gt;&quot;&amp;") && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"))
        #expect(!page.contains("<b>\"") && !page.contains("<script") && !page.contains("<i>"))
        let redacted = try report("--redact")
        #expect(!redacted.contains("covers") && !redacted.contains("jars") && !redacted.contains("store.sqlite"))
        #expect(redacted.contains("key-b2af886d02a20b2b"))
    }

    @Test func `what is unusual stands in the report with the command that helps`() throws {
        try FileManager.default.copyItem(at: store.url, to: store.folder("store.sqlite.damaged"))
        let page = try report()
        #expect(
            page.contains("A database was set aside")
                && page.contains("<code>rm \(store.url.path).damaged</code>"))
        #expect(try !report("--redact").contains("store.sqlite"))
        for name in ["store.sqlite", "store.files/x", "store.sqlite-wal"] {
            try filled.larder(["report", "-o", store.folder(name).path]).expect(
                status: 64, error: "belongs to the store")
        }
        try filled.larder(["report"]).expect(status: 64, error: "“report” needs a file: -o report.html")
        try filled.larder(["report", "-o", "/nowhere/report.html"]).expect(
            status: 73, error: "/nowhere/report.html cannot be written")
    }

    // MARK: Watching

    @Test func `entries, writes and hits are shown a line a second, until an interrupt`() throws {
        let manager = try CacheManager(url: store.url)
        let photos: Cache<String, Data> = try manager.cache(named: "photos", version: "1", maxAge: .unlimited)
        let child = try ChildProcess("larder", ["watch", store.url.path, "photos", "--json"])
        func next() throws -> [String: Any] {
            let line = try #require(child.line())
            return try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        let first = try next()
        #expect(first["format"] as? String == "larder.watch/1" && first["entries"] as? Int == 3)
        #expect(first["change"] as? Int == 0 && first["written"] as? Int == 0)
        try photos.setValue(Data([1]), forKey: "new")
        try photos.setValue(Data([2]), forKey: "1")
        _ = photos["new"]
        try manager.maintain()
        var (change, written, hits) = (0, 0, 0)
        let end = ContinuousClock.now + Waiting.limit
        while change < 0 || written < 2 || hits < 1 {
            try #require(ContinuousClock.now < end, "\(change), \(written) and \(hits) are not what has happened")
            let row = try next()
            change += row["change"] as? Int ?? 0
            written += row["written"] as? Int ?? 0
            hits += row["hits"] as? Int ?? 0
        }
        // The upkeep has deleted what had expired.
        #expect((change, written, hits) == (0, 2, 1))
        kill(child.identifier, SIGINT)
        #expect(try child.finish().status == 130)
    }

    @Test func `the head of the table is printed once, and a number of lines ends it`() throws {
        let printed = try FilledStore.larder(["watch", store.url.path, "--limit", "2"])
        #expect(printed.status == 0 && printed.lines.count == 5)
        #expect(printed.lines.filter { $0.hasPrefix("TIME") }.count == 1)
        #expect(
            printed.lines.filter { $0.contains("  photos  ") && $0.contains("       3       0        0") }.count == 2)
        let words = ["watch", store.url.path]
        let gone = "\"$@\" | head -n 1 > /dev/null; exit ${PIPESTATUS[0]}"
        #expect(try FilledStore.larder(words, through: ["bash", "-c", gone, "bash"]).status == 141)
        try FilledStore.larder(["watch", store.url.path, "--every", "0s"]).expect(
            status: 64, error: "“--every” is one second or more.")
        try FilledStore.larder(["watch", store.url.path, "--limit", "0"]).expect()
        try FilledStore.larder(["watch", store.url.path, "none"]).expect(status: 66, error: "no cache “none”")
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "needs a terminal"))
    func `on a terminal the table is drawn over the last one`() throws {
        let larder = ChildProcess.folder.appendingPathComponent("larder").path
        let child = try ChildProcess(
            command: ["script", "-qec", "\(larder) watch \(store.url.path) --limit 2", "/dev/null"])
        let text = try child.finish().lines.joined(separator: "\n")
        #expect(text.ranges(of: "TIME").count == 2 && text.ranges(of: "\u{1B}[H\u{1B}[2J").count == 2)
    }

    // MARK: The command itself

    @Test func `each verb has a help with all its options`() throws {
        try FilledStore.larder(["help", "trim"]).expect(
            "larder trim STORE CACHE",
            "evicts the least recently read; --to-size --to-count",
            "",
            "It says what it would do, and asks. Elsewhere than on a terminal it needs --yes.",
            "",
            "  -n              only says what would be done",
            "  --yes           does not ask",
            "  --to-size SIZE  until the entries have so many bytes",
            "  --to-count N    until there are so many entries",
            "",
            "STORE is a path, or the name given to CacheManager(name:). KEY is a text or a number as it is, or has --text,",
            "--integer or --hex. --json prints for programs, --redact hides keys, and --at MOMENT judges ages at another moment."
        )
        let verbs = try FilledStore.larder(["help", "--man"]).lines.filter { $0.hasPrefix(".SS larder ") }
        #expect(verbs.count == 24)
        for verb in verbs.map({ $0.split(separator: " ")[2] }) {
            let lines = try FilledStore.larder(["help", String(verb)]).lines
            for line in lines where line.hasPrefix("  -") {
                #expect(line.split(separator: "  ").count == 2, "\(verb): \(line)")
            }
        }
        #expect(try FilledStore.larder(["rm", "--help"]).lines.first == "larder rm STORE CACHE [KEY...]")
        try FilledStore.larder(["help", "nonsense"]).expect(status: 64, error: "There is no verb “nonsense”.")
    }

    @Test func `bash completes verbs and options`() throws {
        let script = try FilledStore.larder(["completions", "bash"]).lines.joined(separator: "\n")
        let file = store.folder("completions")
        try Data(script.utf8).write(to: file)
        func complete(_ words: String...) throws -> [String] {
            let list = words.map { "'\($0)'" }.joined(separator: " ")
            let run =
                "source \(file.path); COMP_WORDS=(larder \(list)); COMP_CWORD=\(words.count); _larder; printf '%s\\n' \"${COMPREPLY[@]}\""
            return try ChildProcess(command: ["bash", "-c", run]).finish().lines
        }
        #expect(try complete("st") == ["stats"])
        #expect(try complete("re") == ["report", "repair"] && complete("help", "tr") == ["trim"])
        #expect(try complete("trim", "a", "b", "--to") == ["--to-size", "--to-count"])
        #expect(try FilledStore.larder(["completions", "zsh"]).lines.first == "#compdef larder")
        #expect(
            try FilledStore.larder(["completions", "fish"]).lines.contains(
                "complete -c larder -n '__fish_seen_subcommand_from trim' -l to-size -r"))
        try FilledStore.larder(["completions", "csh"]).expect(status: 64, error: "one of: bash, zsh, fish")
    }
}
