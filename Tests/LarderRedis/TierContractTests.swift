import Foundation
import Larder
import LarderRedis
import LarderTestSupport
import Testing

/// What each shared tier has to do for its nodes, in whatever order their calls come.
struct TierContractTests {
    enum Kind: Sendable { case memory, redis }

    static let kinds: [Kind] = RealServer.isInstalled ? [.memory, .redis] : [.memory]

    /// Two nodes of a tier, which keeps about so many messages.
    private struct Pair {
        let a, b: any SharedTier
        /// Runs as long as the nodes are used.
        let server: RealServer?
        let space = SharedSpace("articles/1/cbor")
        let key = Data("tkey".utf8)
        let other = Data("tother".utf8)
        let young = Data("tyoung".utf8)

        init(_ kind: Kind) async throws {
            switch kind {
            case .memory:
                let first = MemorySharedTier(messageLimit: 100)
                (a, b, server) = (first, MemorySharedTier(joining: first), nil)
            case .redis:
                let server = try RealServer()
                (a, b, self.server) = (
                    try await server.node(streamLimit: 100), try await server.node(streamLimit: 100), server
                )
            }
        }

        func lease(_ tier: any SharedTier, _ key: Data) async throws -> SharedLease {
            let fetch = try await tier.fetch(key, in: space, lease: .seconds(60))
            guard case .lease(let lease) = fetch else { throw Unexpected(fetch: fetch) }
            return lease
        }

        /// Returns the payload of an entry.
        func payload(_ tier: any SharedTier, _ key: Data) async throws -> String? {
            guard case .entry(let entry) = try await tier.fetch(key, in: space, lease: nil) else { return nil }
            return String(decoding: entry.payload, as: UTF8.self)
        }

        func store(
            _ tier: any SharedTier, _ text: String, _ key: Data, _ lease: SharedLease? = nil, tags: Set<String> = []
        ) async throws -> Bool {
            let entry = SharedEntry(payload: Data(text.utf8), age: .seconds(600), tags: tags)
            return try await tier.store(entry, forKey: key, in: space, lease: lease)
        }

        func end(_ tier: any SharedTier) async throws -> String {
            try await tier.changes(in: space, after: nil).position
        }

        /// Returns the messages behind a position up to the end.
        func messages(_ tier: any SharedTier, after position: String) async throws -> [SharedChanges.Message] {
            try await tier.changes(in: space, after: position).messages
        }
    }

    private struct Unexpected: Error { let fetch: SharedFetch }

    // MARK: Leases

