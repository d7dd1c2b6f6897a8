import Foundation
import Larder

/// Reads with the memory tier off, beside a prepared autocommit SELECT of the same row with values that need no decoding.
///
/// Each sample asks for keys of its own.
var diskReadScenarios: [Scenario] {
    let count = 100_000
    let store = Lazily { BlobStore(entries: count, keys: scattered) }
    let raw = Lazily { rawBlobs(entries: count, keys: scattered) }
    let select = (name: "select", value: raw, get: { (raw: RawSQLite, key: Int) in raw.get(key) })
    let all = (0..<count).map(scattered)
    let absent = (count..<2 * count).map(scattered)
    return [
        reads("disk-hit", target: nil, store, select, among: all),
        reads("disk-hit-hot", target: nil, store, select, among: Array(all[5_000..<7_000])),
        reads("disk-miss", target: nil, store, select, among: absent),
        tracedReads(all),
        readsAfterCommits(all),
    ]
}

/// Reads of a store beside those of a yardstick, of keys that each sample draws anew.
func reads<Yardstick>(
    _ name: String, target: Double?, _ store: Lazily<BlobStore>,
    _ yardstick: (name: String, value: Lazily<Yardstick>, get: (Yardstick, Int) -> Data?), among keys: [Int]
) -> Scenario {
    let draws = Draws(of: keys.count)
    let operations = 10_000
    return Scenario(
        name, target: target,
        [
            Variant("larder", operations: operations, eachTime: { (store.value, draws(operations, of: keys)) }) {
                store, asked in
                var sum = 0
                for key in asked { sum &+= store.cache[key]?.count ?? 1 }
                consume(sum)
            },
            Variant(
                yardstick.name, operations: operations,
                eachTime: { (yardstick.value.value, draws(operations, of: keys)) }
            ) { subject, asked in
                var sum = 0
                for key in asked { sum &+= yardstick.get(subject, key)?.count ?? 1 }
                consume(sum)
            },
        ])
}

/// A program is told of reads that take long, of which there are none.
private func tracedReads(_ keys: [Int]) -> Scenario {
    func store(_ configuration: CacheManager.Configuration) -> Lazily<BlobStore> {
        Lazily { BlobStore(entries: keys.count, configuration: configuration, keys: scattered) }
    }
    let (draws, operations) = (Draws(of: keys.count), 10_000)
    func variant(_ name: String, _ store: Lazily<BlobStore>) -> Variant {
        Variant(name, operations: operations, eachTime: { (store.value, draws(operations, of: keys)) }) {
            store, asked in
            for key in asked { consume(store.cache[key]?.count ?? 1) }
        }
    }
    let traced = CacheManager.Configuration(trace: { print($0) }, traceThreshold: .seconds(10))
    return Scenario("disk-hit-traced", [variant("with a trace", store(traced)), variant("without", store(.init()))])
}

/// Another process commits before each read; the time is that of the reads alone.
private func readsAfterCommits(_ keys: [Int]) -> Scenario {
    let subject = Lazily { () -> (BlobStore, Committer) in
        let store = BlobStore(entries: keys.count, keys: scattered)
        return (store, Committer(store.manager.url?.path ?? ""))
    }
    let yardstick = Lazily { () -> (RawSQLite, Committer) in
        let raw = rawBlobs(entries: keys.count, keys: scattered)
        return (raw, Committer(raw.path))
    }
    let draws = Draws(of: keys.count)
    return Scenario(
        "disk-hit-after-foreign-commit", target: 1.3,
        [
            Variant("larder") {
                let (store, committer) = subject.value
                return committer.nanosecondsAfterCommits(draws(1_000, of: keys)) { consume(store.cache[$0]) }
            },
            Variant("select") {
                let (raw, committer) = yardstick.value
                return committer.nanosecondsAfterCommits(draws(1_000, of: keys)) { consume(raw.get($0)) }
            },
        ])
}
