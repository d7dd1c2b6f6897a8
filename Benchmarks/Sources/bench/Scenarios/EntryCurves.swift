import Foundation
import Larder

/// Cost against the number of entries.
var entryCurveScenarios: [Scenario] {
    let counts = Options.isSmall ? [1_000, 10_000] : [1_000, 10_000, 100_000, 1_000_000]
    let stores = counts.map { count in
        Lazily { () -> BlobStore in
            let store = BlobStore(entries: count, keys: scattered)
            // So that the copying of the log, after so much was written, is over.
            attempt { try store.manager.maintain() }
            return store
        }
    }
    let tables = counts.map { count in Lazily { rawBlobs(entries: count, keys: scattered) } }
    return counts.map(memoryGet)
        + counts.indices.map { diskGet(counts[$0], stores[$0], tables[$0]) }
        + counts.indices.map { diskSet(counts[$0], stores[$0], tables[$0]) }
}

private func memoryGet(_ count: Int) -> Scenario {
    let asked = 200_000
    let keys = Lazily { (0..<count).map(scattered) }
    let draws = Draws(of: count)
    func reading<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        let store = Lazily { fill(make(), with: keys.value) }
        return Variant(
            name, operations: asked,
            eachTime: { (store.value, draws(asked, of: keys.value)) },
            { store, order in
                var sum = 0
                for key in order { sum &+= store[key] ?? 1 }
                consume(sum)
            })
    }
    return Scenario(
        "curve-entries-memory-get-\(count)", target: count == 1_000_000 ? 1.3 : nil,
        point: Point(curve: "entries-memory-get", place: Double(count)),
        [
            reading("larder") { MemoryCache<Int, Int>(clearsOnMemoryPressure: false) },
            reading("dictionary") { LockedDictionary<Int, Int>() },
            reading("NSCache") { FoundationCache<Int, Int>() },
        ])
}

private func diskGet(_ count: Int, _ store: Lazily<BlobStore>, _ table: Lazily<RawSQLite>) -> Scenario {
    let operations = 5_000
    let keys = Lazily { (0..<count).map(scattered) }
    let draws = Draws(of: count)
    return Scenario(
        "curve-entries-disk-get-\(count)", point: Point(curve: "entries-disk-get", place: Double(count)),
        [
            Variant("larder", operations: operations, eachTime: { (store.value, draws(operations, of: keys.value)) }) {
                store, keys in
                for key in keys { consume(store.cache[key]) }
            },
            Variant("SQLite", operations: operations, eachTime: { (table.value, draws(operations, of: keys.value)) }) {
                raw, keys in
                for key in keys { consume(raw.get(key)) }
            },
        ])
}

private func diskSet(_ count: Int, _ store: Lazily<BlobStore>, _ table: Lazily<RawSQLite>) -> Scenario {
    let operations = 1_000
    let keys = Lazily { (0..<count).map(scattered) }
    let draws = Draws(of: count)
    let editions = Counter(0)
    return Scenario(
        "curve-entries-disk-set-\(count)", point: Point(curve: "entries-disk-set", place: Double(count)),
        [
            Variant("larder", operations: operations, eachTime: { (store.value, draws(operations, of: keys.value)) }) {
                store, keys in
                for key in keys {
                    attempt { try store.cache.setValue(blob(size: 300, edition: editions.advance()), forKey: key) }
                }
            },
            Variant("SQLite", operations: operations, eachTime: { (table.value, draws(operations, of: keys.value)) }) {
                raw, keys in
                for key in keys { raw.set(key, blob(size: 300, edition: editions.advance())) }
            },
        ])
}
