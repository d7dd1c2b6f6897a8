import Foundation
import Larder
import LarderRedis
import LarderTestSupport

/// A node that reads, loads, writes and removes at random, until it is told to come to rest.
///
/// Usage: `larder-test-node STORE URL INDEX FOLDER SEED`. The folder has the true value of each key in a file, which the node writes
/// before it tells the cache; a key is written by one node alone. It says a line after each hundred calls. At the first line of its input it
/// stops, and says `settled` once it knows everything; at each later one it says its copies.
///
/// With a store and a URL alone it begins a load that has no end, and says `loading`.
@main
struct NodeProgram {
    static let keyCount = 9
    static let nodeCount = 3

    static func main() async throws {
        // Should a test never end it, it ends itself.
        alarm(3600)
        let arguments = CommandLine.arguments
        let url = URL(fileURLWithPath: arguments[1])
        let manager = try CacheManager(url: url, configuration: .init(log: { _ in }))
        let cache: Cache<String, String> = try await manager.cache(named: "texts", version: "1", maxAge: .days(1))
        let tier = RedisTier(url: arguments[2], prefix: "test")
        let shared = try await cache.shared(
            through: tier,
            options: SharedOptions(leaseAge: .milliseconds(500), loadWaitLimit: .seconds(2), pendingLimit: 20))
        if arguments.count == 3 {
            _ = try await shared.value(forKey: "a") { _ in
                say("loading")
                try await Waiting.until { false }
                return ""
            }
        }
        let truth = Truth(folder: URL(fileURLWithPath: arguments[4]))
        let index = Int(arguments[3]) ?? 0
        var random = Seeded(UInt64(arguments[5]) ?? 0)
        // What was not acknowledged when the process was killed.
        let own = (0..<keyCount).filter { $0 % nodeCount == index }.map { "\($0)" }
        for key in own { try await shared.setValue(try truth.value(key), forKey: key, tags: ["tag"]) }
        let isOver = Locked(false)
        let calls = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                var random = Seeded(random.next())
                group.addTask {
                    while !isOver.value {
                        // One task writes, so that the true values and the writes have one order.
                        if task == 0 {
                            try await write(own.randomElement(using: &random) ?? "", shared, truth, &random)
                        } else {
                            let key = "\(Int.random(in: 0..<keyCount, using: &random))"
                            _ = try await read(key, shared, truth, &random)
                        }
                        if calls.increment() % 100 == 0 { say("working") }
                    }
                }
            }
            Thread.detachNewThread {
                _ = readLine()
                isOver.change { $0 = true }
            }
            try await group.waitForAll()
        }
        do {
            try await Waiting.until { shared.health == .current && shared.statistics.pendingRemovals == 0 }
            say("settled")
        } catch {
            say("not settled: \(shared.health), \(shared.statistics), \(tier.failure ?? "no failure")")
        }
        while readLine() != nil {
            let copies = (0..<keyCount).map { "\($0)" }.map { key in
                "\(key)=\(cache.memory[key] ?? "nil")=\(cache.disk[key] ?? "nil")"
            }
            say(copies.joined(separator: " "))
        }
    }

    private static func read(
        _ key: String, _ shared: SharedCache<String, String>, _ truth: Truth, _ random: inout Seeded
    ) async throws -> String? {
        if Int.random(in: 0..<3, using: &random) == 0 { return try await shared.value(forKey: key) }
        return try await shared.value(forKey: key) { key, _ in
            .value(try truth.value(key) ?? "none", tags: ["tag"])
        }
    }

    private static func write(
        _ key: String, _ shared: SharedCache<String, String>, _ truth: Truth, _ random: inout Seeded
    ) async throws {
        let value = "\(random.next())"
        switch Int.random(in: 0..<20, using: &random) {
        case 0:
            try truth.set(value, key)
            try await shared.removeAll(tagged: "tag")
        case 1:
            try truth.set(value, key)
            try await shared.removeAll()
        case 2...6:
            try truth.set(value, key)
            try await shared.removeValue(forKey: key)
        default:
            try truth.set(value, key)
            try await shared.setValue(value, forKey: key, tags: ["tag"])
        }
    }
}

/// The true values.
private struct Truth {
    let folder: URL

    func value(_ key: String) throws -> String? {
        let file = folder.appendingPathComponent(key)
        if !FileManager.default.fileExists(atPath: file.path) { return nil }
        return try String(contentsOf: file, encoding: .utf8)
    }

    func set(_ value: String, _ key: String) throws {
        try value.write(to: folder.appendingPathComponent(key), atomically: true, encoding: .utf8)
    }
}
