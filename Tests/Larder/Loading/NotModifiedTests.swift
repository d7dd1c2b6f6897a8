import Foundation
import Larder
import LarderTestSupport
import Testing

/// Conditional requests: closures that return `.notModified` for an expired entry.
struct NotModifiedTests {
    private let bench: Workbench
    private let olds = Told<CacheEntry<Int, String>?>()

    init() throws { bench = try Workbench() }

    /// Loads the entry of key 1 on a thread or in a task.
    private func load(
        _ outcome: Generated<String>, in cache: Cache<Int, String>, onThread isOnThread: Bool
    ) async throws -> CacheEntry<Int, String> {
        let generate: @Sendable (Int, CacheEntry<Int, String>?) throws -> Generated<String> = { [olds] _, old in
            olds.add(old)
            return outcome
        }
        if isOnThread { return try await onThread { try cache.entry(forKey: 1, generate: generate) } }
        return try await cache.entry(forKey: 1, generate: generate)
    }

    @Test(arguments: [false, true])
    func `a closure gets the expired entry, and its age restarts if it was not modified`(
        isOnThread: Bool
    ) async throws {
        let cache = try bench.numbers(.minutes(10))
        let tag = Data("v1".utf8)
        let value = Generated.value("body", maxAge: .minutes(5), extendedData: tag)
        let first = try await load(value, in: cache, onThread: isOnThread)
        #expect(first.value == "body" && first.metadata.expiresAt == bench.time.now + 300)
        let again = try await load(.value("unused"), in: cache, onThread: isOnThread)
        #expect(again == first)
        bench.time.advance(by: .seconds(301))
        #expect(cache[1] == nil)

        let second = try await load(.notModified, in: cache, onThread: isOnThread)
        #expect(second.value == "body" && second.extendedData == tag && !second.isExpired)
        #expect(second.metadata.writtenAt == bench.time.now)
        #expect(second.metadata.expiresAt == bench.time.now + 300)
        #expect(cache[1] == "body")
        let stored = try await cache.entry(forKey: 1)
        #expect(stored == second)

        bench.time.advance(by: .seconds(301))
        let third = try await load(.value("fresh"), in: cache, onThread: isOnThread)
        #expect(third.value == "fresh" && third.extendedData == nil)
        #expect(third.metadata.expiresAt == bench.time.now + 600)
        #expect(olds.all.map { $0?.value } == [nil, "body", "body"])
        #expect(olds.all.map { $0?.isExpired } == [nil, true, true])
        #expect(olds.all.map { $0?.extendedData } == [nil, tag, tag])
        try expectInvariants(cache)
    }

    @Test(arguments: [false, true])
    func `not modified without an old entry is an error`(isOnThread: Bool) async throws {
        let cache = try bench.numbers()
        let error = await #expect(throws: CacheError.self) {
            try await load(.notModified, in: cache, onThread: isOnThread)
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(try cache.isEmpty && !cache.isGenerating)
    }

    @Test func `an entry that was not modified keeps all that is stored with it`() async throws {
        let cache = try bench.numbers(.minutes(1))
        try await cache.setValue(
            "body", forKey: 1, cost: 1000, maxAge: .seconds(5), extendedData: Data([1]), tags: ["t"], pinned: true)
        for isInMemory in [true, false] {
            if !isInMemory { cache.memory.removeAll() }
            bench.time.advance(by: .seconds(6))
            let entry = try await load(.notModified, in: cache, onThread: false)
            #expect(entry.value == "body" && entry.extendedData == Data([1]) && entry.metadata.isPinned)
            let metadata = try await cache.metadata(forKey: 1)
            #expect(metadata?.isPinned == true)
            #expect(metadata?.writtenAt == bench.time.now && metadata?.expiresAt == bench.time.now + 5)
            #expect(cache[1] == "body")
            #expect(cache.memory.totalCost == 1000)
        }
        #expect(try await cache.entries(tagged: "t").map(\.key) == [1])
        try expectInvariants(cache)
    }

    // MARK: - Changes while the closure runs

    enum Change: CaseIterable { case set, remove, removeExpired, trim }

    @Test(arguments: Change.allCases)
    func `callers get the old value though its entry leaves in the meantime, and it does not come back`(
        change: Change
    ) async throws {
        let cache = try bench.numbers(.minutes(1))
        try await cache.setValue("old", forKey: 1, extendedData: Data([1]))
        bench.time.advance(by: .seconds(61))
        let (begun, gate) = (LoadGate(), LoadGate())
        async let entry = cache.entry(forKey: 1) { _, _ in
            begun.open()
            try await gate.waitInTask()
            return .notModified
        }
        defer { gate.open() }
        try await begun.waitInTask()
        switch change {
        case .set: cache[1] = "newer"
        case .remove: cache[1] = nil
        case .removeExpired: #expect(try await cache.removeExpired() == 1)
        case .trim: #expect(try await cache.trim(toCount: 0) == 1)
        }
        gate.open()
        let loaded = try await entry
        #expect(loaded.value == "old" && loaded.extendedData == Data([1]))
        #expect(cache[1] == (change == .set ? "newer" : nil))
        #expect(try cache.count == (change == .set ? 1 : 0))
        try expectInvariants(cache)
    }
}
