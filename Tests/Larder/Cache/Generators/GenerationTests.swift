import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

struct GenerationTests {
    private let bench: Workbench

    init() throws {
        bench = try Workbench()
    }

    // case 256, 258
    @Test func `a missing value is made, stored and given`() async throws {
        let cache = try bench.numbers()
        let calls = Counter()
        let make: (Int) throws -> String = { key in
            calls.increment()
            return "made \(key)"
        }
        #expect(try cache.value(forKey: 1, generate: make) == "made 1")
        #expect(try cache.value(forKey: 1, generate: make) == "made 1")
        #expect(cache[1] == "made 1")
        #expect(calls.value == 1)
        cache.memory.removeAll()
        #expect(try cache.value(forKey: 1, generate: make) == "made 1")
        #expect(cache.memory.contains(1))
        #expect(calls.value == 1)
        let second = try await cache.value(forKey: 2) { key in
            await Task.yield()
            return "later \(key)"
        }
        let third = try await cache.value(forKey: 3) { "at once \($0)" }
        #expect([second, third] == ["later 2", "at once 3"])
        #expect(cache.map(\.key) == [1, 2, 3])
    }

    @Test func `a removal by an update is one, also where nothing is there`() async throws {
        let cache = try bench.numbers()
        let made = try await cache.value(forKey: 1) { key in
            try cache.update(key) { $0 = nil }
            return "late"
        }
        #expect(made == "late")
        #expect(cache[1] == nil)
    }

