import Foundation
import LarderStore
import LarderTestSupport
import Testing

/// Processes that are killed while they open a store for the first time, or exchange a damaged one.
struct KilledSalvageTests {
    private let place: StorePlace
    private let rounds = LongTests.areEnabled ? 200 : 20

    init() throws { place = try StorePlace() }

    /// Makes a store of entries, and lays zeros over a page with entries.
    ///
    /// - Returns: The files of the folder, and the keys whose entries are not on that page.
    private func makeDamaged() throws -> (files: [String: Data?], keys: [Int64]) {
        let store = try place.open()
        let rows = try store.open(.rows)
        for key in 0..<Int64(100) { try rows.put(key, Self.text(key)) }
        try store.close()
        let url = place.folder("store.sqlite")
        var bytes = try Data(contentsOf: url)
        let mark = try #require(bytes.firstRange(of: Data(Self.text(50).utf8)))
        let page = mark.lowerBound / 4096 * 4096
        let hit = (0..<Int64(100)).filter { key in
            bytes[page..<page + 4096].firstRange(of: Data(Self.text(key).prefix(12).utf8)) != nil
        }
        bytes.replaceSubrange(page..<page + 4096, with: Data(count: 4096))
        try bytes.write(to: url)
        #expect(hit.contains(50) && hit.count < 50)
        return (try place.folder.contents(), (0..<Int64(100)).filter { !hit.contains($0) })
    }

    private static func text(_ key: Int64) -> String { "value of \(key + 1000) " + String(repeating: "x", count: 400) }

    /// Checks that nothing is lost but the page, and returns whether the child had come to its end.
    private func check(_ lines: [String], _ keys: [Int64], _ moment: String) throws -> Bool {
        let store = try place.open()
        let rows = try store.open(.rows)
        for key in 0..<Int64(100) {
            let text = try rows.text(key)
            #expect(text == Self.text(key) || (text == nil && !keys.contains(key)), "\(moment): \(key)")
        }
        if lines.contains("acknowledged") { #expect(try rows.text(-1) == "x", "\(moment)") }
        #expect(try store.verify().problems == [], "\(moment)")
        try store.close()
        let names = try place.folder.names
        #expect(!names.contains("store.sqlite.salvaged") && names.contains("store.sqlite.damaged"), "\(moment)")
        return lines.contains("closed")
    }

    @Test func `a salvage that is killed is ended by the next opening`() throws {
        let (files, keys) = try makeDamaged()
        var random = Seeded()
        var ended = 0
        for round in 0..<rounds {
            try place.folder.restore(files)
            let child = try ChildProcess("larder-test-rows", ["damage", place.path])
            var lines = [try #require(child.line())]
            // Some moment of the exchange, which is a matter of the machine.
            for _ in 0..<Int.random(in: 0..<200, using: &random) { sched_yield() }
            child.kill()
            while let line = child.line() { lines.append(line) }
            if try check(lines, keys, "round \(round), seed \(random.seed)") { ended += 1 }
        }
        #expect(ended < rounds)
    }

    /// Each call of these kinds is a moment at which the process is killed.
    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
    func `whatever call a salvage dies at, the next opening has every entry that can be read`() throws {
        let (files, keys) = try makeDamaged()
        var kills = 0
        for call in ["rename", "fsync", "fdatasync", "pwrite64", "unlink,unlinkat"] {
            var moment = 1
            while moment < 2000 {
                try place.folder.restore(files)
                let child = try ChildProcess(
                    "larder-test-rows", ["damage", place.path],
                    through: Strace.wrapper(
                        "-qq", "-e", "trace=\(call)", "-e", "inject=\(call):signal=SIGKILL:when=\(moment)"))
                if try check(try child.finish().lines, keys, "\(call) \(moment)") { break }
                kills += 1
                moment += call == "pwrite64" ? 1 + moment / 8 : 1
            }
        }
        #expect(kills > 10)
    }

    @Test func `whatever moment a first opening dies at, the store opens with what was acknowledged`() throws {
        var random = Seeded()
        for round in 0..<rounds {
            let place = try StorePlace()
            let child = try ChildProcess("larder-test-rows", ["damage", place.path])
            var lines = [try #require(child.line())]
            for _ in 0..<Int.random(in: 0..<200, using: &random) { sched_yield() }
            child.kill()
            while let line = child.line() { lines.append(line) }
            let store = try place.open()
            let rows = try store.open(.rows)
            if lines.contains("acknowledged") { #expect(try rows.text(-1) == "x", "round \(round)") }
            try rows.put(1, "x")
            #expect(try store.verify().problems == [], "round \(round), seed \(random.seed)")
            #expect(try !place.folder.names.contains { $0.contains("damaged") }, "round \(round), seed \(random.seed)")
        }
    }
}
