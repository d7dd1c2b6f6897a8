import Foundation
import Larder
import LarderSQLite
import LarderTestSupport

/// Reads of tasks, while nobody can read, and of files that are gone.
extension CacheProgram {
    private typealias Numbers = Cache<Int, Data>

    /// Every form in which a task reads, of a key whose value is one byte; whether it found that.
    private static let reads: [@Sendable (Numbers, Int) async throws -> Bool] = [
        { try await $0.value(forKey: $1) == Data([1]) },
        { try await $0.entry(forKey: $1)?.value == Data([1]) },
        { try await $0.disk.value(forKey: $1) == Data([1]) },
        { try await $0.values(forKeys: [$1])[$1] == Data([1]) },
        { try await $0.snapshot()[$1] == Data([1]) },
        { cache, key in
            for try await (other, value) in cache.async where other == key { return value == Data([1]) }
            return false
        },
        { try await $0.removeValue(forKey: $1) == Data([1]) },
        { try await $0.value(forKey: $1) { _ in Data([2]) } == Data([1]) },
        { try await $0.values(forKeys: [$1]) { _ in [:] }[$1] == Data([1]) },
        { try await $0.entry(forKey: $1) { _, _ in .value(Data([2])) }.value == Data([1]) },
        { try await $0.generator { _ in Data([2]) }($1) == Data([1]) },
    ]

    /// The forms that read no value.
    private static let looks: [@Sendable (Numbers, Int) async throws -> Bool] = [
        { try await $0.metadata(forKey: $1)?.size == 2 },
        { try await $0.extendedData(forKey: $1) == Data([3]) },
        { try await $0.contains($1) },
    ]

    private static func numbers(_ manager: CacheManager, inlineLimit: Int) throws -> Numbers {
        try manager.cache(
            named: "a", version: "1", maxAge: .days(7),
            options: CacheOptions(memory: .disabled, inlineLimit: inlineLimit))
    }

    /// Has every asynchronous form read while all readers are taken, and says whether the pool's one thread goes on.
    static func holdUpReads(_ path: String) async throws {
        say("one thread", await hasOneThread())
        let told = Told<String>()
        let (all, done) = (reads + looks, Counter())
        var configuration = configuration { message in
            if message.level > .debug { told.add(isOnPool() ? message.text : "") }
        }
        configuration.busyTimeout = .seconds(120)
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: configuration)
        let rows = try numbers(manager, inlineLimit: .max)
        for key in all.indices { try await rows.setValue(Data([1]), forKey: key, extendedData: Data([3])) }
        let (taken, gate, isOver) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0), Counter())
        let store = try manager.store()
        let holder = SideThread {
            store.withoutReaders {
                taken.continuation.finish()
                // A thread of the pool that waits for this would wait for ever.
                if gate.wait(timeout: .now() + .seconds(30)) == .timedOut { isOver.increment() }
            }
        }
        for await _ in taken.stream {}
        let tasks = all.indices.map { key in
            Task {
                defer { done.increment() }
                return try await all[key](rows, key)
            }
        }
        // Each of them has run up to its wait when this task comes to its turns again.
        for _ in 0..<1000 { await Task.yield() }
        say("held up", done.value, isOver.value)
        gate.signal()
        var seen: [Bool] = []
        for task in tasks { seen.append(try await task.value) }
        say("done", done.value, seen.allSatisfy { $0 })
        try await onThread { try holder.value() }
        try await lookForFiles(manager, told)
        try await manager.close()
    }

    /// Which of the reads is the pass.
    private static let pass = 5

    /// Has every form read a file that is gone, and the pass one that cannot be had for now: the log hears of that on the
    /// thread that looked for it.
    private static func lookForFiles(_ manager: CacheManager, _ told: Told<String>) async throws {
        let files = try numbers(manager, inlineLimit: 0)
        for key in reads.indices.map({ 100 + $0 }) {
            try await files.setValue(Data([1]), forKey: key)
            guard let url = try await files.fileURL(forKey: key) else { return say("no file") }
            let lease = key == 100 + pass ? lease(url.path) : -1
            defer { close(lease) }
            if lease < 0 { try FileManager.default.removeItem(at: url) }
            do {
                if try await reads[key - 100](files, key) { say("found", key) }
            } catch {
                say(key, error)
            }
        }
        say("told", told.all.count, told.all.filter { !$0.isEmpty })
    }

    /// Keeps others from opening a file until what comes back is closed.
    private static func lease(_ path: String) -> Int32 {
        // What F_SETLEASE is on Linux, which tells by a signal that somebody wants to.
        let setLease: Int32 = 1024
        signal(SIGIO, SIG_IGN)
        let descriptor = open(path, O_RDONLY)
        if fcntl(descriptor, setLease, Int32(F_WRLCK)) != 0 { say("no lease") }
        return descriptor
    }

    /// Whether this thread keeps all tasks from running while it waits.
    static func isOnPool() -> Bool {
        let signal = DispatchSemaphore(value: 0)
        let task = Task.detached { _ = signal.signal() }
        defer { withExtendedLifetime(task) {} }
        return signal.wait(timeout: .now() + .seconds(2)) == .timedOut
    }

    /// Does everything with a store in memory, between two lines that a tracer sees.
    static func stayInMemory(_ folder: String) throws {
        var configuration = CacheManager.Configuration()
        configuration.sizeLimit = 40_000_000
        configuration.freeSpaceFloor = .max
        configuration.durability = .powerLoss
        configuration.log = { if $0.level > .debug { say($0) } }
        // What the system reads when it is first asked for threads and for the time.
        DispatchQueue.global().sync {}
        say("begin")
        let manager = try CacheManager.inMemory(configuration: configuration)
        let cache: Cache<String, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .days(1),
            options: CacheOptions(
                memory: .disabled, disk: DiskLimits(countLimit: 3000, sizeLimit: 30_000_000), inlineLimit: 0,
                fileName: { "name \($0)" }))
        // So long that the keys alone are much to sort.
        func key(_ number: Int) -> String { "\(number) " + String(repeating: "k", count: 2000) }
        for number in 0..<4000 { try cache.setValue(Data(count: 5000), forKey: key(number)) }
        try cache.setValues((0..<20).map { (key($0), Data(count: 1_000_000)) })
        for order in [EntryOrder.written, .accessed, .size] {
            say(cache.entries(orderedBy: order).count { _ in true } > 0)
        }
        say(try cache.snapshot().count > 0, try cache.fileURL(forKey: key(19)) == nil)
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
