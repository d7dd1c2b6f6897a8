import Foundation
import Larder
import LarderLocks
import LarderSQLite
import LarderTestSupport

/// Hits in memory, tasks whose disk is held up, and a store that has no disk.
extension CacheProgram {
    /// Reads from memory, between two lines that a tracer sees, while another connection holds the lock of writers.
    static func hit(_ path: String) throws {
        // If the tracer makes all this slow, a timer would interrupt.
        let manager = try openManager(path) { $0.schedule = { _, _ in } }
        let cache: Cache<Int, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .days(7), options: CacheOptions(clearsOnMemoryPressure: false))
        for key in 0..<100 { cache[key] = key }
        for key in 0..<100 where cache[key] != key { say("missing") }
        var other = try Connection.open(
            .file(URL(fileURLWithPath: path).real.path), .init(role: .writer, busyMilliseconds: 0))
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

    // MARK: Tasks

    private typealias Numbers = Cache<Int, Int>

    /// All asynchronous forms that write.
    private static let writes: [@Sendable (Numbers) async throws -> Void] = [
        { try await $0.setValue(3, forKey: 3) },
        { try await $0.setValue(nil, forKey: 4) },
        { try await $0.setValues([5: 5]) },
        { try await $0.setValues([(6, 6)]) },
        { try await $0.update(7) { $0 = 7 } },
        { try await $0.setExtendedData(Data([1]), forKey: 1) },
        { _ = try await $0.removeValue(forKey: 2) },
        { try await $0.remove(2) },
        { try await $0.removeValues(forKeys: [2]) },
        { try await $0.removeAll() },
        { try await $0.clear() },
        { _ = try await $0.removeExpired() },
        { _ = try await $0.trim(toCount: 0) },
        { _ = try await $0.trim(toSize: 0) },
        { try await $0.manager.flush() },
        { _ = try await $0.manager.maintain() },
    ]

    /// Has all asynchronous forms wait for a disk that is held up, and prints whether the thread of the pool goes on.
    static func holdUp(_ path: String) async throws {
        say("one thread", await hasOneThread())
        let (decoded, done) = (Counter(), Counter())
        let codec = ValueCodec<Int>(identifier: "asking") {
            Data([UInt8($0)])
        } decode: { data in
            if isOnPool() { decoded.increment() }
            return Int(data[data.startIndex])
        }
        // A timer could stamp the accesses before, and one of the writes would have nothing to do.
        let manager = try openManager(path) { $0.schedule = { _, _ in } }
        let cache: Numbers = try await manager.cache(
            named: "a", version: "1", maxAge: .days(7).sinceLastAccess,
            options: CacheOptions(accessGrain: .zero, inlineLimit: 0), codec: codec)
        try await cache.setValues([1: 1, 2: 2])
        try await cache.setValue(8, forKey: 8, maxAge: .seconds(0))
        for key in 1...2 { _ = try await cache.value(forKey: key) }
        let connection = Mutex(
            try Connection.open(.file(URL(fileURLWithPath: path).real.path), .init(role: .writer, busyMilliseconds: 0)))
        try connection.withLock { try $0.execute("BEGIN IMMEDIATE") }
        let tasks = writes.map { write in
            Task {
                try await write(cache)
                done.increment()
            }
        }
        // Each task has run up to its wait when this one has its turn again.
        for _ in 0..<1000 { await Task.yield() }
        // Reads are answered in the meantime.
        let found = [
            try await cache.value(forKey: 1) == 1, try await cache.entry(forKey: 2)?.value == 2,
            try await cache.contains(1), try await cache.metadata(forKey: 1) != nil,
            try await cache.extendedData(forKey: 1) == nil, try await cache.values(forKeys: [1, 2]).count == 2,
        ]
        say("held up", done.value, found.allSatisfy { $0 }, "decoded on pool", decoded.value)
        try connection.withLock { try $0.execute("ROLLBACK") }
        for task in tasks { try await task.value }
        say("done", done.value)
        try await manager.close()
    }

    /// Returns whether this thread keeps all tasks from running while it waits.
    private static func isOnPool() -> Bool {
        let signal = DispatchSemaphore(value: 0)
        let task = Task.detached { _ = signal.signal() }
        defer { withExtendedLifetime(task) {} }
        return signal.wait(timeout: .now() + .seconds(2)) == .timedOut
    }

    /// Returns whether a job that blocks its thread keeps all others from running.
    ///
    /// The system looks now and then whether its threads are blocked, and may add one at that moment.
    private static func hasOneThread() async -> Bool {
        for _ in 0..<5 where await isHeldUpByAnother() { return true }
        return false
    }

    /// Returns whether one job does not run while another one blocks its thread.
    private static func isHeldUpByAnother() async -> Bool {
        let signal = DispatchSemaphore(value: 0)
        @Sendable func isBlocked() -> Bool { signal.wait(timeout: .now() + .milliseconds(500)) == .timedOut }
        let first = Task.detached { isBlocked() }
        let second = Task.detached { _ = signal.signal() }
        defer { withExtendedLifetime(second) {} }
        return await first.value
    }

    // MARK: Memory alone

    /// Does everything with a store in memory, between two lines that a tracer sees.
    static func stayInMemory(_ folder: String) throws {
        var configuration = CacheManager.Configuration()
        configuration.sizeLimit = 40_000_000
        configuration.freeSpaceFloor = .max
        configuration.durability = .powerLoss
        configuration.log = { if $0.level > .info { say($0) } }
        // The system reads files when it is first asked for threads.
        DispatchQueue.global().sync {}
        say("begin")
        let manager = try CacheManager.inMemory(configuration: configuration)
        let cache: Cache<String, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .days(1),
            options: CacheOptions(
                memory: .disabled, disk: DiskLimits(countLimit: 3000, sizeLimit: 30_000_000), inlineLimit: 0,
                fileName: { "name \($0)" }))
        // The keys alone are so long that they are much to sort.
        func key(_ number: Int) -> String { "\(number) " + String(repeating: "k", count: 2000) }
        for number in 0..<4000 { try cache.setValue(Data(count: 5000), forKey: key(number)) }
        try cache.setValues((0..<20).map { (key($0), Data(count: 1_000_000)) })
        for order in [EntryOrder.written, .accessed, .size] {
            say(cache.entries(orderedBy: order).contains { _ in true })
        }
        say(try !cache.snapshot().isEmpty, try cache.fileURL(forKey: key(19)) == nil)
        say(try cache.value(forKey: key(19))?.count ?? 0)
        try cache.update(key(19)) { $0 = Data(count: 2_000_000) }
        try manager.transaction { try $0.setValue(Data(count: 100_000), forKey: key(1), in: cache) }
        try cache.trim(toCount: 10)
        try manager.flush()
        try manager.maintain()
        say(try manager.verify(repairing: true).isHealthy, manager.url == nil)
        try cache.removeAll()
        try manager.maintain()
        try manager.close()
        say("end", try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }
}
