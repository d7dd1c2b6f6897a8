import Foundation
import Larder
import LarderTestSupport
import Testing

/// Callable values that load what is missing, and serve and refresh old values as their policies say.
struct ValueGeneratorTests {
    private let bench: Workbench

    init() throws { bench = try Workbench() }

    /// Returns "1", "2" and so on, while it is online.
    private final class Source: Sendable {
        let calls = Counter()
        let isOnline = Locked(true)

        func load() throws -> String {
            let number = calls.increment()
            guard isOnline.value else { throw Offline() }
            return "\(number)"
        }
    }

    /// Waits until a source was called so many times, and nothing is loaded any more.
    private func waitForCalls(_ count: Int, of source: Source, in cache: Cache<Int, String>) async throws {
        try await Waiting.until { source.calls.value == count && !cache.isGenerating }
    }

    /// Closes the manager, and returns the keys whose refreshes it has reported as failed.
    private func keysOfFailures(_ events: AsyncStream<CacheEvent>) async throws -> [String?] {
        try await bench.manager.close()
        var keys: [String?] = []
        for await event in events where event.kind == .refreshFailed {
            #expect(event.cacheName == "numbers")
            keys.append(event.key)
        }
        return keys
    }

    private func options(isInMemory: Bool) -> CacheOptions {
        CacheOptions(memory: isInMemory ? MemoryLimits() : .disabled)
    }

    // MARK: - Stale values

