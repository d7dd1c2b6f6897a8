import Foundation
import Larder
import LarderTestSupport
import Testing

/// Processes that are killed while they write to sub-caches.
struct KilledWritingTests {
    /// How often a run kills.
    private static let kills = 110

    // case 70, 124, 138, 233, 296
    @Test func `whatever moment a process dies at, all that it acknowledged is there and nothing is half done`() throws
    {
        var random = Seeded()
        let seed = random.seed
        print("killed writing: SEED=\(seed)")
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        var state = MixedWork.State()
        var total = 0
        for round in 0..<Self.kills {
            let workSeed = random.next()
            // Each opening of the store chooses anew, and what the other kind has left is as good.
            let durability: CacheManager.Durability = round % 4 == 1 ? .powerLoss : .processCrash
            let child = try ChildProcess(
                "larder-test-cache", ["work", url.path, "\(workSeed)", "\(state.version)", "\(durability)"])
            var acknowledged = 0
            func take(_ line: String) {
                #expect(Int(line) != nil, "seed \(seed), round \(round): \(line)")
                acknowledged = Int(line) ?? acknowledged
            }
            for _ in 0..<Int.random(in: 0...25, using: &random) {
                if let line = child.line() { take(line) }
            }
            // Somewhere in what follows.
            for _ in 0..<Int.random(in: 0..<400, using: &random) { sched_yield() }
            child.kill()
            while let line = child.line() { take(line) }
            total += acknowledged
            var work = MixedWork(seed: workSeed)
            for _ in 0..<acknowledged { state = state.after(work.next()) }
            let next = state.after(work.next())
            let manager = try CacheManager(url: url)
            let found = try MixedCaches.state(of: manager)
            if found.isSame(as: next) {
                state = next
            } else if !found.isSame(as: state) {
                var again = MixedWork(seed: workSeed)
                let steps = (0...acknowledged).map { _ in "\(again.next())".prefix(40) }
                let lost = Set(state.values.keys).symmetricDifference(found.values.keys).sorted()
                let other = state.values.filter { found.values[$0.key] != $0.value }.keys.sorted()
                Issue.record(
                    """
                    seed \(seed), round \(round), after step \(acknowledged) of \(workSeed): \(steps), keys there or not \
                    \(lost), values unlike \(other), versions \(state.version) \(found.version), others \
                    \(state.others == found.others)
                    """)
                return
            }
            // Every page, every row, and every file that a row names.
            let report = try manager.verify()
            #expect(report.isHealthy, "seed \(seed), round \(round): \(report.problems)")
            // In between, what several dead processes have left comes together.
            if round % 4 == 3 {
                try manager.maintain()
                #expect(try manager.fileProblems(isSwept: true) == [], "seed \(seed), round \(round)")
            }
            try manager.close()
        }
        #expect(try !folder.names.contains { $0.contains("corrupt") }, "seed \(seed)")
        // They were killed at work, and not before they began.
        #expect(total > Self.kills, "seed \(seed)")
    }

    @Test func `threads that share transactions lose nothing either`() throws {
        var random = Seeded()
        let seed = random.seed
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        let rounds = 20
        var last: [Int: Int] = [:]
        var total = 0
        for round in 0..<rounds {
            let child = try ChildProcess("larder-test-cache", ["count", url.path])
            func take(_ line: String) {
                let words = line.split(separator: " ").compactMap { Int($0) }
                #expect(words.count == 2, "seed \(seed), round \(round): \(line)")
                if words.count == 2 {
                    last[words[0]] = words[1]
                    total += 1
                }
            }
            for _ in 0..<Int.random(in: 1...200, using: &random) {
                if let line = child.line() { take(line) }
            }
            child.kill()
            while let line = child.line() { take(line) }
            let manager = try CacheManager(url: url)
            let cache: Cache<Int, Int> = try manager.cache(named: "counts", version: "1", maxAge: .unlimited)
            for thread in 0..<6 {
                let (found, said) = (try cache.value(forKey: thread) ?? 0, last[thread] ?? 0)
                #expect(found == said || found == said + 1, "seed \(seed), round \(round)")
                last[thread] = found
            }
            try manager.close()
        }
        // Each round waits for one at least.
        #expect(total >= rounds, "seed \(seed)")
    }
}
