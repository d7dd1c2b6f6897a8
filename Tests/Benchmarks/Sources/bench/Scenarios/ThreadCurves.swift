import Dispatch
import Foundation
import Larder
import Synchronization

/// Cost against the number of threads.
var threadCurveScenarios: [Scenario] {
    let store = Lazily { BlobStore(entries: 20_000) }
    let raw = Lazily { rawBlobs(entries: 20_000) }
    let threads = [1, 2, 4, 8]
    return threads.map(memoryGet) + threads.map { diskGet($0, store, raw) } + threads.map(sets)
}

/// Does something so many times, shared by the threads.
private func divided(
    _ operations: Int, by threads: Int, _ body: @Sendable (_ thread: Int, _ indices: Range<Int>) -> Void
) {
    let each = operations / threads
    DispatchQueue.concurrentPerform(iterations: threads) { body($0, $0 * each..<($0 + 1) * each) }
}

private func memoryGet(_ threads: Int) -> Scenario {
    let operations = 400_000
    func keys() -> [Int] {
        var generator = SeededGenerator(seed: 31)
        return (0..<100_000).map { _ in Int(truncatingIfNeeded: generator.next()) }
    }
    func reading<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(
            name, operations: operations,
            once: {
                let keys = keys()
                return (fill(make(), with: keys), keys)
            },
            { store, keys in
                divided(operations, by: threads) { thread, indices in
                    var sum = 0
                    for index in indices { sum &+= store[keys[(index &+ thread &* 7919) % keys.count]] ?? 1 }
                    consume(sum)
                }
            })
    }
    return Scenario(
        "curve-threads-memory-get-\(threads)", point: Point(curve: "threads-memory-get", place: Double(threads)),
        [
            reading("larder") { MemoryCache<Int, Int>(clearsOnMemoryPressure: false) },
            reading("dictionary") { LockedDictionary<Int, Int>() },
            reading("NSCache") { FoundationCache<Int, Int>() },
        ])
}

private func diskGet(_ threads: Int, _ store: Lazily<BlobStore>, _ raw: Lazily<RawSQLite>) -> Scenario {
    let operations = 16_000
    return Scenario(
        "curve-threads-disk-get-\(threads)", point: Point(curve: "threads-disk-get", place: Double(threads)),
        [
            Variant("larder", operations: operations, once: { store.value }) { store in
                divided(operations, by: threads) { _, indices in
                    for index in indices { consume(store.cache[key(index)]) }
                }
            },
            Variant(
                "SQLite", operations: operations,
                once: { (0..<threads).map { _ in RawSQLite(raw.value.path) } },
                { connections in
                    divided(operations, by: threads) { thread, indices in
                        for index in indices { consume(connections[thread].get(key(index))) }
                    }
                }),
        ])
}

private func sets(_ threads: Int) -> Scenario {
    let operations = 2_000
    return Scenario(
        "curve-threads-set-\(threads)", point: Point(curve: "threads-set", place: Double(threads)),
        [
            Variant("larder", operations: operations, once: { BlobStore(entries: 20_000) }) { store in
                divided(operations, by: threads) { _, indices in
                    for index in indices {
                        attempt { try store.cache.setValue(value(), forKey: key(index)) }
                    }
                }
            },
            Variant(
                "SQLite behind a Mutex", operations: operations,
                once: { (rawBlobs(entries: 20_000), Lock()) },
                { raw, lock in
                    divided(operations, by: threads) { _, indices in
                        for index in indices { lock.mutex.withLock { _ in raw.set(key(index), value()) } }
                    }
                }),
        ])
}

private func key(_ index: Int) -> Int { index &* 7919 % 20_000 }

private func value() -> Data { blob(size: 300, edition: editions.add(1, ordering: .relaxed).newValue) }

private let editions = Atomic(0)

/// A lock that a closure may keep.
private final class Lock: Sendable {
    let mutex = Mutex(())
}