    // case 262
    @Test func `an error goes through untouched, is not stored, and the next call tries again`() async throws {
        let cache = try bench.numbers()
        #expect(throws: Offline.self) { try cache.value(forKey: 1) { _ in throw Offline() } }
        await #expect(throws: Offline.self) { try await cache.value(forKey: 1) { _ async throws in throw Offline() } }
        await #expect(throws: Offline.self) {
            try await cache.entry(forKey: 1) { _, _ in throw Offline() }
        }
        #expect(try await cache.contains(1) == false)
        #expect(try await cache.value(forKey: 1) { _ in "ok" } == "ok")
    }

    @Test func `ten thousand callers share one generation`() async throws {
        let cache = try bench.numbers()
        let gate = LoadGate()
        let calls = Counter()
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<10_000 {
                group.addTask {
                    try await cache.value(forKey: 1) { _ in
                        calls.increment()
                        try await gate.pass()
                        return "one"
                    }
                }
            }
            try await Waiting.until { cache.waitingCallers == 10_000 }
            gate.open()
            for try await value in group { #expect(value == "one") }
        }
        #expect(calls.value == 1)
        #expect(cache.statistics.writes == 1)
    }

    @Test func `value and entry share a flight`() async throws {
        let cache = try bench.numbers()
        let gate = LoadGate()
        async let value = cache.value(forKey: 1) { _ in
            try await gate.pass()
            return "shared"
        }
        try await Waiting.until { cache.waitingCallers == 1 }
        async let entry = cache.entry(forKey: 1) { _, _ in .value("other") }
        try await Waiting.until { cache.waitingCallers == 2 }
        gate.open()
        #expect(try await value == "shared")
        #expect(try await entry.value == "shared")
    }

    @Test(arguments: ["set", "clear"]) func `another key's write does not hinder a result`(change: String) async throws
    {
        let cache = try bench.numbers()
        let gate = LoadGate()
        async let made = cache.value(forKey: 1) { _ in
            try await gate.pass()
            return "late"
        }
        try await Waiting.until { cache.waitingCallers == 1 }
        cache[2] = "other"
        // Expiry and eviction are no removals.
        if change == "clear" { try await cache.trim(toCount: 0) }
        gate.open()
        #expect(try await made == "late")
        #expect(cache[1] == "late")
    }

    @Test func `a purge leaves a late result unstored, and its callers get it`() async throws {
        let cache = try bench.numbers()
        let gate = LoadGate()
        let begun = Counter()
        async let made = cache.value(forKey: 1) { _ in
            begun.increment()
            try await gate.pass()
            return "late"
        }
        try await Waiting.until { begun.value == 1 }
        let newer = try bench.numbers(version: "2")
        gate.open()
        #expect(try await made == "late")
        #expect(newer[1] == nil)
        #expect(try newer.count == 0)
    }

    @Test func `a cancelled caller leaves at once, and the last one takes the generation along`() async throws {
        let cache = try bench.numbers()
        let gate = LoadGate()
        let (begun, ended) = (Counter(), Counter())
        let tasks = (0..<2).map { _ in
            Task {
                try await cache.value(forKey: 1) { _ in
                    begun.increment()
                    defer { ended.increment() }
                    try await gate.pass()
                    return "never"
                }
            }
        }
        try await Waiting.until { cache.waitingCallers == 2 && begun.value == 1 }
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        #expect(ended.value == 0)
        tasks[1].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[1].value }
        try await Waiting.until { ended.value == 1 }
        #expect(cache[1] == nil)
    }

    // case 261
    @Test func `a generator may use the cache, and a circle is an error`() async throws {
        let cache = try bench.numbers()
        func onThisThread() throws {
            let sum = try cache.value(forKey: 3) { key in
                cache[100] = "side"
                return try cache.value(forKey: key - 1) { "leaf \($0)" } + " and \(key)"
            }
            #expect(sum == "leaf 2 and 3")
            let error = #expect(throws: CacheError.self) {
                try cache.value(forKey: 4) { _ in try cache.value(forKey: 4) { _ in "never" } }
            }
            #expect(error?.code == .recursiveGeneration)
        }
        try onThisThread()
        let far = await #expect(throws: CacheError.self) {
            try await cache.value(forKey: 5) { _ in
                try await cache.value(forKey: 6) { _ in
                    try await cache.entry(forKey: 5) { _, _ in .value("never") }.value
                }
            }
        }
        #expect(far?.code == .recursiveGeneration)
        #expect(!cache.isGenerating)
    }

    @Test func `a codec that asks for what is being made is told so, in either form`() async throws {
        let home = Locked<Cache<Int, String>?>(nil)
        let codec = ValueCodec<String>(
            identifier: "asking",
            encode: { value in
                if value == "x", let cache = home.value { _ = try cache.value(forKey: 1) { _ in "y" } }
                return Data(value.utf8)
            }, decode: { String(decoding: $0, as: UTF8.self) })
        let place = try StorePlace()
        let cache: Cache<Int, String> = try await place.manager().cache(
            named: "asking", version: "1", maxAge: .days(1), codec: codec)
        home.change { $0 = cache }
        defer { home.change { $0 = nil } }
        var errors: [(any Error)?] = []
        do { _ = try await onThread { try cache.value(forKey: 1) { _ in "x" } } } catch { errors.append(error) }
        do { _ = try await cache.value(forKey: 1) { _ async in "x" } } catch { errors.append(error) }
        #expect(errors.count == 2)
        for error in errors {
            #expect((error as? CacheError)?.code == .encodingFailed)
            #expect(((error as? CacheError)?.underlying as? CacheError)?.code == .recursiveGeneration)
        }
        #expect(try await !cache.contains(1))
    }

    @Test func `many keys: one call makes what is missing`() async throws {
        let cache = try bench.numbers()
        cache[1] = "there"
        let asked = Mutex<[[Int]]>([])
        let made = try await cache.values(forKeys: [1, 2, 3, 2, 9]) { missing in
            asked.withLock { $0.append(missing) }
            return Dictionary(
                uniqueKeysWithValues: missing.filter { $0 < 9 }.map { ($0, "made \($0)") } + [(77, "extra")])
        }
        #expect(made == [1: "there", 2: "made 2", 3: "made 3"])
        #expect(asked.withLock { $0 } == [[2, 3, 9]])
        #expect(cache[77] == nil)
        let more = try await cache.values(forKeys: Set([3, 4])) { missing in
            Dictionary(uniqueKeysWithValues: missing.map { ($0, "later \($0)") })
        }
        #expect(more == [3: "made 3", 4: "later 4"])
        #expect(try await cache.values(forKeys: [Int]()) { _ in throw Offline() } == [:])
        #expect(cache.map(\.key) == [1, 2, 3, 4])
    }

    @Test func `a conditional request keeps what was not modified, and its age restarts`() async throws {
        let cache = try bench.numbers(.minutes(10))
        let tag = Data("v1".utf8)
        let olds = Mutex<[CacheEntry<Int, String>?]>([])
        func load(_ outcome: Generated<String>) async throws -> CacheEntry<Int, String> {
            try await cache.entry(forKey: 1) { _, old in
                olds.withLock { $0.append(old) }
                return outcome
            }
        }
        let first = try await load(.value("body", maxAge: .minutes(5), extendedData: tag))
        #expect(first.metadata.expiresAt == bench.time.now + 300)
        #expect(try await load(.value("unused")) == cache.entry(forKey: 1))
        bench.time.advance(by: .seconds(301))
        #expect(try await cache.value(forKey: 1) == nil)
        let second = try await load(.notModified)
        #expect(second.value == "body")
        #expect(second.extendedData == tag)
        #expect(second.metadata.writtenAt == bench.time.now)
        #expect(second.metadata.expiresAt == bench.time.now + 300)
        #expect(cache[1] == "body")
        #expect(try await cache.entry(forKey: 1) == second)
        bench.time.advance(by: .seconds(1000))
        let third = try await load(.value("fresh"))
        #expect(third.extendedData == nil)
        #expect(third.metadata.expiresAt == bench.time.now + 600)
        let seen = olds.withLock { $0 }
        #expect(seen.count == 3)
        #expect(seen[0] == nil)
        #expect(seen[1]?.extendedData == tag)
        #expect(seen[1]?.isExpired == true)
        #expect(seen[2]?.value == "body")
    }

    @Test func `not modified without anything old is an error`() async throws {
        let cache = try bench.numbers()
        let error = await #expect(throws: CacheError.self) { try await cache.entry(forKey: 1) { _, _ in .notModified } }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func `inside an update or a transaction nothing is made`() throws {
        let cache = try bench.numbers()
        cache[2] = "there"
        let error = #expect(throws: CacheError.self) {
            try cache.update(1) { _ in
                #expect(try cache.value(forKey: 2) { _ in "unused" } == "there")
                _ = try cache.value(forKey: 3) { _ in "never" }
            }
        }
        #expect(error?.code == .reentrant)
        #expect(throws: CacheError.self) {
            try bench.manager.transaction { _ in _ = try cache.values(forKeys: [3]) { _ in [3: "never"] } }
        }
    }

    @Test func `a closed store makes nothing`() async throws {
        let cache = try bench.numbers()
        try await bench.manager.close()
        let error = #expect(throws: CacheError.self) { try cache.value(forKey: 1) { _ in "never" } }
        #expect(error?.code == .closed)
        await #expect(throws: CacheError.self) { try await cache.value(forKey: 1) { _ async in "never" } }
    }

    @Test func `what does not decode is made anew`() throws {
        let codec = ValueCodec<String>(identifier: "picky", encode: { Data($0.utf8) }) { data in
            guard data != Data("bad".utf8) else { throw Offline() }
            return String(decoding: data, as: UTF8.self)
        }
        let cache: Cache<Int, String> = try bench.manager.cache(
            named: "picky", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled), codec: codec)
        cache[1] = "bad"
        #expect(try cache.value(forKey: 1) { _ in "good" } == "good")
        #expect(cache[1] == "good")
    }

    @Test func `a value in a file is made, shared and read again`() async throws {
        let cache = try bench.numbers(.hours(1), CacheOptions(memory: .disabled, inlineLimit: 0))
        let entry = try await cache.entry(forKey: 1) { _, _ in .value("large") }
        #expect(entry.metadata.isFile)
        #expect(try await cache.entry(forKey: 1) == entry)
    }
}
