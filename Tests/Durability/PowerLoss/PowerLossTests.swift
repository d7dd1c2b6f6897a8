import Foundation
import Larder
import LarderTestSupport
import Testing

/// Stores of caches whose power was cut.
///
/// A program changes caches under a tracer. Its calls are played to a disk that forgets what was not synced. At random
/// moments a store is opened with what such a disk would have.
@Suite(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
struct PowerLossTests {
    @Test(arguments: [CacheManager.Durability.processCrash, .powerLoss])
    func `whenever the power goes, the caches have all that their durability promises, and no change by half`(
        durability: CacheManager.Durability
    ) throws {
        var random = Seeded()
        print("power loss, \(durability): SEED=\(random.seed)")
        let recording = try Recording(durability, seed: random.next())
        let found = try problems(of: recording, promising: durability, cuts: 60, &random)
        #expect(found == [], "seed \(random.seed): \(found.prefix(5))")
    }

    // MARK: The test is tested

    @Test func `a store of caches that does not sync its commits is found out`() throws {
        var random = Seeded()
        let recording = try Recording(.processCrash, seed: random.next())
        let found = try problems(of: recording, promising: .powerLoss, cuts: 300, &random, stopsAtFirst: true)
        #expect(found != [], "seed \(random.seed)")
    }

    // MARK: Cuts

    private func problems(
        of recording: Recording, promising durability: CacheManager.Durability, cuts count: Int,
        _ random: inout Seeded, stopsAtFirst: Bool = false
    ) throws -> [String] {
        let calls = recording.trace.calls
        try #require(!calls.isEmpty)
        let cuts = Set((0..<count).map { _ in Int.random(in: 0..<calls.count, using: &random) })
        var disk = SimulatedDisk(recording.folder.realURL, .none)
        var progress = PowerLossProgress(work: MixedWork(seed: recording.seed))
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
                problems += found.map { "before call \(index), after step \(progress.acknowledged): \($0)" }
                if stopsAtFirst, !problems.isEmpty { return problems }
            }
            progress.note(call)
            disk.follow(call)
        }
        #expect(disk.strange == [], "seed \(random.seed)")
        #expect(progress.acknowledged == Recording.steps, "seed \(random.seed)")
        return problems
    }

    /// Returns what is wrong with the store that the power has left.
    private func problems(
        _ left: TemporaryFolder, _ progress: PowerLossProgress, _ durability: CacheManager.Durability
    ) throws -> [String] {
        let manager = try CacheManager(url: left(Recording.store), configuration: .later)
        // No file was replaced.
        var problems = try FileManager.default.subpathsOfDirectory(atPath: left.url.path).filter {
            $0.contains(".damaged") || $0.contains(".salvaged")
        }
        let report = try manager.verify(repairing: true)
        // A large value that was not synced can be missing, and nothing else.
        problems += report.problems.filter { durability == .powerLoss || !$0.contains("its file") }
        let found = try MixedCaches.state(of: manager)
        let isKnown =
            switch durability {
            case .powerLoss: progress.states(from: progress.acknowledged).contains { found.isSame(as: $0) }
            case .processCrash:
                progress.states(from: progress.copied).contains {
                    progress.isSame(found, as: $0, butFor: report.repaired)
                }
            }
        if !isKnown { problems.append(progress.difference(found)) }
        // The caches can be written.
        let step = MixedWork.Step.set(1, String(repeating: "z", count: 5000))
        var caches = try MixedCaches(manager, version: found.version)
        try caches.perform(step)
        if try !MixedCaches.state(of: manager).isSame(as: found.after(step)) { problems.append("A set does nothing.") }
        problems += try StoreProbe(manager).fileProblems(isSwept: true)
        problems += try manager.verify().problems
        try manager.close()
        return problems
    }
}

/// What a program did whose calls were traced.
private struct Recording {
    /// In folders that the library creates.
    static let store = "made/by it/store.sqlite"
    static let steps = 70

    let folder: TemporaryFolder
    let seed: UInt64
    let trace: FileTrace

    init(_ durability: CacheManager.Durability, seed: UInt64) throws {
        self.seed = seed
        folder = try TemporaryFolder()
        let traces = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache",
            ["record", folder.real(Self.store).path, "\(seed)", "\(durability)", "\(Self.steps)"],
            through: ["/usr/bin/strace", "-o", traces("trace").path] + FileTrace.arguments)
        let said = try child.finish().lines
        #expect(said == (1...Self.steps).map(String.init))
        trace = try FileTrace(traces("trace"))
    }
}
