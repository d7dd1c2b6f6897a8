import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

struct ValueGeneratorTests {
    private let bench: Workbench

    init() throws {
        bench = try Workbench()
    }

    /// Makes "1", "2" and so on.
    private final class Maker: Sendable {
        let calls = Counter()
        let isOnline = Atomic(true)

        func make() throws -> String {
            let number = calls.increment()
            guard isOnline.load(ordering: .relaxed) else { throw Offline() }
            return "\(number)"
        }
    }

    private func settled(_ cache: Cache<Int, String>, _ maker: Maker, _ count: Int) async throws {
        try await Waiting.until { maker.calls.value == count && !cache.isGenerating }
    }

    @Test(arguments: [true, false]) func `a stale value is served while one refresh runs`(isInMemory: Bool) async throws
    {
        let options = CacheOptions(memory: isInMemory ? MemoryLimits() : .disabled)
        let cache = try bench.numbers(.minutes(1), options)
        let maker = Maker()
        let gate = LoadGate()
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(30))) { _ in
            if maker.calls.value > 0 { try await gate.pass() }
            return try maker.make()
        }
        #expect(try await value(1) == "1")
        bench.time.advance(by: .seconds(90))
        // At the last moment, and again while the refresh has not landed.
        for _ in 0..<5 { #expect(try await value(1) == "1") }
        gate.open()
        try await settled(cache, maker, 2)
        #expect(try await value(1) == "2")
        #expect(maker.calls.value == 2)
        bench.time.advance(by: .seconds(91))
        #expect(try await value(1) == "3")
    }

    @Test func `when making fails the old value is good for a while`() async throws {
        let cache = try bench.numbers(.minutes(1))
        let maker = Maker()
        let value = cache.generator(GenerationPolicy(staleOnError: .seconds(600))) { _ in try maker.make() }
        #expect(try await value(1) == "1")
        maker.isOnline.store(false, ordering: .relaxed)
        bench.time.advance(by: .seconds(61))
        #expect(try await value(1) == "1")
        bench.time.advance(by: .seconds(599))
        #expect(try await value(1) == "1")
        bench.time.advance(by: .milliseconds(1))
        await #expect(throws: Offline.self) { try await value(1) }
        await #expect(throws: Offline.self) { try await value(2) }
        maker.isOnline.store(true, ordering: .relaxed)
        #expect(try await value(1) == "6")
    }

    @Test func `a value is refreshed when its share of the age has passed`() async throws {
        let cache = try bench.numbers(.seconds(100))
        let maker = Maker()
        let value = cache.generator(GenerationPolicy(refreshAhead: 0.8)) { _ in try maker.make() }
        #expect(try await value(1) == "1")
        bench.time.advance(by: .seconds(79))
        #expect(try await value(1) == "1")
        #expect(maker.calls.value == 1)
        bench.time.advance(by: .seconds(1))
        #expect(try await value(1) == "1")
        try await settled(cache, maker, 2)
        #expect(try await value(1) == "2")
        #expect(maker.calls.value == 2)
    }

    @Test func `a share of one is the last moment of the age`() async throws {
        let cache = try bench.numbers(.seconds(100))
        let maker = Maker()
        let value = cache.generator(GenerationPolicy(refreshAhead: 1)) { _ in try maker.make() }
        #expect(try await value(1) == "1")
        bench.time.advance(by: .milliseconds(99_999))
        #expect(try await value(1) == "1")
        #expect(maker.calls.value == 1 && !cache.isGenerating)
        bench.time.advance(by: .milliseconds(1))
        #expect(try await value(1) == "1")
        try await settled(cache, maker, 2)
    }

    // case 148
    @Test(
        arguments: [true, false],
        [GenerationPolicy(staleOnError: .seconds(60)), GenerationPolicy(refreshAhead: 0.5)])
    func `with an age of zero every call makes a value, within one moment too`(
        isInMemory: Bool, policy: GenerationPolicy
    ) async throws {
        let cache = try bench.numbers(.seconds(0), CacheOptions(memory: isInMemory ? MemoryLimits() : .disabled))
        let maker = Maker()
        let value = cache.generator(policy) { _ in try maker.make() }
        for number in 1...3 { #expect(try await value(1) == "\(number)") }
        #expect(maker.calls.value == 3 && !cache.isGenerating)
        guard policy.staleOnError > .zero else { return }
        maker.isOnline.store(false, ordering: .relaxed)
        bench.time.advance(by: .seconds(60))
        #expect(try await value(1) == "3")
        bench.time.advance(by: .milliseconds(1))
        await #expect(throws: Offline.self) { try await value(1) }
    }

    @Test(arguments: [true, false])
    func `with an age of zero a stale value is refreshed, within one moment too`(isInMemory: Bool) async throws {
        let cache = try bench.numbers(.seconds(-1), CacheOptions(memory: isInMemory ? MemoryLimits() : .disabled))
        let maker = Maker()
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(60))) { _ in try maker.make() }
        #expect(try await value(1) == "1")
        #expect(try await value(1) == "1")
        try await settled(cache, maker, 2)
        #expect(try await value(1) == "2")
    }

    // case 270
    @Test func `a refresh that has begun is finished though generator and handle are dropped`() async throws {
        let (gate, begun) = (LoadGate(), Counter())
        func begin() async throws {
            let cache = try bench.numbers(.seconds(100))
            let value = cache.generator(GenerationPolicy(refreshAhead: 0.5)) { _ in
                if begun.increment() == 1 { return "1" }
                try await gate.pass()
                return "2"
            }
            #expect(try await value(1) == "1")
            bench.time.advance(by: .seconds(60))
            #expect(try await value(1) == "1")
        }
        try await begin()
        try await Waiting.until { begun.value == 2 }
        gate.open()
        let cache = try bench.numbers(.seconds(100))
        try await Waiting.until { cache[1] == "2" }
    }

    @Test func `a refresh that fails is told of and tried again`() async throws {
        let cache = try bench.numbers(.seconds(100))
        var events = bench.manager.steadyEvents.makeAsyncIterator()
        let maker = Maker()
        let value = cache.generator(GenerationPolicy(refreshAhead: 0.5)) { _ in try maker.make() }
        #expect(try await value(1) == "1")
        maker.isOnline.store(false, ordering: .relaxed)
        bench.time.advance(by: .seconds(60))
        #expect(try await value(1) == "1")
        guard case .refreshFailed = await events.next()?.kind else {
            Issue.record("no event")
            return
        }
        maker.isOnline.store(true, ordering: .relaxed)
        try await settled(cache, maker, 2)
        #expect(try await value(1) == "1")
        try await settled(cache, maker, 3)
        #expect(try await value(1) == "3")
    }

    @Test func `sweeps leave what a living generator may serve, and removing all does not`() async throws {
        let cache = try bench.numbers(.minutes(1))
        let maker = Maker()
        let value = cache.generator(GenerationPolicy(staleOnError: .seconds(600))) { _ in try maker.make() }
        _ = try await value(1)
        bench.time.advance(by: .seconds(100))
        #expect(try await bench.manager.maintain().expired == 0)
        #expect(try await cache.entry(forKey: 1, allowingExpired: true)?.value == "1")
        bench.time.advance(by: .seconds(600))
        #expect(try await bench.manager.maintain().expired == 1)
        _ = try await value(2)
        bench.time.advance(by: .seconds(100))
        #expect(try await cache.removeExpired() == 1)
    }

    @Test func `an error of the closure is thrown, also where the old value is out of reach`() async throws {
        let cache = try bench.numbers(.seconds(1), CacheOptions(memory: .disabled))
        let value = cache.generator(GenerationPolicy(staleOnError: .seconds(600))) { [manager = bench.manager] _ in
            try await manager.close()
            throw Offline()
        }
        cache[1] = "old"
        bench.time.advance(by: .seconds(2))
        await #expect(throws: Offline.self) { try await value(1) }
    }

    @Test func `keepsExpired does the same for generators that come later`() async throws {
        let cache = try bench.numbers(.minutes(1), CacheOptions(keepsExpired: .seconds(600)))
        cache[1] = "old"
        bench.time.advance(by: .seconds(100))
        #expect(try await bench.manager.maintain().expired == 0)
        let value = cache.generator(GenerationPolicy(staleOnError: .seconds(600))) { _ in throw Offline() }
        #expect(try await value(1) == "old")
    }

    @Test(arguments: [
        GenerationPolicy(staleFor: .seconds(-1)), GenerationPolicy(staleOnError: .seconds(-1)),
        GenerationPolicy(refreshAhead: .nan), GenerationPolicy(refreshAhead: -0.1),
        GenerationPolicy(refreshAhead: .infinity), GenerationPolicy(refreshAhead: 1.001),
    ])
    func `an absurd policy is refused by the call`(policy: GenerationPolicy) async throws {
        let cache = try bench.numbers()
        let value = cache.generator(policy) { _ in "never" }
        let error = await #expect(throws: CacheError.self) { try await value(1) }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func `a negative time to keep what is over is refused by the opening`() throws {
        let error = #expect(throws: CacheError.self) {
            try bench.numbers(.hours(1), CacheOptions(keepsExpired: .milliseconds(-1)))
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(try bench.manager.cacheInfo().isEmpty)
    }

    @Test func `a plain generator is a callable value`() async throws {
        let cache = try bench.numbers()
        let value = cache.generator { key in "made \(key)" }
        #expect(try await value(7) == "made 7")
        #expect(cache[7] == "made 7")
    }
}
