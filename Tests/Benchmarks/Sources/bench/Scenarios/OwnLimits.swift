import Foundation
import Larder

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
        reads("limit-hit", target: 1.35, store, get, among: all),
        reads("limit-hit-hot", target: 1.35, store, get, among: Array(all[5_000..<7_000])),
        reads("limit-miss", target: 1.35, store, get, among: (count..<2 * count).map(scattered)),
        replacements(all),
    ]
}

/// A copy of a store without a log.
private func ownSchema(of manager: CacheManager, isReading: Bool) -> OwnSchema {
    attempt { try manager.maintain() }
    return OwnSchema(copyOf: URL(fileURLWithPath: manager.url?.path ?? ""), isReading: isReading)
}

private func replacements(_ keys: [Int]) -> Scenario {
    let store = Lazily { BlobStore(entries: keys.count, keys: scattered) }
    let schema = Lazily { ownSchema(of: store.value.manager, isReading: false) }
    let (draws, edition, operations) = (Draws(of: keys.count), Counter(0), 2_000)
    return Scenario(
        "limit-set", target: 1.12,
        [
            Variant("larder", operations: operations, eachTime: { (store.value, draws(operations, of: keys)) }) {
                store, asked in
                for key in asked { store.cache[key] = blob(size: 300, edition: key &+ edition.advance()) }
            },
            Variant("schema", operations: operations, eachTime: { (schema.value, draws(operations, of: keys)) }) {
                schema, asked in
                for key in asked { schema.set(key, blob(size: 300, edition: key &+ edition.advance())) }
            },
        ])
}
