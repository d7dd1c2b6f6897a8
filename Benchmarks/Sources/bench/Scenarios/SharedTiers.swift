import Foundation
import Larder
import LarderRedisTLS
import Synchronization

/// What a shared cache costs, next to the raw commands of its server.
///
/// The server is one of this program, on this machine. Without an installed one only the scenarios that need none are measured.
var sharedTierScenarios: [Scenario] {
    let hits = Lazily { Nodes(1) { MemorySharedTier() } }
    let count = 20_000
    var scenarios = [
        Scenario(
            "shared-hit", target: 1.1,
            [
                Variant("shared") {
                    let (shared, record) = (hits.value.shared[0], Record(1))
                    return waited { try await shared.setValue(record, forKey: 1) }
                        + timed(per: count) {
                            for _ in 0..<count { consume(try await shared.value(forKey: 1) { Record($0) }) }
                        }
                },
                Variant("not shared") {
                    let cache = hits.value.shared[0].local
                    return timed(per: count) {
                        for _ in 0..<count { consume(try await cache.value(forKey: 1) { Record($0) }) }
                    }
                },
            ])
    ]
    guard let server = RawServer.path else { return scenarios }
    let running = Lazily { RawServer(server) }
    let nodes = Lazily { Nodes(2) { RedisTier(url: running.value.url, prefix: "bench") } }
    let secure = Lazily {
        let options = TLSOptions(authorities: running.value.certificate)
        return Nodes(2) {
            RedisTier(url: running.value.secureURL, prefix: "secure", security: .tls(options))
        }
    }
    for tasks in [1, 8, 64, 256] {
        let calls = max(256, tasks * 8)
        scenarios += [
            Scenario(
                "tier-value-\(tasks)-tasks", unit: "us", target: [1: 6, 64: 15][tasks],
                [
                    Variant("a value from the tier") {
                        nodes.value.fill(calls)
                        let other = nodes.value.shared[1]
                        return atOnce(tasks, calls) { consume(try await other.value(forKey: $0)) } / 1000
                    },
                    Variant("GET, \(tasks) at once") { running.value.client.time("GET", calls, batch: tasks) / 1000 },
                ]),
            Scenario(
                "tier-set-\(tasks)-tasks", unit: "us", target: tasks == 64 ? 15 : nil,
                [
                    Variant("set on all nodes") {
                        let first = nodes.value.shared[0]
                        return atOnce(tasks, calls) { try await first.setValue(Record($0), forKey: $0) } / 1000
                    },
                    Variant("SET, \(tasks) at once") { running.value.client.time("SET", calls, batch: tasks) / 1000 },
                ]),
        ]
    }
    scenarios.append(
        Scenario(
            "tier-value-1MB", unit: "us",
            [
                Variant("a value of 1 MB from the tier") {
                    nodes.value.fill(20, size: 1_000_000)
                    let other = nodes.value.shared[1]
                    return atOnce(1, 20) { consume(try await other.value(forKey: $0)) } / 1000
                },
                Variant("GET of 1 MB") { running.value.client.time("GET", 20, batch: 1, size: 1_000_000) / 1000 },
            ]))
    for (tasks, calls, size) in [(1, 256, 0), (64, 512, 0), (1, 20, 1_000_000)] {
        func read(_ nodes: Nodes) -> Double {
            nodes.fill(calls, size: size)
            let other = nodes.shared[1]
            return atOnce(tasks, calls) { consume(try await other.value(forKey: $0)) } / 1000
        }
        scenarios.append(
            Scenario(
                size == 0 ? "tier-tls-value-\(tasks)-tasks" : "tier-tls-value-1MB", unit: "us",
                [
                    Variant("over TLS") { read(secure.value) },
                    Variant("not encrypted") { read(nodes.value) },
                ]))
    }
    for (name, share) in [("median", 0.5), ("p99", 0.99)] {
        scenarios.append(
            Scenario(
                "tier-removal-seen-\(name)", unit: "us",
                [
                    Variant("removal to row deleted") { nodes.value.removals(300, share) },
                    Variant("XADD to XREAD") { running.value.messages(300, share) },
                ]))
    }
    let alone = Lazily { Nodes(1) { RedisTier(url: "redis://127.0.0.1:1", prefix: "bench") } }
    let plain = Lazily { RecordStore(entries: 0) }
    scenarios += [
        Scenario(
            "tier-gone-set", unit: "us",
            [
                Variant("set without the server") {
                    let shared = alone.value.shared[0]
                    return timed(per: 200_000) {
                        for key in 0..<200 { try await shared.setValue(Record(key), forKey: key) }
                    }
                },
                Variant("set of this node") {
                    let cache = plain.value.cache
                    return timed(per: 200_000) {
                        for key in 0..<200 { try await cache.setValue(Record(key), forKey: key) }
                    }
                },
            ]),
        Scenario(
            "tier-gone-load", unit: "us",
            [
                Variant("load without the server") {
                    let (shared, first) = (alone.value.shared[0], Int.random(in: 1_000_000..<1_000_000_000))
                    return timed(per: 200_000) {
                        for key in first..<first + 200 { consume(try await shared.value(forKey: key) { Record($0) }) }
                    }
                },
                Variant("load of this node") {
                    let (cache, first) = (plain.value.cache, Int.random(in: 1_000_000..<1_000_000_000))
                    return timed(per: 200_000) {
                        for key in first..<first + 200 { consume(try await cache.value(forKey: key) { Record($0) }) }
                    }
                },
            ]),
    ]
    return scenarios
}

