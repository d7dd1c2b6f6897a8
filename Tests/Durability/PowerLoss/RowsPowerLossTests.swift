import Foundation
import LarderStore
import LarderTestSupport
import Testing

/// Stores of rows whose power was cut.
///
/// A program changes rows under a tracer. Its calls are played to a disk that forgets what was not synced. At random
/// moments a store is opened with what such a disk would have.
@Suite(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
struct RowsPowerLossTests {
    @Test(arguments: [Store.Options.Durability.processCrash, .powerLoss])
    func `whenever the power goes, a store of rows opens with all that its durability promises`(
        durability: Store.Options.Durability
    ) throws {
        var random = Seeded()
        print("power loss of rows, \(durability): SEED=\(random.seed)")
        let recording = try RowsRecording(durability, seed: random.next())
        let found = try problems(of: recording, promising: durability, cuts: 200, .none, &random)
        #expect(found == [], "seed \(random.seed): \(found.prefix(5))")
    }

    // MARK: The test is tested

    @Test(arguments: [Store.Options.Durability.processCrash, .powerLoss])
    func `a disk that forgets what a store of rows has synced is found out`(
        durability: Store.Options.Durability
    ) throws {
        var random = Seeded()
        let recording = try RowsRecording(durability, seed: random.next())
        // Only `.powerLoss` syncs large values.
        for lie in [SimulatedDisk.Lie.files, .largeValues, .folders]
        where lie != .largeValues || durability == .powerLoss {
            let found = try problems(
                of: recording, promising: durability, cuts: 300, lie, &random, stopsAtFirst: true)
            #expect(found != [], "\(lie), seed \(random.seed)")
        }
    }

    @Test func `a store of rows that does not sync its commits is found out`() throws {
        var random = Seeded()
        let recording = try RowsRecording(.processCrash, seed: random.next())
        let found = try problems(
            of: recording, promising: .powerLoss, cuts: 300, .none, &random, stopsAtFirst: true)
        #expect(found != [], "seed \(random.seed)")
    }

    // MARK: Cuts

    private func problems(
        of recording: RowsRecording, promising durability: Store.Options.Durability, cuts count: Int,
        _ lie: SimulatedDisk.Lie, _ random: inout Seeded, stopsAtFirst: Bool = false
    ) throws -> [String] {
        let calls = recording.trace.calls
        try #require(!calls.isEmpty)
        let cuts = Set((0..<count).map { _ in Int.random(in: 0..<calls.count, using: &random) })
        var disk = SimulatedDisk(recording.folder.realURL, lie)
        var progress = RowsProgress(seed: recording.seed)
        var problems: [String] = []
        for (index, call) in calls.enumerated() {
            if cuts.contains(index) {
                let left = try TemporaryFolder()
                try disk.lose(into: left.url, &random)
                let found: [String]
                do {
                    found = try self.problems(left, progress, durability)
                } catch {
                    found = ["\(error)"]
                }
                problems += found.map { "before call \(index), after change \(progress.acknowledged): \($0)" }
                if stopsAtFirst, !problems.isEmpty { return problems }
            }
            progress.note(call)
            disk.follow(call)
        }
        #expect(disk.strange == [], "seed \(random.seed)")
        #expect(progress.acknowledged == RowsRecording.changes, "seed \(random.seed)")
        return problems
    }

    /// Returns what is wrong with the store that the power has left.
    private func problems(
        _ left: TemporaryFolder, _ progress: RowsProgress, _ durability: Store.Options.Durability
    ) throws -> [String] {
        let store = try open(left, durability)
        let rows = try store.open(.rows, inlineLimit: RowsRecording.inlineLimit)
        // No file was replaced.
        var problems = try FileManager.default.subpathsOfDirectory(atPath: left.url.path).filter {
            $0.contains(".damaged") || $0.contains(".salvaged")
        }
        let report = try store.verify(repairing: true)
        var found = try entries(of: rows)
        let isWhole =
            switch durability {
            case .powerLoss: progress.has(found, from: progress.acknowledged, butFor: 0)
            case .processCrash: progress.has(found, from: progress.copied, butFor: report.damagedCount)
            }
        if !isWhole { problems.append(progress.difference(found)) }
        // A large value that was not synced can be missing, and nothing else.
        problems += report.problems.filter { durability == .powerLoss || !$0.contains("its file") }
        for (key, text) in [(Int64(1), String(repeating: "z", count: 5000)), (2, "small")] {
            let entry = EntryWrite(key: .integer(key), payload: Data(text.utf8), writtenAt: 0)
            try rows.run(.put([entry]))
            found[key] = text
        }
        if try entries(of: rows) != found { problems.append("A put was not read back.") }
        try store.maintain()
        problems += try store.verify().problems
        if try rows.totals().count != Int64(found.count) { problems.append("The count is wrong.") }
        let named = Set(try rows.headers().rows.compactMap(\.file))
        if try files(left) != named { problems.append("The files are not those that rows name.") }
        try store.close()
        let again = try open(left, durability)
        if try entries(of: again.open(.rows)) != found { problems.append("The next opening finds other entries.") }
        try again.close()
        return problems
    }

    /// Opens what is left, with a clock by which each file is two hours old and without timers.
    private func open(_ left: TemporaryFolder, _ durability: Store.Options.Durability) throws -> Store {
        var options = Store.Options()
        options.durability = durability
        let now = Int64(Date().timeIntervalSince1970 * 1000) + 7_200_000
        let cancel: @Sendable () -> Void = {}
        options.time = StoreTime(now: { now }, wake: { _, _ in cancel })
        return try Store.open(left(RowsRecording.store).path, options)
    }

    private func entries(of rows: CacheRows) throws -> [Int64: String] {
        var found: [Int64: String] = [:]
        for row in try rows.rows().rows {
            guard case .integer(let key) = row.header.key else { continue }
            found[key] = String(decoding: row.payload, as: UTF8.self)
        }
        return found
    }

    /// Returns the names in the folder of the value files.
    private func files(_ left: TemporaryFolder) throws -> Set<String> {
        let path = left(RowsRecording.files).path
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        return Set(try FileManager.default.contentsOfDirectory(atPath: path))
    }
}

/// What a program did whose calls were traced.
private struct RowsRecording {
    /// In folders that the store creates.
    static let store = "made/by it/store.sqlite"
    static let files = "made/by it/store.files"
    static let changes = 70
    /// The number of changes after which the program does all upkeep, which copies the log.
    static let interval = 20
    /// The bytes above which a value is a file: most have up to 3,000.
    static let inlineLimit = 1000

    let folder: TemporaryFolder
    let seed: UInt64
    let trace: FileTrace

    init(_ durability: Store.Options.Durability, seed: UInt64) throws {
        self.seed = seed
        folder = try TemporaryFolder()
        let traces = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-rows",
            [
                "power", "\(durability)", "\(seed)", "\(Self.changes)", "\(Self.interval)", "\(Self.inlineLimit)",
                folder.real(Self.store).path,
            ],
            through: ["/usr/bin/strace", "-o", traces("trace").path] + FileTrace.arguments)
        let said = try child.finish().lines
        #expect(said == (1...Self.changes).map(String.init))
        trace = try FileTrace(traces("trace"))
    }
}

