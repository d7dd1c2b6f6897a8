import Foundation
import Larder
import LarderTestSupport
import Testing

/// Closures that say more than the value.
struct GeneratedTests {
    private let bench: Workbench
    private let runs = Counter()

    init() throws {
        bench = try Workbench()
    }

    // MARK: - Nothing to load

    @Test func `a key with nothing to load is absent for every read, and no closure runs until the time is over`()
        async throws
    {
        let cache = try bench.numbers(.minutes(1))
        let runs = runs
        let none: @Sendable (Int) async throws -> Generated<String> = { _ in
            runs.increment()
            return .none(for: .seconds(10))
        }
        #expect(try await cache.value(forKey: 1, generate: none) == nil)
        #expect(try await cache.value(forKey: 1, generate: none) == nil)
        #expect(try await cache.value(forKey: 1) { _, _ in try await none(1) } == nil)
        #expect(try await cache.generator(GenerationPolicy(staleFor: .seconds(3600)), none)(1) == nil)
        #expect(try await cache.generator(GenerationPolicy(), none)(1) == nil)
        #expect(runs.value == 1)
        #expect(cache[1] == nil)
        #expect(try await cache.contains(1) == false)
        #expect(try cache.count == 0 && cache.isEmpty)
        #expect(cache.map(\.key).isEmpty && cache.keys.map(\.self).isEmpty)
        #expect(try await cache.entry(forKey: 1, allowingExpired: true) == nil)
        bench.time.advance(by: .seconds(10))
        #expect(try await cache.value(forKey: 1, generate: none) == nil)
        #expect(runs.value == 1)
        bench.time.advance(by: .milliseconds(1))
        #expect(try await cache.value(forKey: 1, generate: none) == nil)
        #expect(runs.value == 2)
    }

    @Test func `a synchronous call knows an absence too`() async throws {
        let cache = try bench.numbers()
        let runs = runs
        func sync() throws -> String? {
            try cache.value(forKey: 1) { _ -> Generated<String> in
                runs.increment()
                return .none(for: .minutes(1))
            }
        }
        #expect(try sync() == nil)
        #expect(try sync() == nil && runs.value == 1)
        // A closure that returns a value cannot leave its caller without one.
        #expect(try await cache.value(forKey: 1) { _ in "one" } == "one")
        #expect(try sync() == "one")
    }

    @Test(arguments: ["set", "remove", "clear", "other handle"])
    func `a write ends an absence`(write: String) async throws {
        let cache = try bench.numbers()
        #expect(try await cache.value(forKey: 1) { _ in Generated.none(for: .unlimited) } == nil)
        switch write {
        case "set": cache[1] = "set"
        case "remove": cache[1] = nil
        case "clear": try await cache.removeAll()
        default: try bench.numbers()[1] = "set"
        }
        let isSet = write == "set" || write == "other handle"
        #expect(try await cache.value(forKey: 1) { _ in Generated.value("loaded") } == (isSet ? "set" : "loaded"))
    }

    @Test func `what is set while the closure runs stays, though the closure found nothing`() async throws {
        let cache = try bench.numbers()
        let value = try await cache.value(forKey: 1) { key in
            cache[key] = "set"
            return Generated.none(for: .hours(1))
        }
        #expect(value == nil && cache[1] == "set")
        cache[1] = nil
        #expect(try await cache.value(forKey: 1) { _ in Generated.value("loaded") } == "loaded")
    }

    @Test func `callers that share the load get nil, and callers that need a value load one`() async throws {
        let cache = try bench.numbers()
        let gate = LoadGate()
        async let first = cache.value(forKey: 1) { _ in
            try await gate.pass()
            return Generated.none(for: .hours(1))
        }
        try await Waiting.until { cache.waitingCallers == 1 }
        async let second = cache.value(forKey: 1) { _ in Generated.value("second") }
        try await Waiting.until { cache.waitingCallers == 2 }
        gate.open()
        #expect(try await first == nil)
        #expect(try await second == nil)
        #expect(try await cache.value(forKey: 1) { _ in "third" } == "third")
    }

