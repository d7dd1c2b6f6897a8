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
        tests = try SourceTree.files(below: "Tests", "Examples")
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
                "Manager", "Cache", "Loading", "Iteration", "Observation", "Coding", "Table", "MemoryCache", "Tier",
                "Snapshots",
                "Pressure", "Eviction", "Ages", "Errors", "Versions", "Shared",
            ])
        #expect(
            folders(of: "LarderStore") == [
                "Store", "Opening", "Rows", "Writing", "Reading", "Files", "Upkeep", "Locks",
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
                "Sources/Larder/Manager/FileProtection.swift", "Sources/Larder/Manager/CachesFolder.swift",
                "Sources/Larder/Pressure/PressureSource.swift",
                "Sources/LarderStore/Files/FileSystem.swift", "Sources/LarderStore/Opening/LockFile.swift",
                "Sources/LarderStore/Files/FileSystem+Files.swift",
                "Sources/LarderStore/Files/FileSystem+Copying.swift", "Sources/LarderTesting/",
            ],
            of: sources.filter { !$0.path.hasPrefix("Sources/LarderCLI/") })
        try expect(
            #"\bFileSystem\."#,
            onlyIn: [
                "Sources/LarderStore/Opening/", "Sources/LarderStore/Files/",
                "Sources/LarderStore/Store/Database.swift",
                "Sources/Larder/Snapshots/SnapshotFile.swift",
            ], of: sources)
    }

    /// A file that imports the standard one has locks that the thread sanitizer does not see, and that no test counts.
    @Test func `locks and atomics come from the module that has them for each kind of build`() throws {
        try expect(#"import (struct )?Synchronization\b"#, onlyIn: ["Sources/LarderLocks/"], of: sources)
    }

    @Test func `the clock is read in one place, and so is every interval`() throws {
        try expect(#"\bDate\(\)"#, onlyIn: ["Sources/Larder/Ages/SystemClock.swift"], of: sources)
        let storeTime = "Sources/LarderStore/Store/StoreTime.swift"
        try expect(#"clock_gettime"#, onlyIn: ["Sources/Larder/Ages/SystemClock.swift", storeTime], of: sources)
        try expect(
            #"asyncAfter|makeTimerSource|DispatchTime"#,
            onlyIn: ["Sources/Larder/Ages/TimerThread.swift", storeTime], of: sources)
        // The replies of a server are awaited by a clock of its own, which no manager injects.
        let link = ["RedisLink.swift", "RedisLink+Thread.swift", "RedisMessages.swift"].map {
            "Sources/LarderRedis/\($0)"
        }
        try expect(
            #"ContinuousClock|SuspendingClock|Task\.sleep"#, onlyIn: link + ["Sources/Larder/Shared/SharedClock.swift"],
            of: sources)
    }

    // MARK: - What is never done

    @Test func `nothing is forced, and nothing is reached around its access`() throws {
        try expect(#"\btry\?|\btry!|fatalError\("#, onlyIn: [], of: sources)
        try expect(#"@testable|@_spi"#, onlyIn: [], of: sources + tests.filter { !$0.path.contains("HouseRules") })
    }

    @Test func `no test sleeps`() throws {
        let others = tests.filter { !$0.path.contains("HouseRules") }
        // An example stands for a slow network.
        let examples = ["Remember", "SharedTier"].map { "Examples/Sources/\($0)/\($0).swift" }
        try expect(
            #"\b(sleep|usleep|nanosleep)\(|Thread\.sleep|Task\.sleep"#,
            onlyIn: ["Tests/Support/Waiting.swift"] + examples, of: others)
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
        // Embedded bytes cost compile time.
        #expect(files.reduce(0) { $0 + $1.text.utf8.count } < 20_000)
    }

    @Test func `every type that a rule names by its place is where the page says`() throws {
        let folders = try FileManager.default.contentsOfDirectory(
            atPath: SourceTree.root.appendingPathComponent("Sources").path)
        #expect(
            Set(folders) == [
                "LarderLocks", "LarderCSQLite", "LarderSQLite", "LarderStore", "LarderCBOR", "Larder", "LarderCLI",
                "LarderRedis",
                "LarderTesting",
            ])
    }
}
