import CAllocations
import Foundation
import Larder

/// Allocations for each operation, in the whole process; a scenario only where they can be counted.
var allocationScenarios: [Scenario] {
    if !bench_can_count_allocations() { return [] }
    return [memoryHits, memorySets, diskHits, sets, passes] + codings
}

/// Counts the operation's own, after others have filled what is kept for the next ones.
private func counted<State>(
    _ name: String, _ make: @escaping () -> State, _ body: @escaping (State, Int) -> Void
) -> Variant {
    let operations = 1_000
    return Variant(name, needsProcess: true) {
        let state = make()
        for index in 0..<operations { body(state, index) }
        return allocations { for index in operations..<2 * operations { body(state, index) } } / Double(operations)
    }
}

private func allocations(_ body: () -> Void) -> Double {
    bench_start_counting()
    body()
    return Double(bench_stop_counting())
}

private func scenario(_ name: String, _ variants: [Variant]) -> Scenario {
    Scenario("allocations-\(name)", unit: "allocations", variants)
}

private var memoryHits: Scenario {
    let keys = Array(0..<1_000)
    return scenario(
        "hit",
        [
            counted("larder") {
                let store = RecordStore(entries: keys.count, memory: MemoryLimits())
                for key in keys { precondition(store.cache[key] != nil) }
                return store
            } _: { store, index in
                consume(store.cache[keys[index % 1_000]])
            },
            counted("dictionary") {
                let store = LockedDictionary<Int, Record>()
                for key in keys { store[key] = Record(key) }
                return store
            } _: { store, index in
                consume(store[keys[index % 1_000]])
            },
        ])
}

/// New keys into what is full.
private var memorySets: Scenario {
    func variant<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        counted(name, make) { $0[$1] = $1 }
    }
    return scenario(
        "memory-set-evicting",
        [
            variant("larder") { MemoryCache<Int, Int>(countLimit: 500) },
            variant("nodes") { NodeLRU<Int, Int>(limit: 500) },
            variant("NSCache") { FoundationCache<Int, Int>(limit: 500) },
        ])
}

private var diskHits: Scenario {
    scenario(
        "disk-hit",
        [
            counted("larder") {
                BlobStore(entries: 2_000)
            } _: {
                consume($0.cache[$1])
            },
            counted("select") {
                rawBlobs(entries: 2_000)
            } _: {
                consume($0.get($1))
            },
        ])
}

private var sets: Scenario {
    let encoder = CBOREncoder()
    return scenario(
        "set-new",
        [
            counted("larder") {
                RecordStore(entries: 0)
            } _: {
                $0.cache[$1] = Record($1)
            },
            counted("upsert") {
                RawSQLite(Workplace.path().path)
            } _: { raw, index in
                raw.set(index, attempt { try encoder.encode(Record(index)) })
            },
        ])
}

/// Each entry of a pass.
private var passes: Scenario {
    let count = 10_000
    let decoder = CBORDecoder()
    return scenario(
        "iteration",
        [
            Variant("larder", needsProcess: true) {
                let store = RecordStore(entries: count)
                return allocations { for entry in store.cache { consume(entry) } } / Double(count)
            },
            Variant("scan and decode", needsProcess: true) {
                let raw = rawRecords(entries: count)
                return allocations {
                    raw.forEach { _, data in consume(attempt { try decoder.decode(Record.self, from: data) }) }
                } / Double(count)
            },
        ])
}

private var codings: [Scenario] {
    [
        scenario(
            "encode",
            [
                counted("larder") {
                    CBOREncoder()
                } _: { encoder, _ in
                    consume(attempt { try encoder.encode(CodingArticle.sample) })
                },
                counted("json") {
                    JSONEncoder()
                } _: { encoder, _ in
                    consume(attempt { try encoder.encode(CodingArticle.sample) })
                },
            ]),
        scenario(
            "decode",
            [
                counted("larder") {
                    (CBORDecoder(), attempt { try CBOREncoder().encode(CodingArticle.sample) })
                } _: { state, _ in
                    consume(attempt { try state.0.decode(CodingArticle.self, from: state.1) })
                },
                counted("json") {
                    (JSONDecoder(), attempt { try JSONEncoder().encode(CodingArticle.sample) })
                } _: { state, _ in
                    consume(attempt { try state.0.decode(CodingArticle.self, from: state.1) })
                },
            ]),
    ]
}
