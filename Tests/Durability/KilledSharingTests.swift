import Foundation
import Larder
import LarderTestSupport
import Testing

/// Two processes that are killed while they write to one store.
struct KilledSharingTests {
    private static let rounds = 16

    // case 70, 124, 233, 273
    @Test(.enabled(if: LongTests.areEnabled, "a long test"))
    func `whatever moment two processes die at, each has what it acknowledged and the store is whole`() throws {
        var random = Seeded()
        let seed = random.seed
        print("killed sharing: SEED=\(seed)")
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        var states = [MixedWork.State(), MixedWork.State()]
        var count = 0
        var total = 0
        for round in 0..<Self.rounds {
            let place: Comment = "seed \(seed), round \(round)"
            var counted = 0...0
            func settle(_ worker: Worker, _ manager: CacheManager) throws {
                #expect(worker.failures == [], place)
                total += worker.acknowledged
                counted = counted.lowerBound + worker.counted...counted.upperBound + worker.mayHaveCounted
                let found = try MixedCaches.state(of: manager, place: worker.place)
                let isKnown = worker.advance(&states[worker.place], to: found)
                try #require(isKnown, "\(place), process \(worker.place), after its step \(worker.acknowledged)")
            }
            func start(_ place: Int) throws -> Worker { try Worker(url, place, seed: random.next()) }

            var (first, second) = (try start(round % 2), try start(1 - round % 2))
            first.work(lines: Int.random(in: 1...12, using: &random))
            second.work(lines: Int.random(in: 1...3, using: &random))
            first.kill(after: Int.random(in: 0..<400, using: &random))
            // The other one works on: what the dead one has left does not hold it up.
            do {
                let manager = try CacheManager(url: url, configuration: .patient)
                try settle(first, manager)
                second.work(lines: 2)
                try manager.close()
            }
            // And beside one that has just come.
            first = try start(first.place)
            first.work(lines: Int.random(in: 0...4, using: &random))
            second.kill(after: Int.random(in: 0..<400, using: &random))
            first.kill(after: Int.random(in: 0..<40, using: &random))

            let manager = try CacheManager(url: url, configuration: .patient)
            for worker in [first, second] { try settle(worker, manager) }
            let caches = try ContendedCaches(manager, version: nil)
            #expect(try (count + counted.lowerBound...count + counted.upperBound).contains(caches.count), place)
            count = try caches.count
            #expect(try caches.strangeTexts() == [], place)
            let report = try manager.verify()
            #expect(report.isHealthy, "\(place): \(report.problems)")
            try manager.maintain()
            #expect(try manager.fileProblems(isSwept: true) == [], place)
            #expect(
                try manager.cacheInfo().first { $0.name == "contended texts" }?.count ?? 0 <= ContendedCaches.countLimit
            )
            // Their limit is what maintenance has looked after.
            withExtendedLifetime(caches) {}
            try manager.close()
        }
        #expect(try !folder.names.contains { $0.contains("corrupt") }, "seed \(seed)")
        // Each of the three of a round was killed at work, or its work was checked for nothing.
        #expect(total > 5 * Self.rounds, "seed \(seed)")
    }
}

/// One of several processes at work, and what it has acknowledged.
private struct Worker {
    let place: Int
    let seed: UInt64
    private let child: ChildProcess
    private(set) var acknowledged = 0
    /// What it said besides.
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
        for _ in 0..<lines {
            if let line = child.line() { take(line) }
        }
    }

    /// Kills it, somewhere in what follows.
    mutating func kill(after turns: Int) {
        for _ in 0..<turns { sched_yield() }
        child.kill()
        while let line = child.line() { take(line) }
    }

    /// How often it has counted in what it has acknowledged, and how often it may have.
    var counted: Int { steps(acknowledged) }
    var mayHaveCounted: Int { steps(acknowledged + 1) }

    private func steps(_ count: Int) -> Int {
        var work = ContendedWork(seed: seed &+ 1)
        return (0..<count).count { _ in if case .count = work.next() { true } else { false } }
    }

    /// Moves a state on by what it has acknowledged, and by one step more if that is what was found.
    ///
    /// - Returns: Whether what was found is one of the two.
    func advance(_ state: inout MixedWork.State, to found: MixedWork.State) -> Bool {
        var work = MixedWork(seed: seed, place: place)
        for _ in 0..<acknowledged { state = state.after(work.next()) }
        let next = state.after(work.next())
        if next.isSame(as: found) { state = next }
        return state.isSame(as: found)
    }
}
