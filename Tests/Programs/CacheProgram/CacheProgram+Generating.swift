import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Synchronization

/// Values that are made in a process of their own.
extension CacheProgram {
    /// For each line, a key and a size: makes a value of that size that nobody else makes, says so, waits for another line
    /// before it is given to be stored, and says what came of it.
    static func generate(_ path: String, mark: UInt8) async throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .patient)
        let cache: Cache<Int, Data> = try await manager.cache(
            named: "made", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 1000))
        func words(of entry: CacheEntry<Int, Data>?) -> String {
            guard let entry else { return "nil" }
            let marks = Set(entry.value + (entry.extendedData ?? Data()))
            return "\(entry.value.count) \(marks.sorted()) \(entry.extendedData?.count ?? -1)"
        }
        while let line = readLine() {
            let numbers = line.split(separator: " ").compactMap { Int($0) }
            guard numbers.count == 2 else {
                say(words(of: try await cache.entry(forKey: numbers[0])))
                continue
            }
            let entry = try await cache.entry(forKey: numbers[0]) { _, _ in
                say("making")
                _ = readLine()
                return .value(
                    Data(repeating: mark, count: numbers[1]), extendedData: Data(repeating: mark, count: Int(mark)))
            }
            say(words(of: entry))
        }
        try await manager.close()
    }

    /// Whether a job that blocks its thread keeps all others from running.
    ///
    /// The system looks now and then whether its threads are blocked, and may give one more just then; not every time.
    static func hasOneThread() async -> Bool {
        for _ in 0..<5 where await isHeldUpByAnother() { return true }
        return false
    }

    /// Whether one job does not run while another one blocks its thread.
    private static func isHeldUpByAnother() async -> Bool {
        let signal = DispatchSemaphore(value: 0)
        @Sendable func isBlocked() -> Bool { signal.wait(timeout: .now() + .milliseconds(500)) == .timedOut }
        let first = Task.detached { isBlocked() }
        let second = Task.detached { _ = signal.signal() }
        defer { withExtendedLifetime(second) {} }
        return await first.value
    }

    /// Has every form of a generation wait for a disk that is held up, and says whether the pool's one thread goes on.
    static func holdUpGenerators(_ path: String) async throws {
        say("one thread", await hasOneThread())
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .patient)
        let cache: Cache<Int, Int> = try await manager.cache(named: "a", version: "1", maxAge: .unlimited)
        let due: Cache<Int, Int> = try await manager.cache(named: "due", version: "1", maxAge: .days(1))
        try await due.setValue(1, forKey: 1)
        let (made, done) = (Counter(), Counter())
        let (makings, making) = AsyncStream.makeStream(of: Void.self)
        @Sendable func make(_ key: Int) -> Int {
            made.increment()
            making.yield()
            return key
        }
        @Sendable func makeLater(_ key: Int) async -> Int {
            await Task.yield()
            return make(key)
        }
        let value = cache.generator { await makeLater($0) }
        let refreshed = due.generator(GenerationPolicy(refreshAhead: 0)) { await makeLater($0) + 10 }
        let forms: [@Sendable () async throws -> Void] = [
            { _ = try await cache.value(forKey: 1) { await makeLater($0) } },
            { _ = try await cache.value(forKey: 2) { make($0) } },
            { _ = try await cache.values(forKeys: [3, 4]) { [3: await makeLater($0[0]), 4: 4] } },
            { _ = try await cache.values(forKeys: [5, 6]) { [5: make($0[0]), 6: 6] } },
            { _ = try await cache.entry(forKey: 7) { key, _ in .value(await makeLater(key)) } },
            { _ = try await value(8) },
        ]
        let connection = Mutex(try Connection.open(.file(path), .init(role: .writer, busyMilliseconds: 0)))
        try connection.withLock { try $0.execute("BEGIN IMMEDIATE") }
        let tasks = forms.map { form in
            Task {
                try await form()
                done.increment()
            }
        }
        // What is due is served, and made anew in the background.
        say("served", try await refreshed(1))
        // Suspended, so that the system sees that its one processor has nothing to do, and gives other work a thread.
        for await _ in makings where made.value == forms.count + 1 { break }
        // Whoever comes later joins, or reads.
        let joined = Task { try await cache.value(forKey: 1) { _ in -1 } }
        for _ in 0..<1000 { await Task.yield() }
        say("held up", made.value, done.value, try await cache.contains(1), try await due.value(forKey: 1) ?? 0)
        try connection.withLock { try $0.execute("ROLLBACK") }
        for task in tasks { try await task.value }
        say("done", done.value, made.value, try await joined.value)
        try await Waiting.until { !due.isGenerating }
        say("stored", Array(cache.keys), due[1] ?? 0)
        try await manager.close()
    }
}
