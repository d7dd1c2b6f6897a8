import Foundation
import Larder

/// Cost against the number of entries.
var entryCurveScenarios: [Scenario] {
    let counts = Options.isSmall ? [1_000, 10_000] : [1_000, 10_000, 100_000, 1_000_000]
    let stores = counts.map { count in
        Lazily { () -> BlobStore in
            let store = BlobStore(entries: count)
            // So that the copying of the log, after so much was written, is over.
            attempt { try store.manager.maintain() }
            return store
        }
    }
    let tables = counts.map { count in Lazily { rawBlobs(entries: count) } }
    return counts.map(memoryGet)
        + counts.indices.map { diskGet(counts[$0], stores[$0], tables[$0]) }
        + counts.indices.map { diskSet(counts[$0], stores[$0], tables[$0]) }
}

private func memoryGet(_ count: Int) -> Scenario {
    let asked = 200_000
    func keys() -> [Int] {
        var generator = SeededGenerator(seed: 21)
        return (0..<count).map { _ in Int(truncatingIfNeeded: generator.next()) }
    }
    func reading<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(
            name, operations: asked,
            once: {
                let keys = keys()
                var generator = SeededGenerator(seed: 22)
                let order = (0..<asked).map { _ in keys[Int.random(in: 0..<count, using: &generator)] }
                return (fill(make(), with: keys), order)
            },
            { store, order in
                var sum = 0
                for key in order { sum &+= store[key] ?? 1 }
                consume(sum)
            })
    }
    return Scenario(
        "curve-entries-memory-get-\(count)", point: Point(curve: "entries-memory-get", place: Double(count)),
        [
            reading("larder") { MemoryCache<Int, Int>(clearsOnMemoryPressure: false) },
            reading("dictionary") { LockedDictionary<Int, Int>() },
            reading("NSCache") { FoundationCache<Int, Int>() },
        ])
}

private func order(_ count: Int, of number: Int) -> [Int] {
    var generator = SeededGenerator(seed: 23)
    return (0..<number).map { _ in Int.random(in: 0..<count, using: &generator) }
}

private func diskGet(_ count: Int, _ store: Lazily<BlobStore>, _ table: Lazily<RawSQLite>) -> Scenario {
    let keys = order(count, of: 5_000)
    return Scenario(
        "curve-entries-disk-get-\(count)", point: Point(curve: "entries-disk-get", place: Double(count)),
        [
            Variant("larder", operations: keys.count, once: { store.value }) { store in
                for key in keys { consume(store.cache[key]) }
            },
            Variant("SQLite", operations: keys.count, once: { table.value }) { raw in
                for key in keys { consume(raw.get(key)) }
            },
        ])
}

private func diskSet(_ count: Int, _ store: Lazily<BlobStore>, _ table: Lazily<RawSQLite>) -> Scenario {
    let keys = order(count, of: 1_000)
    let editions = Counter(0)
    return Scenario(
        "curve-entries-disk-set-\(count)", point: Point(curve: "entries-disk-set", place: Double(count)),
        [
            Variant("larder", operations: keys.count, once: { store.value }) { store in
                for key in keys {
                    attempt { try store.cache.setValue(blob(size: 300, edition: editions.advance()), forKey: key) }
                }
            },
            Variant("SQLite", operations: keys.count, once: { table.value }) { raw in
                for key in keys { raw.set(key, blob(size: 300, edition: editions.advance())) }
            },
        ])
}
