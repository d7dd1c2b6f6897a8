import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What each shared tier has to do for its nodes, in whatever order their calls come.
struct SharedTierTests {
    private let clock = ManualClock()
    private let a: MemorySharedTier
    private let b: MemorySharedTier
    private let space = SharedSpace("articles 1 cbor")
    private let key = Data("key".utf8)
    private let other = Data("other".utf8)

    init() {
        let clock = clock
        a = MemorySharedTier(messageLimit: 8) { clock.now }
        b = MemorySharedTier(joining: a)
    }

    private func entry(_ text: String, age: Duration? = nil, tags: Set<String> = []) -> SharedEntry {
        SharedEntry(payload: Data(text.utf8), age: age, tags: tags)
    }

    private func lease(_ tier: MemorySharedTier, _ key: Data) async throws -> SharedLease {
        let fetch = try await tier.fetch(key, in: space, lease: .seconds(2))
        guard case .lease(let lease) = fetch else { throw Unexpected(fetch: fetch) }
        return lease
    }

    private struct Unexpected: Error { let fetch: SharedFetch }

    private func fetch(_ tier: MemorySharedTier, _ key: Data) async throws -> SharedFetch {
        try await tier.fetch(key, in: space, lease: nil)
    }

    private func end(_ tier: MemorySharedTier) async throws -> String {
        try await tier.changes(in: space, after: nil).position
    }

    // MARK: Leases

    @Test func `one node makes an entry, and one that waits for it gets a message`() async throws {
        let (start, lease) = (try await end(b), try await lease(a, key))
        #expect(try await b.fetch(key, in: space, lease: .seconds(2)) == .missing)
        #expect(try await a.store(entry("made"), forKey: key, in: space, lease: lease))
        #expect(try await fetch(b, key) == .entry(entry("made")))
        let changes = try await b.changes(in: space, after: start)
        #expect(changes.messages == [.loaded(key)] && changes.isComplete && changes.isUpToDate)
        // The lease ended with the entry.
        #expect(try await !a.store(entry("again"), forKey: key, in: space, lease: lease))
    }

    @Test(arguments: [SharedRemoval.tag("red"), .all])
    func `a lease whose entry is refused for a removal is over, and one that waits gets a message`(
        removal: SharedRemoval
    ) async throws {
        let (start, first) = (try await end(b), try await lease(a, key))
        try await b.remove([removal], in: space)
        #expect(try await b.fetch(key, in: space, lease: .seconds(2)) == .missing)
        #expect(try await !a.store(entry("old", tags: ["red"]), forKey: key, in: space, lease: first))
        #expect(try await b.changes(in: space, after: start).messages == [.loaded(key)])
        _ = try await lease(b, key)
    }

    @Test func `a look without a lease waits for nothing`() async throws {
        let (start, lease) = (try await end(b), try await lease(a, key))
        #expect(try await fetch(b, key) == .missing)
        #expect(try await a.store(entry("made"), forKey: key, in: space, lease: lease))
        try await a.remove([.key(other)], in: space)
        #expect(try await b.changes(in: space, after: start).messages == [.removed(.key(other))])
    }

    @Test func `an entry that no node waits for is no message`() async throws {
        let (start, lease) = (try await end(b), try await lease(a, key))
        #expect(try await a.store(entry("made"), forKey: key, in: space, lease: lease))
        try await a.remove([.key(other)], in: space)
        #expect(try await b.changes(in: space, after: start).messages == [.removed(.key(other))])
    }

