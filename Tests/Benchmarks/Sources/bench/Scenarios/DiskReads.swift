import Foundation
import Larder

/// Reads with the memory front off, beside a prepared autocommit SELECT of the same row with values that need no decoding.
var diskReadScenarios: [Scenario] {
    let count = 100_000
    func order(_ keys: Range<Int>) -> [Int] {
        var generator = SeededGenerator(seed: 7)
        return (0..<10_000).map { _ in Int.random(in: keys, using: &generator) }
    }
    return [
        reads("disk-hit", target: 0.6, count, order(0..<count)),
        reads("disk-hit-hot", target: 0.4, count, order(5_000..<7_000)),
        reads("disk-miss", target: 0.4, count, order(count..<2 * count)),
        readsAfterCommits(count, Array(order(0..<count).prefix(1_000))),
    ]
}

private func reads(_ name: String, target: Double, _ count: Int, _ keys: [Int]) -> Scenario {
    Scenario(
        name, target: target,
        [
            Variant("larder", operations: keys.count, once: { BlobStore(entries: count) }) { store in
                var sum = 0
                for key in keys { sum &+= store.cache[key]?.count ?? 1 }
                consume(sum)
            },
            Variant("select", operations: keys.count, once: { rawBlobs(entries: count) }) { raw in
                var sum = 0
                for key in keys { sum &+= raw.get(key)?.count ?? 1 }
                consume(sum)
            },
        ])
}

/// Another process commits before each read; the time is that of the reads alone.
private func readsAfterCommits(_ count: Int, _ keys: [Int]) -> Scenario {
    let subject = Lazily { () -> (BlobStore, Committer) in
        let store = BlobStore(entries: count)
        return (store, Committer(store.manager.url?.path ?? ""))
    }
    let yardstick = Lazily { () -> (RawSQLite, Committer) in
        let raw = rawBlobs(entries: count)
        return (raw, Committer(raw.path))
    }
    return Scenario(
        "disk-hit-after-foreign-commit", target: 1.5,
        [
            Variant("larder") {
                let (store, committer) = subject.value
                return committer.nanosecondsAfterCommits(keys) { consume(store.cache[$0]) }
            },
            Variant("select") {
                let (raw, committer) = yardstick.value
                return committer.nanosecondsAfterCommits(keys) { consume(raw.get($0)) }
            },
        ])
}
