import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// What the tier in memory has beyond the duties of each tier: a clock of its own, and cuts.
struct MemorySharedTierTests {
    private let clock = ManualClock()
    private let a: MemorySharedTier
    private let b: MemorySharedTier
    private let space = SharedSpace("articles/1/cbor")
    private let key = Data("key".utf8)

    init() {
        let tiers = MemorySharedTier.nodes(2, clock)
        (a, b) = (tiers[0], tiers[1])
    }

    private func entry(_ text: String, age: Duration? = nil) -> SharedEntry {
        SharedEntry(payload: Data(text.utf8), age: age)
    }

    private func fetch(_ tier: MemorySharedTier) async throws -> SharedFetch {
        try await tier.fetch(key, in: space, lease: nil)
    }

    private func lease(_ tier: MemorySharedTier) async throws -> SharedLease? {
        if case .lease(let lease) = try await tier.fetch(key, in: space, lease: .seconds(2)) { lease } else { nil }
    }

    @Test func `a lease ends after its age, unless it is renewed`() async throws {
        let first = try #require(await lease(a))
        clock.advance(by: .seconds(1.9))
        try await a.renew(first, forKey: key, in: space, age: .seconds(2))
        clock.advance(by: .seconds(1.9))
        #expect(try await lease(b) == nil)
        clock.advance(by: .seconds(0.2))
        let second = try #require(await lease(b))
        try await a.renew(first, forKey: key, in: space, age: .seconds(2))
        #expect(try await !a.store(entry("late"), forKey: key, in: space, lease: first))
        #expect(try await b.store(entry("new"), forKey: key, in: space, lease: second))
        #expect(try await fetch(a) == .entry(entry("new")))
    }

    @Test func `an entry has what is left of its age`() async throws {
        _ = try await a.store(entry("1", age: .seconds(10)), forKey: key, in: space, lease: nil)
        clock.advance(by: .seconds(4))
        #expect(try await fetch(b) == .entry(entry("1", age: .seconds(6))))
        clock.advance(by: .seconds(6))
        #expect(try await fetch(b) == .entry(entry("1", age: .zero)))
        clock.advance(by: .milliseconds(1))
        #expect(try await fetch(b) == .missing)
    }

    @Test func `waiting ends with the task, and with the tier`() async throws {
        let start = try await b.changes(in: space, after: nil).position
        let cancelled = Task { try await b.changes(in: space, after: start) }
        try await Waiting.until { b.waitingCount == 1 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let cut = Task { try await b.changes(in: space, after: start) }
        try await Waiting.until { b.waitingCount == 1 }
        b.isAvailable = false
        await #expect(throws: MemorySharedTier.Unavailable.self) { try await cut.value }
        await #expect(throws: MemorySharedTier.Unavailable.self) { try await fetch(b) }
        #expect(a.isAvailable && !b.isAvailable)
        try await a.remove([.key(key)], in: space)
        b.isAvailable = true
        #expect(try await b.changes(in: space, after: start).messages == [.removed(.key(key))])
    }

    @Test func `a position of another tier, or of none, is known to be incomplete`() async throws {
        let foreign = try await MemorySharedTier().changes(in: space, after: nil).position
        for position in [foreign, "1000", "-1", "nonsense"] {
            #expect(try await !b.changes(in: space, after: position).isComplete)
        }
    }
}
