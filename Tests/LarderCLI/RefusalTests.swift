import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What the command says of a call that is wrong and of a store that it cannot read, and with which status it ends.
struct RefusalTests {
    private let filled: FilledStore
    private var store: TemporaryStore { filled.store }

    init() throws { filled = try FilledStore(of: #fileID) }

    private func larder(_ verb: String, _ words: String...) throws -> Printed { try filled.larder([verb] + words) }

    // MARK: Calls

    @Test(arguments: [
        (["nonsense"], "There is no verb “nonsense”."),
        (["keys"], "“keys” is called as: larder keys STORE CACHE"),
        (["keys", "a", "b", "c"], "“keys” is called as: larder keys STORE CACHE"),
        (["keys", "a", "b", "--by", "colour"], "“--by” is one of: key, written, accessed, size"),
        (["keys", "a", "b", "--by"], "“--by” needs a value"),
        (["keys", "a", "b", "--limit", "-1"], "“--limit” takes a number, and “-1” is none."),
        (["keys", "a", "b", "--larger", "many"], "“--larger” takes a size, such as 64K or 1.5M, and “many” is none."),
        (["ls", "--verbose"], "“--verbose” is no option of “ls”."),
        (["ls", "a", "--at", "yesterday"], "“--at” takes a moment, such as 2026-11-28T12:00:00Z"),
        (["keys", "a", "b", "--older", "999999999999d"], "“--older” takes an age, such as 90s, 2h or 7d"),
        (
            ["get", "a", "b", "1", "--redact"],
            "“--redact” is no option of “get”. It has: --text --integer --hex --raw --json --at"
        ), (["report", "a", "-o", "x", "--json"], "“--json” is no option of “report”. It has: --redact -o --at"),
        (["watch", "a", "--at", "x"], "“--at” is no option of “watch”."),
        (["bake", "a", "b", "--json"], "“--json” is no option of “bake”. It has: none"),
        (["keys", "a", "b", "--tag", "x", "-r"], "“--tag” lists in no order: leave out --by and -r."),
    ])
    func `a wrong call ends with 64, and says what would be right`(arguments: [String], message: String) throws {
        let words = arguments.map { $0 == "a" ? store.url.path : $0 == "b" ? "photos" : $0 }
        try FilledStore.larder(words).expect(status: 64, error: message)
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
        try larder("get", "both", "42").expect(status: 64, error: "Add --integer or --text.")
        try larder("get", "both", "42", "--text").expect("\"text\"")
        try larder("get", "both", "42", "--integer").expect("\"number\"")
    }

    // MARK: Stores

    @Test func `what is not there ends with 66, and is not created`() throws {
        let missing = store.folder("missing.sqlite")
        try FilledStore.larder(["ls", missing.path]).expect(status: 66, error: "There is no store at \(missing.path).")
        try FilledStore.larder(["ls", "no-such-store"]).expect(
            status: 66, error: "“larder ls” lists those there are.")
        try larder("keys", "lists").expect(status: 66, error: "no cache “lists”. It has: articles, photos.")
        #expect(!FileManager.default.fileExists(atPath: missing.path))
    }

    @Test func `the file of another program ends with 76, and stays as it is`() throws {
        let text = store.folder("text.sqlite")
        try Data(repeating: 65, count: 5_000).write(to: text)
        try FilledStore.larder(["ls", text.path]).expect(status: 76, error: "text.sqlite")
        #expect(try Data(contentsOf: text) == Data(repeating: 65, count: 5_000))
    }

    @Test func `a store of a later release ends with 78`() throws {
        try store.makeNewer()
        try larder("ls").expect(status: 78, error: "was written by a later release. Update the program.")
    }

    @Test(arguments: ["ls", "stats", "verify", "doctor", "export"])
    func `a store of an earlier release is read, and stays as it is`(verb: String) throws {
        let old = store.folder("old.sqlite")
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        for (name, copy) in [("store.sqlite", "old.sqlite"), ("store.files", "old.files")] {
            try FileManager.default.copyItem(
                at: sources.appendingPathComponent("Stores/1/\(name)"), to: store.folder(copy))
        }
        let bytes = try Data(contentsOf: old)
        #expect(try FilledStore.larder([verb, old.path]).status == 0)
        #expect(try Data(contentsOf: old) == bytes && store.folder.names.allSatisfy { !$0.hasPrefix("old.sqlite-") })
    }

    @Test func `bake writes a compact copy, and replaces no file`() throws {
        let copy = store.folder("baked/copy.sqlite")
        let words = ["bake", store.url.path, copy.path]
        let answer = try FilledStore.larder(words)
        #expect(answer.status == 0, "\(answer.errors)")
        #expect(try FilledStore.larder(["ls", copy.path]).lines.count == 3)
        #expect(try FilledStore.larder(["verify", copy.path]).status == 0)
        try FilledStore.larder(words).expect(status: 73, error: "is there already")
    }

    @Test(arguments: [["stats"], ["keys", "articles"]])
    func `a damaged store ends with 65, and stays as it is`(words: [String]) throws {
        try store.url.overwritePagesBehindSchema()
        let damaged = try Data(contentsOf: store.url)
        try filled.larder(words).expect(status: 65, error: "“larder repair” saves what can be read")
        #expect(try larder("verify").status == 1)
        #expect(try Data(contentsOf: store.url) == damaged)
    }

    @Test func `a database that was set aside can be looked at, with its large values`() throws {
        let aside = store.folder("store.sqlite.damaged")
        try FileManager.default.copyItem(at: store.url, to: aside)
        #expect(try FilledStore.larder(["ls", aside.path]).lines.count == 3)
        try FilledStore.larder(["verify", aside.path]).expect("5 entries, no problem.")
        #expect(try larder("doctor").lines.first?.contains("was set aside") == true)
    }

    @Test func `a store that vanishes while it is read ends with 69`() throws {
        let manager = try store.manager()
        let cache: Cache<Int, Data> = try manager.cache(named: "many", version: "1", maxAge: .unlimited)
        // More than a pipe and the command hold.
        try cache.setValues((0..<400).map { ($0, Data(repeating: 7, count: 1_000)) })
        try manager.close()
        let child = try ChildProcess("larder", ["export", store.url.path, "many"])
        _ = child.line()
        try FileManager.default.removeItem(at: store.url)
        #expect(try child.finish().status == 69)
    }

    @Test(.enabled(if: getuid() != 0 || FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv")))
    func `a store that may not be read ends with 77`() throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o000], ofItemAtPath: store.url.path)
        // Root may read all, and another user may not reach the command where it was built.
        let copy = store.folder("larder")
        try FileManager.default.copyItem(at: ChildProcess.folder.appendingPathComponent("larder"), to: copy)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: store.folder.url.path)
        let wrapper = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        try FilledStore.larder(["ls", store.url.path], through: getuid() == 0 ? wrapper : [], program: copy).expect(
            status: 77, error: "You may not read \(store.url.path).")
    }

    // MARK: Output

    @Test func `a full output and a reader that has gone end it`() throws {
        let manager = try store.manager()
        let cache: Cache<Int, Int> = try manager.cache(named: "many", version: "1", maxAge: .unlimited)
        try cache.setValues((0..<20_000).map { ($0, $0) })
        let words = ["keys", store.url.path, "many"]
        func through(_ script: String) throws -> Printed {
            try FilledStore.larder(words, through: ["bash", "-c", script, "bash"])
        }
        #expect(try through("\"$@\" | head -n 1 > /dev/null; exit ${PIPESTATUS[0]}").status == 141)
        if FileManager.default.fileExists(atPath: "/dev/full") {
            try through("\"$@\" > /dev/full").expect(
                status: 74, error: "The output cannot be written: No space left on device.")
        }
    }
}
