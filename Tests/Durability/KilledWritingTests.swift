import Foundation
import Larder
import LarderTestSupport
import Testing

/// Processes that are killed while they write to caches.
struct KilledWritingTests {
    private static let kills = LongTests.areEnabled ? 110 : 30

    /// The changes follow from a seed, so the parent knows which ones were acknowledged before the kill.
    ///
    /// Both caches have values in rows and in files, with extended data and pins. The first one is also opened under
    /// other versions.
    @Test func `whatever moment a process dies at, all that it acknowledged is there, and no change is half done`()
        throws
    {
        var random = Seeded()
        print("killed writing: SEED=\(random.seed)")
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        var state = MixedWork.State()
        var total = 0
        for round in 0..<Self.kills {
            let place = "seed \(random.seed), round \(round)"
            let seed = random.next()
            // Each opening of the store chooses again.
            let durability: CacheManager.Durability = round % 4 == 1 ? .powerLoss : .processCrash
            let child = try ChildProcess(
                "larder-test-cache", ["work", url.path, "\(seed)", "\(state.version)", "\(durability)"])
            let lines = child.lines(killedAfter: .random(in: 0...25, using: &random), &random)
            let acknowledged = lines.compactMap { Int($0) }.last ?? 0
            #expect(lines == (0..<acknowledged).map { "\($0 + 1)" }, "\(place)")
            total += acknowledged
            var work = MixedWork(seed: seed)
            for _ in 0..<acknowledged { state = state.after(work.next()) }
            let step = work.next()
            let manager = try CacheManager(url: url, configuration: .later)
            let found = try MixedCaches.state(of: manager)
            // The step after the last acknowledged one may be done too.
            if found.isSame(as: state.after(step)) { state = state.after(step) }
            let isSame = found.isSame(as: state)
            try #require(
                isSame, "\(place), after step \(acknowledged): \(difference(found, state)), \("\(step)".prefix(60))")
            // Each page, each row, and each file that a row names.
            #expect(try manager.verify().problems == [], "\(place)")
            // The leftovers of several processes are deleted together.
            if round % 4 == 3 { #expect(try StoreProbe(manager).fileProblems(isSwept: true) == [], "\(place)") }
            try manager.close()
        }
        #expect(try folder.salvagedNames == [], "seed \(random.seed)")
        // The processes were killed while they worked, and not before.
        #expect(total > Self.kills, "seed \(random.seed)")
    }

    private func difference(_ found: MixedWork.State, _ state: MixedWork.State) -> String {
        let keys = [(found.values, state.values), (found.others, state.others)].map { found, expected in
            Set(found.keys).union(expected.keys).filter { found[$0] != expected[$0] }.sorted()
        }
        return "version \(found.version) in place of \(state.version), keys \(keys)"
    }

    @Test func `of threads that share transactions each has its acknowledged writes`() throws {
        var random = Seeded()
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        var last: [Int: Int] = [:]
        for round in 0..<20 {
            let child = try ChildProcess("larder-test-cache", ["count", url.path])
            let lines = child.lines(killedAfter: .random(in: 1...200, using: &random), &random)
            #expect(!lines.isEmpty)
            for line in lines {
                let words = line.split(separator: " ").compactMap { Int($0) }
                try #require(words.count == 2, "seed \(random.seed), round \(round): \(line)")
                last[words[0]] = words[1]
            }
            let manager = try CacheManager(url: url)
            let cache: Cache<Int, Int> = try manager.cache(named: "counts", version: "1", maxAge: .unlimited)
            for thread in 0..<6 {
                let (found, acknowledged) = (try cache.value(forKey: thread) ?? 0, last[thread] ?? 0)
                #expect(found == acknowledged || found == acknowledged + 1, "seed \(random.seed), round \(round)")
                last[thread] = found
            }
            try manager.close()
        }
    }
}

extension ChildProcess {
    /// Kills the program at some moment after a number of lines, and returns all lines that it has printed.
    ///
    /// - Parameter looks: How often other threads are let run before, at most.
    func lines(killedAfter count: Int, within looks: Int = 400, _ random: inout Seeded) -> [String] {
        var lines: [String] = []
        for _ in 0..<count { if let line = self.line() { lines.append(line) } }
        for _ in 0..<Int.random(in: 0..<looks, using: &random) { sched_yield() }
        kill()
        while let line = self.line() { lines.append(line) }
        return lines
    }
}
