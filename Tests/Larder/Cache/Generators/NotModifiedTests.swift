import Foundation
import Larder
import LarderTestSupport
import Testing

/// What a generator says that has nothing newer than the old entry.
struct NotModifiedTests {
    private let bench: Workbench

    init() throws {
        bench = try Workbench()
    }

    @Test(arguments: ["expiry", "eviction"])
    func `not modified gives the old value though it went meanwhile`(cause: String) async throws {
        let cache = try bench.numbers(.minutes(1))
        try await cache.setValue("body", forKey: 1, extendedData: Data([1]))
        bench.time.advance(by: .seconds(61))
        let (gate, begun) = (LoadGate(), Counter())
        async let entry = cache.entry(forKey: 1) { _, old in
            #expect(old?.value == "body")
            begun.increment()
            try await gate.pass()
            return .notModified
        }
        try await Waiting.until { begun.value == 1 }
        if cause == "expiry" { try await cache.removeExpired() } else { try await cache.trim(toCount: 0) }
        #expect(try await cache.entry(forKey: 1, allowingExpired: true) == nil)
        gate.open()
        #expect(try await entry.value == "body")
    }

    @Test(arguments: ["set", "remove"])
    func `not modified does not bring back what was replaced or removed meanwhile`(change: String) async throws {
        let cache = try bench.numbers(.minutes(1))
        cache[1] = "old"
        bench.time.advance(by: .seconds(61))
        let (gate, begun) = (LoadGate(), Counter())
        async let entry = cache.entry(forKey: 1) { _, _ in
            begun.increment()
            try await gate.pass()
            return .notModified
        }
        try await Waiting.until { begun.value == 1 }
        cache[1] = change == "set" ? "newer" : nil
        gate.open()
        #expect(try await entry.value == "old")
        #expect(cache[1] == (change == "set" ? "newer" : nil))
    }

    @Test func `not modified keeps the pin`() async throws {
        let cache = try bench.numbers()
        try await cache.setValue("body", forKey: 1, maxAge: .seconds(5), pinned: true)
        bench.time.advance(by: .seconds(6))
        let entry = try await cache.entry(forKey: 1) { _, _ in .notModified }
        #expect(entry.metadata.isPinned)
        #expect(try await cache.metadata(forKey: 1)?.isPinned == true)
        #expect(try await cache.metadata(forKey: 1)?.expiresAt == bench.time.now + 5)
    }

    @Test func `not modified keeps a cost that was given, also when memory has forgotten it`() async throws {
        let cache = try bench.numbers(.minutes(1))
        try await cache.setValue("body", forKey: 1, cost: 1000)
        for _ in 0..<2 {
            bench.time.advance(by: .seconds(61))
            _ = try await cache.entry(forKey: 1) { _, _ in .notModified }
            #expect(cache.memory.totalCost == 1000)
        }
        cache.memory.removeAll()
        bench.time.advance(by: .seconds(61))
        _ = try await cache.entry(forKey: 1) { _, _ in .notModified }
        #expect(cache.memory.totalCost == 1000)
    }
}