/// Nodes, each with a store of its own.
private final class Nodes: Sendable {
    let shared: [SharedCache<Int, Record>]

    init(_ count: Int, _ tier: () -> any SharedTier) {
        let places = (0..<count).map { _ in (path: Workplace.path(), tier: tier()) }
        shared = waitedFor {
            var shared: [SharedCache<Int, Record>] = []
            for (path, tier) in places {
                let manager = try await CacheManager.open(url: path, configuration: .init(log: { _ in }))
                let cache: Cache<Int, Record> = try await manager.cache(
                    named: "records", version: "1", maxAge: .days(7))
                shared.append(try await cache.shared(through: tier))
            }
            return shared
        }
    }

    /// Puts records into the tier of which the second node has no copy.
    ///
    /// - Parameter size: The bytes of the extended data of each.
    func fill(_ count: Int, size: Int = 0) {
        waitedFor { [shared] in
            let data = size == 0 ? nil : Data(repeating: 7, count: size)
            for key in 0..<count { try await shared[0].setValue(Record(key), forKey: key, extendedData: data) }
            while shared[1].local[count - 1] != nil { await Task.yield() }
            try await shared[1].local.manager.removeAll()
        }
    }

    /// Microseconds from a removal on the first node to the row gone on the second one, of which a share took no longer.
    func removals(_ count: Int, _ share: Double) -> Double {
        waitedFor { [shared] in
            var times: [Double] = []
            for key in 0..<count {
                try await shared[0].setValue(Record(key), forKey: key)
                // Until the message of the write has been taken in.
                while shared[1].local[key] == nil { _ = try await shared[1].value(forKey: key) }
                for _ in 0..<20 { await Task.yield() }
                if shared[1].local[key] == nil { continue }
                let start = ContinuousClock.now
                try await shared[0].removeValue(forKey: key)
                while shared[1].local[key] != nil { await Task.yield() }
                times.append((ContinuousClock.now - start) / .microseconds(1))
            }
            return times.sorted()[min(times.count - 1, Int(Double(times.count) * share))]
        }
    }
}

/// Nanoseconds per call of calls that many tasks make at once.
private func atOnce(_ tasks: Int, _ calls: Int, _ body: @escaping @Sendable (Int) async throws -> Void) -> Double {
    timed(per: calls) {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<tasks {
                group.addTask { for key in stride(from: task, to: calls, by: tasks) { try await body(key) } }
            }
            try await group.waitForAll()
        }
    }
}

private func timed(per count: Int, _ body: @escaping @Sendable () async throws -> Void) -> Double {
    waitedFor {
        let start = ContinuousClock.now
        try await body()
        return (ContinuousClock.now - start) / .nanoseconds(1) / Double(count)
    }
}

private func waited(_ body: @escaping @Sendable () async throws -> Void) -> Double {
    waitedFor(body)
    return 0
}

@discardableResult
func waitedFor<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) -> R {
    let (done, box) = (DispatchSemaphore(value: 0), Box(Mutex<R?>(nil)))
    Task {
        do {
            let value = try await body()
            box.value.withLock { $0 = value }
        } catch {
            preconditionFailure("\(error)")
        }
        done.signal()
    }
    done.wait()
    guard let value = box.value.withLock({ $0 }) else { preconditionFailure("nothing was returned") }
    return value
}

private final class Box<Value: ~Copyable & Sendable>: Sendable {
    let value: Value
    init(_ value: consuming Value) { self.value = value }
}
