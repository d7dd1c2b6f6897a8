import Foundation
import Larder
import Synchronization

/// The library beside its own tables and statements, called from plain code: what no machine moves.
///
/// What is above 1 is the library's own time: locks, copies, the clock, the order of use, checksums.
var ownLimitScenarios: [Scenario] {
    let count = 100_000
    let store = Lazily { BlobStore(entries: count, keys: scattered) }
    let schema = Lazily { ownSchema(of: store.value.manager, isReading: true) }
    let get = (name: "schema", value: schema, get: { (schema: OwnSchema, key: Int) in schema.get(key) })
    let all = (0..<count).map(scattered)
    return [
        reads("limit-hit", target: 1.25, store, get, among: all),
        reads("limit-hit-hot", target: 1.3, store, get, among: Array(all[5_000..<7_000])),
        reads("limit-miss", target: 1.5, store, get, among: (count..<2 * count).map(scattered)),
        writes("limit-set", target: 1.25, all, 2_000, transactionsOf: 1) { store, keys, value in
            for key in keys { store.cache[key] = value(key) }
        },
        writes("limit-set-1000", target: 1.25, all, 1_000, transactionsOf: 1_000) { store, keys, value in
            attempt { try store.cache.setValues(keys.map { ($0, value($0)) }) }
        },
        writes("limit-set-100-tasks", target: 1.25, all, 5_000, transactionsOf: 100) { store, keys, value in
            waitFor {
                await withTaskGroup { group in
                    for task in 0..<100 {
                        group.addTask {
                            for key in keys[task * 50..<(task + 1) * 50] {
                                do {
                                    try await store.cache.setValue(value(key), forKey: key)
                                } catch {
                                    preconditionFailure("\(error)")
                                }
                            }
                        }
                    }
                }
            }
        },
        scan("limit-scan", target: 1.2, count, store, schema) { store in
            var sum = 0
            for (key, data) in store.cache { sum &+= key &+ data.count }
            return sum
        } _: { schema in
            var sum = 0
            schema.forEach { key, data in sum &+= key &+ data.count }
            return sum
        },
        scan("limit-keys", target: 1.3, count, store, schema) { store in
            var sum = 0
            for key in store.cache.keys { sum &+= key }
            return sum
        } _: { schema in
            var sum = 0
            schema.forEachKey { sum &+= $0 }
            return sum
        },
    ]
}

/// A copy of a store without a log.
private func ownSchema(of manager: CacheManager, isReading: Bool) -> OwnSchema {
    attempt { try manager.maintain() }
    return OwnSchema(copyOf: URL(fileURLWithPath: manager.url?.path ?? ""), isReading: isReading)
}

private func scan(
    _ name: String, target: Double, _ count: Int, _ store: Lazily<BlobStore>, _ schema: Lazily<OwnSchema>,
    _ scan: @escaping (BlobStore) -> Int, _ ownScan: @escaping (OwnSchema) -> Int
) -> Scenario {
    Scenario(
        name, target: target,
        [
            Variant("larder", operations: count, once: { store.value }) { consume(scan($0)) },
            Variant("schema", operations: count, once: { schema.value }) { consume(ownScan($0)) },
        ])
}

/// Replacements of values by others.
private func writes(
    _ name: String, target: Double, _ keys: [Int], _ operations: Int, transactionsOf size: Int,
    _ write: @escaping (BlobStore, [Int], @escaping @Sendable (Int) -> Data) -> Void
) -> Scenario {
    let store = Lazily { BlobStore(entries: keys.count, keys: scattered) }
    let schema = Lazily { ownSchema(of: store.value.manager, isReading: false) }
    let draws = Draws(of: keys.count)
    let value = { @Sendable key in blob(size: 300, edition: key &+ limitEditions.add(1, ordering: .relaxed).newValue) }
    return Scenario(
        name, target: target,
        [
            Variant("larder", operations: operations, eachTime: { (store.value, draws(operations, of: keys)) }) {
                store, asked in write(store, asked, value)
            },
            Variant("schema", operations: operations, eachTime: { (schema.value, draws(operations, of: keys)) }) {
                schema, asked in
                for start in stride(from: 0, to: asked.count, by: size) {
                    schema.transaction { for key in asked[start..<start + size] { schema.set(key, value(key)) } }
                }
            },
        ])
}

private let limitEditions = Atomic(0)
