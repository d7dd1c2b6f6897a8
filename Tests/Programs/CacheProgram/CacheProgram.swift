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
            case "work":
                try work(arguments[1], seed: arguments[2], version: arguments[3], durability: arguments[4])
            case "share": try share(arguments[1], seed: arguments[2], place: arguments[3])
            case "record": try record(arguments[1], seed: arguments[2], durability: arguments[3], steps: arguments[4])
            case "make-for-damage": try DamageRig.make(arguments[1])
            case "damage":
                try DamageRig.run(
                    arguments[1], in: arguments[2], seed: UInt64(arguments[3]) ?? 1, rounds: Int(arguments[4]) ?? 0)
            case "damage-by-name":
                var rig = try NamedDamage(arguments[1], seed: UInt64(arguments[2]) ?? 1)
                try rig.run(rounds: Int(arguments[3]) ?? 0)
            case "mix":
                say("mixing")
                let mixture = try Mixture(
                    URL(fileURLWithPath: arguments[1]), rounds: Int(arguments[2]) ?? 1, reads: arguments[3] == "true")
                try mixture.run()
                say("mixed")
            case "pass": try await pass(arguments[1])
            case "count": try count(arguments[1], threads: 6)
            case "hit": try hit(arguments[1])
            case "hold-up": try await holdUp(arguments[1])
            case "hold-up-files": try await holdUpFiles(arguments[1])
            case "hold-up-reads": try await holdUpReads(arguments[1])
            case "in-memory": try stayInMemory(arguments[1])
            case "pressure": try pressure(arguments[1])
            case "generate": try await generate(arguments[1], mark: UInt8(arguments[2]) ?? 0)
            case "fill": try fill(arguments[1])
            case "evict-when-full":
                try await evictWhenFull(
                    arguments[1], isLarge: arguments[2] == "large", isExpired: arguments[3] == "expired")
            case "reopen-full": try reopenFull(arguments[1], durability: arguments[2])
            case "empty": try empty(arguments[1], arguments[2])
            case "sink": try sink(arguments[1], floor: arguments.dropFirst(2).first.flatMap(Int64.init))
            case "hold-floor": try holdFloor(arguments[1], floor: Int64(arguments[2]) ?? 0)
            case "leave-log": try leaveLog(arguments[1])
            case "open-damaged": try openDamaged(arguments[1], count: Int(arguments[2]) ?? 0)
            case "salvage-full": try salvageFull(arguments[1])
            case "save-and-wait": try saveAndWait(arguments[1])
            case "read-as-nobody": try readAsNobody(arguments[1])
            case "open-as-nobody": try openAsNobody(arguments[1])
            case "read-without-descriptors": try readWithoutDescriptors(arguments[1])
            default: exit(2)
            }
        } catch {
            say("error", error)
        }
    }

    private static func configuration(_ durability: String) -> CacheManager.Configuration {
        var configuration = CacheManager.Configuration()
        configuration.durability = durability == "powerLoss" ? .powerLoss : .processCrash
        return configuration
    }

    /// Does seeded work, and says the number of each step that was acknowledged.
    private static func work(_ path: String, seed: String, version: String, durability: String) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: configuration(durability))
        var caches = try MixedCaches(manager, version: Int(version) ?? 1)
        var work = MixedWork(seed: UInt64(seed) ?? 1)
        for number in 1...100_000 {
            try caches.perform(work.next())
            say(number)
        }
    }

    /// Does seeded work beside other processes, some of it on keys of its own, and says the number of each step that was
    /// acknowledged.
    private static func share(_ path: String, seed: String, place: String) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .patient)
        var caches = try MixedCaches(manager, version: 1)
        var contended = try ContendedCaches(manager, version: nil)
        let seed = UInt64(seed) ?? 1
        var work = MixedWork(seed: seed, place: Int(place) ?? 0)
        var contendedWork = ContendedWork(seed: seed &+ 1)
        for number in 1...100_000 {
            try caches.perform(work.next())
            try contended.perform(contendedWork.next())
            say(number)
        }
    }

    /// Does so many steps of seeded work under a tracer, copies the log now and then, says the number of each step that was
    /// acknowledged, and closes.
    private static func record(_ path: String, seed: String, durability: String, steps: String) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: configuration(durability))
        var caches = try MixedCaches(manager, version: 1)
        var work = MixedWork(seed: UInt64(seed) ?? 1)
        for number in 1...(Int(steps) ?? 1) {
            try caches.perform(work.next())
            if number % MixedWork.stepsPerCopy == 0 { try manager.maintain() }
            say(number)
        }
        try manager.close()
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

    /// Tells the sub-caches of this process of pressure, as its watcher does when the system says so.
    private static func pressure(_ path: String) throws {
        let watcher = PressureWatcher.shared
        let manager = try CacheManager(url: URL(fileURLWithPath: path))
        func cache(_ name: String, _ clears: Bool) throws -> Cache<Int, Int> {
            try manager.cache(
                named: name, version: "1", maxAge: .unlimited, options: CacheOptions(clearsOnMemoryPressure: clears))
        }
        do {
            let (wanting, other) = (try cache("wanting", true), try cache("other", false))
            for key in 0..<10 { (wanting[key], other[key]) = (key, key) }
            say("members", watcher.memberCount)
            watcher.notify(.critical)
            say("left", wanting.memory.count, other.memory.count)
            // The latest open says.
            let again = try cache("wanting", false)
            for key in 0..<10 { _ = again[key] }
            watcher.notify(.critical)
            say("reopened", wanting.memory.count)
        }
        say("members", watcher.memberCount)
        try manager.close()
    }

    /// Has every asynchronous form wait for a disk that is held up, and says whether the pool's one thread goes on.
    private static func holdUp(_ path: String) async throws {
        say("one thread", await hasOneThread())
        var configuration = CacheManager.Configuration.patient
        // Were the uses written down by a timer before the disk is held up, one of the writes would have nothing to do.
        configuration.wake = { Wakeup($1) }
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: configuration)
        let cache: Cache<Int, Int> = try await manager.cache(
            named: "a", version: "1", maxAge: .days(7).sinceLastAccess, options: CacheOptions(accessGrain: .zero))
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
            { try await cache.clear() },
            { _ = try await cache.removeExpired() },
            { _ = try await cache.trim(toCount: 0) },
            { _ = try await cache.trim(toSize: 0) },
            { try await manager.flush() },
            { _ = try await manager.maintain() },
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