    @Test(arguments: kinds)
    func `one node makes an entry, and one that waits for it gets a message`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let (start, lease) = (try await pair.end(pair.b), try await pair.lease(pair.a, pair.key))
        #expect(try await pair.b.fetch(pair.key, in: pair.space, lease: .seconds(60)) == .missing)
        #expect(try await pair.store(pair.a, "made", pair.key, lease))
        #expect(try await pair.payload(pair.b, pair.key) == "made")
        #expect(try await pair.messages(pair.b, after: start) == [.loaded(pair.key)])
        // The lease ended with the entry.
        #expect(try await !pair.store(pair.a, "again", pair.key, lease))
    }

    @Test(arguments: kinds)
    func `a look without a lease waits for nothing, and without one that waits there is no message`(
        kind: Kind
    ) async throws {
        let pair = try await Pair(kind)
        let (start, lease) = (try await pair.end(pair.b), try await pair.lease(pair.a, pair.key))
        #expect(try await pair.payload(pair.b, pair.key) == nil)
        #expect(try await pair.store(pair.a, "made", pair.key, lease))
        try await pair.a.remove([.key(pair.other)], in: pair.space)
        #expect(try await pair.messages(pair.b, after: start) == [.removed(.key(pair.other))])
    }

    @Test(arguments: kinds)
    func `of many that miss a key at once one gets the lease`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let leases = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<100 {
                let tier = number % 2 == 0 ? pair.a : pair.b
                group.addTask { try await tier.fetch(pair.key, in: pair.space, lease: .seconds(60)) != .missing }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(leases == 1)
    }

    @Test(arguments: kinds)
    func `a lease that is given back goes to the next one, and one that waits gets a message`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let (start, first) = (try await pair.end(pair.b), try await pair.lease(pair.a, pair.key))
        #expect(try await pair.b.fetch(pair.key, in: pair.space, lease: .seconds(60)) == .missing)
        try await pair.a.renew(first, forKey: pair.key, in: pair.space, age: .seconds(60))
        #expect(try await pair.b.fetch(pair.key, in: pair.space, lease: .seconds(60)) == .missing)
        try await pair.a.renew(first, forKey: pair.key, in: pair.space, age: nil)
        #expect(try await pair.messages(pair.b, after: start) == [.loaded(pair.key)])
        _ = try await pair.lease(pair.b, pair.key)
        #expect(try await !pair.store(pair.a, "late", pair.key, first))
        // One that is not held any more changes nothing.
        try await pair.a.renew(first, forKey: pair.key, in: pair.space, age: nil)
        #expect(try await pair.a.fetch(pair.key, in: pair.space, lease: .seconds(60)) == .missing)
    }

    @Test(arguments: kinds)
    func `a lease ends after its age, and then stores nothing`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        guard case .lease(let first) = try await pair.a.fetch(pair.key, in: pair.space, lease: .milliseconds(1)) else {
            throw Unexpected(fetch: .missing)
        }
        var second: SharedLease?
        while second == nil {
            if case .lease(let lease) = try await pair.b.fetch(pair.key, in: pair.space, lease: .seconds(60)) {
                second = lease
            }
        }
        #expect(try await !pair.store(pair.a, "late", pair.key, first))
        #expect(try await pair.store(pair.b, "new", pair.key, second))
        #expect(try await pair.payload(pair.a, pair.key) == "new")
    }

    // MARK: Removals during a load

    private static let concerned: [SharedRemoval] = [
        .key(Data("tkey".utf8)), .tag("red"), .prefix(Data("tk".utf8)), .all,
    ]

    @Test(arguments: kinds, concerned)
    func `what is removed while an entry is made is not stored again`(kind: Kind, removal: SharedRemoval) async throws {
        let pair = try await Pair(kind)
        let lease = try await pair.lease(pair.a, pair.key)
        try await pair.b.remove([removal], in: pair.space)
        #expect(try await !pair.store(pair.a, "old", pair.key, lease, tags: ["red", "blue"]))
        #expect(try await pair.payload(pair.b, pair.key) == nil)
        // The lease has ended.
        _ = try await pair.lease(pair.b, pair.key)
    }

    @Test(arguments: kinds)
    func `one that waits for an entry which is refused gets a message`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let lease = try await pair.lease(pair.a, pair.key)
        try await pair.a.remove([.tag("red")], in: pair.space)
        let start = try await pair.end(pair.b)
        #expect(try await pair.b.fetch(pair.key, in: pair.space, lease: .seconds(60)) == .missing)
        #expect(try await !pair.store(pair.a, "old", pair.key, lease, tags: ["red"]))
        #expect(try await pair.messages(pair.b, after: start) == [.loaded(pair.key)])
    }

    @Test(arguments: kinds, [SharedRemoval.key(Data("tother".utf8)), .tag("green"), .prefix(Data("tkeys".utf8))])
    func `a removal of something else does not concern it`(kind: Kind, removal: SharedRemoval) async throws {
        let pair = try await Pair(kind)
        let lease = try await pair.lease(pair.a, pair.key)
        try await pair.b.remove([removal], in: pair.space)
        #expect(try await pair.store(pair.a, "new", pair.key, lease, tags: ["red"]))
        #expect(try await pair.payload(pair.b, pair.key) == "new")
    }

    @Test(arguments: kinds)
    func `a plain write takes the lease of another node away`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let lease = try await pair.lease(pair.a, pair.key)
        #expect(try await pair.store(pair.b, "written", pair.key))
        #expect(try await !pair.store(pair.a, "made", pair.key, lease))
        #expect(try await pair.payload(pair.a, pair.key) == "written")
    }

    // MARK: Entries

    @Test(arguments: kinds)
    func `an entry is what was stored`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let entries = [
            SharedEntry(
                payload: Data((0...255).map { UInt8($0) }), age: .seconds(600), tags: ["red", "caf\u{e9}", "1:2", ""],
                extendedData: Data([0, 13, 10])),
            SharedEntry(payload: Data(), age: .seconds(600), extendedData: Data()),
            SharedEntry(payload: Data(), age: .seconds(600), isAbsent: true),
        ]
        for entry in entries {
            #expect(try await pair.a.store(entry, forKey: pair.key, in: pair.space, lease: nil))
            guard case .entry(var found) = try await pair.b.fetch(pair.key, in: pair.space, lease: .seconds(1)) else {
                Issue.record("it is not there")
                return
            }
            #expect(found.age.map { $0 <= .seconds(600) && $0 > .seconds(400) } == true)
            found.age = entry.age
            #expect(found == entry)
        }
    }

    @Test(arguments: kinds)
    func `a tag or all are removed with all entries that have them, and not with later ones`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let keys = ["1", "2", "3"].map { Data($0.utf8) }
        for (key, tags) in zip(keys, [["red"], ["red", "blue"], []] as [Set<String>]) {
            _ = try await pair.store(pair.a, "one", key, tags: tags)
        }
        try await pair.b.remove([.tag("blue")], in: pair.space)
        #expect(try await pair.payload(pair.a, keys[0]) == "one")
        #expect(try await pair.payload(pair.a, keys[1]) == nil)
        #expect(try await pair.payload(pair.a, keys[2]) == "one")
        _ = try await pair.store(pair.a, "two", keys[1], tags: ["blue"])
        #expect(try await pair.payload(pair.b, keys[1]) == "two")
        try await pair.b.remove([.all], in: pair.space)
        for key in keys { #expect(try await pair.payload(pair.a, key) == nil) }
    }

    @Test(arguments: kinds)
    func `so many tags can be removed that old entries go, and young ones stay`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        _ = try await pair.store(pair.a, "one", pair.key, tags: ["red"])
        let lease = try await pair.lease(pair.b, pair.other)
        try await pair.b.remove((0..<9_000).map { .tag("\($0)") }, in: pair.space)
        _ = try await pair.store(pair.a, "young", pair.young, tags: ["blue"])
        let late = Data("tlate".utf8)
        _ = try await pair.store(pair.a, "late", late, tags: ["9500"])
        try await pair.b.remove((9_000...10_000).map { .tag("\($0)") }, in: pair.space)
        #expect(try await pair.payload(pair.a, late) == nil)
        #expect(try await pair.payload(pair.a, pair.key) == nil)
        #expect(try await pair.payload(pair.a, pair.young) == "young")
        #expect(try await !pair.store(pair.b, "old", pair.other, lease, tags: ["5"]))
    }

    @Test(arguments: kinds)
    func `a lease from before a removal of all gives way to the next node`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let old = try await pair.lease(pair.a, pair.key)
        try await pair.b.remove([.all], in: pair.space)
        let new = try await pair.lease(pair.b, pair.key)
        #expect(try await !pair.store(pair.a, "old", pair.key, old))
        #expect(try await pair.store(pair.b, "new", pair.key, new))
        #expect(try await pair.payload(pair.a, pair.key) == "new")
    }

    @Test(arguments: kinds)
    func `spaces have nothing in common`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let second = SharedSpace("articles/2/cbor")
        _ = try await pair.store(pair.a, "one", pair.key, tags: ["red"])
        #expect(try await pair.a.fetch(pair.key, in: second, lease: nil) == .missing)
        try await pair.a.remove([.all, .tag("red"), .key(pair.key)], in: second)
        #expect(try await pair.payload(pair.b, pair.key) == "one")
    }

    // MARK: Messages

    @Test(arguments: kinds)
    func `messages of others come in their order, from a position on`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let start = try await pair.end(pair.b)
        #expect(try await pair.end(pair.a) == start)
        try await pair.a.remove([.key(pair.key), .tag("red")], in: pair.space)
        _ = try await pair.store(pair.a, "one", pair.other)
        let first = try await pair.b.changes(in: pair.space, after: start)
        #expect(first.messages == [.removed(.key(pair.key)), .removed(.tag("red")), .removed(.key(pair.other))])
        #expect(first.isComplete && first.isUpToDate)
        #expect(try await pair.end(pair.b) == first.position)
        // One's own are none, and move the position.
        let own = try await pair.a.changes(in: pair.space, after: start)
        #expect(own.messages == [] && own.position == first.position && own.isComplete)
        try await pair.a.remove([.all], in: pair.space)
        #expect(try await pair.messages(pair.b, after: first.position) == [.removed(.all)])
        #expect(try await pair.messages(pair.b, after: start).count == 4)
        // What was sent before the node has asked for the end may be of an earlier start.
        _ = try await pair.end(pair.a)
        #expect(try await pair.messages(pair.a, after: start).count == 4)
    }

    @Test(arguments: kinds)
    func `an entry that is discarded is removed without a message, unless another one has taken its place`(
        kind: Kind
    ) async throws {
        let pair = try await Pair(kind)
        _ = try await pair.store(pair.a, "one", pair.key, tags: ["red"])
        guard case .entry(let first) = try await pair.b.fetch(pair.key, in: pair.space, lease: nil) else { return }
        _ = try await pair.store(pair.a, "two", pair.key, tags: ["red"])
        let start = try await pair.end(pair.a)
        try await pair.b.discard(first, forKey: pair.key, in: pair.space)
        #expect(try await pair.payload(pair.a, pair.key) == "two")
        guard case .entry(let second) = try await pair.b.fetch(pair.key, in: pair.space, lease: nil) else { return }
        try await pair.b.discard(second, forKey: pair.key, in: pair.space)
        #expect(try await pair.payload(pair.a, pair.key) == nil)
        _ = try await pair.lease(pair.a, pair.key)
        try await pair.b.remove([.key(pair.other)], in: pair.space)
        #expect(try await pair.messages(pair.a, after: start) == [.removed(.key(pair.other))])
    }

    @Test(arguments: kinds)
    func `a node that waits gets the next message, of each of its spaces`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let spaces = (0..<4).map { SharedSpace("\($0)") }
        var starts: [String] = []
        for space in spaces { starts.append(try await pair.b.changes(in: space, after: nil).position) }
        let waiting = zip(spaces, starts).map { space, start in
            Task {
                var changes = try await pair.b.changes(in: space, after: start)
                // Without a message it says that the tier is there.
                while changes.messages.isEmpty {
                    changes = try await pair.b.changes(in: space, after: changes.position)
                }
                return changes.messages
            }
        }
        for (index, space) in spaces.enumerated().reversed() {
            try await pair.a.remove([.tag("\(index)")], in: space)
            #expect(try await waiting[index].value == [.removed(.tag("\(index)"))])
        }
    }

    @Test(arguments: kinds)
    func `a position whose messages are gone is known to be incomplete`(kind: Kind) async throws {
        let pair = try await Pair(kind)
        let start = try await pair.end(pair.b)
        try await pair.a.remove([.key(pair.key)], in: pair.space)
        let one = try await pair.b.changes(in: pair.space, after: start)
        try await pair.a.remove(Array(repeating: .key(pair.other), count: 50), in: pair.space)
        let all = try await pair.b.changes(in: pair.space, after: one.position)
        #expect(all.isComplete && all.messages.count == 50)
        try await pair.a.remove(Array(repeating: .key(pair.other), count: 1000), in: pair.space)
        let lost = try await pair.b.changes(in: pair.space, after: one.position)
        #expect(!lost.isComplete && lost.messages == [])
        #expect(try await pair.end(pair.a) == lost.position)
    }
}