    @Test func `a live entry is removed when a refresh finds nothing`() async throws {
        let cache = try bench.numbers(.minutes(1))
        cache[1] = "old"
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(3600), refreshAhead: 0)) { _ in
            Generated.none(for: .seconds(5))
        }
        #expect(try await value(1) == "old")
        try await Waiting.until { cache[1] == nil }
        try await Waiting.until { !cache.isGenerating }
        #expect(try await value(1) == nil)
        #expect(try cache.count == 0)
        #expect(try await cache.entry(forKey: 1, allowingExpired: true) == nil)
    }

    @Test func `a call that returns an entry refuses an absence, and an age that is no number is refused`() async throws
    {
        let cache = try bench.numbers()
        let noEntry = await #expect(throws: CacheError.self) {
            try await cache.entry(forKey: 1) { _, _ in .none(for: .hours(1)) }
        }
        let noNumber = await #expect(throws: CacheError.self) {
            try await cache.value(forKey: 1) { _ in Generated.none(for: .seconds(.nan)) }
        }
        #expect(noEntry?.code == .invalidConfiguration && noNumber?.code == .invalidConfiguration)
        let zero = try await cache.value(forKey: 1) { _ in Generated.none(for: .seconds(0)) }
        #expect(zero == nil)
        #expect(try await cache.value(forKey: 1) { _ in Generated.value("one") } == "one")
    }

    @Test func `no more absences are remembered than the limit`() {
        var (machine, graph) = (LoadMachine<Int, String>(), LoadGraph())
        let rule = MaxAge.seconds(1).rule
        for key in 0...LoadMachine<Int, String>.mostAbsences {
            guard let (load, _) = machine.begin([key], &graph) else { continue }
            _ = machine.noteAbsence(key, of: load, for: rule, now: 0)
            _ = machine.finish(load, with: [:], &graph)
        }
        #expect(!machine.isAbsent(0, now: 0))
        #expect(machine.isAbsent(LoadMachine<Int, String>.mostAbsences, now: 1000))
        #expect(!machine.isAbsent(LoadMachine<Int, String>.mostAbsences, now: 1001))
    }

    // MARK: - Values with attributes

    @Test func `an age may follow from key and value`() async throws {
        let cache = try bench.numbers(.hours(1))
        let value = cache.generator { key in
            let text = String(repeating: "x", count: key)
            return Generated.value(
                text, maxAge: .seconds(Double(10 * text.count)), extendedData: Data([UInt8(key)]), tags: ["made"])
        }
        for key in [1, 2] { #expect(try await value(key) == String(repeating: "x", count: key)) }
        bench.time.advance(by: .seconds(11))
        #expect(cache[1] == nil && cache[2] == "xx")
        #expect(try await cache.extendedData(forKey: 2) == Data([2]))
        #expect(try await cache.removeAll(tagged: "made") >= 1)
        #expect(cache[2] == nil)
    }

    @Test func `not modified is for every call where an old entry is left`() async throws {
        let cache = try bench.numbers(.minutes(1))
        try await cache.setValue("body", forKey: 1, extendedData: Data([1]))
        bench.time.advance(by: .seconds(61))
        #expect(try await cache.value(forKey: 1) { _ in Generated<String>.notModified } == "body")
        #expect(try await cache.extendedData(forKey: 1) == Data([1]))
        let refusal = await #expect(throws: CacheError.self) {
            try await cache.value(forKey: 2) { _ in Generated<String>.notModified }
        }
        #expect(refusal?.code == .invalidConfiguration)
    }

    // MARK: - Refreshes

    @Test(arguments: [true, false])
    func `a stale value is served while a conditional request runs with its tag`(isChanged: Bool) async throws {
        let cache = try bench.numbers(.minutes(1))
        let (gate, runs) = (LoadGate(), runs)
        let value = cache.generator(GenerationPolicy(staleFor: .seconds(3600))) { _, old in
            guard let old else { return .value("first", extendedData: Data("v1".utf8)) }
            #expect(old.value == "first" && old.extendedData == Data("v1".utf8) && old.isExpired)
            runs.increment()
            try await gate.pass()
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
