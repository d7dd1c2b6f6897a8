import Foundation
import Larder
import LarderTestSupport
import Testing

/// Calls for single keys that become calls for many.
struct BatchLoaderTests {
    private let bench: Workbench
    private let calls = Locked<[[Int]]>([])
    private let gate = LoadGate()

    init() throws { bench = try Workbench() }

    /// A loader that notes its calls, and has no value for negative keys.
    private func loader(
        _ cache: Cache<Int, String>, _ policy: GenerationPolicy = .init(), limit: Int = 100, waits: Bool = false
    ) -> ValueGenerator<Int, String?> {
        cache.batching(policy, window: .milliseconds(2), limit: limit) { [calls, gate] keys in
            let number = calls.change { calls in
                calls.append(keys)
                return calls.count
            }
            if waits { try await gate.waitInTask() }
            if keys.contains(-13) { throw Offline() }
            return Dictionary(uniqueKeysWithValues: keys.filter { $0 >= 0 }.map { ($0, .value("\($0) of \(number)")) })
        }
    }

    /// Waits until a window is open, which has a timer; time stands.
    private func waitForWindow() async throws { try await Waiting.until { bench.time.pendingCount > 0 } }

    @Test func `calls within a window become one, and each caller gets its value`() async throws {
        let cache = try bench.numbers()
        let value = loader(cache)
        let values = Task {
            try await withThrowingTaskGroup(of: (Int, String?).self) { group in
                for key in 0..<50 { group.addTask { (key, try await value(key)) } }
                // A key that is asked for twice is loaded once.
                group.addTask { (0, try await value(0)) }
                return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
        }
        try await Waiting.until {
            bench.time.advance(by: .milliseconds(2))
            return cache.statistics.writes == 50
        }
        let found = try await values.value
        let asked = calls.value.flatMap { $0 }
        #expect(asked.count == 50 && Set(asked) == Set(0..<50))
        for (number, keys) in calls.value.enumerated() {
            for key in keys { #expect(found[key] == "\(key) of \(number + 1)") }
        }
        #expect(try await value(7) == found[7] ?? nil && calls.value.flatMap { $0 }.count == 50)
    }

    @Test func `a full window does not wait`() async throws {
        let cache = try bench.numbers()
        let value = loader(cache, limit: 10)
        try await withThrowingTaskGroup(of: Void.self) { group in
            // Time stands, so nothing else begins a call.
            for key in 0..<40 { group.addTask { _ = try await value(key) } }
            try await group.waitForAll()
        }
        #expect(calls.value.map { $0.count } == [10, 10, 10, 10])
        #expect(try await cache.snapshot().count == 40)
    }

    @Test func `a key without an answer has no value, and an error goes to those who asked`() async throws {
        let cache = try bench.numbers()
        let value = loader(cache, limit: 2)
        async let one = value(1)
        async let none = value(-1)
        #expect(try await one == "1 of 1")
        #expect(try await none == nil)
        async let good = result(value, 2)
        async let bad = result(value, -13)
        for result in await [good, bad] { #expect(throws: Offline.self) { try result.get() } }
        async let again = value(2)
        async let other = value(3)
        #expect(try await again == "2 of 3")
        #expect(try await other == "3 of 3")
    }

    private func result(_ value: ValueGenerator<Int, String?>, _ key: Int) async -> Result<String?, any Error> {
        do { return .success(try await value(key)) } catch { return .failure(error) }
    }

    @Test func `a caller that is cancelled takes its key out of the window, and out of a call that runs`() async throws
    {
        let cache = try bench.numbers()
        let value = loader(cache, limit: 3, waits: true)
        defer { gate.open() }
        let gone = Task { try await value(1) }
        try await waitForWindow()
        gone.cancel()
        await #expect(throws: CancellationError.self) { try await gone.value }
        try await Waiting.until { bench.time.pendingCount == 0 }
        let tasks = (2...4).map { key in Task { try await value(key) } }
        try await Waiting.until { calls.value.count == 1 }
        #expect(Set(calls.value[0]) == [2, 3, 4])
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        gate.open()
        #expect(try await tasks[1].value == "3 of 1")
        #expect(try await tasks[2].value == "4 of 1")
        #expect(cache.statistics.writes == 2)
    }

    @Test func `a call whose callers have all left is cancelled`() async throws {
        let cache = try bench.numbers()
        let ended = LoadGate()
        let begun = LoadGate()
        let value = cache.batching(limit: 2) { keys in
            begun.open()
            do {
                try await LoadGate().waitInTask()
            } catch {
                ended.open()
                throw error
            }
            return [:]
        }
        let tasks = [1, 2].map { key in Task { try await value(key) } }
        try await begun.waitInTask()
        for task in tasks { task.cancel() }
        try await ended.waitInTask()
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    }

    enum Overtaking: CaseIterable, Sendable { case write, removal, removalOfAll, inWindow }

    @Test(arguments: Overtaking.allCases)
    func `a key that is written or removed in the meantime is overtaken`(overtaking: Overtaking) async throws {
        let cache = try bench.numbers()
        let value = loader(cache, limit: 2, waits: true)
        defer { gate.open() }
        let one = Task { try await value(1) }
        try await waitForWindow()
        if overtaking == .inWindow { try await cache.removeValue(forKey: 1) }
        let two = Task { try await value(2) }
        try await Waiting.until { !calls.value.isEmpty }
        switch overtaking {
        case .write: try await cache.setValue("written", forKey: 1)
        case .removal: try await cache.removeValue(forKey: 1)
        case .removalOfAll: try await cache.removeAll()
        case .inWindow: break
        }
        gate.open()
        #expect(try await one.value == "1 of 1")
        #expect(try await two.value == "2 of 1")
        #expect(cache[1] == (overtaking == .write ? "written" : nil))
        #expect(cache[2] == (overtaking == .removalOfAll ? nil : "2 of 1"))
    }

    @Test func `refreshes are gathered too`() async throws {
        let cache = try bench.numbers(.minutes(1))
        for key in 1...3 { cache[key] = "old" }
        let value = loader(cache, GenerationPolicy(staleFor: .seconds(600)), limit: 3)
        bench.time.advance(by: .seconds(61))
        for key in 1...3 { #expect(try await value(key) == "old") }
        try await Waiting.until { !cache.isGenerating }
        #expect(calls.value.count == 1 && Set(calls.value[0]) == [1, 2, 3])
        for key in 1...3 { #expect(cache[key] == "\(key) of 1") }
    }

    @Test func `a closure that asks for one of its keys is refused, and does not wait for itself`() async throws {
        let cache = try bench.numbers()
        let value = cache.batching(limit: 2) { keys in
            _ = try await cache.value(forKey: keys[1]) { _ in "inner" }
            return [:]
        }
        async let one = result(value, 1)
        async let two = result(value, 2)
        for result in await [one, two] {
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == .recursiveGeneration)
        }
    }

    @Test func `a manager that is suspended in a window stores nothing, and its callers get their values`() async throws
    {
        let cache = try bench.numbers()
        let value = loader(cache, limit: 2)
        let one = Task { try await value(1) }
        try await waitForWindow()
        try await bench.manager.suspend()
        bench.time.advance(by: .milliseconds(2))
        #expect(try await one.value == "1 of 1")
        bench.manager.resume()
        #expect(try await cache.value(forKey: 1) == nil)
    }

    @Test(arguments: [(Duration.milliseconds(-1), 1), (.zero, 0)])
    func `a window or a limit that makes no sense is refused`(window: Duration, limit: Int) async throws {
        let cache = try bench.numbers()
        let value = cache.batching(window: window, limit: limit) { _ in [:] }
        let error = await #expect(throws: CacheError.self) { try await value(1) }
        #expect(error?.code == .invalidConfiguration)
    }
}
