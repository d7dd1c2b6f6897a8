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
    let keys = (0..<100_000).map(scattered)
    let draws = Draws(of: keys.count)
    func reading<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        let store = Lazily { fill(make(), with: keys) }
        return Variant(name, operations: operations, eachTime: { (store.value, draws(operations, of: keys)) }) {
            store, asked in
            divided(operations, by: threads) { _, indices in
                var sum = 0
                for key in asked[indices] { sum &+= store[key] ?? 1 }
                consume(sum)
            }
        }
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