    @Test(arguments: [true, false])
    func `a stale value is served while one refresh runs`(isInMemory: Bool) async throws {
        let cache = try bench.numbers(.minutes(1), options(isInMemory: isInMemory))
        let (source, gate) = (Source(), LoadGate())
        defer { gate.open() }
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(30))) { _ in
            if source.calls.value > 0 { try await gate.waitInTask() }
            return try source.load()
        }
        #expect(try await value(1) == "1")
        // The last moment at which it may be served.
        bench.time.advance(by: .seconds(90))
        for _ in 0..<5 { #expect(try await value(1) == "1") }
        gate.open()
        try await waitForCalls(2, of: source, in: cache)
        #expect(try await value(1) == "2")
        #expect(source.calls.value == 2)
        bench.time.advance(by: .milliseconds(90_001))
        #expect(try await value(1) == "3")
    }

    /// Maintenance deletes what has expired, unless the store knows of the window.
    @Test(arguments: [true, false])
    func `the window for stale values reaches the store, also if the manager was suspended`(
        isSuspended: Bool
    ) async throws {
        let cache = try bench.numbers(.minutes(1))
        if isSuspended { try await bench.manager.suspend() }
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(600))) { _ in "loaded" }
        bench.manager.resume()
        // The calls of the window are made before this one, by the same writer.
        #expect(try await value(1) == "loaded")
        cache[2] = "two"
        bench.time.advance(by: .seconds(300))
        try await bench.manager.maintain()
        #expect(try await cache.entry(forKey: 2, allowingExpired: true)?.value == "two")
    }

    @Test func `if a load fails the expired value is served for a time, and an event reports it`() async throws {
        let cache = try bench.numbers(.minutes(1))
        let (source, events) = (Source(), bench.manager.events)
        let value = cache.generator(GenerationPolicy(staleOnError: .seconds(600))) { _ in try source.load() }
        #expect(try await value(1) == "1")
        source.isOnline.change { $0 = false }
        bench.time.advance(by: .seconds(61))
        #expect(try await value(1) == "1")
        bench.time.advance(by: .seconds(599))
        #expect(try await value(1) == "1")
        bench.time.advance(by: .milliseconds(1))
        await #expect(throws: Offline.self) { try await value(1) }
        await #expect(throws: Offline.self) { try await value(2) }
        source.isOnline.change { $0 = true }
        #expect(try await value(1) == "6")
        #expect(try await keysOfFailures(events) == ["1", "1"])
    }

    @Test(
        arguments: [true, false],
        [GenerationPolicy(staleOnError: .seconds(60)), GenerationPolicy(refreshAhead: 0.5)])
    func `with an age of zero every call loads a value`(isInMemory: Bool, policy: GenerationPolicy) async throws {
        let cache = try bench.numbers(.seconds(0), options(isInMemory: isInMemory))
        let source = Source()
        let value = cache.generator(policy) { _ in try source.load() }
        for number in 1...3 { #expect(try await value(1) == "\(number)") }
        #expect(source.calls.value == 3 && !cache.isGenerating)
        guard policy.staleOnError > .zero else { return }
        source.isOnline.change { $0 = false }
        bench.time.advance(by: .seconds(60))
        #expect(try await value(1) == "3")
        bench.time.advance(by: .milliseconds(1))
        await #expect(throws: Offline.self) { try await value(1) }
    }

    @Test(arguments: [true, false])
    func `with an age of zero a stale value is served and refreshed`(isInMemory: Bool) async throws {
        let cache = try bench.numbers(.seconds(-1), options(isInMemory: isInMemory))
        let source = Source()
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(60))) { _ in try source.load() }
        #expect(try await value(1) == "1")
        #expect(try await value(1) == "1")
        try await waitForCalls(2, of: source, in: cache)
        #expect(try await value(1) == "2")
    }

    @Test func `sweeps leave what a generator may serve, also after it is released, and removals do not`() async throws
    {
        let cache = try bench.numbers(.minutes(1))
        for window in [Duration.seconds(600), .seconds(5)] {
            let value = cache.generator(GenerationPolicy(staleFor: window)) { _ in "loaded" }
            #expect(try await value(1) == "loaded")
        }
        bench.time.advance(by: .seconds(600))
        #expect(try await bench.manager.maintain().expired == 0)
        let later = cache.generator(GenerationPolicy(staleOnError: .seconds(600))) { _ in throw Offline() }
        #expect(try await later(1) == "loaded")
        bench.time.advance(by: .seconds(61))
        #expect(try await bench.manager.maintain().expired == 1)
        cache[2] = "two"
        bench.time.advance(by: .seconds(61))
        #expect(try await bench.manager.maintain().expired == 0)
        #expect(try await cache.removeExpired() == 1)
    }

    // MARK: - Refreshes ahead

    @Test(arguments: [true, false])
    func `a value is refreshed once a share of its age has passed`(isInMemory: Bool) async throws {
        let cache = try bench.numbers(.seconds(100), options(isInMemory: isInMemory))
        let source = Source()
        let value = cache.generator(GenerationPolicy(refreshAhead: 0.8)) { _ in try source.load() }
        #expect(try await value(1) == "1")
        bench.time.advance(by: .milliseconds(79_999))
        #expect(try await value(1) == "1")
        #expect(source.calls.value == 1 && !cache.isGenerating)
        bench.time.advance(by: .milliseconds(1))
        #expect(try await value(1) == "1")
        try await waitForCalls(2, of: source, in: cache)
        #expect(try await value(1) == "2")
        #expect(source.calls.value == 2)
    }

    @Test func `a share of one is the last moment of the age`() async throws {
        let cache = try bench.numbers(.seconds(100))
        let source = Source()
        let value = cache.generator(GenerationPolicy(refreshAhead: 1)) { _ in try source.load() }
        #expect(try await value(1) == "1")
        bench.time.advance(by: .milliseconds(99_999))
        #expect(try await value(1) == "1")
        #expect(source.calls.value == 1 && !cache.isGenerating)
        bench.time.advance(by: .milliseconds(1))
        #expect(try await value(1) == "1")
        try await waitForCalls(2, of: source, in: cache)
    }

    @Test func `a refresh ends though its generator and handle are released`() async throws {
        let (gate, begun) = (LoadGate(), LoadGate())
        defer { gate.open() }
        func begin() async throws {
            let cache = try bench.numbers(.seconds(100))
            cache[1] = "old"
            let value = cache.generator(GenerationPolicy(refreshAhead: 0)) { _ in
                begun.open()
                try await gate.waitInTask()
                return "new"
            }
            #expect(try await value(1) == "old")
        }
        try await begin()
        try await begun.waitInTask()
        gate.open()
        let cache = try bench.numbers(.seconds(100))
        try await Waiting.until { cache[1] == "new" }
    }

    @Test func `a refresh goes on though the calls that have begun and joined it are cancelled`() async throws {
        let cache = try bench.numbers(.seconds(100))
        let (gate, begun) = (LoadGate(), LoadGate())
        defer { gate.open() }
        cache[1] = "old"
        let value = cache.generator(GenerationPolicy(refreshAhead: 0)) { _ in
            begun.open()
            try await gate.waitInTask()
            return "new"
        }
        let first = Task {
            let old = try await value(1)
            try await gate.waitInTask()
            return old
        }
        try await begun.waitInTask()
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        bench.time.advance(by: .seconds(101))
        let callers = (0..<2).map { _ in Task { try await cache.value(forKey: 1) { _ in "other" } } }
        try await Waiting.until { cache.waitingCallers == 2 }
        callers[0].cancel()
        await #expect(throws: CancellationError.self) { try await callers[0].value }
        #expect(cache.isGenerating && cache.waitingCallers == 1)
        callers[1].cancel()
        await #expect(throws: CancellationError.self) { try await callers[1].value }
        gate.open()
        try await Waiting.until { cache[1] == "new" }
    }

    @Test func `a refresh that fails is reported and tried again`() async throws {
        let cache = try bench.numbers(.seconds(100))
        let (source, events) = (Source(), bench.manager.events)
        let value = cache.generator(GenerationPolicy(refreshAhead: 0.5)) { _ in try source.load() }
        #expect(try await value(1) == "1")
        source.isOnline.change { $0 = false }
        bench.time.advance(by: .seconds(60))
        #expect(try await value(1) == "1")
        try await waitForCalls(2, of: source, in: cache)
        source.isOnline.change { $0 = true }
        #expect(try await value(1) == "1")
        try await waitForCalls(3, of: source, in: cache)
        #expect(try await value(1) == "3")
        #expect(try await keysOfFailures(events) == ["1"])
    }

    // MARK: - Numbers out of range

    @Test(arguments: [
        GenerationPolicy(staleFor: .seconds(-1)), GenerationPolicy(staleOnError: .seconds(-1)),
        GenerationPolicy(refreshAhead: .share(.nan)), GenerationPolicy(refreshAhead: -0.1),
        GenerationPolicy(refreshAhead: .share(.infinity)), GenerationPolicy(refreshAhead: 1.001),
    ])
    func `a policy with a number out of range is refused by the call`(policy: GenerationPolicy) async throws {
        let cache = try bench.numbers()
        let plain = cache.generator(policy) { _ in "never" }
        let generated = cache.generator(policy) { _, _ in .value("never") }
        let error = await #expect(throws: CacheError.self) { try await plain(1) }
        let other = await #expect(throws: CacheError.self) { try await generated(1) }
        #expect(error?.code == .invalidConfiguration && other?.code == .invalidConfiguration)
        #expect(try cache.isEmpty)
    }

    @Test func `a negative time to keep expired entries is refused by the open`() throws {
        expectError(.invalidConfiguration) {
            try bench.numbers(.hours(1), CacheOptions(keepsExpired: .milliseconds(-1)))
        }
        #expect(try bench.manager.cacheInfo().isEmpty)
    }
}
