import Larder
import LarderTestSupport
import Testing

struct LoadsTests {
    private struct Failure: Error, Equatable {}

    private let cache = LoadCache()
    private let gate = LoadGate()
    private let runs = Counter()

    /// A generator that waits at the gate.
    private func slow(_ value: String) -> @Sendable (Int) async throws -> String {
        { [gate, runs] _ in
            runs.increment()
            try await gate.pass()
            return value
        }
    }

    @Test func `case 256: what is missing is made, stored and given`() async throws {
        #expect(try await cache.value(1) { "made \($0)" } == "made 1")
        #expect(cache[1] == "made 1" && cache.storings.value == 1)
        #expect(try await cache.value(1) { _ in "again" } == "made 1")
        #expect(try cache.syncValue(2) { "made \($0)" } == "made 2")
        #expect(cache[2] == "made 2" && cache.storings.value == 2)
        #expect(cache.loads.isIdle)
    }

    @Test func `ten thousand callers of one key are one generation`() async throws {
        let cache = cache
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<10_000 { group.addTask { [self] in try await cache.value(1, generate: slow("one")) } }
            try await cache.waiting(10_000)
            gate.open()
            for try await value in group { if value != "one" { Issue.record("\(value)") } }
        }
        #expect(runs.value == 1 && cache.storings.value == 1 && cache.loads.isIdle)
    }

    @Test func `case 260: other keys are not blocked`() async throws {
        async let one = cache.value(1, generate: slow("one"))
        try await cache.waiting(1)
        #expect(try await cache.value(2) { _ in "two" } == "two")
        #expect(try cache.syncValue(3) { _ in "three" } == "three")
        gate.open()
        #expect(try await one == "one")
    }

    @Test func `case 262: all who wait get the error, nothing is stored, and the next call tries again`() async throws {
        let cache = cache
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<5 {
                group.addTask { [gate] in
                    await #expect(throws: Failure()) {
                        try await cache.value(1) { _ in
                            try await gate.pass()
                            throw Failure()
                        }
                    }
                }
            }
            try await cache.waiting(5)
            gate.open()
            try await group.waitForAll()
        }
        #expect(cache[1] == nil && cache.storings.value == 0)
        #expect(throws: Failure()) { try cache.syncValue(1) { _ in throw Failure() } }
        #expect(try await cache.value(1) { _ in "one" } == "one")
    }

    // MARK: - Cancellation

    @Test func `a cancelled caller leaves at once, and the others get the value`() async throws {
        let cache = cache
        let first = Task { try await cache.value(1, generate: slow("one")) }
        try await cache.waiting(1)
        let second = Task { try await cache.value(1, generate: slow("one")) }
        try await cache.waiting(2)
        first.cancel()
        // The gate is closed: nothing but the cancellation ends this.
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(cache.loads.waitingCount == 1)
        gate.open()
        #expect(try await second.value == "one")
        #expect(runs.value == 1)
    }

    @Test func `the generation is cancelled when the last caller has left, and its value is dropped`() async throws {
        let (cache, begun, ended) = (cache, Counter(), LoadGate())
        let callers = (0..<3).map { _ in
            Task {
                try await cache.value(1) { _ in
                    begun.increment()
                    defer { ended.open() }
                    await withTaskCancellationHandler {
                        do { try await gate.pass() } catch {}
                    } onCancel: {
                    }
                    #expect(Task.isCancelled)
                    return "late"
                }
            }
        }
        try await cache.waiting(3)
        try await Waiting.until { begun.value == 1 }
        for caller in callers { caller.cancel() }
        for caller in callers { await #expect(throws: CancellationError.self) { try await caller.value } }
        #expect(try await cache.value(1) { _ in "next" } == "next")
        try await ended.pass()
        try await Waiting.until { cache.loads.isIdle }
        #expect(cache[1] == "next")
    }

    @Test func `a call that was cancelled before it began runs nothing`() async {
        let cache = cache
        let caller = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await cache.value(1, generate: slow("one"))
        }
        await #expect(throws: CancellationError.self) { try await caller.value }
        #expect(runs.value == 0 && cache.loads.isIdle)
    }

    // MARK: - Late results

    @Test(arguments: ["set", "remove", "clear"])
    func `what was written meanwhile is not overwritten, and a later caller begins anew`(how: String) async throws {
        let cache = cache
        async let late = cache.value(1, generate: slow("late"))
        // Behind its own look whether there is a value.
        try await Waiting.until { runs.value == 1 }
        switch how {
        case "set": cache[1] = "set"
        case "remove": cache[1] = nil
        default: cache.removeAll()
        }
        #expect(try await cache.value(1) { _ in "new" } == (how == "set" ? "set" : "new"))
        gate.open()
        #expect(try await late == "late")
        #expect(cache[1] == (how == "set" ? "set" : "new"))
    }

    @Test func `what was evicted meanwhile is stored`() async throws {
        let cache = cache
        async let value = cache.value(1, generate: slow("one"))
        try await cache.waiting(1)
        cache.evict(1)
        gate.open()
        #expect(try await value == "one")
        #expect(cache[1] == "one")
    }

    // MARK: - Loads inside loads

    @Test func `case 261: a generator may use the cache, and its own key is an error`() async throws {
        let cache = cache
        let value = try await cache.value(1) { _ in
            cache[5] = "five"
            return try await cache.value(2) { _ in "two" } + cache.syncValue(3) { _ in "three" }
        }
        #expect(value == "twothree" && cache[5] == "five")
        // Within tasks and within a thread, and between the two forms.
        let inTasks = await Task { try await cache.value(6) { try await cache.value($0) { _ in "" } } }.result
        let inOneTask = await Task { try cache.syncValue(6) { try cache.syncValue($0) { _ in "" } } }.result
        let mixed = await Task { try await cache.value(6) { try cache.syncValue($0) { _ in "" } } }.result
        let aside = await Task {
            try await cache.value(6) { _ in try cache.syncValue(7) { _ in try cache.syncValue(6) { _ in "" } } }
        }.result
        let onThreads = await Task {
            try await onThread { try cache.syncValue(6) { try cache.syncValue($0) { _ in "" } } }
        }.result
        for result in [inTasks, inOneTask, mixed, aside, onThreads] { #expect(CacheError.isRecursion(result)) }
        #expect(cache.loads.isIdle)
    }

    @Test func `threads that ask for each other's keys come to an end`() throws {
        let (cache, runs, bothRun) = (cache, runs, LoadGate())
        @Sendable func make(_ key: Int, askingFor next: Int) throws -> String {
            try cache.syncValue(key) { _ in
                runs.increment()
                if runs.value == 2 { bothRun.open() }
                bothRun.block()
                // One of them may be told that it would wait for itself.
                do {
                    return try cache.syncValue(next) { _ in "made inside" }
                } catch {
                    guard CacheError.isRecursion(error) else { throw error }
                    return "refused"
                }
            }
        }
        let threads = [SideThread { try make(1, askingFor: 2) }, SideThread { try make(2, askingFor: 1) }]
        for thread in threads { #expect(try !thread.value().isEmpty) }
        #expect(cache.loads.isIdle)
    }
}
