import Foundation
import Larder
import LarderTestSupport
import Testing

/// Stores whose power was cut.
///
/// A process works under a tracer. Its calls are played to a disk that forgets what was not synced, and at moments drawn by
/// lot what such a disk would have is opened.
@Suite(
    .enabled(
        if: Strace.isAvailable, "a long test, or strace is missing"))
struct PowerLossTests {
    private static let steps = 70

    // case 296
    @Test(arguments: [CacheManager.Durability.processCrash, .powerLoss])
    func `whenever the power goes, the store opens with all that its durability promises, and nothing half done`(
        durability: CacheManager.Durability
    ) throws {
        var random = Seeded()
        print("power loss, \(durability): SEED=\(random.seed)")
        let recording = try Recording(durability, steps: Self.steps, seed: random.next())
        let found = try problems(of: recording, cuts: 60, .none, &random)
        #expect(found == [], "seed \(random.seed): \(found.prefix(5))")
    }

    /// Without this the test above could be one that finds nothing whatever happens.
    @Test(arguments: [CacheManager.Durability.processCrash, .powerLoss])
    func `a disk that forgets what it was told to keep is found out`(durability: CacheManager.Durability) throws {
        var random = Seeded()
        var recording = try Recording(durability, steps: Self.steps, seed: random.next())
        // Only `.powerLoss` syncs large values.
        for lie in [SimulatedDisk.Lie.files, .largeValues, .folders]
        where lie != .largeValues || durability == .powerLoss {
            var found: [String] = []
            for attempt in 0..<3 where found.isEmpty {
                // Once in a hundred times or so what is drawn holds nothing that the lie could take: no large value that
                // stood when the log was copied, and was still there at a cut.
                if attempt > 0 { recording = try Recording(durability, steps: Self.steps, seed: random.next()) }
                found = try problems(of: recording, cuts: 150, lie, &random, stopsAtFirst: true)
            }
            #expect(found != [], "\(lie), seed \(random.seed)")
        }
    }

    private func problems(
        of recording: Recording, cuts count: Int, _ lie: SimulatedDisk.Lie, _ random: inout Seeded,
        stopsAtFirst: Bool = false
    ) throws -> [String] {
        let cuts = Set((0..<count).map { _ in Int.random(in: 0..<recording.trace.calls.count, using: &random) })
        var disk = SimulatedDisk(recording.folder.url, lie)
        var progress = PowerLossProgress(work: MixedWork(seed: recording.seed))
        var problems: [String] = []
        for (index, call) in recording.trace.calls.enumerated() {
            if cuts.contains(index) {
                let left = try TemporaryFolder()
                try disk.lose(into: left.url, &random)
                let found: [String]
                do {
                    found = try self.problems(left, progress, recording.durability)
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
        #expect(progress.acknowledged == Self.steps, "seed \(random.seed)")
        return problems
    }

    /// What is wrong with what the power has left.
    private func problems(
        _ left: TemporaryFolder, _ progress: PowerLossProgress, _ durability: CacheManager.Durability
    ) throws -> [String] {
        var problems: [String] = []
        let manager = try CacheManager(url: left(Recording.store))
        problems += try left.contents().keys.filter { $0.contains("corrupt") }
        // What a read finds damaged counts as absent from then on.
        let report = try manager.verify(repairing: true)
        let found = try MixedCaches.state(of: manager)
        switch durability {
        case .powerLoss:
            problems += report.problems
            if !progress.states(from: progress.acknowledged).contains(where: { $0.isSame(as: found) }) {
                problems.append(progress.difference(found))
            }
        default:
            problems += report.problems.filter { !$0.contains("names the file") }
            let isKnown = progress.states(from: progress.copied).contains { state in
                found.isSame(as: state) || progress.isSame(found, as: state, butFor: report.problems.count)
            }
            if !isKnown { problems.append("copied at \(progress.copied): \(progress.difference(found))") }
        }
        // And it is of use.
        let step = MixedWork.Step.set(1, String(repeating: "z", count: 5000))
        var caches = try MixedCaches(manager, version: found.version)
        try caches.perform(step)
        if try !MixedCaches.state(of: manager).isSame(as: found.after(step)) { problems.append("a set does nothing") }
        try manager.maintain()
        problems += try manager.verify().problems
        problems += try manager.fileProblems(isSwept: true)
        try manager.close()
        return problems
    }
}

/// What a process did that was traced.
private struct Recording {
    static let tracer = "/usr/bin/strace"

    /// In folders that the library makes.
    static let store = "made/by it/store.sqlite"

    let folder: TemporaryFolder
    let durability: CacheManager.Durability
    let seed: UInt64
    let trace: FileTrace

    init(_ durability: CacheManager.Durability, steps: Int, seed: UInt64) throws {
        (self.durability, self.seed) = (durability, seed)
        folder = try TemporaryFolder()
        let traces = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["record", folder(Self.store).path, "\(seed)", "\(durability)", "\(steps)"],
            through: [Self.tracer, "-o", traces("trace").path] + FileTrace.arguments)
        let said = try child.finish().lines
        #expect(said == (1...steps).map(String.init))
        trace = try FileTrace(traces("trace"))
    }
}
