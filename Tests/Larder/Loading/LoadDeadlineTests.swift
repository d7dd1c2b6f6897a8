import Foundation
import Larder
import LarderTestSupport
import Testing

/// Callers that wait for a load only so long, and loads that are ended.
struct LoadDeadlineTests {
    private let bench: Workbench
    private let begun = LoadGate()
    private let gate = LoadGate()
    private let calls = Counter()

    init() throws { bench = try Workbench() }

    private static let soft = GenerationPolicy(softTimeout: .milliseconds(200), timeout: .seconds(10))
    private static let hard = GenerationPolicy(timeout: .seconds(10))

    /// A load that waits at a gate in its first call, whatever happens to its task.
    private func slow(_ cache: Cache<Int, String>, _ policy: GenerationPolicy, ignoresEnd: Bool = false)
        -> ValueGenerator<Int, String>
    {
        cache.generator(policy) { [begun, gate, calls] _ in
            let number = calls.increment()
            begun.open()
            if number > 1 { return "\(number)" }
            if ignoresEnd {
                while !gate.isOpen { await Task.yield() }
            } else {
                try await gate.waitInTask()
            }
            return "\(number)"
        }
    }

    /// A cache with an old value.
    private func old(_ options: CacheOptions = .init()) throws -> Cache<Int, String> {
        let cache = try bench.numbers(.minutes(1), options)
        cache[1] = "old"
        bench.time.advance(by: .seconds(61))
        return cache
    }

    /// Waits until so many callers wait; their timers run then.
    private func waitForCallers(_ count: Int, of cache: Cache<Int, String>) async throws {
        try await Waiting.until { cache.waitingCallers == count }
    }

    // MARK: An old value

    @Test(arguments: [true, false])
    func `callers get the old value after the soft timeout, and the next ones the new one`(isInMemory: Bool)
        async throws
    {
        let cache = try old(CacheOptions(memory: isInMemory ? MemoryLimits() : .disabled))
        let value = slow(cache, Self.soft)
        defer { gate.open() }
        async let first = value(1)
        async let second = value(1)
        try await begun.waitInTask()
        try await waitForCallers(2, of: cache)
        bench.time.advance(by: .milliseconds(200))
        let values = try await [first, second]
        #expect(values == ["old", "old"])
        #expect(cache.isGenerating && calls.value == 1)
        gate.open()
        try await Waiting.until { !cache.isGenerating }
        #expect(try await value(1) == "1" && calls.value == 1 && cache[1] == "1")
    }

    @Test func `callers without an old value wait, and so do those whose old value is too old`() async throws {
        let cache = try old()
        bench.time.advance(by: .seconds(86_400))
        let value = slow(cache, Self.soft)
        defer { gate.open() }
        for key in [1, 2] {
            async let new = value(key)
            try await begun.waitInTask()
            if key == 1 { try await waitForCallers(1, of: cache) }
            bench.time.advance(by: .seconds(1))
            gate.open()
            #expect(try await new == "\(key)")
        }
    }

    @Test func `an old value that is removed in the meantime is not served`() async throws {
        let cache = try old()
        let value = slow(cache, Self.soft)
        defer { gate.open() }
        async let new = value(1)
        try await begun.waitInTask()
        try await waitForCallers(1, of: cache)
        try await cache.removeValue(forKey: 1)
        // The load was overtaken, so another one begins.
        bench.time.advance(by: .milliseconds(200))
        #expect(try await new == "2")
        gate.open()
        try await Waiting.until { !cache.isGenerating }
        #expect(cache[1] == "2")
    }

    @Test func `a load goes on when all its callers have left, and its error is reported`() async throws {
        let cache = try old()
        let value = slow(cache, Self.soft)
        defer { gate.open() }
        async let first = value(1)
        try await begun.waitInTask()
        try await waitForCallers(1, of: cache)
        let other = Task { try await cache.value(forKey: 1) { _ in "other" } }
        try await Waiting.until { cache.waitingCallers == 2 }
        bench.time.advance(by: .milliseconds(200))
        #expect(try await first == "old")
        other.cancel()
        await #expect(throws: CancellationError.self) { try await other.value }
        gate.open()
        try await Waiting.until { !cache.isGenerating }
        #expect(cache[1] == "1")

        let events = bench.manager.events
        bench.time.advance(by: .seconds(61))
        let (failing, failed) = (LoadGate(), LoadGate())
        let broken = cache.generator(Self.soft) { _ in
            failing.open()
            try await failed.waitInTask()
            throw Offline()
        }
        async let late = broken(1)
        try await failing.waitInTask()
        try await waitForCallers(1, of: cache)
        bench.time.advance(by: .milliseconds(200))
        #expect(try await late == "1")
        failed.open()
        for await event in events {
            if event.kind == .refreshFailed { break }
        }
    }

    // MARK: The end of a load

