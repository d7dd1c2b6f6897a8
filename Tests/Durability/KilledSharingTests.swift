import Foundation
import Larder
import LarderTestSupport
import Testing

/// Two processes that are killed while they write to one store.
///
/// Each changes keys of its own, by which its acknowledged steps are known, and keys that both change.
struct KilledSharingTests {
    private static let rounds = LongTests.areEnabled ? 16 : 2

    @Test func `whatever moment two processes die at, each has what it acknowledged, and the store is whole`() throws {
        var random = Seeded()
        print("killed sharing: SEED=\(random.seed)")
        let folder = try TemporaryFolder()
        var run = Run(url: folder("store.sqlite"))
        for round in 0..<Self.rounds {
            run.place = "seed \(random.seed), round \(round)"
            var (first, second) = (try run.start(round % 2, &random), try run.start(1 - round % 2, &random))
            first.work(lines: .random(in: 1...12, using: &random))
            second.work(lines: .random(in: 1...3, using: &random))
            first.kill(after: .random(in: 0..<400, using: &random))
            // The leftovers of the killed process do not hold up the other one.
            let during = try CacheManager(url: run.url, configuration: .patient)
            try run.settle(first, during)
            second.work(lines: 2)
            try during.close()
            first = try run.start(first.place, &random)
            first.work(lines: .random(in: 0...4, using: &random))
            second.kill(after: .random(in: 0..<400, using: &random))
            first.kill(after: .random(in: 0..<40, using: &random))

            let manager = try CacheManager(url: run.url, configuration: .later)
            for worker in [first, second] { try run.settle(worker, manager) }
            try run.check(manager)
            try manager.close()
        }
        #expect(try folder.salvagedNames == [], "seed \(random.seed)")
        // A round waits for four steps at least.
        #expect(run.acknowledged > 3 * Self.rounds, "seed \(random.seed)")
    }
}

/// What the store of several processes may have.
private struct Run {
    let url: URL
    var place = ""
    private(set) var acknowledged = 0
    private var states = [MixedWork.State(), MixedWork.State()]
    /// What all processes have counted up to in one entry.
    private var count = 0
    /// The least and the most that they have counted since.
    private var counted = 0...0

    init(url: URL) { self.url = url }

    func start(_ place: Int, _ random: inout Seeded) throws -> Worker { try Worker(url, place, seed: random.next()) }

    /// Compares the own keys of a killed process with its acknowledged steps, and one step more.
    mutating func settle(_ worker: Worker, _ manager: CacheManager) throws {
        #expect(worker.failures == [], "\(place)")
        acknowledged += worker.acknowledged
        counted =
            counted.lowerBound + worker.counts(worker.acknowledged)...counted.upperBound
            + worker.counts(worker.acknowledged + 1)
        let found = try MixedCaches.state(of: manager, place: worker.place)
        let isKnown = worker.advance(&states[worker.place], to: found)
        try #require(isKnown, "\(place), process \(worker.place), after its step \(worker.acknowledged)")
    }

    /// Checks the keys that all processes change, and the whole store.
    mutating func check(_ manager: CacheManager) throws {
        let caches = try ContendedCaches(manager, version: nil)
        let found = try caches.count
        #expect((count + counted.lowerBound...count + counted.upperBound).contains(found), "\(place)")
        (count, counted) = (found, 0...0)
        #expect(try caches.strangeTexts() == [], "\(place)")
        #expect(try manager.verify().problems == [], "\(place)")
        #expect(try StoreProbe(manager).fileProblems(isSwept: true) == [], "\(place)")
        let limited = try #require(try manager.cacheInfo().first { $0.name == "contended texts" })
        #expect(limited.count <= ContendedCaches.countLimit, "\(place)")
    }
}

/// One of several processes, and what it has acknowledged.
private struct Worker {
    let place: Int
    private let seed: UInt64
    private let child: ChildProcess
    private(set) var acknowledged = 0
    /// All else that it has printed.
    private(set) var failures: [String] = []

    init(_ url: URL, _ place: Int, seed: UInt64) throws {
        (self.place, self.seed) = (place, seed)
        child = try ChildProcess("larder-test-cache", ["share", url.path, "\(seed)", "\(place)"])
    }

    private mutating func take(_ line: String) {
        guard let number = Int(line) else { return failures.append(line) }
        acknowledged = number
    }

    /// Lets it work until it has acknowledged so many steps more.
    mutating func work(lines: Int) {
        for _ in 0..<lines { if let line = child.line() { take(line) } }
    }

    /// Kills it at some moment in the steps that follow.
    mutating func kill(after turns: Int) {
        for _ in 0..<turns { sched_yield() }
        child.kill()
        while let line = child.line() { take(line) }
    }

    /// Returns how often it has counted in so many steps.
    func counts(_ steps: Int) -> Int {
        var work = ContendedWork(seed: seed &+ 1)
        return (0..<steps).count { _ in if case .count = work.next() { true } else { false } }
    }

    /// Advances a state by the acknowledged steps, and by one step more if that was found.
    ///
    /// - Returns: A Boolean value that indicates whether one of the two states was found.
    func advance(_ state: inout MixedWork.State, to found: MixedWork.State) -> Bool {
        var work = MixedWork(seed: seed, place: place)
        for _ in 0..<acknowledged { state = state.after(work.next()) }
        let next = state.after(work.next())
        if next.isSame(as: found) { state = next }
        return state.isSame(as: found)
    }
}
