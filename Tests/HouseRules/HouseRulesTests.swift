import Foundation
import LarderMigrations
import Testing

/// Rules of the house that can be read off its sources.
///
/// Where a rule names places, they are the whole list.
struct HouseRulesTests {
    private let sources: [SourceTree.File]
    private let tests: [SourceTree.File]

    init() throws {
        sources = try SourceTree.files(below: "Sources", "Migrations")
        tests = try SourceTree.files(below: "Tests", "Benchmarks", "Examples")
    }

    /// Expects `pattern` nowhere in `files` but in those whose path begins with one of `places`.
    private func expect(
        _ pattern: String, onlyIn places: [String], of files: [SourceTree.File],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let pattern = try Regex(pattern)
        let others = files.filter { file in !places.contains { file.path.hasPrefix($0) } }
        #expect(SourceTree.places(others, pattern) == [], sourceLocation: sourceLocation)
        // A rule about something that is nowhere would guard nothing.
        for place in places {
            let named = files.filter { $0.path.hasPrefix(place) }
            #expect(SourceTree.places(named, pattern) != [], "\(place)", sourceLocation: sourceLocation)
        }
    }

    @Test func `a file of more than 600 lines says at its head why it is so long`() {
        for file in sources + tests where file.lines.count > 600 {
            #expect(file.lines.prefix(20).contains { $0.contains("Long because") }, "\(file.path)")
        }
    }

    @Test func `a file is named for its type or its topic`() {
        for file in sources {
            let name = file.path.split(separator: "/").last ?? ""
            #expect(name.wholeMatch(of: /[A-Z][A-Za-z0-9]*(\+[A-Z][A-Za-z0-9]*)?\.swift/) != nil, "\(file.path)")
        }
        for file in sources + tests {
            for word in ["Helpers", "Utils", "Utilities", "Types", "Common", "Misc"] {
                #expect(!file.path.contains(word), "\(file.path)")
            }
        }
    }

    // MARK: - Who knows what

