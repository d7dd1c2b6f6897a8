import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// The `larder` command is killed while it changes a store.
struct KilledCommandTests {
    private static let kills = LongTests.areEnabled ? 60 : 4
    /// Half of the entries have a value in a file, and a third has expired.
    private static let count = 300

    /// A verb, and the numbers of the entries that the store may have when it was killed.
    struct Call: Sendable, CustomTestStringConvertible {
        let words: [String]
        /// Whether whole slices of entries may be gone, or only none and all.
        var isSliced = false
        let rest: @Sendable (Int) -> Bool
        var testDescription: String { words[0] }
    }

    private static let calls = [
        Call(words: ["rm", "", "values", "--prefix", "a"]) { $0 % 2 != 0 },
        Call(words: ["rm", "", "values", "--tag", "third"]) { $0 % 3 != 0 },
        Call(words: ["clear", "", "values"]) { _ in false },
        Call(words: ["drop", "", "values"]) { _ in false },
        Call(words: ["expire", ""], isSliced: true) { $0 % 3 != 0 },
        Call(words: ["trim", "", "values", "--to-count", "30"], isSliced: true) { _ in false },
        Call(words: ["maintain", ""], isSliced: true) { $0 % 3 != 0 },
        Call(words: ["delete", ""]) { _ in false },
    ]

    private func key(_ number: Int) -> String { (number % 2 == 0 ? "a" : "b") + "\(number)" }

    private func cache(_ manager: CacheManager) throws -> Cache<String, Data> {
        try manager.cache(
            named: "values", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 100))
    }

    private func value(_ number: Int) -> Data {
        Data(repeating: UInt8(number % 251), count: number % 2 == 0 ? 600 : 20)
    }

    private func fill(_ url: URL) throws {
        var configuration = CacheManager.Configuration()
        configuration.maintenanceInterval = nil
        let manager = try CacheManager(url: url, configuration: configuration)
        let cache = try cache(manager)
        try manager.transaction { transaction in
            for number in 0..<Self.count {
                try transaction.setValue(
                    value(number), forKey: key(number), in: cache, maxAge: number % 3 == 0 ? .milliseconds(1) : nil,
                    tags: number % 3 == 0 ? ["third"] : [])
            }
        }
        try manager.close()
    }

    /// The numbers of all entries, those that have expired included.
    private func numbers(_ url: URL) throws -> Set<Int> {
        var numbers: Set<Int> = []
        for words in [[], ["--expired"]] {
            var (status, lines) = try ChildProcess("larder", ["keys", url.path, "values"] + words).finish()
            if status == 66 { return [] }
            if status == 69 {
                // A log without its index cannot be read without a change.
                try CacheManager(url: url, configuration: .later).close()
                (status, lines) = try ChildProcess("larder", ["keys", url.path, "values"] + words).finish()
            }
            #expect(status == 0)
            numbers.formUnion(lines.compactMap { Int($0.dropFirst()) })
        }
        return numbers
    }

    /// Kills the command after its first line, which it prints before it changes anything.
    private func kill(_ words: [String], _ url: URL, _ random: inout Seeded) throws {
        let child = try ChildProcess("larder", words.map { $0.isEmpty ? url.path : $0 } + ["--yes"])
        _ = child.lines(killedAfter: 1, within: 4_000, &random)
    }

    private func expectWhole(_ url: URL, _ place: Comment) throws {
        let manager = try CacheManager(url: url, configuration: .later)
        #expect(try manager.verify().problems == [], place)
        #expect(try StoreProbe(manager).fileProblems(isSwept: true) == [], place)
        let cache = try cache(manager)
        for (key, value) in cache { #expect(Int(key.dropFirst()).map(self.value) == value, place) }
        try manager.close()
    }

    @Test(arguments: calls)
    func `a store is as before or as after, at whatever moment its change is killed`(call: Call) throws {
        var random = Seeded()
        let (before, after) = (Set(0..<Self.count), Set((0..<Self.count).filter(call.rest)))
        for round in 0..<Self.kills {
            let place: Comment = "seed \(random.seed), round \(round)"
            let folder = try TemporaryFolder()
            let url = folder("store.sqlite")
            try fill(url)
            try kill(call.words, url, &random)
            let found = try numbers(url)
            if call.isSliced {
                #expect(found.isSubset(of: before) && found.isSuperset(of: after), place)
            } else {
                #expect(found == before || found == after, place)
            }
            try expectWhole(url, place)
        }
    }

    @Test func `an import that is killed has written all or nothing, and a repair goes on where it was killed`() throws
    {
        var random = Seeded()
        for round in 0..<Self.kills {
            let place: Comment = "seed \(random.seed), round \(round)"
            let folder = try TemporaryFolder()
            let (url, file) = (folder("store.sqlite"), folder("export"))
            try fill(url)
            let exported = try ChildProcess("larder", ["export", url.path]).finish().lines
            try Data(exported.map { $0 + "\n" }.joined().utf8).write(to: file)
            _ = try ChildProcess("larder", ["clear", url.path, "values", "--yes"]).finish()
            try kill(["import", "", file.path], url, &random)
            let found = try numbers(url)
            #expect(found.isEmpty || found.count == Self.count, place)
            try expectWhole(url, place)

            _ = try ChildProcess("larder", ["import", url.path, file.path, "--yes"]).finish()
            try url.overwritePagesBehindSchema()
            try kill(["repair", ""], url, &random)
            #expect(
                [0, 65, 66].contains(try ChildProcess("larder", ["repair", url.path, "--yes"]).finish().status), place)
            try expectWhole(url, place)
        }
    }
}
