import Foundation
import Larder
import LarderTestSupport
import Testing

/// What a program is told of calls that take long.
///
/// A threshold of zero makes each call one.
struct CacheTraceTests {
    private let store: TemporaryStore
    private let traces = Locked<[CacheTrace]>([])

    init() throws { store = try TemporaryStore() }

    private func cache(_ threshold: Duration = .zero) throws -> Cache<Int, String> {
        let manager = try store.manager { [traces] configuration in
            configuration.trace = { trace in traces.change { $0.append(trace) } }
            configuration.traceThreshold = threshold
        }
        return try manager.cache(
            named: "texts", version: "1", maxAge: .days(1), options: CacheOptions(memory: .disabled))
    }

    /// What was told since the last call, without the times.
    private func told() -> [String] {
        traces.change { traces in
            defer { traces = [] }
            return traces.map { $0.description.replacing(#/took .* ms /#, with: "") }
        }
    }

    private struct Broken: Error {}

    @Test func `calls of the store and loads are told with their cache, key and end`() throws {
        let cache = try cache()
        _ = told()
        _ = cache[7]
        #expect(told() == [#"cache "texts", key "7": read the value on the disk, missing"#])
        try cache.setValue("seven", forKey: 7)
        #expect(told().contains(#"cache "texts", key "7": set the value on the disk, done"#))
        _ = cache[7]
        #expect(told() == [#"cache "texts", key "7": read the value on the disk, found"#])
        let large = String(repeating: "x", count: 100_000)
        try cache.setValue(large, forKey: 10)
        _ = told()
        #expect(cache[10] == large)
        #expect(told() == [#"cache "texts", key "10": read the value on the disk, found"#])
        _ = try cache.value(forKey: 8) { "\($0)" }
        #expect(told().contains(#"cache "texts", key "8": load the value at the origin, done"#))
        #expect(throws: Broken.self) { try cache.value(forKey: 9) { _ in throw Broken() } }
        let failed = told().filter { $0.contains("origin") }
        #expect(
            failed.count == 1 && failed[0].hasPrefix(#"cache "texts", key "9": load the value at the origin, failed"#))
        _ = try cache.update(7) { $0 = "other" }
        #expect(told().last == "manager: update the value on the disk, done")
        try cache.manager.flush()
        #expect(told() == ["manager: write the accesses on the disk, done"])
        try cache.removeAll(tagged: "red")
        #expect(told().contains { $0.hasPrefix(#"cache "texts": "#) })
    }

    @Test func `calls of tasks are told, and what they wait for`() async throws {
        let cache = try cache()
        _ = told()
        _ = try await cache.value(forKey: 7)
        #expect(
            told() == [
                #"cache "texts": wait for a thread that reads on the disk, done"#,
                #"cache "texts", key "7": read the value on the disk, missing"#,
            ])
        _ = try await cache.value(forKey: 8) { "\($0)" }
        let load = told()
        #expect(load.contains(#"cache "texts", key "8": load the value at the origin, done"#))
        #expect(load.contains(#"cache "texts", key "8": store what was loaded on the disk, done"#))
        await #expect(throws: Broken.self) { try await cache.value(forKey: 9) { _ in throw Broken() } }
        #expect(told().contains { $0.contains("origin, failed") })
    }

    @Test func `what takes less than the threshold is not told, and a threshold has no sign`() throws {
        let cache = try cache(.seconds(Int64.max))
        cache[7] = "seven"
        #expect(cache[7] == "seven" && traces.value.isEmpty)
        #expect(throws: CacheError.self) { try self.cache(.seconds(-1)) }
    }

    @Test func `the time is that of the call`() throws {
        let cache = try cache()
        let start = ContinuousClock.now
        let passed = Locked(Duration.zero)
        _ = try cache.value(forKey: 8) { key in
            let begin = ContinuousClock.now
            while ContinuousClock.now - begin < .milliseconds(3) {}
            passed.change { $0 = ContinuousClock.now - begin }
            return "\(key)"
        }
        let whole = ContinuousClock.now - start
        let load = try #require(traces.value.first { $0.place == .origin })
        #expect(load.duration >= passed.value && load.duration <= whole)
    }
}
