import Foundation
import Larder
import LarderTestSupport
import Testing

/// Callers that share loads, leave them, or begin others inside of them.
struct LoadsTests {
    private let bench: Workbench
    private let begun = LoadGate()
    private let gate = LoadGate()

    init() throws { bench = try Workbench() }

    // MARK: - Joining

    @Test(arguments: LoadForm.allCases)
    func `callers share a load that runs, and synchronous callers only that of another thread`(
        leader: LoadForm
    ) async throws {
        let cache = try bench.numbers()
        let (begun, gate, other) = (begun, gate, LoadGate())
        let joining = leader.isOnThread ? LoadForm.allCases : LoadForm.asynchronous
        try await withThrowingTaskGroup(of: String?.self) { group in
            defer { gate.open() }
            group.addTask { try await leader.load("shared", in: cache, begun: begun, gate: gate) }
            try await begun.waitInTask()
            for form in joining {
                group.addTask { try await form.load("other", in: cache, begun: other) }
            }
            // A caller whose closure runs on its own thread does not wait.
            let count = joining.count + (leader.isOnThread ? 0 : 1)
            try await Waiting.until { cache.waitingCallers == count }
            gate.open()
            for try await value in group { #expect(value == "shared") }
        }
        #expect(!other.isOpen)
        #expect(cache.statistics.writes == 1 && cache[1] == "shared")
        #expect(!cache.isGenerating && cache.waitingCallers == 0)
    }

    @Test func `ten thousand callers share one load`() async throws {
        let cache = try bench.numbers()
        let (gate, calls) = (gate, Counter())
        try await withThrowingTaskGroup(of: String.self) { group in
            defer { gate.open() }
            for _ in 0..<10_000 {
                group.addTask {
                    try await cache.value(forKey: 1) { _ in
                        calls.increment()
                        try await gate.waitInTask()
                        return "one"
                    }
                }
            }
            try await Waiting.until { cache.waitingCallers == 10_000 }
            gate.open()
            for try await value in group where value != "one" { Issue.record("\(value)") }
        }
        #expect(calls.value == 1 && cache.statistics.writes == 1)
    }

    @Test(arguments: [LoadForm.value, .valueInTask])
    func `other keys are loaded, read and written while a load runs`(form: LoadForm) async throws {
        let cache = try bench.numbers()
        async let one = form.load("one", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        #expect(try await cache.value(forKey: 2) { _ in "two" } == "two")
        #expect(try await onThread { try cache.value(forKey: 3) { _ in "three" } } == "three")
        cache[4] = "four"
        #expect(try await cache.snapshot() == [2: "two", 3: "three", 4: "four"])
        gate.open()
        #expect(try await one == "one")
    }

    @Test(arguments: [false, true])
    func `all callers of a load get its error`(isOnThread: Bool) async throws {
        let cache = try bench.numbers()
        let (begun, gate) = (begun, gate)
        @Sendable func load() async throws -> String {
            if isOnThread {
                return try await onThread {
                    try cache.value(forKey: 1) { _ in
                        begun.open()
                        try gate.wait()
                        throw Offline()
                    }
                }
            }
            return try await cache.value(forKey: 1) { _ in
                begun.open()
                try await gate.waitInTask()
                throw Offline()
            }
        }
        let callers = (0..<5).map { _ in Task { try await load() } }
        defer { gate.open() }
        try await Waiting.until { cache.waitingCallers == (isOnThread ? 4 : 5) }
        gate.open()
        for caller in callers { await #expect(throws: Offline.self) { try await caller.value } }
        #expect(try cache.isEmpty && cache.statistics.writes == 0)
        #expect(try await cache.value(forKey: 1) { _ in "one" } == "one")
    }

    // MARK: - Cancellation

    @Test func `a cancelled caller throws at once, and the other callers get the value`() async throws {
        let cache = try bench.numbers()
        let (begun, gate) = (begun, gate)
        defer { gate.open() }
        let callers = (0..<2).map { _ in
            Task { try await LoadForm.valueInTask.load("one", in: cache, begun: begun, gate: gate) }
        }
        try await Waiting.until { cache.waitingCallers == 2 }
        callers[0].cancel()
        // The gate is closed, so only the cancellation ends this.
        await #expect(throws: CancellationError.self) { try await callers[0].value }
        #expect(cache.waitingCallers == 1 && cache.isGenerating)
        gate.open()
        #expect(try await callers[1].value == "one")
        #expect(cache[1] == "one")
    }

    @Test(arguments: LoadForm.asynchronous)
    func `a caller that is cancelled while it waits for a thread's load throws at once`(form: LoadForm) async throws {
        let cache = try bench.numbers()
        let (begun, gate) = (begun, gate)
        async let value = LoadForm.value.load("one", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        let caller = Task { try await form.load("other", in: cache) }
        try await Waiting.until { cache.waitingCallers == 1 }
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
        gate.open()
        #expect(try await value == "one")
        #expect(cache[1] == "one")
    }

    @Test func `a load is cancelled when its last caller has left, and the next call begins another`() async throws {
        let cache = try bench.numbers()
        let (begun, gate, ended) = (begun, gate, LoadGate())
        defer { gate.open() }
        let callers = (0..<3).map { _ in
            Task {
                try await cache.value(forKey: 1) { _ in
                    begun.open()
                    // It goes on though it is cancelled.
                    try await Task.detached { try await gate.waitInTask() }.value
                    #expect(Task.isCancelled)
                    ended.open()
                    return "late"
                }
            }
        }
        try await Waiting.until { cache.waitingCallers == 3 }
        try await begun.waitInTask()
        for caller in callers { caller.cancel() }
        for caller in callers { await #expect(throws: CancellationError.self) { try await caller.value } }
        #expect(!cache.isGenerating && cache.waitingCallers == 0)
        #expect(try await cache.value(forKey: 1) { _ in "next" } == "next")
        gate.open()
        try await ended.waitInTask()
        #expect(try await cache.value(forKey: 1) == "next")
        #expect(cache.statistics.writes == 1)
    }

    @Test func `a call that is cancelled before it begins runs no closure`() async throws {
        let cache = try bench.numbers()
        let runs = Counter()
        for _ in 0..<100 {
            let caller = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await cache.value(forKey: 1) { _ in
                    runs.increment()
                    return "never"
                }
            }
            await #expect(throws: CancellationError.self) { try await caller.value }
        }
        #expect(runs.value == 0 && !cache.isGenerating)
        #expect(try cache.isEmpty)
    }

    // MARK: - Loads inside of loads

    @Test func `a closure may use the cache, and the same key of another cache`() async throws {
        let (cache, words) = (try bench.numbers(), try bench.words())
        let others: Cache<Int, String> = try await bench.manager.cache(
            named: "others", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
        let text = try await cache.value(forKey: 1) { key in
            cache[5] = "five"
            let two = try await cache.value(forKey: 2) { _ in "two" }
            let many = try await cache.values(forKeys: [2, 3]) { _ in [3: "three"] }
            let other = try await others.value(forKey: key) { _ in "other" }
            let number = try await words.value(forKey: "1") { _ in 1 }
            return "\(two) \(many.count) \(other) \(number)"
        }
        #expect(text == "two 2 other 1")
        #expect(Array(cache.keys) == [1, 2, 3, 5])
        #expect(others[1] == "other" && words["1"] == 1)
    }

    /// A load that asks for a key of its own.
    enum Circle: CaseIterable {
        case inTask, inChildTask, inOtherForm, overAnotherKey, amongMany, ofOtherHandle
        case onThread, onThreadOverAnotherKey, onThreadInTask, onThreadAmongMany

        func run(_ cache: Cache<Int, String>, _ other: Cache<Int, String>) async throws {
            switch self {
            case .inTask:
                _ = try await cache.value(forKey: 1) { _ in try await cache.value(forKey: 1) { _ in "never" } }
            case .inChildTask:
                _ = try await cache.value(forKey: 1) { _ in
                    async let inner = cache.value(forKey: 1) { _ in "never" }
                    return try await inner
                }
            case .inOtherForm:
                _ = try await cache.value(forKey: 1) { _ in
                    try await cache.entry(forKey: 1) { _, _ in .value("never") }.value
                }
            case .overAnotherKey:
                _ = try await cache.value(forKey: 1) { _ in
                    try await cache.value(forKey: 2) { _ in try await cache.value(forKey: 1) { _ in "never" } }
                }
            case .amongMany:
                _ = try await cache.values(forKeys: [1, 2]) { _ in
                    [1: try await cache.value(forKey: 2) { _ in "never" }]
                }
            case .ofOtherHandle:
                _ = try await cache.value(forKey: 1) { _ in try await other.value(forKey: 1) { _ in "never" } }
            case .onThreadInTask:
                _ = try await cache.value(forKey: 1) { _ in try Self.onThread.runOnThread(cache) }
            default: try await LarderTestSupport.onThread { _ = try runOnThread(cache) }
            }
        }

        private func runOnThread(_ cache: Cache<Int, String>) throws -> String {
            switch self {
            case .onThreadOverAnotherKey:
                try cache.value(forKey: 1) { _ in
                    try cache.value(forKey: 2) { _ in try cache.value(forKey: 1) { _ in "never" } }
                }
            case .onThreadAmongMany:
                try cache.values(forKeys: [1, 2]) { _ in [1: try cache.value(forKey: 2) { _ in "never" }] }[1] ?? ""
            default: try cache.value(forKey: 1) { _ in try cache.value(forKey: 1) { _ in "never" } }
            }
        }
    }

    @Test(arguments: Circle.allCases)
    func `a closure that asks for a key of its own load gets an error`(circle: Circle) async throws {
        let (cache, other) = (try bench.numbers(), try bench.numbers())
        let error = await #expect(throws: CacheError.self) { try await circle.run(cache, other) }
        #expect(error?.code == .recursiveGeneration)
        #expect(!cache.isGenerating && cache.waitingCallers == 0)
        #expect(try cache.isEmpty)
    }
}
