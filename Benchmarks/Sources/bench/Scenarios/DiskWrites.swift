import Foundation
import Larder
import Synchronization

/// Writes of records, beside a prepared upsert of the same record, encoded by the same codec.
///
/// Keys come in no order. Each sample draws its own keys to replace.
var diskWriteScenarios: [Scenario] {
    let (new, newRaw) = (Counter(count), Counter(count))
    let (draws, drawsRaw) = (Draws(of: count), Draws(of: count))
    let present = (0..<count).map(scattered)
    func newKeys(_ counter: Counter, _ number: Int) -> [Int] { (0..<number).map { _ in scattered(counter.advance()) } }
    return [
        writes("set-new", 2_000, target: nil, { newKeys(new, $0) }, { newKeys(newRaw, $0) }),
        writes("set-replace", 2_000, target: nil, { draws($0, of: present) }, { drawsRaw($0, of: present) }),
        writes(
            "set-then-get", 2_000, target: nil, { newKeys(new, $0) }, { newKeys(newRaw, $0) },
            set: { store, key in
                store.cache[key] = record(key)
                consume(store.cache[key])
            },
            upsert: { raw, key in
                write(raw, key)
                if let data = raw.get(key) { consume(attempt { try decoder.decode(Record.self, from: data) }) }
            }),
        tasks("set-one-task", tasks: 1, each: 2_000, target: nil, batch: 1),
        tasks("set-100-tasks", tasks: 100, each: 50, target: nil, batch: 100),
        bulk(present),
    ]
}

private let count = 100_000
private let encoder = CBOREncoder()
private let decoder = CBORDecoder()

private func write(_ raw: RawSQLite, _ key: Int) { raw.set(key, attempt { try encoder.encode(record(key)) }) }

/// Each one unlike the last.
private func record(_ key: Int) -> Record { Record(key, edition: editions.add(1, ordering: .relaxed).newValue) }

private let editions = Atomic(0)

private func writes(
    _ name: String, _ operations: Int, target: Double?, _ keys: @escaping (Int) -> [Int],
    _ rawKeys: @escaping (Int) -> [Int], set: @escaping (RecordStore, Int) -> Void = { $0.cache[$1] = record($1) },
    upsert: @escaping (RawSQLite, Int) -> Void = write
) -> Scenario {
    let store = Lazily { RecordStore(entries: count, keys: scattered) }
    let raw = Lazily { rawRecords(entries: count, keys: scattered) }
    return Scenario(
        name, target: target,
        [
            Variant("larder", operations: operations, eachTime: { (store.value, keys(operations)) }) { store, keys in
                for key in keys { set(store, key) }
            },
            Variant("upsert", operations: operations, eachTime: { (raw.value, rawKeys(operations)) }) { raw, keys in
                for key in keys { upsert(raw, key) }
            },
        ])
}

/// Tasks that each set one new key at a time, beside transactions of as many.
private func tasks(_ name: String, tasks: Int, each: Int, target: Double?, batch: Int) -> Scenario {
    let (next, nextRaw) = (Counter(count), Counter(count))
    let store = Lazily { RecordStore(entries: count, keys: scattered) }
    let raw = Lazily { rawRecords(entries: count, keys: scattered) }
    func keys(_ counter: Counter) -> [Int] { (0..<tasks * each).map { _ in scattered(counter.advance()) } }
    return Scenario(
        name, target: target,
        [
            Variant("larder", operations: tasks * each, eachTime: { (store.value.cache, keys(next)) }) { cache, keys in
                waitFor {
                    await withTaskGroup { group in
                        for task in 0..<tasks {
                            group.addTask {
                                for key in keys[task * each..<(task + 1) * each] {
                                    do {
                                        try await cache.setValue(record(key), forKey: key)
                                    } catch {
                                        preconditionFailure("\(error)")
                                    }
                                }
                            }
                        }
                    }
                }
            },
            Variant(
                batch == 1 ? "upsert" : "transactions of \(batch)", operations: tasks * each,
                eachTime: { (raw.value, keys(nextRaw)) },
                { raw, keys in
                    for start in stride(from: 0, to: keys.count, by: batch) {
                        if batch == 1 {
                            write(raw, keys[start])
                        } else {
                            raw.transaction { for key in keys[start..<start + batch] { write(raw, key) } }
                        }
                    }
                }),
        ])
}

/// A thousand entries in one call, which are there already.
private func bulk(_ present: [Int]) -> Scenario {
    let (draws, drawsRaw) = (Draws(of: count), Draws(of: count))
    let store = Lazily { RecordStore(entries: count, keys: scattered) }
    let raw = Lazily { rawRecords(entries: count, keys: scattered) }
    return Scenario(
        "set-values-1000", target: 1.15,
        [
            Variant("larder", operations: 1_000, eachTime: { (store.value, draws(1_000, of: present)) }) {
                store, keys in
                attempt { try store.cache.setValues(keys.map { ($0, record($0)) }) }
            },
            Variant("transaction", operations: 1_000, eachTime: { (raw.value, drawsRaw(1_000, of: present)) }) {
                raw, keys in
                raw.transaction { for key in keys { write(raw, key) } }
            },
        ])
}

/// Counts on through the samples.
final class Counter {
    private var next: Int

    init(_ start: Int) { next = start }

    func advance() -> Int {
        defer { next += 1 }
        return next
    }
}

/// Runs asynchronous work from a thread that may wait.
func waitFor(_ body: @escaping @Sendable () async -> Void) {
    let semaphore = DispatchSemaphore(value: 0)
    Task {
        await body()
        semaphore.signal()
    }
    semaphore.wait()
}