    @Test func `of many that miss a key at once one gets the lease`() async throws {
        let leases = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<100 {
                let tier = number % 2 == 0 ? a : b
                group.addTask { try await tier.fetch(key, in: space, lease: .seconds(2)) != .missing }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(leases == 1)
    }

    @Test func `a lease ends after its age, unless it is renewed, and then stores nothing`() async throws {
        let first = try await lease(a, key)
        clock.advance(by: .seconds(1.9))
        try await a.renew(first, forKey: key, in: space, age: .seconds(2))
        clock.advance(by: .seconds(1.9))
        #expect(try await fetch(b, key) == .missing)
        clock.advance(by: .seconds(0.2))
        let second = try await lease(b, key)
        try await a.renew(first, forKey: key, in: space, age: .seconds(2))
        #expect(try await !a.store(entry("late"), forKey: key, in: space, lease: first))
        #expect(try await b.store(entry("new"), forKey: key, in: space, lease: second))
        #expect(try await fetch(a, key) == .entry(entry("new")))
    }

    @Test func `a lease that is given back goes to the next one, and one that waits gets a message`() async throws {
        let (start, first) = (try await end(b), try await lease(a, key))
        #expect(try await b.fetch(key, in: space, lease: .seconds(2)) == .missing)
        try await a.renew(first, forKey: key, in: space, age: nil)
        #expect(try await b.changes(in: space, after: start).messages == [.loaded(key)])
        _ = try await lease(b, key)
        #expect(try await !a.store(entry("late"), forKey: key, in: space, lease: first))
    }

    // MARK: Removals during a load

    @Test(arguments: [SharedRemoval.key(Data("key".utf8)), .tag("red"), .all])
    func `what is removed while an entry is made is not stored again`(removal: SharedRemoval) async throws {
        let lease = try await lease(a, key)
        try await b.remove([removal], in: space)
        #expect(try await !a.store(entry("old", tags: ["red", "blue"]), forKey: key, in: space, lease: lease))
        #expect(try await fetch(b, key) == .missing)
    }

    @Test(arguments: [SharedRemoval.key(Data("other".utf8)), .tag("green")])
    func `a removal of something else does not concern it`(removal: SharedRemoval) async throws {
        let lease = try await lease(a, key)
        try await b.remove([removal], in: space)
        #expect(try await a.store(entry("new", tags: ["red"]), forKey: key, in: space, lease: lease))
    }

    @Test func `a plain write takes the lease of another node away`() async throws {
        let lease = try await lease(a, key)
        #expect(try await b.store(entry("written"), forKey: key, in: space, lease: nil))
        #expect(try await !a.store(entry("made"), forKey: key, in: space, lease: lease))
        #expect(try await fetch(a, key) == .entry(entry("written")))
    }

    // MARK: Entries

    @Test func `a tag or all are removed with all entries that have them, and not with later ones`() async throws {
        for (name, tags) in [("1", ["red"]), ("2", ["red", "blue"]), ("3", [])] as [(String, Set<String>)] {
            _ = try await a.store(entry(name, tags: tags), forKey: Data(name.utf8), in: space, lease: nil)
        }
        try await b.remove([.tag("blue")], in: space)
        for name in ["1", "3"] { #expect(try await fetch(a, Data(name.utf8)) != .missing) }
        #expect(try await fetch(a, Data("2".utf8)) == .missing)
        _ = try await a.store(entry("2", tags: ["blue"]), forKey: Data("2".utf8), in: space, lease: nil)
        #expect(try await fetch(b, Data("2".utf8)) == .entry(entry("2", tags: ["blue"])))
        try await b.remove([.all], in: space)
        for name in ["1", "2", "3"] { #expect(try await fetch(a, Data(name.utf8)) == .missing) }
    }

    @Test func `so many tags can be removed that all entries go`() async throws {
        _ = try await a.store(entry("1", tags: ["red"]), forKey: key, in: space, lease: nil)
        let lease = try await lease(b, other)
        try await b.remove((0...10_000).map { .tag("\($0)") }, in: space)
        #expect(try await fetch(a, key) == .missing)
        #expect(try await !b.store(entry("old", tags: ["5"]), forKey: other, in: space, lease: lease))
    }

    @Test func `an entry has what is left of its age`() async throws {
        _ = try await a.store(entry("1", age: .seconds(10)), forKey: key, in: space, lease: nil)
        clock.advance(by: .seconds(4))
        #expect(try await fetch(b, key) == .entry(entry("1", age: .seconds(6))))
        clock.advance(by: .seconds(6))
        #expect(try await fetch(b, key) == .entry(entry("1", age: .zero)))
        clock.advance(by: .milliseconds(1))
        #expect(try await fetch(b, key) == .missing)
    }

    @Test func `spaces have nothing in common`() async throws {
        let second = SharedSpace("articles 2 cbor")
        _ = try await a.store(entry("1", tags: ["red"]), forKey: key, in: space, lease: nil)
        #expect(try await a.fetch(key, in: second, lease: nil) == .missing)
        try await a.remove([.all, .tag("red"), .key(key)], in: second)
        #expect(try await fetch(b, key) == .entry(entry("1", tags: ["red"])))
    }

    // MARK: Messages

    @Test func `messages of others come in their order, from a position on`() async throws {
        let start = try await end(b)
        try await a.remove([.key(key), .tag("red")], in: space)
        _ = try await a.store(entry("1"), forKey: other, in: space, lease: nil)
        let first = try await b.changes(in: space, after: start)
        #expect(first.messages == [.removed(.key(key)), .removed(.tag("red")), .removed(.key(other))])
        // One's own are none, and move the position.
        let own = try await a.changes(in: space, after: start)
        #expect(own.messages == [] && own.position == first.position && own.isComplete)
        try await a.remove([.all], in: space)
        #expect(try await b.changes(in: space, after: first.position).messages == [.removed(.all)])
        #expect(try await b.changes(in: space, after: start).messages.count == 4)
    }

    @Test func `a node that waits gets the next message`() async throws {
        let start = try await end(b)
        let waiting = Task { try await b.changes(in: space, after: start) }
        try await Waiting.until { b.waitingCount == 1 }
        try await a.remove([.key(key)], in: space)
        #expect(try await waiting.value.messages == [.removed(.key(key))])
    }

    @Test func `a position whose messages are gone is known to be incomplete`() async throws {
        let start = try await end(b)
        try await a.remove([.key(key)], in: space)
        let one = try await b.changes(in: space, after: start)
        // Eight messages at least are kept: those behind the position are all there.
        try await a.remove(Array(repeating: .key(other), count: 7), in: space)
        let all = try await b.changes(in: space, after: one.position)
        #expect(all.isComplete && all.messages.count == 7)
        try await a.remove(Array(repeating: .key(other), count: 16), in: space)
        let lost = try await b.changes(in: space, after: start)
        #expect(!lost.isComplete && lost.messages == [] && lost.position != all.position)
        // A position of another tier, or of none.
        let foreign = try await MemorySharedTier().changes(in: space, after: nil).position
        for position in [foreign, "1000", "-1", "nonsense"] {
            #expect(try await !b.changes(in: space, after: position).isComplete)
        }
    }

    @Test func `waiting ends with the task, and with the tier`() async throws {
        let start = try await end(b)
        let cancelled = Task { try await b.changes(in: space, after: start) }
        try await Waiting.until { b.waitingCount == 1 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let cut = Task { try await b.changes(in: space, after: start) }
        try await Waiting.until { b.waitingCount == 1 }
        b.isAvailable = false
        await #expect(throws: MemorySharedTier.Unavailable.self) { try await cut.value }
        await #expect(throws: MemorySharedTier.Unavailable.self) { try await fetch(b, key) }
        #expect(a.isAvailable && !b.isAvailable)
        try await a.remove([.key(key)], in: space)
        b.isAvailable = true
        #expect(try await b.changes(in: space, after: start).messages == [.removed(.key(key))])
    }
}