    @Test func `only the SQLite layer knows C`() throws {
        try expect(#"import LarderCSQLite"#, onlyIn: ["Sources/LarderSQLite/"], of: sources)
        try expect(#"\bsqlite3_[a-z]"#, onlyIn: ["Sources/LarderSQLite/"], of: sources)
        try expect(#"import LarderMigrations"#, onlyIn: ["Sources/LarderStore/Opening/"], of: sources)
    }

    @Test func `the SQLite layer knows nothing of the library, and the command only its public face`() throws {
        let layer = sources.filter { $0.path.hasPrefix("Sources/LarderSQLite/") }
        #expect(SourceTree.places(layer, try Regex(#"import (Larder|Foundation)\b"#)) == [])
        let codec = sources.filter { $0.path.hasPrefix("Sources/LarderCBOR/") }
        #expect(SourceTree.places(codec, try Regex(#"import Larder(SQLite|CSQLite|Migrations)?\b"#)) == [])
        let store = sources.filter { $0.path.hasPrefix("Sources/LarderStore/") }
        #expect(
            SourceTree.places(store, try Regex(#"import (Larder|LarderCBOR|LarderCSQLite)\b"#)) == [])
        let command = sources.filter { $0.path.hasPrefix("Sources/LarderCLI/") }
        #expect(SourceTree.places(command, try Regex(#"import Larder(SQLite|Migrations)\b"#)) == [])
    }

    @Test func `the library and the store have the folders of their design`() {
        func folders(of module: String) -> Set<Substring> {
            let files = sources.filter { $0.path.hasPrefix("Sources/\(module)/") }
            return Set(files.map { $0.path.split(separator: "/")[2] })
        }
        #expect(
            folders(of: "Larder") == [
                "Manager", "Cache", "Loading", "Iteration", "Observation", "Events", "Table", "MemoryCache", "Tier",
                "Pressure", "Values",
            ])
        #expect(
            folders(of: "LarderStore") == [
                "Store", "Border", "Opening", "Rows", "Writing", "Reading", "Files", "Upkeep", "Time",
            ])
    }

    @Test func `SQL stands with the queries, the schema and the layer's own verbs`() throws {
        let (queries, faults) = (
            "Sources/LarderStore/Rows/RowSQL.swift", "Sources/LarderTesting/TemporaryStore+Faults.swift"
        )
        try expect(
            #""\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|PRAGMA|BEGIN|COMMIT) "#,
            onlyIn: ["Sources/LarderSQLite/", queries, faults], of: sources)
        try expect(#"\bSQL\($"#, onlyIn: [queries, faults], of: sources)
        try expect(#"PRAGMA"#, onlyIn: ["Sources/LarderSQLite/", faults], of: sources)
    }

    @Test func `the file system is called in one place`() throws {
        try expect(
            #"\b(FileManager|FileHandle|open\(path|lstat\(|unlink(at)?\(|rename(at)?\(|opendir\(|openat\(|flock\()"#,
            onlyIn: [
                "Sources/Larder/Manager/FileAttributes.swift", "Sources/Larder/Manager/CachesFolder.swift",
                "Sources/Larder/Pressure/PressureSource.swift",
                "Sources/LarderStore/Files/FileSystem.swift", "Sources/LarderStore/Opening/LockFile.swift",
                "Sources/LarderTesting/", "Sources/LarderHTTP/BodyTee.swift",
            ],
            of: sources.filter { !$0.path.hasPrefix("Sources/LarderCLI/") })
        try expect(
            #"\bFileSystem\."#,
            onlyIn: [
                "Sources/LarderStore/Opening/", "Sources/LarderStore/Files/",
                "Sources/LarderStore/Store/Database.swift",
                "Sources/Larder/MemoryCache/Snapshot.swift",
            ], of: sources)
    }

    /// A file that imports the standard one has locks that the thread sanitizer does not see, and that no test counts.
    @Test func `locks and atomics come from the module that has them for each kind of build`() throws {
        try expect(#"import (struct )?Synchronization\b"#, onlyIn: ["Sources/LarderLocks/"], of: sources)
    }

    @Test func `clocks and timers are where the rules say`() throws {
        let time = "Sources/LarderStore/Time/"
        try expect(#"\bDate\(\)|clock_gettime"#, onlyIn: [time + "SystemClock.swift"], of: sources)
        try expect(
            #"asyncAfter|makeTimerSource|DispatchTime"#,
            onlyIn: [time + "TimerThread.swift", time + "StoreTime.swift"], of: sources)
        // The replies of a server are awaited by a clock of its own, which no manager injects.
        try expect(
            #"ContinuousClock|SuspendingClock|Task\.sleep"#,
            onlyIn: [
                "Sources/LarderRedis/RedisLink.swift", "Sources/LarderRedis/RedisMessages.swift",
                "Sources/LarderRedis/RedisSentinels.swift", "Sources/LarderShared/SharedOptions.swift",
            ], of: sources)
    }

    // MARK: - What is never done

    @Test func `nothing is forced, and nothing is reached around its access`() throws {
        try expect(#"\btry\?|\btry!|fatalError\("#, onlyIn: [], of: sources)
        try expect(#"@testable|@_spi"#, onlyIn: [], of: sources + tests.filter { !$0.path.contains("HouseRules") })
    }

    /// Each access wraps the closure in another one, and after a hundred thousand a call of it overflows the stack.
    @Test func `no lock holds a closure but in a structure`() throws {
        let all = sources + tests
        try expect(#"\b(Mutex|OwnedLock)<[^>]*->"#, onlyIn: [], of: all)
        let alias = #/typealias (\w+)(?:<[^=]*>)? = .*->/#
        let aliases = all.flatMap { $0.code.filter { $0.range(of: "typealias ") != nil } }
        let names = Set(aliases.compactMap { $0.firstMatch(of: alias).map { String($0.1) } }).sorted()
        #expect(!names.isEmpty)
        try expect(#"\b(Mutex|OwnedLock)<(\#(names.joined(separator: "|")))\b"#, onlyIn: [], of: all)
    }

    @Test func `no test sleeps`() throws {
        let others = tests.filter { !$0.path.contains("HouseRules") }
        // An example stands for a slow network.
        let examples = ["Remember", "SharedTier", "GettingStarted"].map { "Examples/Sources/\($0)/\($0).swift" }
        try expect(
            #"\b(sleep|usleep|nanosleep)\(|Thread\.sleep|Task\.sleep"#,
            onlyIn: ["Tests/Support/Waiting.swift"] + examples, of: others)
    }

    @Test func `the library knows nothing of the shared tier`() throws {
        let library = sources.filter { file in
            ["Larder/", "LarderStore/"].contains { file.path.hasPrefix("Sources/\($0)") }
        }
        let names = try Regex(#"import Larder(Shared|Redis)\b|\bShared(Tier|Node|Cache|Space)\b"#)
        #expect(SourceTree.places(library, names) == [])
        // The hooks that it has for it stand in one file, which the tier uses no other way.
        let tier = sources.filter { $0.path.hasPrefix("Sources/LarderShared/") }
        let insides = try Regex(#"import Larder(SQLite|Migrations)\b|\.(rows|copies|keyCodec)\b"#)
        #expect(SourceTree.places(tier, insides) == [])
    }

    @Test func `every migration stands in the table of steps, and together they are small`() throws {
        let files = try SourceTree.files(below: "Migrations", suffix: ".sql")
        let names = files.map { $0.path.replacing("Migrations/", with: "") }
        #expect(names == MigrationStep.all.map(\.file))
        for (file, step) in zip(files, MigrationStep.all) {
            #expect(file.text == step.sql)
            let digits = String(step.number)
            let number = String(repeating: "0", count: 4 - digits.count) + digits
            #expect(step.file.wholeMatch(of: /[0-9]{4}_[a-z]+(-[a-z]+)*\.sql/) != nil)
            #expect(step.file.hasPrefix(number + "_"))
        }
        // A step that has landed is never changed: stores have run it.
        let sums: [UInt64] = [
            0x44c8_6013_71e4_4545, 0x5bb3_5de5_078b_c8c7, 0xd2cf_a0e1_688d_8602,
            0x1747_7e5e_bb63_d00f, 0xc9a5_38f0_15bd_936a,
        ]
        for (step, sum) in zip(MigrationStep.all, sums) { #expect(SourceTree.sum(of: step.sql) == sum, "\(step.file)") }
        #expect(MigrationStep.all.count == sums.count, "Add the sum of a new step once it is final.")
        // Embedded bytes cost compile time.
        #expect(files.reduce(0) { $0 + $1.text.utf8.count } < 20_000)
    }

    @Test func `what a page counts is what there is`() throws {
        let internals = "Sources/Larder/Documentation.docc/Internals"
        let pages = try SourceTree.files(below: internals, suffix: ".md")
        func text(_ page: String) throws -> String {
            try #require(pages.first { $0.path == "\(internals)/\(page).md" }).text
        }
        let decisions = try text("DesignDecisions").lowercased()
        let count = decisions.matches(of: #/\n### [0-9]+\./#).count
        #expect(decisions.contains("\(Self.word(count)) decisions"))
        let delegate = try #require(sources.first { $0.path.hasSuffix("/TierDelegate.swift") }).text
        let declaration = try #require(delegate.firstMatch(of: #/protocol TierDelegate(?s:.*?)\n}/#)).output
        let calls = declaration.matches(of: #/\n    func /#).count
        #expect(try text("Architecture").contains("one protocol of \(Self.word(calls)) calls, `TierDelegate`"))
        let steps = try text("StorageFormat").matches(of: #/\n\| [0-9]+ \| `[0-9]{4}_/#).count
        #expect(steps == MigrationStep.all.count)
    }

    @Test func `every lock stands in a table`() throws {
        let page = try SourceTree.files(
            below: "Sources/Larder/Documentation.docc/Internals", suffix: "Synchronization.md")[0].text
        var missing: [String] = []
        for file in sources where !file.path.hasPrefix("Sources/LarderLocks/") {
            if file.text.range(of: "Mutex") == nil && file.text.range(of: "OwnedLock") == nil { continue }
            var type = ""
            for line in file.code {
                if line.utf8.first != UInt8(ascii: " "),
                    let found = line.firstMatch(of: /^(?:[a-z]+ )*(?:class|struct|enum|extension) (\w+)/)
                {
                    type = String(found.1)
                }
                guard
                    let found = line.firstMatch(
                        of: /^    (?:@usableFromInline )?(?:[a-z]+ )*let (\w+)(?:: | = )(?:Mutex|OwnedLock)\b/)
                else { continue }
                let name = "\(type).\(found.1)"
                // The slots have a class of their own.
                let isNamed = page.contains("\n| `\(name == "Slot.lock" ? "Readers.slots" : name)` |")
                if !isNamed { missing.append("\(file.path): \(name)") }
            }
        }
        #expect(missing == [])
    }

    private static func word(_ number: Int) -> String {
        let ones = [
            "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
            "thirteen",
            "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
        ]
        if number < ones.count { return ones[number] }
        let tens = ["twenty", "thirty", "forty", "fifty"][number / 10 - 2]
        return number % 10 == 0 ? tens : "\(tens)-\(ones[number % 10])"
    }

    @Test func `every type that a rule names by its place is where the page says`() throws {
        let folders = try FileManager.default.contentsOfDirectory(
            atPath: SourceTree.root.appendingPathComponent("Sources").path)
        #expect(
            Set(folders) == [
                "LarderLocks", "LarderCLocks", "LarderCSQLite", "LarderSQLite", "LarderStore", "LarderCBOR", "Larder",
                "LarderCLI", "LarderShared", "LarderHTTP", "LarderRedis", "LarderRedisTLS", "LarderCOpenSSL",
                "LarderTesting",
            ])
    }
}
