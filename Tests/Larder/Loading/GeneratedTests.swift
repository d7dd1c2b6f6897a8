import Foundation
import Larder
import LarderTestSupport
import Testing

/// Closures that return more than the value: that there is none, or what to store with it.
struct GeneratedTests {
    private let bench: Workbench
    private let runs = Counter()

    init() throws { bench = try Workbench() }

    // MARK: - No value

    @Test func `a key without a value is absent for every read, and no closure runs until the age has passed`()
        async throws
    {
        let cache = try bench.numbers(.minutes(1))
        let runs = runs
        let none: @Sendable (Int, CacheEntry<Int, String>?) throws -> Generated<String> = { _, _ in
            runs.increment()
            return .none(for: .seconds(10))
        }
        let generators = [GenerationPolicy(), GenerationPolicy(staleFor: .seconds(60))].map { policy in
            cache.generator(policy) { try none($0, $1) }
        }
        for _ in 0..<2 {
            #expect(try await cache.value(forKey: 1, generate: none) == nil)
            #expect(try await onThread { try cache.value(forKey: 1, generate: none) } == nil)
            for value in generators { #expect(try await value(1) == nil) }
        }
        #expect(runs.value == 1)
        #expect(cache[1] == nil)
        #expect(try cache.count == 0 && cache.isEmpty)
        #expect(cache.map(\.key).isEmpty && cache.keys.map(\.self).isEmpty)
        #expect(try await cache.contains(1) == false)
        #expect(try await cache.entry(forKey: 1, allowingExpired: true) == nil)

        bench.time.advance(by: .seconds(10))
        #expect(try await cache.value(forKey: 1, generate: none) == nil)
        #expect(runs.value == 1)
        bench.time.advance(by: .milliseconds(1))
        #expect(try await cache.value(forKey: 1, generate: none) == nil)
        #expect(runs.value == 2)
        // A closure that returns a value cannot leave its caller without one.
        #expect(try await cache.value(forKey: 1) { _ in "one" } == "one")
        #expect(try await cache.value(forKey: 1, generate: none) == "one")
    }

    enum Write: CaseIterable {
        case set, remove, clear, otherHandle, otherManager

        var isSet: Bool { ![.remove, .clear].contains(self) }
    }

    @Test(arguments: Write.allCases)
    func `a write ends an absence`(write: Write) async throws {
        let cache = try bench.numbers()
        #expect(try await cache.value(forKey: 1) { _, _ in .none(for: .unlimited) } == nil)
        switch write {
        case .set: cache[1] = "set"
        case .remove: cache[1] = nil
        case .clear: try await cache.removeAll()
        case .otherHandle: try bench.numbers()[1] = "set"
        case .otherManager:
            let manager = try CacheManager(
                url: bench.folder("store.sqlite"), configuration: bench.time.configuration)
            let other: Cache<Int, String> = try await manager.cache(
                named: "numbers", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
            other[1] = "set"
        }
        let value = try await cache.value(forKey: 1) { _, _ in .value("loaded") }
        #expect(value == (write.isSet ? "set" : "loaded"))
        #expect(cache[1] == value)
    }

    @Test func `a value that is set while the closure runs stays, though the closure found nothing`() async throws {
        let cache = try bench.numbers()
        let value = try await cache.value(forKey: 1) { key, _ in
            cache[key] = "set"
            return Generated.none(for: .hours(1))
        }
        #expect(value == nil && cache[1] == "set")
        cache[1] = nil
        #expect(try await cache.value(forKey: 1) { _, _ in .value("loaded") } == "loaded")
    }

    @Test func `of the callers of a load without a value, those that need one run their own closures`() async throws {
        let cache = try bench.numbers()
        let gate = LoadGate()
        async let first = cache.value(forKey: 1) { _, _ in
            try await gate.waitInTask()
            return Generated.none(for: .hours(1))
        }
        defer { gate.open() }
        try await Waiting.until { cache.waitingCallers == 1 }
        async let second = cache.value(forKey: 1) { _, _ in Generated.value("second") }
        try await Waiting.until { cache.waitingCallers == 2 }
        async let third = cache.value(forKey: 1) { _ in "third" }
        try await Waiting.until { cache.waitingCallers == 3 }
        gate.open()
        #expect(try await first == nil)
        #expect(try await second == nil)
        #expect(try await third == "third")
        #expect(cache[1] == "third")
    }

    @Test func `a refresh that finds no value removes the live entry`() async throws {
        let cache = try bench.numbers(.minutes(1))
        cache[1] = "old"
        let runs = runs
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(3600), refreshAhead: 0)) { _, old in
            runs.increment()
            return old?.value == "old" ? .none(for: .seconds(5)) : .value("unexpected")
        }
        #expect(try await value(1) == "old")
        try await Waiting.until { cache[1] == nil && !cache.isGenerating }
        #expect(try await value(1) == nil)
        #expect(try await cache.entry(forKey: 1, allowingExpired: true) == nil)
        #expect(try cache.count == 0 && runs.value == 1)
    }