/// How far the program had come, and the entries that its store may have.
private struct RowsProgress {
    private var model: RowsModel
    /// The entries before all changes and after each one, up to the change after the last acknowledged one.
    private var states: [[Int64: String]] = [[:]]
    private(set) var acknowledged = 0
    /// The last change of which is known that it was copied from the log into the database.
    private(set) var copied = 0

    init(seed: UInt64) {
        model = RowsModel(seed: seed)
        advance()
    }

    private mutating func advance() {
        _ = model.next()
        states.append(model.entries)
    }

    mutating func note(_ call: FileTrace.Call) {
        for line in (call.said ?? "").split(separator: "\n") {
            guard let number = Int(line) else { continue }
            acknowledged = number
            if number % RowsRecording.interval == 0 { copied = number }
            advance()
        }
    }

    /// Returns whether these are the entries after a change, from a number on, without so many of the large ones.
    func has(_ found: [Int64: String], from change: Int, butFor misses: Int) -> Bool {
        states[change...].contains { state in
            let missing = state.filter { found[$0.key] == nil }
            return missing.count == misses && missing.values.allSatisfy { $0.utf8.count > RowsRecording.inlineLimit }
                && found.allSatisfy { state[$0.key] == $0.value }
        }
    }

    /// Describes how entries differ from those after the last copied change and after the last acknowledged one.
    func difference(_ found: [Int64: String]) -> String {
        let differences = [copied, acknowledged].map { change in
            let state = states[change]
            let keys = Set(state.keys).union(found.keys).filter { state[$0] != found[$0] }
            return "those after change \(change) in the keys \(keys.sorted())"
        }
        return "The entries differ from " + differences.joined(separator: ", from ") + "."
    }
}
