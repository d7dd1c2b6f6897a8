import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Synchronization

/// What tests of sub-caches run in processes of their own.
@main
struct CacheProgram {
    private static let done = Atomic(0)

    static func main() async {
        // Should a test never end it, it ends itself.
        alarm(3600)
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch arguments.first {
            case "work": try work(arguments[1], seed: arguments[2], version: arguments[3])
            case "count": try count(arguments[1], threads: 6)
            case "hit": try hit(arguments[1])
            case "hold-up": try await holdUp(arguments[1])
            default: exit(2)
            }
        } catch {
            say("error", error)
        }
    }

    /// Does seeded work, and says the number of each step that was acknowledged.
    private static func work(_ path: String, seed: String, version: String) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path))
        var caches = try MixedCaches(manager, version: Int(version) ?? 1)
        var work = MixedWork(seed: UInt64(seed) ?? 1)
        for number in 1...100_000 {
            try caches.perform(work.next())
            say(number)
        }
    }

    /// Counts up from many threads, each under a key of its own, and says each number that was acknowledged.
    private static func count(_ path: String, threads: Int) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path))
        let cache: Cache<Int, Int> = try manager.cache(named: "counts", version: "1", maxAge: .unlimited)
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            do {
                var number = try cache.value(forKey: thread) ?? 0
                while number < 1_000_000 {
                    number += 1
                    try cache.setValue(number, forKey: thread)
                    say(thread, number)
                }
            } catch {
                say("error", error)
            }
        }
    }

    /// Reads what is in memory, between two lines that a tracer sees, while the writer is busy.
    private static func hit(_ path: String) throws {
        var configuration = CacheManager.Configuration()
        // What is scheduled would come in between if the tracer makes all this slow.
        configuration.wake = { Wakeup($1) }
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: configuration)
        let cache: Cache<Int, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .days(7), options: CacheOptions(clearsOnMemoryPressure: false))
        for key in 0..<100 { cache[key] = key }
        for key in 0..<100 where cache[key] != key { say("missing") }
        var other = try Connection.open(.file(path), .init(role: .writer, busyMilliseconds: 0))
        try other.execute("BEGIN IMMEDIATE")
        var sum = 0
        for key in 0..<100 { sum += cache[key] ?? 0 }
        say("begin")
        for _ in 0..<100 {
            for key in 0..<100 { sum += cache[key] ?? 0 }
        }
        say("end")
        say(sum == 4950 * 101, cache.statistics.memoryHits)
        try other.execute("ROLLBACK")
    }

    /// Has every asynchronous form wait for a disk that is held up, and says whether the pool's one thread goes on.
    private static func holdUp(_ path: String) async throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .patient)
        let cache: Cache<Int, Int> = try manager.cache(named: "a", version: "1", maxAge: .days(7).sinceLastAccess)
        try await cache.setValues([1: 1, 2: 2])
        // Uses to write down, and something to sweep.
        for key in 1...2 { _ = try await cache.value(forKey: key) }
        let writes: [@Sendable () async throws -> Void] = [
            { try await cache.setValue(3, forKey: 3) },
            { try await cache.setValue(nil, forKey: 4) },
            { try await cache.setValues([5: 5]) },
            { try await cache.setValues([(6, 6)]) },
            { try await cache.setExtendedData(Data([1]), forKey: 1) },
            { _ = try await cache.removeValue(forKey: 2) },
            { try await cache.remove(2) },
            { try await cache.removeValues(forKeys: [2]) },
            { try await cache.removeAll() },
            { try await cache.removeAll { _ in } },
            { _ = try await cache.removeExpired() },
            { _ = try await cache.trim(toCount: 0) },
            { _ = try await cache.trim(toSize: 0) },
            { try await manager.flush() },
        ]
        let connection = Mutex(try Connection.open(.file(path), .init(role: .writer, busyMilliseconds: 0)))
        try connection.withLock { try $0.execute("BEGIN IMMEDIATE") }
        let tasks = writes.map { write in
            Task {
                try await write()
                Self.done.add(1, ordering: .relaxed)
            }
        }
        // Each of them has run up to its wait when this task comes to its turns again.
        for _ in 0..<1000 { await Task.yield() }
        // Reads are answered meanwhile.
        let seen = [
            try await cache.value(forKey: 1) == 1, try await cache.entry(forKey: 2)?.value == 2,
            try await cache.contains(1), try await cache.metadata(forKey: 1) != nil,
            try await cache.extendedData(forKey: 1) == nil, try await cache.values(forKeys: [1, 2]).count == 2,
            try await cache.snapshot().count == 2,
        ]
        say("held up", Self.done.load(ordering: .relaxed), seen.allSatisfy { $0 })
        try connection.withLock { try $0.execute("ROLLBACK") }
        for task in tasks { try await task.value }
        say("done", Self.done.load(ordering: .relaxed))
        try await manager.close()
    }
}