    @Test(arguments: [true, false])
    func `after the timeout callers throw, and nothing is stored whatever the load does`(ignoresEnd: Bool) async throws
    {
        let cache = try bench.numbers()
        let value = slow(cache, Self.hard, ignoresEnd: ignoresEnd)
        defer { gate.open() }
        async let first = result(value)
        async let second = result(value)
        try await begun.waitInTask()
        try await Waiting.until { cache.waitingCallers == 2 }
        bench.time.advance(by: .seconds(10))
        for result in await [first, second] {
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == .timedOut && error?.message.contains("Key \"1\" of cache \"numbers\"") == true)
        }
        #expect(!cache.isGenerating && calls.value == 1)
        // It stands at no key any more.
        #expect(try await value(1) == "2")
        gate.open()
        #expect(try await value(2) == "3")
        #expect(try await cache.snapshot() == [1: "2", 2: "3"] && cache.statistics.writes == 2)
    }

    @Test func `an answer after the timeout that the old value is good renews nothing`() async throws {
        let cache = try old()
        let (begun, gate, ended) = (begun, gate, LoadGate())
        defer { gate.open() }
        let value = cache.generator(Self.hard) { _, old in
            begun.open()
            while !gate.isOpen { await Task.yield() }
            defer { ended.open() }
            return old == nil ? .value("new") : .notModified
        }
        let late = Task { try await value(1) }
        try await begun.waitInTask()
        try await waitForCallers(1, of: cache)
        bench.time.advance(by: .seconds(10))
        let error = await #expect(throws: CacheError.self) { try await late.value }
        #expect(error?.code == .timedOut)
        gate.open()
        try await ended.waitInTask()
        // What a load could store would be stored before this.
        try await cache.setValue("two", forKey: 2)
        #expect(try await cache.value(forKey: 1) == nil)
    }

    private func result(_ value: ValueGenerator<Int, String>) async -> Result<String, any Error> {
        do { return .success(try await value(1)) } catch { return .failure(error) }
    }

    @Test func `an old value takes the place of the error if the policy allows it`() async throws {
        let cache = try old()
        let events = bench.manager.events
        let value = slow(cache, GenerationPolicy(staleOnError: .seconds(600), timeout: .seconds(10)))
        defer { gate.open() }
        async let first = value(1)
        try await begun.waitInTask()
        try await waitForCallers(1, of: cache)
        bench.time.advance(by: .seconds(10))
        #expect(try await first == "old")
        for await event in events where event.kind == .refreshFailed {
            #expect(event.message.contains("was not loaded within 10"))
            break
        }
    }

    @Test func `a refresh in the background is ended too, and another one begins`() async throws {
        let cache = try old()
        let events = bench.manager.events
        let value = slow(cache, GenerationPolicy(staleFor: .seconds(600), timeout: .seconds(10)), ignoresEnd: true)
        defer { gate.open() }
        #expect(try await value(1) == "old")
        try await begun.waitInTask()
        bench.time.advance(by: .seconds(10))
        for await event in events where event.kind == .refreshFailed { break }
        #expect(!cache.isGenerating)
        #expect(try await value(1) == "old")
        try await Waiting.until { cache[1] == "2" }
    }

    @Test func `a caller with a timeout leaves the load of another one, which goes on`() async throws {
        let cache = try bench.numbers()
        let (begun, gate) = (begun, gate)
        defer { gate.open() }
        let plain = Task {
            try await cache.value(forKey: 1) { _ in
                begun.open()
                try await gate.waitInTask()
                return "plain"
            }
        }
        try await begun.waitInTask()
        async let joined = result(cache.generator(Self.hard) { _ in "other" })
        try await Waiting.until { cache.waitingCallers == 2 }
        bench.time.advance(by: .seconds(10))
        let left = await joined
        let error = #expect(throws: CacheError.self) { try left.get() }
        #expect(error?.code == .timedOut)
        gate.open()
        #expect(try await plain.value == "plain")
        #expect(cache[1] == "plain")
    }

    @Test func `a result and a timeout in one moment end in one of the two`() async throws {
        let cache = try bench.numbers(.hours(1), CacheOptions(memory: .disabled))
        for key in 0..<200 {
            let (begun, gate) = (LoadGate(), LoadGate())
            let value = cache.generator(Self.hard) { key in
                begun.open()
                while !gate.isOpen { await Task.yield() }
                return "\(key)"
            }
            let task = Task { try await value(key) }
            try await begun.waitInTask()
            try await waitForCallers(1, of: cache)
            async let opened: Void = gate.open()
            bench.time.advance(by: .seconds(10))
            await opened
            let result = await task.result
            try await Waiting.until { !cache.isGenerating }
            // What the callers have was stored, and the error says that it was not.
            let stored = try await cache.value(forKey: key)
            switch result {
            case .success(let value): #expect(value == "\(key)" && stored == value)
            case .failure(let error): #expect((error as? CacheError)?.code == .timedOut && stored == nil)
            }
        }
    }

    // MARK: Policies

    @Test(arguments: [
        GenerationPolicy(softTimeout: .seconds(-1)), GenerationPolicy(timeout: .zero),
        GenerationPolicy(timeout: .seconds(-1)),
    ])
    func `times that make no sense are refused`(policy: GenerationPolicy) async throws {
        let cache = try bench.numbers()
        await #expect(throws: CacheError.self) { try await cache.generator(policy) { "\($0)" }(1) }
        let memory: MemoryCache<Int, String> = bench.time.memoryCache()
        await #expect(throws: CacheError.self) { try await memory.generator(policy) { "\($0)" }(1) }
    }

    @Test func `a memory cache does the same`() async throws {
        let memory: MemoryCache<Int, String> = bench.time.memoryCache(maxAge: .minutes(1))
        let (begun, gate, calls) = (begun, gate, calls)
        defer { gate.open() }
        let value = memory.generator(Self.soft) { _ in
            let number = calls.increment()
            begun.open()
            if number == 1 { while !gate.isOpen { await Task.yield() } }
            return "\(number)"
        }
        memory[1] = "old"
        bench.time.advance(by: .seconds(61))
        let timers = bench.time.pendingCount
        async let first = value(1)
        try await begun.waitInTask()
        try await Waiting.until { memory.waitingCallers == 1 }
        bench.time.advance(by: .milliseconds(200))
        #expect(try await first == "old")
        // The load goes on until its timeout.
        bench.time.advance(by: .milliseconds(9_800))
        #expect(try await value(1) == "2")
        gate.open()
        #expect(memory[1] == "2" && bench.time.pendingCount == timers)
    }
}
