import Foundation
import Larder
import LarderTestSupport
import Testing

/// Loaded values that cannot be stored: callers get them, and an event reports it.
struct UnstoredResultTests {
    private let place: TemporaryStore
    private let messages = Told<String>()
    private let manager: CacheManager

    init() throws {
        let (place, messages) = (try TemporaryStore(of: #fileID), messages)
        self.place = place
        manager = try place.manager { $0.log = { messages.add($0.text) } }
    }

    /// A cache that holds 100 bytes, and does not encode "refused".
    private func cache() throws -> Cache<Int, String> {
        let codec = ValueCodec<String>(
            identifier: "refusing",
            encode: { text in
                if text == "refused" { throw Offline() }
                return Data(text.utf8)
            }, decode: { String(decoding: $0, as: UTF8.self) })
        return try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(disk: DiskLimits(sizeLimit: 100)).steady,
            codec: codec)
    }

    /// Closes the manager, and returns the keys of the writes that it has reported as failed.
    private func keysOfFailures(_ events: AsyncStream<CacheEvent>) async throws -> [String?] {
        try await manager.close()
        var keys: [String?] = []
        for await event in events where event.kind == .writeFailed {
            #expect(event.cacheName == "a")
            keys.append(event.key)
        }
        return keys
    }

    @Test(arguments: ["refused", String(repeating: "x", count: 101)], LoadForm.allCases)
    func `a value that does not encode or is too large is returned and not stored`(
        text: String, form: LoadForm
    ) async throws {
        let cache = try cache()
        let events = manager.events
        #expect(try await form.load(text, in: cache) == text)
        #expect(cache[1] == nil)
        #expect(try await form.load("small", in: cache) == "small")
        #expect(cache[1] == "small" && cache.statistics.writes == 1)
        #expect(try await keysOfFailures(events) == ["1"])
    }

    @Test func `a value with an age that is not a number is returned and not stored`() async throws {
        let cache = try cache()
        let events = manager.events
        func valueOnThisThread() throws -> String? {
            try cache.value(forKey: 1) { _, _ in .value("one", maxAge: .seconds(.nan)) }
        }
        #expect(try valueOnThisThread() == "one")
        let entry = try await cache.entry(forKey: 2) { _, _ in .value("two", maxAge: .seconds(.nan)) }
        #expect(entry.value == "two")
        #expect(try cache.isEmpty)
        #expect(try await keysOfFailures(events) == ["1", "2"])
    }

    @Test(arguments: [false, true])
    func `of many keys one that does not encode is not stored, and the others are`(isOnThread: Bool) async throws {
        let cache = try cache()
        let events = manager.events
        let generate: @Sendable ([Int]) throws -> [Int: String] = { _ in [1: "one", 2: "refused", 3: "three"] }
        let found =
            if isOnThread {
                try await onThread { try cache.values(forKeys: [1, 2, 3], generate: generate) }
            } else {
                try await cache.values(forKeys: [1, 2, 3], generate: generate)
            }
        #expect(found == [1: "one", 2: "refused", 3: "three"])
        #expect(try await cache.snapshot() == [1: "one", 3: "three"])
        #expect(try await keysOfFailures(events) == ["2"])
    }

    @Test(arguments: LoadForm.allCases)
    func `a load during which the manager is closed gives its value to its callers`(form: LoadForm) async throws {
        let cache = try cache()
        let (begun, gate) = (LoadGate(), LoadGate())
        async let loaded = form.load("late", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        try await manager.close()
        #expect(messages.all == [])
        gate.open()
        #expect(try await loaded == "late")
        // The streams of events have ended, so the log has it.
        #expect(messages.all.count == 1)
        let error = await #expect(throws: CacheError.self) { try await form.load("next", in: cache) }
        #expect(error?.code == .closed)
        let again: Cache<Int, String> = try await place.manager().cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions().steady,
            codec: ValueCodec(
                identifier: "refusing", encode: { Data($0.utf8) }, decode: { String(decoding: $0, as: UTF8.self) }))
        #expect(try await again.value(forKey: 1) == nil)
    }

    @Test func `a codec that asks for the key whose load it encodes for gets an error, and the caller its value`()
        async throws
    {
        let home = Locked<Cache<Int, String>?>(nil)
        let codes = Told<CacheError.Code?>()
        let codec = ValueCodec<String>(
            identifier: "asking",
            encode: { text in
                do {
                    _ = try home.value?.value(forKey: 1) { _ in "inner" }
                } catch {
                    codes.add((error as? CacheError)?.code)
                    throw error
                }
                return Data(text.utf8)
            }, decode: { String(decoding: $0, as: UTF8.self) })
        let cache: Cache<Int, String> = try await manager.cache(
            named: "a", version: "1", maxAge: .days(1), options: CacheOptions().steady, codec: codec)
        home.change { $0 = cache }
        defer { home.change { $0 = nil } }
        for form in [LoadForm.value, .valueInTask] { #expect(try await form.load("outer", in: cache) == "outer") }
        #expect(codes.all == [.recursiveGeneration, .recursiveGeneration])
        #expect(try cache.isEmpty && !cache.isGenerating)
    }
}
