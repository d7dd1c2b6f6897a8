import Foundation
import Larder
import Synchronization

/// Writes, beside a prepared autocommit upsert and the same encoding.
var diskWriteScenarios: [Scenario] {
    [
        sets("set-new", target: 1.2, isNew: true),
        sets("set-replace", target: 1.2, isNew: false),
        tasks,
        bulk,
    ]
}

private let encoder = CBOREncoder()

private func write(_ raw: RawSQLite, _ key: Int) { raw.set(key, attempt { try encoder.encode(record(key)) }) }

/// Each one unlike the last.
private func record(_ key: Int) -> Record { Record(key, edition: editions.add(1, ordering: .relaxed).newValue) }

private let editions = Atomic(0)

private func sets(_ name: String, target: Double, isNew: Bool) -> Scenario {
    let (existing, operations) = (20_000, 2_000)
    let next = Counter(existing)
    let nextRaw = Counter(existing)
    var generator = SeededGenerator(seed: 3)
    let old = (0..<operations).map { _ in Int.random(in: 0..<existing, using: &generator) }
    return Scenario(
        name, target: target,
        [
            Variant("larder", operations: operations, once: { RecordStore(entries: existing) }) { store in
                for index in 0..<operations {
                    let key = isNew ? next.advance() : old[index]
                    store.cache[key] = record(key)
                }
            },
            Variant("upsert", operations: operations, once: { rawRecords(entries: existing) }) { raw in
                for index in 0..<operations { write(raw, isNew ? nextRaw.advance() : old[index]) }
            },
        ])
}

/// A hundred tasks that each set one new key at a time, in random order.
private var tasks: Scenario {
    let (existing, perTask) = (20_000, 50)
    let (rounds, rawRounds) = (Counter(1), Counter(1))
    return Scenario(
        "set-100-tasks", target: 0.35,
        [
            Variant("larder", operations: 100 * perTask, once: { RecordStore(entries: existing) }) { store in
                let cache = store.cache
                let round = rounds.advance()
                waitFor {
                    await withTaskGroup { group in
                        for task in 0..<100 {
                            group.addTask {
                                for index in 0..<perTask {
                                    let key = newKey(round, task * perTask + index)
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
            Variant("upsert", operations: 100 * perTask, once: { rawRecords(entries: existing) }) { raw in
                let round = rawRounds.advance()
                for index in 0..<100 * perTask { write(raw, newKey(round, index)) }
            },
        ])
}

/// Keys without an order that nobody has set before.
private func newKey(_ round: Int, _ index: Int) -> Int {
    var generator = SeededGenerator(seed: UInt64(round * 1_000_000 + index))
    return Int(truncatingIfNeeded: generator.next() >> 1)
}

private var bulk: Scenario {
    Scenario(
        "set-values-1000", target: 2,
        [
            Variant("larder", operations: 1_000, once: { RecordStore(entries: 20_000) }) { store in
                attempt { try store.cache.setValues((0..<1_000).map { ($0 &* 7919 % 20_000, record($0)) }) }
            },
            Variant("transaction", operations: 1_000, once: { rawRecords(entries: 20_000) }) { raw in
                raw.transaction { for index in 0..<1_000 { write(raw, index &* 7919 % 20_000) } }
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
