import Foundation
import LarderStore

/// One operation of both subjects.
struct Scenario: Sendable {
    let name: String
    /// The operations of a sample.
    let keys: Int
    let goal: Double
    /// Whether the new keys are there before the sample.
    var addsKeys = false
    /// Whether nothing is left after the sample.
    var empties = false
    /// Whether there is nothing to remove after a sample.
    ///
    /// A commit would empty the page caches of readers.
    var addsNothing = false
    let raw: @Sendable (Subjects) async throws -> Void
    let store: @Sendable (Subjects) async throws -> Void

    static let writes: [Scenario] = [
        Scenario(
            name: "put, new key", keys: 4000, goal: 1.15,
            raw: { bench in for key in bench.newKeys { bench.raw.set(key, bench.value()) } },
            store: { bench in try putEach(bench.newKeys, bench) }),
        Scenario(
            name: "put, replace", keys: 4000, goal: 1.15,
            raw: { bench in for key in bench.oldKeys { bench.raw.set(key, bench.value()) } },
            store: { bench in try putEach(bench.oldKeys, bench) }),
        batch(1000, goal: 1.05), batch(5000, goal: 1.35),
        Scenario(
            name: "remove", keys: 4000, goal: 1.15, addsKeys: true,
            raw: { bench in for key in bench.newKeys { bench.raw.remove(key) } },
            store: { bench in try removeEach(bench.newKeys, bench) }),
        Scenario(
            name: "100 tasks (raw: batches of 100)", keys: 10_000, goal: 1.25,
            raw: { bench in
                for start in stride(from: 0, to: 10_000, by: 100) {
                    bench.raw.transaction {
                        for key in bench.newKeys[start..<start + 100] { bench.raw.set(key, bench.value()) }
                    }
                }
            },
            store: { bench in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for task in 0..<100 {
                        group.addTask {
                            for key in bench.newKeys[task * 100..<task * 100 + 100] {
                                try await bench.rows.run(.put([bench.write(key)], if: .always))
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }),
        threads(4), threads(8),
        Scenario(
            name: "one task", keys: 4000, goal: 1.1,
            raw: { bench in for key in bench.newKeys { bench.raw.set(key, bench.value()) } },
            store: { bench in
                for key in bench.newKeys { try await bench.rows.run(.put([bench.write(key)], if: .always)) }
            }),
        Scenario(
            name: "delete a generation", keys: StoreBench.count, goal: 0.6, empties: true,
            raw: { bench in while bench.raw.removeSlice() > 0 {} },
            store: { bench in try clear(bench) }),
    ]

    private static func putEach(_ keys: [Int64], _ bench: Subjects) throws {
        for key in keys { try bench.rows.run(.put([bench.write(key)], if: .always)) }
    }

    private static func removeEach(_ keys: [Int64], _ bench: Subjects) throws {
        for key in keys { try bench.rows.run(.remove([.integer(key)])) }
    }

    private static func clear(_ bench: Subjects) throws {
        try bench.rows.run(.clear)
        let isDone = Done()
        while !isDone.value { try bench.store.perform { isDone.value = try $0.reclaim(atMost: 500).isDone } }
    }

    private static func batch(_ count: Int, goal: Double) -> Scenario {
        Scenario(
            name: "put, \(count) in one request", keys: count * 4, goal: goal,
            raw: { bench in
                for start in stride(from: 0, to: count * 4, by: count) {
                    bench.raw.transaction {
                        for key in bench.newKeys[start..<start + count] { bench.raw.set(key, bench.value()) }
                    }
                }
            },
            store: { bench in
                for start in stride(from: 0, to: count * 4, by: count) {
                    try putMany(Array(bench.newKeys[start..<start + count]), bench)
                }
            })
    }

    private static func putMany(_ keys: [Int64], _ bench: Subjects) throws {
        try bench.rows.run(.put(keys.map(bench.write), if: .always))
    }

    private static func threads(_ count: Int) -> Scenario {
        Scenario(
            name: "\(count) threads (raw: one)", keys: 4000, goal: 1.4,
            raw: { bench in for key in bench.newKeys { bench.raw.set(key, bench.value()) } },
            store: { bench in
                let share = 4000 / count
                DispatchQueue.concurrentPerform(iterations: count) { thread in
                    do {
                        try putEach(Array(bench.newKeys[thread * share..<(thread + 1) * share]), bench)
                    } catch {
                        preconditionFailure("\(error)")
                    }
                }
            })
    }
}

extension Scenario {
    static let all =
        writes
        + (reads + files + used).map { scenario in
            var scenario = scenario
            scenario.addsNothing = true
            return scenario
        }

    private static let reads: [Scenario] = [
        get("get, at random", goal: 0.66) { $0.readKeys }, get("get, 2,000 hot rows", goal: 0.46) { $0.hotKeys },
        get("get, miss", goal: 0.3) { $0.newKeys },
        Scenario(
            name: "get, two threads (raw: one)", keys: 20_000, goal: 0.5,
            raw: { bench in for key in bench.readKeys { _ = bench.raw.get(key) } },
            store: { bench in
                DispatchQueue.concurrentPerform(iterations: 2) { half in
                    do { try getEach(bench.readKeys[half * 10_000..<half * 10_000 + 10_000], bench) } catch {
                        preconditionFailure("\(error)")
                    }
                }
            }),
        Scenario(
            name: "get, after each commit", keys: 4000, goal: 0.5,
            raw: { bench in
                for key in bench.oldKeys {
                    bench.raw.set(key, bench.value())
                    bench.measure { _ = bench.rawReader.get(key) }
                }
            },
            store: { bench in
                for key in bench.oldKeys {
                    try bench.rows.run(.put([bench.write(key)], if: .always))
                    try bench.measure { try getEach([key], bench) }
                }
            }),
        Scenario(
            name: "scan of values", keys: StoreBench.count, goal: 1.2,
            raw: { bench in precondition(bench.raw.values().count >= StoreBench.count) },
            store: { bench in
                let count = try pages { try bench.rows.rows(after: $0) }
                precondition(count >= StoreBench.count)
            }),
        Scenario(
            name: "scan of keys", keys: StoreBench.count, goal: 1.2,
            raw: { bench in precondition(bench.raw.keys().count >= StoreBench.count) },
            store: { bench in
                let count = try pages { try bench.rows.keys(after: $0) }
                precondition(count >= StoreBench.count)
            }),
    ]

    private static func get(
        _ name: String, goal: Double, _ keys: @escaping @Sendable (Subjects) -> [Int64]
    ) -> Scenario {
        Scenario(
            name: name, keys: 20_000, goal: goal,
            raw: { bench in for key in keys(bench) { _ = bench.raw.get(key) } },
            store: { bench in try getEach(keys(bench)[...], bench) })
    }

    private static func getEach(_ keys: ArraySlice<Int64>, _ bench: Subjects) throws {
        for key in keys { _ = try bench.rows.row(.integer(key)) }
    }

    private static func pages<Row>(_ next: (StoredKey?) throws -> Page<Row>) throws -> Int {
        var (found, last): ([Row], StoredKey?) = ([], nil)
        repeat {
            let page = try next(last)
            found += page.rows
            last = page.next
        } while last != nil
        return found.count
    }
}

/// Safety: one thread at a time writes and reads it, with the writer's lock in between.
private final class Done: @unchecked Sendable {
    var value = false
}