    @Test func `an absence is an error for calls that return an entry, and needs an age that is a number`() async throws
    {
        let cache = try bench.numbers()
        func entryOnThisThread() throws -> CacheEntry<Int, String> {
            try cache.entry(forKey: 1) { _, _ in .none(for: .hours(1)) }
        }
        expectError(.invalidConfiguration) { try entryOnThisThread() }
        let noEntry = await #expect(throws: CacheError.self) {
            try await cache.entry(forKey: 1) { _, _ in .none(for: .hours(1)) }
        }
        #expect(noEntry?.code == .invalidConfiguration)
        let noNumber = await #expect(throws: CacheError.self) {
            try await cache.value(forKey: 2) { _, _ in .none(for: .seconds(.nan)) }
        }
        #expect(noNumber?.code == .invalidConfiguration)
        // With an age of zero nothing is remembered.
        #expect(try await cache.value(forKey: 3) { _, _ in .none(for: .seconds(0)) } == nil)
        #expect(try await cache.value(forKey: 3) { _, _ in .value("three") } == "three")
    }

    @Test func `no more than ten thousand absences are remembered`() throws {
        let cache = try Workbench(.memory).numbers()
        let (limit, runs) = (10_000, runs)
        func load(_ key: Int) throws {
            _ = try cache.value(forKey: key) { _, _ in
                runs.increment()
                return .none(for: .hours(1))
            }
        }
        for key in 0...limit { try load(key) }
        #expect(runs.value == limit + 1)
        try load(limit)
        #expect(runs.value == limit + 1)
        let forgotten = try (0...limit).first { key in
            try load(key)
            return runs.value > limit + 1
        }
        #expect(forgotten != nil)
    }

    // MARK: - Values with attributes

    @Test func `age, cost, extended data and tags may follow from key and value`() async throws {
        let cache = try bench.numbers(.hours(1))
        let value = cache.generator { key, _ in
            let text = String(repeating: "x", count: key)
            return .value(
                text, maxAge: .seconds(Double(10 * text.count)), cost: 100 * key,
                extendedData: Data([UInt8(key)]), tags: ["of \(key)", "all"])
        }
        for key in [1, 2] { #expect(try await value(key) == String(repeating: "x", count: key)) }
        #expect(cache.memory.totalCost == 300)
        #expect(try await cache.extendedData(forKey: 2) == Data([2]))
        #expect(try await cache.entries(tagged: "of 1").map(\.key) == [1])
        bench.time.advance(by: .seconds(11))
        #expect(cache[1] == nil && cache[2] == "xx")
        #expect(try await cache.removeAll(tagged: "all") == 2)
        #expect(cache[2] == nil)
    }

    @Test func `not modified is for every call that gives the old entry`() async throws {
        let cache = try bench.numbers(.minutes(1))
        try await cache.setValue("body", forKey: 1, extendedData: Data([1]))
        bench.time.advance(by: .seconds(61))
        #expect(try await cache.value(forKey: 1) { _, _ in .notModified } == "body")
        bench.time.advance(by: .seconds(61))
        #expect(try await onThread { try cache.value(forKey: 1) { _, _ in .notModified } } == "body")
        bench.time.advance(by: .seconds(61))
        let value = cache.generator { _, _ in .notModified }
        #expect(try await value(1) == "body")
        #expect(try await cache.extendedData(forKey: 1) == Data([1]))
        let error = await #expect(throws: CacheError.self) { try await value(2) }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test(arguments: [true, false])
    func `a stale value is served while one conditional request runs`(isChanged: Bool) async throws {
        let cache = try bench.numbers(.minutes(1))
        let (gate, runs) = (LoadGate(), runs)
        defer { gate.open() }
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(3600))) { _, old in
            guard let old else { return .value("first", extendedData: Data("v1".utf8)) }
            #expect(old.value == "first" && old.extendedData == Data("v1".utf8) && old.isExpired)
            runs.increment()
            try await gate.waitInTask()
            return isChanged ? .value("second", extendedData: Data("v2".utf8)) : .notModified
        }
        #expect(try await value(1) == "first")
        bench.time.advance(by: .seconds(61))
        for _ in 0..<3 { #expect(try await value(1) == "first") }
        gate.open()
        try await Waiting.until { runs.value == 1 && !cache.isGenerating }
        let entry = try await cache.entry(forKey: 1)
        #expect(entry?.value == (isChanged ? "second" : "first") && entry?.isExpired == false)
        #expect(entry?.extendedData == Data((isChanged ? "v2" : "v1").utf8))
        #expect(try await value(1) == entry?.value)
        #expect(runs.value == 1)
    }
}
